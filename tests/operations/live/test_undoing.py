"""What a driver did is undone at its own jobs, wherever they are by then, and at no others."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import gpusched
from gpusched_env.errors import InputError
from gpusched_operations.live import driving
from gpusched_operations.live import lease as leases
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.asking import ask_service, key_of
from gpusched_operations.live.drive_state import STATE_FILE, DriveState
from gpusched_operations.live.driven_job import Held, Pending, Running, Stopping, as_a
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.lease import DRIVER_LOCK, Lease, locked, partition_lock, release_now
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.service import client
from made_up_drives import ELASTIC, RIGID, driver, kinds, scripted
from made_up_slurm import MadeUpJob, MadeUpSlurm


@pytest.fixture
def slurm() -> MadeUpSlurm:
    return MadeUpSlurm()


def left(slurm: MadeUpSlurm, folder: Path, *rounds: dict[str, tuple[str, str, str]]) -> None:
    """Let a driver make rounds, and be gone without undoing anything."""
    made, _ = driver(slurm, folder, scripted(*rounds))
    for _ in rounds:
        made.round()
        slurm.pause(30.0)


START_STOP = ({"1": ("start", "A100x4", "a1")}, {"1": ("stop", "", "")})


@pytest.mark.parametrize("rounds", [({},), START_STOP])
@pytest.mark.parametrize("ends", [False, True])
def test_a_held_job_that_goes_to_another_partition_is_restored_and_released(slurm, tmp_path, rounds, ends):
    job = slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    made, events = driver(slurm, tmp_path, scripted(*rounds))
    for _ in rounds:
        made.round()
        slurm.pause(30.0)
    assert job.reason == "JobHeldAdmin"
    slurm.down = set(slurm.nodes)  # so that it waits as it was released
    job.partition = "other"
    if ends:
        assert made.finish() == ["1"]
    else:
        made.round()
        made.round()
        assert made.state.jobs == {}
        assert kinds(events, "left-to-slurm")[0]["why"] == "it is in the partition other now"
    assert (job.priority > 0, job.request()) == (True, job.first)
    assert job.reason in {"Resources", ""}  # it waits for GPUs, or for the time after its stop


def test_stopped_jobs_are_released_first(slurm, tmp_path):
    slurm.submit(MadeUpJob(1, RIGID), held=True)
    slurm.pause(10.0)
    slurm.submit(MadeUpJob(2, ELASTIC, work_s=1e6), held=True)
    made, _ = driver(slurm, tmp_path, scripted({"2": ("start", "A100x4", "a1")}, {"2": ("stop", "", "")}))
    made.round()
    slurm.pause(30.0)
    made.round()
    assert made.finish() == ["2", "1"]


def test_a_job_that_no_longer_opts_in_is_released_and_adopted_anew_when_it_does(slurm, tmp_path):
    job = slurm.submit(MadeUpJob(1, ELASTIC, tres="gres:gpu:2", work_s=1e6), held=True)
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "A100x4", "a1")}, {"1": ("stop", "", "")}))
    made.round()
    slurm.pause(30.0)
    made.round()
    slurm.down = set(slurm.nodes)
    job.comment = ""
    made.round()
    assert (job.priority > 0, job.request()) == (True, job.first)
    job.tres, job.comment = "gres:gpu:4", ELASTIC + " weight=0.001"
    made.round()
    assert job.reason == "JobHeldAdmin"
    assert made.state.jobs["1"].request.tres == "gres:gpu:4"
    made.finish()
    assert job.tres == "gres:gpu:4"


def test_what_a_user_changes_while_a_job_is_held_stays(slurm, tmp_path):
    job = slurm.submit(MadeUpJob(1, ELASTIC, tres="gres:gpu:2", work_s=1e6), held=True)
    made, _ = driver(slurm, tmp_path, scripted())
    made.round()
    job.tres, job.places = "gres:gpu:1", "v1"
    made.round()
    slurm.down = set(slurm.nodes)
    driver(slurm, tmp_path, scripted())[0].finish()
    assert (job.priority > 0, job.tres, job.places) == (True, "gres:gpu:1", "v1")


def test_what_a_user_changes_before_the_first_start_is_restored_after_it(slurm, tmp_path):
    job = slurm.submit(MadeUpJob(1, ELASTIC, tres="gres:gpu:2", work_s=1e6), held=True)
    made, _ = driver(slurm, tmp_path, scripted({}, {"1": ("start", "A100x4", "a1")}, {"1": ("stop", "", "")}))
    made.round()
    job.tres = "gres:gpu:1"
    made.round()
    assert job.tres == "gres:gpu:4"
    slurm.pause(30.0)
    made.round()
    slurm.down = set(slurm.nodes)
    made.finish()
    assert (job.state, job.tres, job.places) == ("PENDING", "gres:gpu:1", "")


def anew(slurm: MadeUpSlurm, **changes: Any) -> MadeUpSlurm:
    """Return the cluster set up anew: its first job has the id of another one before."""
    other = MadeUpSlurm(now_s=slurm.now_s + 1000.0)
    other.submit(MadeUpJob(1, tres="gres:gpu:8", work_s=1e6, **changes), held=True)
    return other


@pytest.mark.parametrize(
    "changes",
    [{"partition": "other", "user": "else"}, {"user": "else"}, {"command": "/x.sh"}, {}, {"comment": ELASTIC}],
)
def test_a_job_that_only_has_the_id_of_a_driven_one_is_not_touched(slurm, tmp_path, changes):
    slurm.submit(MadeUpJob(1, ELASTIC, tres="gres:gpu:2", work_s=1e6), held=True)
    left(slurm, tmp_path, *START_STOP)
    assert DriveState.load(tmp_path, "gpu").jobs["1"].progress
    other = anew(slurm, **changes)
    assert release_now(tmp_path, "gpu", SlurmControl(other.run, pause=other.pause), "by hand") == []
    assert (other.jobs[1].request(), other.jobs[1].reason, other.touched) == (other.jobs[1].first, "JobHeldUser", set())
    left(slurm, tmp_path / "again", *START_STOP)
    made, events = driver(other, tmp_path, scripted())
    made.observe()
    assert [fields["job"] for fields in kinds(events, "other-job")] == ["1"]
    if "comment" in changes:  # it opts in: as a new job
        assert (made.state.jobs["1"].progress, made.state.jobs["1"].request.tres) == (None, "gres:gpu:8")
    else:
        assert made.state.jobs == {}
        assert other.touched == set()


def test_a_state_is_read_as_it_was_written(slurm, tmp_path):
    run = Running("V100x2", ("v1",), 2, 5.0, stopped_s=4.0)
    stages = Pending(3.0), Held(3.0, confirmed=True), run, as_a(Stopping, run, ready_s=6.0, first_epochs=0.5)
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    left(slurm, tmp_path, *START_STOP)
    job = DriveState.load(tmp_path, "gpu").jobs["1"]
    assert (job.state, job.last.nodes, job.progress.epochs > 0.0) == ("held", ("a1",), True)
    state = DriveState("gpu", jobs={str(n): replace(job, stage=each) for n, each in enumerate(stages)})
    state.save(tmp_path)
    assert DriveState.load(tmp_path, "gpu") == state
    (tmp_path / STATE_FILE).write_text(json.dumps({"form": 1, "partition": "gpu", "jobs": {}}))
    with pytest.raises(InputError, match="a state of form 2"):
        DriveState.load(tmp_path, "gpu")


def test_a_state_is_of_one_cluster(slurm, tmp_path):
    job = slurm.submit(MadeUpJob(1, ELASTIC), held=True)
    left(slurm, tmp_path, {})
    before = (tmp_path / STATE_FILE).read_text()
    slurm.cluster = "elsewhere"
    commands = SlurmControl(slurm.run, pause=slurm.pause)
    with pytest.raises(InputError, match="made-up, of which this is the state"):
        release_now(tmp_path, "gpu", commands, "by hand")
    made, _ = driver(slurm, tmp_path, scripted())
    with pytest.raises(InputError, match="cluster"):
        made.round()
    jobs, slurm.jobs = slurm.jobs, {}  # another cluster without jobs says nothing of its name
    assert release_now(tmp_path, "gpu", commands, "by hand") == []
    assert job.reason == "JobHeldAdmin"
    slurm.cluster, slurm.jobs, slurm.down = "made-up", jobs, set(slurm.nodes)
    assert release_now(tmp_path, "gpu", commands, "by hand") == ["1"]
    assert json.loads(before)["cluster"] == "made-up"
    assert job.priority > 0


def test_nodes_of_jobs_without_gpus_stay_on_and_none_is_told_twice(slurm, tmp_path):
    slurm.submit(MadeUpJob(1, RIGID, tres="gres:gpu:1", work_s=1e6), held=True)
    slurm.others = {"v2"}
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "V100x1", "v1")}), power_off_s=300.0)
    for _ in range(4):
        made.round()
        slurm.pause(301.0)
    assert slurm.powered_down == ["a1"]


def test_a_wait_looks_and_says_so_only_where_slurm_answered(slurm, tmp_path):
    slurm.submit(MadeUpJob(1, RIGID, work_s=1e6))
    slurm.pause(1.0)
    made, _ = driver(slurm, tmp_path, scripted(), poll_s=2.0)
    made.round()
    looks: list[float] = []
    slurm.step_s = 0.0
    made.wait(10.0, lambda: looks.append(slurm.now_s))
    assert len(looks) == 5
    slurm.faults = dict.fromkeys(range(slurm.calls + 1, slurm.calls + 200), "down")
    made.wait(10.0, lambda: looks.append(slurm.now_s))
    assert len(looks) == 5


def test_a_renewal_keeps_a_lease(tmp_path, monkeypatch):
    Lease.mine(15.0).save(tmp_path)
    begun_s = time.monotonic()
    for second in range(1, 40):
        monkeypatch.setattr(time, "monotonic", lambda second=second: begun_s + second)
        driving._renew(tmp_path, 15.0)
    lease = Lease.load(tmp_path)
    assert lease is not None
    assert not lease.is_lost()


def test_a_drive_renews_its_lease_in_waits_and_its_commands_keep_its_lock(slurm, tmp_path, monkeypatch):
    runs: list[Any] = []

    def control(run: Any = None, dry: bool = False) -> SlurmControl:
        runs.append(run)
        return SlurmControl(slurm.run, pause=slurm.pause, dry=dry)

    def wait(_driver: Driver, _seconds: float, looked: Callable[[], object]) -> None:
        replace(Lease.mine(600.0), beat_s=time.monotonic() - 500.0).save(tmp_path)
        looked()
        assert not replace(Lease.load(tmp_path), lease_s=300.0).is_lost()
        words = ["ls", "-l", "/proc/self/fd"]
        assert f"/{DRIVER_LOCK}" in next(filter(None, runs))(words, "", 10.0).output
        raise driving.Stopped

    monkeypatch.setattr(leases, "RUN_FOLDER", tmp_path / "no")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(driving, "SlurmControl", control)
    monkeypatch.setattr(Driver, "wait", wait)
    options = driving.DriveOptions(tmp_path, watchdog=False)
    drive = partial(driving.drive, DriveSettings("gpu", "edf"), JobRules.of({}), scripted(), options, print)
    with pytest.raises(driving.Stopped):
        drive()
    slurm.submit(MadeUpJob(1, RIGID))
    slurm.cluster = "elsewhere"
    DriveState("gpu", cluster="made-up").save(tmp_path)
    with pytest.raises(InputError, match="made-up, of which this is the state"):
        drive()
    assert slurm.touched == set()


def test_a_round_whose_service_breaks_off_is_counted_and_tried_again(slurm, tmp_path, monkeypatch):
    job = slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    answers = iter([b"{", b"[]", None])
    answer = scripted({"1": ("start", "A100x4", "a1")})

    def post(_: str, body: bytes) -> bytes:
        text = next(answers)
        return json.dumps(answer(json.loads(body)) | {"energy_eur_per_h": 0.0}).encode() if text is None else text

    def wait(*_: object, **__: object) -> None:
        raise driving.Stopped

    monkeypatch.setattr(client, "post", post)
    monkeypatch.setattr(time, "sleep", slurm.pause)
    monkeypatch.setattr(Driver, "wait", wait)
    made, events = driver(slurm, tmp_path, ask_service("http://there"))
    with pytest.raises(driving.Stopped):
        driving._rounds(made, driving.DriveOptions(tmp_path, watchdog=False), lambda _: None)
    assert [fields["in_a_row"] for fields in kinds(events, "round-failed")] == [1, 2]
    assert [run[1:] for run in job.runs] == [("a1", 4)]


def test_looks_too_rare_for_the_lease_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(driving, "drive", lambda *_: None)
    words = ["slurm", "drive", "--partition=gpu", "--lease=0.25", "--poll=6", "--every=6", f"--state={tmp_path}"]
    done = gpusched(*words)
    assert done.exit_code != 0
    assert "--poll" in done.output


def test_a_release_where_no_state_is_says_so(tmp_path):
    words = ["slurm", "release", "--partition", "gpu", "--state", str(tmp_path / "none")]
    done = gpusched(*words)
    assert done.exit_code != 0
    assert str(tmp_path / "none") in done.output.replace("\n", "")
    assert list(tmp_path.iterdir()) == []
    DriveState("gpu").save(tmp_path)
    done = gpusched(*words[:-1], str(tmp_path))
    assert done.output.splitlines() == [f"state: {tmp_path}", "released 0 jobs"]


def test_a_driver_gone_before_its_first_state_is_over(slurm, tmp_path):
    no_process = 2**22 + 1  # more than any process has as its number
    Lease(no_process, 1, leases._boot(), time.monotonic() - 601.0, 600.0).save(tmp_path)
    lines: list[str] = []
    leases.watch(
        tmp_path, "gpu", 600.0, SlurmControl(slurm.run), until_over=True, say=lines.append, pause=lambda _: None
    )
    assert lines[-1] == "released 0 jobs: none"


def test_the_lock_of_a_partition_lies_where_only_its_user_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "RUN_FOLDER", tmp_path / "run")
    monkeypatch.setenv("HOME", str(tmp_path))
    default = partition_lock("gpu", {})
    assert default.parent == tmp_path / ".local/state/gpusched"
    assert default == partition_lock("gpu", {"SLURM_CONF": "/etc/slurm/slurm.conf"})
    assert default == partition_lock("gpu", {"SLURM_CONF": "/etc/slurm/../slurm/slurm.conf"})
    assert len({default, partition_lock("cpu", {}), partition_lock("gpu", {"SLURM_CONF": "/x.conf"})}) == 3
    (tmp_path / "run").mkdir(mode=0o700)
    assert partition_lock("gpu", {}).parent == tmp_path / "run"
    (tmp_path / "run").chmod(0o777)
    assert partition_lock("gpu", {}).parent == default.parent


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_lock_that_root_makes_belongs_to_the_user_of_its_folder(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    locked(tmp_path / "lock", "busy").close()
    assert (tmp_path / "lock").stat().st_uid == 65534


def test_the_key_is_never_readable_by_others(tmp_path, monkeypatch):
    modes: list[int] = []
    former = Path.replace

    def seen(path: Path, target: Path) -> Path:
        modes.append(stat.S_IMODE(path.stat().st_mode))
        return former(path, target)

    monkeypatch.setattr(Path, "replace", seen)
    assert key_of(tmp_path) == key_of(tmp_path)
    assert modes == [0o600]
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
