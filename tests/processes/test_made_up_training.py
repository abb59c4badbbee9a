"""A made-up training does its epochs at the pace of its GPUs, continues from its checkpoint, and tells what it did."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from gpusched_operations.live.made_up_training import FAILED, MadeUpTraining, command, run_events
from waiting import eventually


def started(
    folder: Path, training: MadeUpTraining, restarts: int = 0, gpus: str = "0,1", job: str = "7"
) -> subprocess.Popen[bytes]:
    path = training.save(folder / "training.json")
    variables = {
        "SLURM_JOB_ID": job,
        "SLURM_RESTART_COUNT": str(restarts),
        "SLURMD_NODENAME": "v100-2",
        "CUDA_VISIBLE_DEVICES": gpus,
        "GPUSCHED_PROGRESS": str(folder),
    }
    words = shlex.split(command(path).removeprefix("exec "))
    return subprocess.Popen(words, env={**os.environ, **variables})


def kinds(folder: Path) -> list[str]:
    return [event.kind for event in run_events(folder)]


def test_does_its_epochs_and_reports_the_last_one(tmp_path):
    run = started(tmp_path, MadeUpTraining(str(tmp_path), 2.5, {"v100x2": 0.2}))
    assert run.wait(300.0) == 0
    start, ready, end = run_events(tmp_path)
    assert (start.kind, ready.kind, end.kind) == ("start", "ready", "end")
    assert (start.node, start.configuration, start.gpus, start.job) == ("v100-2", "v100x2", (0, 1), "7")
    assert (start.epochs, end.epochs) == (0.0, 2.5)
    assert end.at_s - ready.at_s >= 0.499
    report = json.loads((tmp_path / "7.json").read_text())
    assert (report["epochs"], report["restarts"]) == (2.5, 0)


def test_what_is_done_at_sigterm_is_kept_and_the_next_run_continues(tmp_path):
    training = MadeUpTraining(str(tmp_path), 3.0, {"v100x2": 1000.0, "v100x1": 0.05}, restart_s=0.2)
    run = started(tmp_path, training)
    eventually(lambda: "ready" in kinds(tmp_path))
    (tmp_path / "7.checkpoint").write_text("1.0")  # as if an epoch had been done
    run.send_signal(signal.SIGTERM)
    assert run.wait(300.0) == 0
    stopped = run_events(tmp_path)[-1]
    assert stopped.kind == "stopped"
    assert 0.0 < stopped.epochs < 0.1
    assert started(tmp_path, training, 1, "3").wait(300.0) == 0
    start, ready, end = run_events(tmp_path)[-3:]
    assert start.epochs == stopped.epochs
    assert ready.at_s - start.at_s >= 0.2
    assert (end.configuration, end.epochs, end.restarts, end.gpus) == ("v100x1", 3.0, 1, (3,))


def test_two_runs_of_one_job_at_once_are_told(tmp_path):
    first = started(tmp_path, MadeUpTraining(str(tmp_path), 1.0, {"v100x2": 1000.0}))
    eventually(lambda: "ready" in kinds(tmp_path))
    other = started(tmp_path, MadeUpTraining(str(tmp_path), 0.1, {"v100x2": 0.1}), job="8")
    assert other.wait(300.0) == 0
    assert "overlap" not in kinds(tmp_path)
    second = started(tmp_path, MadeUpTraining(str(tmp_path), 0.1, {"v100x2": 0.1}))
    assert second.wait(300.0) == 0
    assert kinds(tmp_path).count("overlap") == 1
    first.kill()
    first.wait()


@pytest.mark.parametrize("reports", [True, False])
def test_fails_when_it_is_to_and_may_be_silent(tmp_path, reports):
    training = MadeUpTraining(str(tmp_path), 9.0, {"v100x2": 0.05}, fails_at=2.0, reports=reports)
    assert started(tmp_path, training).wait(300.0) == FAILED
    assert run_events(tmp_path)[-1][1] == "failed"
    assert run_events(tmp_path)[-1].epochs == 2.0
    assert (tmp_path / "7.json").exists() == reports


def test_a_line_that_is_not_all_written_is_left_out(tmp_path):
    (tmp_path / "7.log").write_text(f'["7", "start", {time.time()}, 0, "v100-1", "v100x1", [0], 0.0]\n["7", "re')
    assert [event.kind for event in run_events(tmp_path)] == ["start"]
