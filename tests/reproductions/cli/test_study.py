"""`gpusched study`, with trainings as short as they get."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpusched_experiments.cli.app import app
from gpusched_reproductions.cli import study as module

COMMAND = (sys.executable, "-m", "gpusched_experiments.cli.main", "study")
SHORT = (
    "--variants", "no-set-network", "-s", "tiny", "--steps", "512", "--test-seeds", "0-1", "--set", "envs=4",
    "--set", "validation_seeds=500", "--set", "network.hidden=8", "--set", "evaluate_every=128",
    "--set", "imitation.rollout=16", "--set", "agent.n_steps=16", "--set", "agent.batch_size=32",
)  # fmt: skip


def gpusched(*arguments):
    return CliRunner().invoke(app, ["study", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_trains_runs_and_ends_in_a_table(folder):
    done = gpusched(*SHORT, "--seeds", "0", "-w", 1, "--out", "out")
    assert done.exit_code == 0, done.output
    for words in ("Learning, part by part", "no set network", "sts-x", "saved", "wrote out/summary.json"):
        assert words in done.stdout
    curves = list(csv.DictReader(io.StringIO((folder / "out/curves.csv").read_text())))
    assert {row["variant"] for row in curves} == {"no-set-network"}
    assert {row["phase"] for row in curves} == {"imitation", "learning"}
    assert int(curves[-1]["steps"]) >= 512
    described = json.loads((folder / "out/runs/no-set-network-0/agent/agent.json").read_text())
    assert described["config"]["network"] == {"kind": "mlp", "hidden": 8, "distribution": True, "guard": False}
    assert described["name"] == "no-set-network-0"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--variants", "full,magic"], ["--variants", "full,magic", "no-set-network"]),
        (["--variants", "full,full"], ["--variants", "each once"]),
        (["--steps", "0"], ["--steps", "0"]),
        (["--seeds", "2-1"], ["--seeds", "2-1"]),
        (["--test-seeds", "x"], ["--test-seeds"]),
        (["--test-seeds", "500"], ["test_seeds", "500", "validation_seeds"]),
        (["--scenario", "nowhere"], ["nowhere"]),
        (["--scenario", "published-high,default"], ["scenarios", "same configurations"]),
        (["--set", "network.kind=mlp"], ["--set", "network.kind=mlp"]),
        (["--set", "imitation.steps=5"], ["--set", "imitation.steps=5"]),
        (["--set", "magic=5"], ["--set", "magic=5"]),
        (["--workers", "0"], ["--workers", "0"]),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(folder, options, words):
    done = gpusched(*options)
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr
    assert not list(folder.iterdir())


def test_the_usual_study_and_the_quick_one(monkeypatch):
    plans, changes = [], ("--nodes", 3, "--jobs", 5, "--scenario-set", "prices.pue=2")

    def stop(plan, out, **_):
        plans.append((plan, out))
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "study", stop)
    for options in ([], ["--quick"], ["--set", "evaluate_every=7", "--seeds", "5", *changes]):
        done = gpusched(*options)
        assert done.exit_code == 130
        assert "the same command goes on" in done.stderr
    (usual, out), (quick, quick_out), (own, _) = plans
    assert (len(usual.trainings()), usual.steps, usual.base.evaluate_every) == (15, 1_000_000, 50_000)
    assert usual.base.scenarios == ("high", "low", "mixed", "default")
    assert (usual.base.envs, usual.test_seeds) == (32, tuple(range(20)))
    assert (len(quick.trainings()), quick.base.envs, quick.base.validation_seeds) == (5, 16, (500, 501))
    assert (own.base.evaluate_every, own.training_seeds) == (7, (5,))
    assert own.base.scenario_settings == {"cluster.nodes": 3, "jobs.count": 5, "prices.pue": 2}
    assert not usual.base.scenario_settings
    assert (out, quick_out) == ("results/study", "results/study-quick")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="looks for processes in /proc")
def test_a_killed_study_leaves_nobody_behind_and_goes_on(folder):
    arguments = (*SHORT, "--seeds", "0-1", "-w", "2", "--out", "out")
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    checkpoints = [folder / f"out/runs/no-set-network-{seed}/checkpoint.safetensors" for seed in (0, 1)]
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline and process.poll() is None and not all(path.exists() for path in checkpoints):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (folder / "out/table.md").exists()
    while time.monotonic() < deadline and _trains_in(folder):
        time.sleep(0.05)
    assert not _trains_in(folder)
    done = gpusched(*SHORT, "--seeds", "0-1", "-w", 1, "--out", "out")
    assert done.exit_code == 0, done.output
    assert {row["seed"] for row in csv.DictReader(io.StringIO((folder / "out/curves.csv").read_text()))} == {"0", "1"}
    for seed in (0, 1):
        assert (folder / f"out/runs/no-set-network-{seed}/finished.json").exists()


def _trains_in(folder):
    """List the processes that work in the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if place.readlink() == folder:
                found.append(place.parent.name)
        except OSError:
            continue
    return [each for each in found if int(each) != os.getpid()]
