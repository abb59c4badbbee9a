"""What a driver's journal tells becomes a run that the audit accepts; figures that can be checked by hand."""

from __future__ import annotations

import json

import pytest

from gpusched_env.audit import audit
from gpusched_env.errors import InputError
from gpusched_env.formats.run_folder import read_run
from gpusched_operations.live.journal import Journal, read_journal
from gpusched_operations.live.last_drive import Interval, last_drive, separate
from gpusched_operations.live.lease import JOURNAL
from gpusched_operations.live.run_record import write_drive
from made_up_drives import ELASTIC, driver, scripted
from made_up_slurm import MadeUpJob, MadeUpSlurm


@pytest.fixture
def driven(tmp_path):
    """A state folder: job 1 ran, was stopped and went on elsewhere; 2 was cancelled; 3 never reported."""
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=400.0), held=True)
    slurm.submit(MadeUpJob(2, ELASTIC, work_s=1e6), held=True)
    slurm.submit(MadeUpJob(3, ELASTIC, work_s=100.0, reports=False), held=True)
    first = {"1": ("start", "V100x2", "v1"), "2": ("start", "V100x2", "v1"), "3": ("start", "A100x4", "a1")}
    folder = tmp_path / "state"
    made, _ = driver(slurm, folder, scripted(first, {"1": ("change", "V100x4", "v2")}))
    with Journal(folder / JOURNAL, clock=slurm.clock) as journal:
        made.on_event = made._follower.on_event = journal.append
        made.round()
        slurm.pause(50.0)
        made.round()
        slurm.cancel(2)
        slurm.pause(200.0)
        made.round()
        assert made.idle()
    return folder


def test_the_audit_accepts_it(driven, tmp_path):
    lines = write_drive(driven, tmp_path / "run", "gpu")
    assert lines[0] == "job 2 is not in the run: it was not completed (cancelled)"
    assert audit(tmp_path / "run") == []
    run = read_run(tmp_path / "run")
    assert run.intervals["configuration"].to_list() == ["V100x2", "A100x4", "V100x4"]
    assert run.jobs["epochs_needed"].to_list() == [40.0, 90.0]  # reported, and at most
    assert run.jobs["switches"].to_list() == [2, 0]
    assert run.policy == "edf"
    factors = run.facts["provenance"]["facts"]["time_factors"]
    seconds = json.loads((tmp_path / "run/instance.json").read_text())["jobs"]["seconds_per_epoch"]
    told = dict.fromkeys(factors, 0.0)
    for line in (driven / JOURNAL).glob("*.jsonl"):
        for text in line.read_text().splitlines():
            event = json.loads(text)
            if event["kind"] == "told":
                told[event["job"]] = event["fields"]["seconds_per_epoch"]["V100x2"]
    names = [c.name for c in run.instance.configurations]
    assert seconds[0][names.index("V100x2")] == pytest.approx(told["1"] * factors["1"], rel=1e-3)


def test_a_run_is_that_of_the_last_drive(tmp_path):
    """Two drives of one folder: the second has its own job, policy and rounds, not those of the first."""
    slurm, folder = MadeUpSlurm(), tmp_path / "state"
    with Journal(folder / JOURNAL, clock=slurm.clock) as journal:
        for number, policy in ((1, "edf"), (2, "sts-x")):
            slurm.submit(MadeUpJob(number, ELASTIC, work_s=400.0), held=True)
            made, _ = driver(slurm, folder, scripted({str(number): ("start", "V100x2", "v1")}))
            made.on_event = made._follower.on_event = journal.append
            journal.append("drive", partition="gpu", policy=policy, lease_s=900.0)
            made.round()
            slurm.pause(1000.0)
            made.round()
            assert made.idle()
            made.finish()
    lines = write_drive(folder, tmp_path / "run", "gpu")
    assert lines[-1].startswith(f"{tmp_path / 'run'}: 1 jobs")
    run = read_run(tmp_path / "run")
    assert (run.policy, len(run.jobs), list(run.facts["provenance"]["facts"]["time_factors"])) == ("sts-x", 1, ["2"])
    assert last_drive(read_journal(folder / JOURNAL)).rounds == 2
    assert audit(tmp_path / "run") == []


def begun(policy: str) -> dict[str, object]:
    return {"kind": "drive", "policy": policy}


def ran(job: str, start_s: float) -> dict[str, object]:
    held = {"configuration": "V100x2", "nodes": ["v1"], "ready_s": start_s}
    return {"kind": "interval", "job": job, "start_s": start_s, "end_s": start_s + 50.0, **held}


ROUND = {"kind": "round", "ask_s": 0.25}
RELEASED = {"kind": "released"}
ENDED = {"kind": "ended", "job": "1", "outcome": "completed", "epochs": 3.0}


@pytest.mark.parametrize(
    ("between", "policy", "stays"),
    [
        ([], "edf", {"1": 1, "2": 1}),
        ([], "sts", {"1": 0, "2": 1}),
        ([RELEASED], "edf", {"1": 0, "2": 1}),
        ([ENDED], "edf", {"2": 1}),
    ],
    ids=["killed", "another policy", "released", "no job left"],
)
def test_a_driver_that_was_killed_goes_on_with_its_drive(between, policy, stays):
    """Of a job of which a part ran in another drive, nothing of this one counts: it is known and left out."""
    drive = last_drive([begun("edf"), ROUND, ran("1", 0.0), *between, begun(policy), ROUND, ran("2", 100.0)])
    assert {name: len(run.stays) for name, run in drive.runs.items()} == stays
    assert {name for name, run in drive.runs.items() if run.ran_before} == {n for n, many in stays.items() if not many}
    rounds = 2 if stays.get("1") else 1
    assert (drive.policy, drive.rounds, drive.decision_s) == (policy, rounds, 0.25 * rounds)


def test_without_complete_jobs_there_is_no_run(tmp_path):
    with pytest.raises(InputError, match="journal"):
        write_drive(tmp_path, tmp_path / "run", "gpu")
    with Journal(tmp_path / JOURNAL) as journal:
        journal.append("adopted", job="1")
    with pytest.raises(InputError, match="--out"):
        write_drive(tmp_path, tmp_path / "run", "gpu")


def test_times_that_were_rounded_do_not_overlap():
    late, next_one, *both = (
        Interval("1", "V100x4", (node,), None, *times)
        for node, times in (("v1", (0.0, 10.6)), ("v1", (10.0, 20.0)), ("v2", (0.0, 10.0)), ("v2", (10.0, 30.0)))
    )
    separate([[late], [next_one], list(both)])
    assert (late.end_s, both[0].end_s) == (10.0, 9.999)
