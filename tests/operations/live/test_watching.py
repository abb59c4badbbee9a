"""Watching a made-up cluster: what is written and said, whatever fails; and what the journal then says ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.errors import InputError, RunError
from gpusched_env.workload import read_trace
from gpusched_env.workload.traces.seen_jobs import SeenCluster
from gpusched_env.workload.traces.trace import detect_format
from gpusched_operations.live.asking import Ask
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal, read_journal
from gpusched_operations.live.progress import JobProgress
from gpusched_operations.live.state import LiveCluster
from gpusched_operations.live.watching import ClusterWatch, watch_on
from played_cluster import KEPT_S, PlayedCluster, PlayedJob

T = 1_800_014_400.0
APP = "gpusched app=resnet50-imagenet-global256 epochs=20 due=+4h checkpoint=yes weight=0.002"
THREE = (
    PlayedJob(1, T + 5, 4, ((T + 30, T + 1230, "v1"),), APP),
    PlayedJob(2, T + 65, 2, ((T + 90, T + 690, "v2"), (T + 900, T + 1500, "a1")), user="bo"),
    PlayedJob(3, T + 125, 8, ((T + 1800, None, "a1"),)),
)


def starts_all(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer that every job that waits starts on the first node; what runs is kept."""
    jobs = [
        {
            "id": job["id"],
            "action": "keep" if job.get("running") else "start",
            "configuration": "V100x1",
            "nodes": ["v1"],
        }
        for job in request["jobs"]
    ]
    running = sum(job["action"] == "keep" for job in jobs)
    return {"jobs": jobs, "running": running, "waiting": len(jobs) - running}


class Played:
    """A watch of a played cluster, and what it said."""

    def __init__(self, cluster: PlayedCluster, path: Path, ask: Ask = starts_all) -> None:
        self.cluster, self.path, self.ask = cluster, path, ask
        self.said: list[str] = []
        self.read: Callable[[], LiveCluster] = cluster.read
        self.progress: Callable[[LiveCluster], dict[str, JobProgress]] = lambda _: {}

    def go(self, for_s: float | None = None, **how: bool) -> int:
        with Journal(self.path, clock=lambda: self.cluster.now_s) as journal:
            watch = ClusterWatch(
                self._read, JobRules.load(None), "edf", self.ask, journal, "gpu", self.progress,
                clock=lambda: self.cluster.now_s, ticks=lambda: self.cluster.steady_s,
            )  # fmt: skip
            return watch_on(watch, 60.0, self.said.append, for_s=for_s, wait=self.cluster.wait, **how)

    def _read(self) -> LiveCluster:
        return self.read()

    def events(self) -> list[str]:
        return [line["event"] for line in read_journal(self.path) if line["kind"] == "event"]


def test_a_policy_that_stops_no_jobs_is_told_those_that_may_not_be_stopped(tmp_path: Path) -> None:
    """Job 3 runs and said nothing; a policy that may stop jobs is not told it."""
    told = {}
    for preemptive in (True, False):
        cluster = PlayedCluster(THREE, T + 2000.0)
        asked: list[list[str]] = []

        def ask(request: Mapping[str, Any], asked: list[list[str]] = asked) -> dict[str, Any]:
            asked.append([job["id"] for job in request["jobs"]])
            return starts_all(request)

        with Journal(tmp_path / str(preemptive), clock=lambda: T) as journal:
            rules = JobRules.load(None)
            ClusterWatch(cluster.read, rules, "edf", ask, journal, "gpu", preemptive=preemptive).round()
        told[preemptive] = asked
    assert told == {True: [[]], False: [["3"]]}


@pytest.fixture
def played(tmp_path: Path) -> Played:
    return Played(PlayedCluster(THREE, T), tmp_path / "j")


def rows(path: Path) -> dict[str, tuple[str | None, ...]]:
    return {str(row[0]): row for row in SeenCluster.of(path).rows()}


def test_a_journal_tells_the_schedule_that_ran(played: Played) -> None:
    played.go(3000.0)
    table = SeenCluster.of(played.path).table()
    found = {row["job"]: row for row in table.to_dicts()}
    times = {
        name: tuple(float(row[f"{what}_s"]) - T for what in ("submission", "start", "end"))
        for name, row in found.items()
    }
    assert times["1"] == (5.0, 30.0, 1230.0)
    assert found["1"]["duration_s"] == "1200.0"
    assert (found["1"]["gpus"], found["1"]["gpu_type"], found["1"]["nodes"]) == ("4", "V100", "v1")
    assert (found["1"]["application"], float(found["1"]["due_s"]) - T) == (
        "resnet50-imagenet-global256",
        5.0 + 4 * 3600,
    )
    assert found["1"]["tardiness_weight_eur_per_s"] == "0.002"
    # It was stopped between two readings, at 660 and 720 s: half of that is the end; the second run is told exactly.
    assert times["2"] == (65.0, 90.0, 1500.0)
    assert float(found["2"]["duration_s"]) == pytest.approx(690 - 90 + 600, abs=30.0)
    assert (found["2"]["gpu_type"], found["2"]["nodes"], found["2"]["user"]) == ("A100", "a1", "bo")
    # It still runs: it counts until the last reading, at 3000 s.
    assert times["3"] == (125.0, 1800.0, 3000.0)
    assert [found[name]["outcome"] for name in "123"] == ["completed", "completed", "running"]


def test_a_journal_is_a_trace(played: Played) -> None:
    played.go(3000.0)
    assert detect_format(played.path) == "journal"
    trace = read_trace(played.path, "journal")
    assert trace.submission_s.tolist() == [0.0, 60.0, 120.0]
    assert trace.start_s is not None
    assert trace.start_s.tolist() == [25.0, 85.0, 1795.0]
    assert trace.gpus.tolist() == [4.0, 2.0, 8.0]
    assert trace.gpu_type == ("V100", "A100", "A100")
    assert trace.duration_s[[0, 2]].tolist() == [1200.0, 1200.0]
    ended = read_trace(played.path, "journal", where=["outcome != running"])
    assert len(ended) == 2
    file = next(played.path.glob("*.jsonl"))
    assert read_trace(file, "journal").gpus.tolist() == trace.gpus.tolist()


def test_of_many_jobs_that_wait_to_save_a_line_names_the_first_and_counts_the_others(tmp_path: Path) -> None:
    def deferrals(_: Mapping[str, Any]) -> dict[str, Any]:
        later = {"action": "wait", "configuration": None, "waits_until_s": T + 7200.0, "saves_eur": 0.125}
        return {"jobs": [{"id": f"{number}"} | later for number in range(1, many + 1)], "running": 0, "waiting": many}

    text = "waits until 2027-01-15 14:00 UTC, to save 0.12 EUR"
    for many, rest in ((3, ""), (4, "; 1 more wait to save"), (6, "; 3 more wait to save")):
        played = Played(PlayedCluster(THREE, T), tmp_path / f"{many}", deferrals)
        played.go(60.0)
        assert played.said[1].endswith(f"would change nothing; 1 {text}; 2 {text}; 3 {text}{rest}")


def test_a_line_says_which_jobs_wait_to_save_and_until_when(played: Played) -> None:
    def deferrals(request: Mapping[str, Any]) -> dict[str, Any]:
        later = {"action": "wait", "configuration": None, "waits_until_s": T + 7200.0, "saves_eur": 0.125}
        jobs = [{"id": job["id"]} | later for job in request["jobs"]]
        return {"jobs": jobs, "running": 0, "waiting": len(jobs)}

    played.ask = deferrals
    played.go(60.0)
    assert played.said[1].endswith("edf would change nothing; 1 waits until 2027-01-15 14:00 UTC, to save 0.12 EUR")


def test_a_line_a_round_says_what_the_policy_would_do(played: Played) -> None:
    played.go(300.0)
    assert len(played.said) == 6
    assert played.said[1].startswith("2027-01-15 12:01:00  1 run on 4 of 16 GPUs, 0 wait; edf would change nothing")
    assert "2 run on 6 of 16 GPUs, 1 wait; edf would start 1 (3 on v1 as V100x1)" in played.said[4]
    would = [line["would"] for line in read_journal(played.path) if line["kind"] == "round" and "would" in line]
    assert [[each["id"] for each in every] for every in would] == [[], ["3"]]  # only where it changed


def test_readings_that_fail_are_events_and_are_tried_again(played: Played) -> None:
    good, calls = played.read, []

    def fails() -> LiveCluster:
        calls.append(played.cluster.now_s)
        if len(calls) in (2, 3):
            raise RunError("squeue --json: no answer within 20 s")
        if len(calls) == 4:
            raise InputError("jobs", "{", "what `squeue --json` writes")
        return good()

    played.read = fails
    assert played.go(3000.0) == 51
    assert "not read: squeue --json: no answer within 20 s; the next round tries again" in played.said[1]
    assert played.events().count("read-failed") == 3
    seen = SeenCluster.of(played.path)
    assert (seen.readings, seen.longest_gap_s) == (48, 240.0)
    assert rows(played.path)["1"][1:4] == (f"{T + 5}", f"{T + 30}", f"{T + 1230}")


def test_a_policy_that_cannot_decide_is_an_event_and_the_journal_goes_on(played: Played) -> None:
    def refuses(_: Mapping[str, Any]) -> dict[str, Any]:
        raise InputError("jobs[0].due_s", -1, "a time")

    played.ask = refuses
    played.go(3000.0)
    assert "not decided: jobs[0].due_s" in played.said[3]
    assert played.events().count("decide-failed") > 40
    assert rows(played.path)["1"][1:4] == (f"{T + 5}", f"{T + 30}", f"{T + 1230}")


@pytest.mark.parametrize("closed", [False, True])
def test_a_cluster_without_a_gpu_for_anybody_is_no_failure(played: Played, closed: bool) -> None:
    read = played.read

    def full() -> LiveCluster:
        found = read()
        nodes = (replace(each, available=not closed, allocated=0 if closed else each.gpus) for each in found.nodes)
        return replace(found, jobs=(), nodes=tuple(nodes))

    played.read = full
    played.go(120.0)
    assert ("jobs that cannot be seen hold" in played.said[1]) == (not closed)
    why = "v1: no job may start on it: " if closed else "v1: jobs that the policy is not told hold all of its GPUs"
    assert f"no GPU is left on which a job may start, so that all jobs wait; {why}" in played.said[1]
    assert played.events() == ["begin", "end"]
    assert sum(line["kind"] == "round" for line in read_journal(played.path)) == 3


def test_nodes_that_the_service_refuses_are_a_failure(played: Played) -> None:
    def refuses(_: Mapping[str, Any]) -> dict[str, Any]:
        raise InputError("cluster.nodes", "3 entries", "at most 2 entries")

    played.ask = refuses
    played.go(120.0)
    assert "not decided: cluster.nodes" in played.said[1]
    assert played.events().count("decide-failed") == 3


def test_a_partition_without_nodes_is_a_failure(tmp_path: Path) -> None:
    with Journal(tmp_path / "j", clock=lambda: T) as journal:
        cluster = PlayedCluster(THREE, T)
        said = ClusterWatch(cluster.read, JobRules.load(None), "edf", starts_all, journal, "nowhere").round()
    assert "not decided: cluster.nodes" in said


def test_jobs_of_which_nobody_saw_where_they_ran_are_not_compared(tmp_path: Path) -> None:
    before = PlayedJob(8, T - 900, 1, ((T - 800, T - 100, "v2"),))  # Slurm still tells of it
    short = PlayedJob(9, T + 61, 1, ((T + 65, T + 100, "v2"),))  # between two readings
    played = Played(PlayedCluster((*THREE, before, short), T), tmp_path / "j")
    played.go(3000.0)
    found = rows(played.path)
    assert set(found) == {"1", "2", "3", "9"}
    assert found["9"][4] is None
    assert all(found[name][4] is not None for name in "123")


@pytest.mark.parametrize("due", [f"+{'9' * 400}d", f"+{'9' * 14}d", "9999-12-31T23:00"])
def test_a_due_date_that_is_no_time_costs_only_its_job(tmp_path: Path, due: str) -> None:
    absurd = PlayedJob(4, T, 1, ((T + 30, T + 1230, "v2"),), f"gpusched epochs=1 due={due}")
    played = Played(PlayedCluster((*THREE, absurd), T), tmp_path / "j")
    played.go(3000.0)
    assert "left out" in played.said[2]
    assert set(rows(played.path)) == {"1", "2", "3", "4"}
    described = {line["id"] for line in read_journal(played.path) if line["kind"] == "job"}
    assert described == {"1", "2", "3"}


def test_it_goes_on_with_its_journal_after_a_crash(played: Played) -> None:
    played.go(300.0)
    file = next(played.path.glob("*.jsonl"))
    file.write_bytes(file.read_bytes()[:-7])  # the last line is torn
    played.cluster.wait(60.0)
    played.go(2640.0)
    found = rows(played.path)
    assert found["1"][1:5] == (f"{T + 5}", f"{T + 30}", f"{T + 1230}", "1200.0")
    assert len(found) == 3
    assert len(SeenCluster.of(played.path).jobs["2"].runs) == 2


def test_a_job_that_ended_while_nobody_looked_has_no_duration(played: Played) -> None:
    played.go(600.0)
    played.cluster.wait(1230.0 + KEPT_S)  # job 1 has ended, and Slurm has forgotten it
    played.go(600.0)
    seen = SeenCluster.of(played.path)
    assert not seen.jobs["1"].is_known
    assert rows(played.path)["1"][4] is None


def test_an_end_between_two_readings_is_their_middle(tmp_path: Path) -> None:
    job = PlayedJob(1, T, 1, ((T, T + 1000, "v1"),), told_s=0.0)  # Slurm forgets it at once
    played = Played(PlayedCluster((job,), T), tmp_path)
    played.go(1200.0)
    run = SeenCluster.of(tmp_path).jobs["1"].runs[0]
    assert (run.end_s - T, run.within_s) == (990.0, 30.0)


def test_a_cancelled_job_never_ran_and_a_number_that_comes_again_is_another_job(tmp_path: Path) -> None:
    first = PlayedJob(1, T + 10, 1, cancelled_s=T + 100)
    again = PlayedJob(1, T + 500, 2, ((T + 510, T + 700, "v1"),))
    played = Played(PlayedCluster((first, again), T), tmp_path)
    played.go(1200.0)
    jobs = SeenCluster.of(tmp_path).jobs
    assert [(job.submit_s - T, len(job.runs)) for job in jobs.values()] == [(10.0, 0), (500.0, 1)]


def test_the_clock_that_is_set_is_an_event(played: Played) -> None:
    played.go(180.0)

    def sets(seconds: float) -> None:
        played.cluster.steady_s += seconds
        played.cluster.now_s += seconds + (3600.0 if played.cluster.steady_s == 300.0 else 0.0)

    played.cluster.wait = sets  # type: ignore[method-assign]
    played.go(300.0)
    steps = [line["seconds"] for line in read_journal(played.path) if line.get("event") == "clock-step"]
    assert steps == [3600.0]


def test_it_ends_when_two_readings_found_no_job(tmp_path: Path) -> None:
    job = PlayedJob(1, T - 10, 1, ((T, T + 100, "v1"),))
    played = Played(PlayedCluster((job,), T), tmp_path)
    assert played.go(until_idle=True) == 4  # at 0 and 60 s it runs
    assert played.events() == ["begin", "end"]


def test_an_interruption_ends_the_journal_cleanly(played: Played) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    played.cluster.wait = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        played.go()
    assert played.events() == ["begin", "end"]


def test_what_jobs_report_is_kept_once(played: Played) -> None:
    played.progress = lambda state: {
        job.id: JobProgress(float(int(state.read_s - T) // 300), T + int(state.read_s - T) // 300 * 300)
        for job in state.jobs
        if job.phase == "running"
    }
    played.go(1500.0)
    reports = SeenCluster.of(played.path).jobs["1"].reports
    assert reports == [(float(n), T + 300.0 * n) for n in range(5)]


def test_a_watch_writes_little(played: Played) -> None:
    played.go(6 * 3600.0)
    states = [line for line in read_journal(played.path) if line["kind"] == "state"]
    assert len(states) < 20
