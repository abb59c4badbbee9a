"""A driver that made no round loses its lease: what it did is undone, by a process that ends it first."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live import lease as leases
from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.journal import read_journal
from gpusched_operations.live.lease import DRIVER_LOCK, JOURNAL, Lease, locked, release_now, watch
from gpusched_operations.live.slurm_commands import SlurmControl
from made_up_drives import ELASTIC, driver, scripted
from made_up_slurm import MadeUpJob, MadeUpSlurm

NO_PROCESS = 2**22 + 1
"""More than any process has as its number."""


@pytest.fixture
def driven(tmp_path):
    """A driver that stopped and placed jobs, and then is there no more."""
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    slurm.submit(MadeUpJob(2, ELASTIC, tres="gres:gpu:2", work_s=1e6), held=True)
    slurm.submit(MadeUpJob(3, ELASTIC, work_s=1e6), held=True)
    made, _ = driver(
        slurm,
        tmp_path,
        scripted({"1": ("start", "A100x4", "a1"), "3": ("start", "V100x4", "v1")}, {"1": ("stop", "", "")}),
    )
    made.round()
    slurm.pause(30.0)
    made.round()
    assert [slurm.jobs[n].state for n in (1, 2, 3)] == ["PENDING", "PENDING", "RUNNING"]
    assert slurm.jobs[1].request() != slurm.jobs[1].first
    slurm.down = set(slurm.nodes)  # so that what is released is seen as it was released
    return slurm, SlurmControl(slurm.run, pause=slurm.pause)


def dead() -> Lease:
    """A lease of a process that is gone."""
    return replace(Lease.mine(600.0), pid=NO_PROCESS, began=1, beat_s=time.monotonic() - 601.0)


def undone(slurm: MadeUpSlurm) -> bool:
    waiting = [job for job in slurm.jobs.values() if job.state == "PENDING"]
    return all(job.priority and job.request() == job.first for job in waiting) and slurm.jobs[3].state == "RUNNING"


def test_the_watchdog_undoes_all_when_the_lease_is_lost(driven, tmp_path):
    slurm, commands = driven
    dead().save(tmp_path)
    lines: list[str] = []
    watch(tmp_path, "gpu", 600.0, commands, until_over=True, say=lines.append, pause=lambda _: None)
    assert undone(slurm)
    assert lines[-1] == "released 2 jobs: 1, 2"  # first the one that was stopped
    released = [line for line in read_journal(tmp_path / JOURNAL) if line["kind"] == "released"]
    assert released[0]["not_undone"] == []
    lease = Lease.load(tmp_path)
    assert lease is not None
    assert lease.over
    assert not any(job.must_be_undone for job in DriveState.load(tmp_path, "gpu").jobs.values())


def test_it_waits_as_long_as_rounds_come(driven, tmp_path):
    slurm, commands = driven
    replace(dead(), beat_s=time.monotonic()).save(tmp_path)
    looks = []

    def pause(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch(tmp_path, "gpu", 600.0, commands, pause=pause)
    assert not undone(slurm)


def test_it_goes_on_until_slurm_answers(driven, tmp_path):
    slurm, commands = driven
    dead().save(tmp_path)
    slurm.faults = dict.fromkeys(range(slurm.calls + 1, slurm.calls + 12), "down")
    lines: list[str] = []
    watch(tmp_path, "gpu", 600.0, commands, until_over=True, say=lines.append, pause=slurm.pause)
    assert undone(slurm)
    assert any(line.startswith("not yet:") for line in lines)


def test_a_change_of_the_time_of_day_costs_no_lease(monkeypatch):
    lease = Lease.mine(60.0)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert not lease.is_lost()
    assert replace(lease, boot="another").is_lost()  # a reboot begins the steady clock anew
    monkeypatch.setattr(time, "monotonic", lambda: lease.beat_s + 61.0)
    assert lease.is_lost()


def test_no_process_is_ended_for_a_lease_from_before_a_reboot(monkeypatch):
    ended = []
    monkeypatch.setattr(os, "kill", lambda *words: ended.append(words))
    lease = replace(Lease.mine(60.0), pid=os.getppid(), began=leases._began(os.getppid()), boot="another")
    assert lease.end_driver()
    assert ended == []


def test_only_one_at_a_time(driven, tmp_path):
    _, commands = driven
    with locked(tmp_path / DRIVER_LOCK, "busy"), pytest.raises(RunError, match="a driver is at work"):
        release_now(tmp_path, "gpu", commands, "by hand")
    with pytest.raises(InputError, match="--partition"):
        release_now(tmp_path, "other", commands, "by hand")


def test_by_hand_twice(driven, tmp_path):
    slurm, commands = driven
    assert release_now(tmp_path, "gpu", commands, "by hand") == ["1", "2"]
    assert undone(slurm)
    assert release_now(tmp_path, "gpu", commands, "by hand") == []
