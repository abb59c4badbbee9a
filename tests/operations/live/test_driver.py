"""A driver on a stand-in for Slurm: whatever fails, no job is lost or wrongly touched, and all can be undone."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.actions import actions_of
from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.driven_job import TRANSITIONS
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress_reports import Report
from made_up_drives import ELASTIC, MOVABLE, RIGID, driver, kinds, observed_transitions, scripted
from made_up_slurm import Killed, MadeUpJob, MadeUpSlurm

ALLOWED = {(one, following) for one, more in TRANSITIONS.items() for following in more}


@pytest.fixture(autouse=True)
def transitions(monkeypatch):
    """Fail a test in which a job changes its state as the table does not allow."""
    seen = observed_transitions(monkeypatch)
    yield seen
    assert seen <= ALLOWED


def any_answer(rng: random.Random) -> Any:
    """Answer at random: often what is allowed, sometimes not."""

    def ask(fields: Mapping[str, Any]) -> dict[str, Any]:
        free = {node["name"]: node["gpus"] for node in fields["cluster"]["nodes"]}
        types = {node["name"]: node["gpu_type"] for node in fields["cluster"]["nodes"]}
        for job in fields["jobs"]:
            if job.get("running"):
                for node in job["running"]["nodes"]:
                    free[node] -= int(job["running"]["configuration"].rpartition("x")[2])
        jobs = []
        for job in fields["jobs"]:
            actions = ["keep", "stop", "change"] if job.get("running") else ["wait", "start", "start", "start"]
            action = rng.choice(actions)
            names = list(fields["times"][job["seconds_per_epoch"]])
            if rng.random() < 0.05:
                names = ["V100x0.5", "A100x3", "V100x2"]
            name, node = rng.choice(names), rng.choice(list(free))
            if action in ("start", "change") and not name.startswith(types[node]) and rng.random() < 0.9:
                action = "keep" if job.get("running") else "wait"
            jobs.append({"id": job["id"], "action": action, "configuration": name, "nodes": [node]})
        return {"jobs": jobs, "memory": None, "ask_again_at_s": None}

    return ask


def test_jobs_are_held_placed_and_run(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC), held=True)
    slurm.submit(MadeUpJob(2, RIGID, tres="gres:gpu:2", per="tres_per_job"), held=True)
    slurm.submit(MadeUpJob(3, "", tres="gres:gpu:v100:1"), held=True)
    made, events = driver(slurm, tmp_path, scripted({"1": ("start", "A100x4", "a1"), "2": ("start", "V100x2", "v2")}))
    made.round()
    assert slurm.jobs[1].runs[0][1:] == ("a1", 4)
    assert slurm.jobs[2].runs[0][1:] == ("v2", 2)
    assert slurm.jobs[1].tres == "gres:gpu:4"
    assert slurm.jobs[2].tres == "gres:gpu:2"  # without a type, as it was: Slurm refuses to mix both
    assert slurm.touched == {1, 2}
    assert [fields["job"] for fields in kinds(events, "start")] == ["1", "2"]
    assert made.commands.calls <= 9


def test_a_job_goes_through_the_states_of_the_table(tmp_path, transitions):
    slurm = MadeUpSlurm()
    job = slurm.submit(MadeUpJob(1, ELASTIC, work_s=1000.0), held=True)
    start = {"1": ("start", "A100x4", "a1")}
    made, _ = driver(slurm, tmp_path, scripted(start, {"1": ("stop", "", "")}, start, {}, start, {}))
    for state in ("running", "held", "running"):
        made.round()
        assert made.state.jobs["1"].state == state
        slurm.pause(60.0)
    job.state, job.node, job.restarts = "PENDING", "", job.restarts + 1  # its node failed
    slurm.down = set(slurm.nodes)
    made.observe()
    assert made.state.jobs["1"].state == "held"
    job.comment = ""
    made.observe()
    made.observe()
    assert made.state.jobs["1"].state == "left"
    slurm.cancel(1)
    made.observe()
    assert made.state.jobs == {}
    assert transitions == {
        ("absent", "pending"), ("pending", "held"), ("held", "starting"), ("starting", "running"),
        ("running", "stopping"), ("stopping", "held"), ("running", "starting"), ("starting", "held"),
        ("held", "releasing"), ("releasing", "left"), ("left", "absent"),
    }  # fmt: skip


def test_the_page_on_the_architecture_shows_the_states():
    page = (Path(__file__).parents[3] / "docs/architecture.md").read_text(encoding="utf-8")
    for state, following in TRANSITIONS.items():
        assert f"| {state} | {', '.join(following)} |" in page


def test_a_change_stops_the_job_and_starts_it_elsewhere_at_once(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    made, events = driver(
        slurm, tmp_path, scripted({"1": ("start", "V100x2", "v1")}, {"1": ("change", "V100x4", "v2")})
    )
    made.round()
    slurm.pause(60.0)
    made.round()
    assert [run[1:] for run in slurm.jobs[1].runs] == [("v1", 2), ("v2", 4)]
    assert slurm.jobs[1].runs[1][0] - slurm.jobs[1].runs[0][0] < 70.0  # not the two minutes of BeginTime
    made.round()
    assert [round(cost) for cost in made.state.costs] == [1]
    (interval,) = kinds(events, "interval")
    assert (interval["configuration"], interval["nodes"], interval["epochs"]) == ("V100x2", ("v1",), 12.0)


def test_what_a_job_did_not_allow_is_refused(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, RIGID, work_s=1e6), held=True)
    slurm.submit(MadeUpJob(2, MOVABLE, work_s=1e6), held=True)
    slurm.submit(MadeUpJob(3, ELASTIC, work_s=1e6, requeue=False), held=True)
    first = {"1": ("start", "V100x2", "v1"), "2": ("start", "V100x2", "v1"), "3": ("start", "A100x4", "a1")}
    again = {"1": ("stop", "", ""), "2": ("change", "V100x4", "v2"), "3": ("stop", "", "")}
    made, events = driver(slurm, tmp_path, scripted(first, again, {"2": ("change", "V100x0.5", "v2")}))
    for _ in range(3):
        made.round()
    assert slurm.stopped == []
    refused = kinds(events, "refused")
    assert [fields["job"] for fields in refused] == ["2", "2"]  # the policy was never asked about the other two
    assert "one of V100x2, A100x2" in refused[0]["said"]
    assert "whole GPUs" in refused[1]["said"]
    assert len(slurm.jobs[2].runs) == 1


def test_an_answer_about_other_jobs_or_what_they_do_not_allow_does_nothing(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, RIGID, work_s=1e6))
    slurm.submit(MadeUpJob(2, "", work_s=1e6))
    slurm.pause(1.0)
    made, _ = driver(slurm, tmp_path, scripted())
    made.observe()
    stops = {"jobs": [{"id": name, "action": "stop"} for name in ("1", "2", "3")]}
    made.apply(stops)
    assert set(made.actions.refused) == {"1", "2", "3"}
    assert slurm.stopped == []
    known = {"1": JobRules.of({}).describe(made._seen.job("1"))}  # as if it had been in a request
    actions = actions_of(stops, made._seen, made.state.jobs, known, {"v1": "V100", "v2": "V100", "a1": "A100"})
    assert (actions.stops, "checkpoint" in actions.refused["1"]) == ((), True)
    for wrong in ({}, {"jobs": 3}, {"jobs": [{}]}, {"jobs": [{"id": "1", "action": "kill"}]}):
        with pytest.raises(InputError, match="answer"):
            made.apply(wrong)


def test_a_dry_run_changes_nothing(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC), held=True)
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "A100x4", "a1")}), dry=True)
    made.apply(made.decide(made.observe()))
    assert made.actions.lines() == ["start 1: A100x4 on a1"]
    assert made.commands.not_run == ["scontrol hold 1"]
    assert (slurm.touched, slurm.jobs[1].reason, list(tmp_path.iterdir())) == (set(), "JobHeldUser", [])


def test_a_user_s_hold_is_respected_and_a_job_that_slurm_started_is_accepted(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC), held=True)
    slurm.submit(MadeUpJob(2, MOVABLE, work_s=1e6))
    slurm.pause(1.0)  # Slurm starts it itself
    start = {"1": ("start", "V100x2", "v2")}
    made, events = driver(slurm, tmp_path, scripted({}, start, start))
    made.round()
    assert kinds(events, "runs")[0]["by"] == "slurm"
    slurm.user_holds(1)
    made.round()
    assert (slurm.jobs[1].state, slurm.jobs[1].reason) == ("PENDING", "JobHeldUser")
    made.finish()
    assert slurm.jobs[1].reason == "JobHeldUser"  # it stays as its user wants it
    assert slurm.jobs[1].request() == slurm.jobs[1].first


def test_a_job_that_its_user_holds_while_its_gpus_become_free_is_not_started(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, tres="gres:gpu:4", work_s=1e6, kill_s=10.0), held=True)
    slurm.submit(MadeUpJob(2, ELASTIC), held=True)
    stop = {"1": ("stop", "", ""), "2": ("start", "V100x4", "v1")}
    made, events = driver(slurm, tmp_path, scripted({"1": ("start", "V100x4", "v1")}, stop))
    made.round()
    stopping = made.commands.stop
    made.commands.stop = lambda names: (stopping(names), slurm.user_holds(2))[0]
    made.round()
    assert slurm.jobs[2].runs == []
    assert [(fields["job"], fields["why"]) for fields in kinds(events, "not-started")] == [("2", "its user holds it")]


def test_a_job_that_slurm_never_stops_is_not_stopped_again(tmp_path, monkeypatch):
    slurm, said = MadeUpSlurm(), "Requested operation is presently disabled for job 1"
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    tried = []
    monkeypatch.setattr(slurm, "_requeuehold", lambda job: tried.append(job.id) or said)
    stop = {"1": ("stop", "", "")}
    made, events = driver(slurm, tmp_path, scripted({"1": ("start", "A100x4", "a1")}, stop, stop))
    for _ in range(3):
        made.round()
        slurm.pause(30.0)
    assert tried == [1]
    assert made.state.jobs["1"].state == "running"
    assert [fields["action"] for fields in kinds(events, "refused")] == ["stop"]


def test_a_begin_time_that_its_user_gave_stays_at_the_first_start(tmp_path):
    slurm = MadeUpSlurm()
    job = slurm.submit(MadeUpJob(1, ELASTIC), held=True)
    job.begin_s = begin_s = slurm.now_s + 3600.0
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "A100x4", "a1")}))
    made.round()
    assert (job.begin_s, job.runs) == (begin_s, [])


def test_jobs_that_wait_for_others_are_left_alone(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, dependency="afterok:9(unfulfilled)"))
    slurm.submit(MadeUpJob(2, ELASTIC, tres="", per="tres_per_job"))
    made, events = driver(slurm, tmp_path, scripted())
    made.round()
    assert slurm.touched == set()
    assert {fields["job"]: fields["why"] for fields in kinds(events, "left-alone")} == {
        "1": "it waits for other jobs",
        "2": "it asks for no GPUs",
    }
    assert made.idle()


def test_a_start_that_slurm_does_not_make_is_taken_back_and_tried_later(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC), held=True)
    slurm.submit(MadeUpJob(2, "", tres="gres:gpu:v100:4", work_s=1e6, places="v1"))
    slurm.pause(1.0)
    start = {"1": ("start", "V100x2", "v2")}
    made, events = driver(slurm, tmp_path, scripted(start, start, start))
    request = made.observe()
    slurm.broken.add("v2")
    made.apply(made.decide(request))
    (late,) = kinds(events, "not-started")
    assert (late["job"], slurm.jobs[1].reason, slurm.jobs[1].request()) == ("1", "JobHeldAdmin", slurm.jobs[1].first)
    assert made.observe().jobs == {}  # not told at once again
    slurm.broken.clear()
    slurm.pause(60.0)
    made.round()
    assert slurm.jobs[1].state == "RUNNING"


def test_a_report_of_a_former_run_is_ignored_and_an_absurd_one_is_refused(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6, reports=False), held=True)
    made, events = driver(slurm, tmp_path, scripted({"1": ("start", "V100x2", "v1")}))
    made.round()
    for restarts, epochs, believed in ((0, 5.0, 5.0), (0, 4.0, 5.0), (0, 91.0, 5.0), (1, 60.0, 5.0), (0, 6.0, 6.0)):
        slurm.posted["1"] = Report("1", restarts, epochs, slurm.now_s)
        made.observe()
        assert made.state.jobs["1"].progress.epochs == believed
    assert [fields["why"] for fields in kinds(events, "report-refused")] == [
        "4 epochs after 5 in the same run",
        "91 epochs of at most 90",
    ]


def test_a_job_that_never_reports_keeps_what_the_model_expects_of_its_runs(tmp_path):
    """It is stopped after 900 s: it has done as much then as it was told to have done while it ran, and no less."""
    slurm, asked = MadeUpSlurm(), []
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6, reports=False), held=True)
    script = scripted({"1": ("start", "V100x2", "v1")}, {"1": ("stop", "", "")})

    def ask(fields):
        asked.append(fields["jobs"][0])
        return script(fields)

    made, _ = driver(slurm, tmp_path, ask)
    for _ in range(3):
        made.round()
        slurm.pause(900.0)
    first, runs, stopped = asked
    assert "epochs_done" not in first
    assert "running" not in stopped
    assert runs["epochs_done"] <= stopped["epochs_done"] < 1.02 * runs["epochs_done"]


def test_nodes_without_jobs_are_switched_off(tmp_path):
    slurm = MadeUpSlurm()
    slurm.nodes |= {"b1": ("v100", 4), "b2": ("v100", 4)}
    slurm.others, slurm.partitions = {"b1"}, {"b2": "gpu,other"}  # a job without GPUs; nodes of two partitions
    slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "V100x2", "v1")}), power_off_s=300.0)
    made.round()
    made.round()
    assert slurm.powered_down == []
    slurm.pause(301.0)
    made.round()
    assert sorted(slurm.powered_down) == ["a1", "v2"]


def test_a_power_limit_is_written_where_a_prolog_reads_it(tmp_path):
    slurm = MadeUpSlurm()
    slurm.submit(MadeUpJob(1, ELASTIC, admin_comment="theirs"), held=True)
    made, _ = driver(slurm, tmp_path, scripted({"1": ("start", "V100x4@0.7", "v1")}))
    made.round()
    assert slurm.jobs[1].admin_comment == "theirs,gpusched-power=0.7"
    assert made.state.jobs["1"].run.configuration == "V100x4@0.7"


FAULTS = ["die", "die-after", "late", "timeout", "down", "garbage", "refuse"]


def submitted(rng: random.Random, slurm: MadeUpSlurm) -> tuple[set[int], set[int]]:
    """Submit jobs of all kinds; return those that may not be touched, and those that may not be stopped."""
    foreign, rigid = set(), set()
    for number in range(1, rng.randint(2, 9)):
        kind = rng.choice([ELASTIC, ELASTIC, MOVABLE, RIGID, ""])
        job = MadeUpJob(
            number,
            kind,
            tres=f"gres:gpu:{rng.choice(['v100:', ''])}{rng.choice([1, 2, 4])}",
            per=rng.choice(["tres_per_node", "tres_per_job"]),
            work_s=rng.choice([30.0, 300.0, 3000.0]),
            kill_s=rng.choice([0.2, 5.0, 31.0]),
            requeue=rng.random() < 0.9,
            reports=rng.random() < 0.8,
            admin_comment=rng.choice(["", "theirs"]),
            partition="gpu" if rng.random() < 0.9 else "other",
        )
        slurm.submit(job, held=rng.random() < 0.5 and kind != "")
        if not kind or job.partition != "gpu":
            foreign.add(number)
        if kind == RIGID or not job.requeue:
            rigid.add(number)
    return foreign, rigid


def survived(make: Callable[[], Driver], made: Driver, what: Callable[[Driver], object], slurm: MadeUpSlurm) -> Driver:
    """Do something with a driver; where it is killed, the next one takes its place."""
    try:
        what(made)
    except Killed:
        return make()
    except (RunError, InputError):
        slurm.pause(1.0)
    return made


def undone(make: Callable[[], Driver], made: Driver, slurm: MadeUpSlurm) -> None:
    """End the driver, as often as it takes: every fault comes once."""
    done: list[object] = []
    while not done:
        made = survived(make, made, lambda driver: done.append(driver.finish()), slurm)


@pytest.mark.parametrize("fault", ["die", "die-after"])
def test_a_driver_that_is_killed_at_any_call_leaves_nothing_held(fault):
    at_call, reached = 0, True
    while reached:
        at_call += 1
        slurm = MadeUpSlurm(faults={at_call: fault})
        slurm.submit(MadeUpJob(1, ELASTIC, work_s=1e6), held=True)
        slurm.submit(MadeUpJob(2, ELASTIC, tres="gres:gpu:4", work_s=1e6), held=True)
        slurm.submit(MadeUpJob(3, ELASTIC, work_s=1e6))
        first = {"1": ("start", "V100x4", "v1"), "2": ("start", "A100x4", "a1")}
        again = {"1": ("change", "V100x4", "v2"), "2": ("stop", "", "")}
        script = scripted(first, again, {"2": ("start", "A100x2", "a1")})
        with TemporaryDirectory() as folder:

            def make(slurm: MadeUpSlurm = slurm, folder: str = folder, script: Any = script) -> Driver:
                return driver(slurm, Path(folder), script)[0]

            made = make()
            for _ in range(3):
                made = survived(make, made, Driver.round, slurm)
            reached = slurm.calls >= at_call
            slurm.down = set(slurm.nodes)  # so that what is released is seen as it was released
            undone(make, made, slurm)
        waiting = [job for job in slurm.jobs.values() if job.state == "PENDING"]
        assert all(job.priority and job.request() == job.first for job in waiting), at_call
    assert at_call > 15


@settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@example(
    seed=93668, leave=False, faults={1: "die", 6: "late", 12: "die", 21: "die"}
)  # a stop that was done and not answered
@given(
    seed=st.integers(0, 2**32 - 1),
    leave=st.booleans(),
    faults=st.dictionaries(st.integers(1, 150), st.sampled_from(FAULTS), max_size=25),
)
def test_whatever_fails_nothing_is_lost_or_left_held(seed, leave, faults):
    rng, slurm = random.Random(seed), MadeUpSlurm(faults=faults)  # noqa: S311 - no secret
    foreign, rigid = submitted(rng, slurm)
    with TemporaryDirectory() as folder:

        def make() -> Driver:
            return driver(slurm, Path(folder), any_answer(rng))[0]

        made = make()
        for _ in range(rng.randint(1, 12)):
            made = survived(make, made, Driver.round, slurm)
            made = survived(make, made, lambda driver: driver.wait(rng.choice([1.0, 10.0])), slurm)
            if rng.random() < 0.1:
                slurm.cancel(rng.choice(list(slurm.jobs)))
            if leave and rng.random() < 0.3:
                job = slurm.jobs[rng.choice(list(slurm.jobs))]
                if job.state == "PENDING" and rng.random() < 0.5:
                    job.partition = "other"
                elif job.id not in foreign:
                    job.comment = ""
            if rng.random() < 0.1:
                slurm.down ^= {rng.choice(list(slurm.nodes))}
        slurm.down = set(slurm.nodes)  # so that what is released is seen as it was released
        undone(make, made, slurm)
        assert not any(job.must_be_undone for job in DriveState.load(Path(folder), "gpu").jobs.values())
    assert not slurm.touched & foreign
    assert not set(slurm.stopped) & rigid
    waiting = [slurm.jobs[number] for number in slurm.touched if slurm.jobs[number].state == "PENDING"]
    assert all(job.priority and job.request() == job.first for job in waiting)
    slurm.faults.clear()
    slurm.down.clear()
    slurm.pause(20_000.0)
    assert all(slurm.jobs[number].over for number in slurm.touched)
