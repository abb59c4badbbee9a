"""What `gpusched slurm drive` prints of jobs that a policy lets wait while GPUs are idle."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpusched_operations.live import driving
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.slurm_commands import SlurmControl
from made_up_drives import ELASTIC
from made_up_slurm import MadeUpJob, MadeUpSlurm

SETTINGS = DriveSettings("gpu", "sts-x", every_s=30.0)


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MadeUpSlurm:
    """Let drivers drive a stand-in for Slurm, on its clock, with two jobs that wait."""
    made = MadeUpSlurm()
    for number in (1, 2):
        made.submit(MadeUpJob(number, ELASTIC), held=True)
    clocks = made.clock, made.pause, made.clock
    monkeypatch.setattr(driving, "SlurmControl", lambda dry=False, **_: SlurmControl(made.run, 3.0, made.pause, dry))
    monkeypatch.setattr(driving, "Driver", lambda *given: Driver(*given, *clocks))
    monkeypatch.setattr(driving, "partition_lock", lambda _: tmp_path / "lock")
    return made


def defers(request: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Let jobs wait an hour while GPUs are idle, to save a quarter; the others wait for nothing."""
    later = {"waits_until_s": request["now_s"] + 3600.0, "saves_eur": 0.25}
    wait = {"action": "wait", "configuration": None, "nodes": []}
    jobs = [{"id": job["id"], **wait, **(later if job["id"] in names else {})} for job in request["jobs"]]
    return {"jobs": jobs, "memory": None, "ask_again_at_s": None}


def test_a_dry_run_prints_which_jobs_wait_until_when_and_what_that_saves(slurm: MadeUpSlurm, tmp_path: Path) -> None:
    lines = driving.dry_run(SETTINGS, JobRules.of({}), lambda request: defers(request, "2"), tmp_path, None)
    assert lines == [
        "scontrol hold 1,2",
        "wait 1: no GPUs now",
        "wait 2: waits until 2027-01-15 09:00 UTC, to save 0.25 EUR",
    ]
    assert slurm.touched == set()


def test_a_driver_prints_once_that_a_job_waits_and_again_when_it_waits_again(
    slurm: MadeUpSlurm, tmp_path: Path
) -> None:
    waiting: Iterator[tuple[str, ...]] = iter([(), ("1",), ("1", "2"), ("2",), ("1", "2")])  # first the dry run
    said: list[str] = []

    def ask(request: Mapping[str, Any]) -> dict[str, Any]:
        names = next(waiting, None)
        if names is None:
            raise driving.Stopped
        said.append(f"round with {' '.join(names) or 'none'}")
        return defers(request, *names)

    options = driving.DriveOptions(tmp_path / "state", watchdog=False)
    with pytest.raises(driving.Stopped):
        driving.drive(SETTINGS, JobRules.of({}), ask, options, said.append)
    assert [line.partition(" until")[0] for line in said[1:]] == [
        "round with none",
        "round with 1",
        "1 waits",
        "round with 1 2",
        "2 waits",
        "round with 2",
        "round with 1 2",
        "1 waits",
        "released 2 jobs",
    ]
    assert [line.partition(", ")[2] for line in said if " waits until " in line] == ["to save 0.25 EUR"] * 3
    assert all(job.priority > 0 for job in slurm.jobs.values())
