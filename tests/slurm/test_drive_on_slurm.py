"""A driver on a real Slurm: a job is placed, changed, audited; what a killed driver did is undone."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gpusched_env.audit import audit
from gpusched_operations.live import progress
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal
from gpusched_operations.live.lease import JOURNAL
from gpusched_operations.live.run_record import write_drive
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_reproductions.conform.drive import run_queue
from made_up_drives import ELASTIC, scripted
from slurm_clusters import needs_slurm
from waiting import eventually

pytestmark = needs_slurm

TRAINING = f"""#!/bin/sh
# Begins at its checkpoint; an epoch takes a second.
done=$(cat checkpoint.$SLURM_JOB_ID 2>/dev/null || echo 0)
trap 'exit 0' TERM
{sys.executable} {progress.__file__} "$done"
while [ "$done" -lt "$1" ]; do
  sleep 1 & wait $!
  done=$((done + 1)); echo "$done" > checkpoint.$SLURM_JOB_ID
  {sys.executable} {progress.__file__} "$done"
done
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    with EmulatedCluster(tmp_path / "slurm", "v100:4x2") as made:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, made.environment[name])
        monkeypatch.delenv(progress.VARIABLE, raising=False)
        (tmp_path / "train.sh").write_text(TRAINING)
        yield made


def submit(cluster: EmulatedCluster, folder: Path, epochs: int, *more: str) -> str:
    words = ["sbatch", "--parsable", "--requeue", f"--chdir={folder}", "--output=/dev/null", f"--comment={ELASTIC}"]
    environment = cluster.environment | {"HOME": str(folder)}
    done = subprocess.run(
        [*words, *more, str(folder / "train.sh"), str(epochs)],
        env=environment,
        cwd=folder,
        check=True,
        stdout=-1,
        text=True,
    )
    return done.stdout.strip()


def shown(cluster: EmulatedCluster, job: str) -> dict[str, str]:
    words = cluster.run("scontrol", "-o", "show", "job", job).split()
    return dict(word.partition("=")[::2] for word in words)


def test_a_job_is_placed_changed_and_audited(cluster, tmp_path):
    job = submit(cluster, tmp_path, 8, "--gpus=2", "--hold")
    folder = tmp_path / "state"
    ask = scripted({job: ("start", "V100x2", "v100-1")}, {job: ("change", "V100x4", "v100-2")})
    with Journal(folder / JOURNAL) as journal:
        made = Driver(DriveSettings("gpu", "edf"), JobRules.of({}), SlurmControl(), ask, folder, journal.append)
        made.round()
        eventually(lambda: shown(cluster, job)["NodeList"] == "v100-1")
        eventually((tmp_path / f"checkpoint.{job}").exists)
        made.round()
        wanted = {"JobState": "RUNNING", "NodeList": "v100-2", "Restarts": "1", "TresPerJob": "gres:gpu:4"}
        eventually(lambda: shown(cluster, job).items() >= wanted.items())

        def idle_after_a_round() -> bool:
            made.wait(2.0)
            made.round()
            return made.idle()

        eventually(idle_after_a_round)
        assert made.finish() == []
        assert made.state.costs[0] > 0.0
    assert write_drive(folder, tmp_path / "run", "gpu")[-1].startswith(f"{tmp_path / 'run'}: 1 jobs")
    assert audit(tmp_path / "run") == []


def test_a_driver_is_killed_and_the_watchdog_undoes_what_it_did(cluster, tmp_path):
    job = submit(cluster, tmp_path, 5, "--gres=gpu:4", "--hold", "--exclude=v100-[1-2]")  # that no node can run
    folder = tmp_path / "state"
    words = ["slurm", "drive", "--partition=gpu", "--policy=edf", f"--state={folder}", "--lease=0.25", "--poll=1"]
    environment = cluster.environment | {"NUMBA_DISABLE_JIT": "1"}
    driver = subprocess.Popen(
        [sys.executable, "-m", "gpusched_experiments", *words], env=environment, stdout=subprocess.DEVNULL
    )
    try:
        eventually(lambda: shown(cluster, job)["Reason"] == "JobHeldAdmin")
        eventually((folder / "lease.json").exists)
        os.kill(driver.pid, signal.SIGKILL)
        assert driver.wait(120) == -signal.SIGKILL
        eventually(lambda: shown(cluster, job)["Reason"] != "JobHeldAdmin")  # then Slurm finds no node for it
        undone = {"TresPerNode": "gres:gpu:4", "ReqNodeList": "(null)"}
        eventually(lambda: shown(cluster, job).items() >= undone.items())
        eventually(lambda: "released 1 job" in (folder / "watchdog.log").read_text())
    finally:
        driver.kill()
        driver.wait()


def test_of_a_drawn_queue_no_job_starts_on_gpus_that_somebody_holds():
    """With hidden jobs, such as have a node alone, and shares of GPUs beside."""
    ran = run_queue(0)
    assert min(ran.hidden, ran.alone, ran.shared, ran.starts) > 0
    assert ran.on_held == ""
