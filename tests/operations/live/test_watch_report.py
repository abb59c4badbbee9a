"""What is reported of a journal: its cluster and jobs as a scenario, durations, and what a policy saves, by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import gpusched, succeeds
from gpusched_env.errors import InputError
from gpusched_env.formats.run_folder import read_result
from gpusched_env.model.rates import Rates
from gpusched_env.workload import make_instance, read_trace
from gpusched_env.workload.traces.seen_jobs import SeenCluster
from gpusched_experiments.cli.app import app
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal
from gpusched_operations.live.watch_report import about_the_journal, drifts, jobs_without_times, scenario_of, trace_csv
from gpusched_operations.live.watch_savings import Schedule, blocks_of, savings_table
from gpusched_operations.live.watching import ClusterWatch, watch_on
from played_cluster import PlayedCluster, PlayedJob
from refusals import refused

T = 1_800_014_400.0
APP = "gpusched app=resnet50-imagenet-global256 epochs=20 due=+4h checkpoint=yes weight=0.002"
OWN = "gpusched app=mine epochs=10 due=+1h"
RULES = {
    "gpu_types": {"v100": "V100"},
    "prices": {"energy_eur_per_kwh": 0.3, "pue": 1.2},
    "applications": {"mine": {"seconds_per_epoch": {"V100": [100.0, 60.0]}, "max_epochs": 10}},
}


def nothing(_: Any) -> dict[str, Any]:
    return {"jobs": [], "running": 0, "waiting": 0}


def watched(path: Path, *jobs: PlayedJob, for_s: float = 4000.0, rules: dict[str, Any] | None = None) -> SeenCluster:
    """Watch these jobs, and read the journal."""
    cluster = PlayedCluster(jobs, T)
    with Journal(path, clock=lambda: cluster.now_s) as journal:
        watch = ClusterWatch(
            cluster.read, JobRules.of(rules or {}), "edf", nothing, journal, "gpu",
            clock=lambda: cluster.now_s, ticks=lambda: cluster.steady_s,
        )  # fmt: skip
        watch_on(watch, 60.0, lambda _: None, for_s=for_s, wait=cluster.wait)
    return SeenCluster.of(path)


def test_the_scenario_is_the_cluster_that_was_seen_with_the_rules_prices_and_applications(tmp_path: Path) -> None:
    job = PlayedJob(1, T, 2, ((T, T + 660, "v1"),), OWN)
    other = PlayedJob(2, T, 1, ((T, T + 600, "v1"),), APP)
    scenario = scenario_of(watched(tmp_path, job, other, rules=RULES), tmp_path, JobRules.of(RULES))
    assert [(p.gpu_type, p.gpus_per_node, p.nodes) for p in scenario.cluster.pools] == [("V100", 4, 2), ("A100", 8, 1)]
    assert (scenario.prices.energy_price_eur_per_kwh, scenario.prices.pue) == (0.3, 1.2)
    assert scenario.jobs.applications == ("mine", "resnet50-imagenet-global256")
    instance = make_instance(scenario, seed=0)
    names = [configuration.name for configuration in instance.configurations]
    tau = instance.jobs.seconds_per_epoch[:, names.index("V100x2")]
    assert tau[0] == 60.0
    assert instance.jobs.due_s.tolist() == [3600.0, 4 * 3600.0]
    took = instance.jobs.epochs_needed * tau
    assert took[0] == pytest.approx(660.0, abs=0.51)  # it ran on two V100


def test_restarts_of_the_replay_are_those_of_rules_comments_and_applications(tmp_path: Path) -> None:
    rules = RULES | {"applications": {"mine": RULES["applications"]["mine"] | {"restart_s": 90.0}}}
    jobs = [
        PlayedJob(1, T, 1, ((T, T + 600, "v1"),), OWN),
        PlayedJob(2, T, 1, ((T, T + 600, "v1"),), f"{APP} restart=120"),
        PlayedJob(3, T, 1, ((T, T + 600, "v2"),), f"{OWN} restart=110"),
    ]
    scenario = scenario_of(watched(tmp_path, *jobs, rules=rules), tmp_path, JobRules.of(rules))
    assert make_instance(scenario, seed=0).jobs.restart_s.tolist() == [100.0, 120.0, 100.0]  # the median of `mine`


def test_a_job_on_a_gpu_type_without_times_of_its_application_is_left_out_and_named(tmp_path: Path) -> None:
    jobs = [
        PlayedJob(1, T, 1, ((T, T + 600, "v1"),), OWN),
        PlayedJob(2, T + 60, 1, ((T + 60, T + 700, "a1"),), OWN),
        PlayedJob(3, T + 60, 1, ((T + 60, T + 600, "a1"),), ""),  # of no known application: it counts as one of `mine`
        PlayedJob(4, T + 120, 1, ((T + 120, T + 600, "a1"),), APP),
    ]
    rules = RULES | {"defaults": {"app": "mine"}}
    seen = watched(tmp_path, *jobs, rules=rules)
    scenario = scenario_of(seen, tmp_path, JobRules.of(rules))
    left = jobs_without_times(seen, scenario)
    assert left == dict.fromkeys(("2", "3"), "mine has no times on A100")
    assert scenario.jobs.count == 2
    assert "Left out: job 2, mine has no times on A100; job 3," in " ".join(about_the_journal(seen, left))
    ran = Schedule.of_journal(seen, make_instance(scenario, seed=0), left)
    assert ran.completion_s.tolist() == [600.0, 600.0]


def test_jobs_none_of_which_has_times_make_no_report_and_the_error_names_what_is_missing(tmp_path: Path) -> None:
    seen = watched(tmp_path, PlayedJob(1, T, 1, ((T, T + 600, "a1"),), OWN), rules=RULES)
    with refused("--rules", "mine has no times on A100", "times for at least one of the jobs that ran"):
        scenario_of(seen, tmp_path, JobRules.of(RULES))


def test_no_name_of_the_cluster_is_a_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    seen = watched(tmp_path, *(PlayedJob(n, T, 1, ((T, T + 60, "v1"),), APP, user) for n, user in enumerate(
        ("=1+1", "+x", "-x", "@x", "'=x", "-7", "a=1"), 1)))  # fmt: skip
    rows = list(csv.DictReader(trace_csv(seen).splitlines()))
    assert [row["user"] for row in rows] == ["'=1+1", "'+x", "'-x", "'@x", "''=x", "-7", "a=1"]


def test_a_journal_without_gpus_has_no_scenario(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append("round", read=T)
    with pytest.raises(InputError, match="a node with GPUs"):
        scenario_of(SeenCluster.of(tmp_path), tmp_path, JobRules.load(None))


def test_modelled_and_seen_durations_by_hand(tmp_path: Path) -> None:
    on_one = [PlayedJob(n, T, 1, ((T, T + seconds, "v1"),), OWN) for n, seconds in ((1, 1100.0), (2, 1300.0))]
    on_two = PlayedJob(3, T, 2, ((T, T + 300, "v2"),), OWN)
    failed = PlayedJob(4, T, 1, ((T, T + 10, "v2"),), OWN, end_state="FAILED")
    unsaid = PlayedJob(5, T, 1, ((T, T + 999, "v2"),), "")
    rows = drifts(watched(tmp_path, *on_one, on_two, failed, unsaid, rules=RULES))
    found = {(row.configuration, row.source): row.ratio for row in rows}
    assert found.keys() == {("V100x1", "end"), ("V100x2", "end")}
    assert found["V100x1", "end"].value == pytest.approx((1100 + 1300) / (2 * 10 * 100))
    assert found["V100x2", "end"].value == pytest.approx(300 / (10 * 60))
    assert found["V100x2", "end"].interval is None  # of one job


def test_reports_of_a_job_count_before_its_end(tmp_path: Path) -> None:
    watched(tmp_path, PlayedJob(1, T, 1, ((T, T + 3000, "v1"),), OWN), rules=RULES)
    with Journal(tmp_path) as journal:
        for epochs, at_s in ((0.0, T - 50.0), (1.0, T + 200.0), (5.0, T + 800.0), (9.0, T + 5000.0)):
            journal.append("progress", id="1", epochs=epochs, at_s=at_s)
    (row,) = drifts(SeenCluster.of(tmp_path))
    assert (row.source, row.ratio.value) == ("progress", pytest.approx(600.0 / (4 * 100.0)))  # within the run alone


def test_jobs_that_were_not_seen_to_their_end_are_told(tmp_path: Path) -> None:
    seen = watched(
        tmp_path,
        PlayedJob(1, T - 100, 1, ((T - 50, T + 500, "v1"),), APP),
        PlayedJob(2, T, 4, ((T, None, "v1"),)),
        PlayedJob(3, T, 4),
    )
    said = " ".join(about_the_journal(seen))
    assert "67 readings" in said
    assert "3 jobs with GPUs: 2 ran, of which 1 still ran at the end." in said
    assert "1 jobs never ran, and 0 ended while nobody looked" in said
    assert "1 jobs ran already at the first reading" in said
    assert "1 of the jobs that ran did not say that they can be stopped" in said
    rows = list(csv.DictReader(trace_csv(seen).splitlines()))
    assert [(row["job"], row["outcome"]) for row in rows] == [("1", "completed"), ("2", "running"), ("3", "")]


@pytest.mark.parametrize(
    ("hours", "count", "said"),
    [
        ([0.1, 0.2, 3.5], 3, "3 jobs, as there are fewer than 5 hours of submission"),
        ([0.1, 0.2, 1, 2, 3, 4], 5, "5 hours of submission"),
        ([*range(0, 24 * 14, 8)], 14, "14 days of submission"),
    ],
)
def test_what_is_drawn_together(hours: list[float], count: int, said: str) -> None:
    for speed in (1.0, 600.0):
        blocks, name = blocks_of(np.array(hours, dtype=np.float64) * 3600.0 * speed, speed)
        assert (len(np.unique(blocks)), name) == (count, said)


def test_the_energy_of_what_ran_is_that_of_its_nodes_by_hand(tmp_path: Path) -> None:
    """Two jobs are together on a node for half of their time; a third has one to itself."""
    jobs = (
        PlayedJob(1, T, 2, ((T, T + 1000, "v1"),), APP),
        PlayedJob(2, T, 1, ((T + 500, T + 1500, "v1"),), APP),
        PlayedJob(3, T + 30, 2, ((T + 100, T + 600, "v2"), (T + 700, T + 1200, "a1")), APP),
    )
    seen = watched(tmp_path, *jobs)
    instance = make_instance(scenario_of(seen, tmp_path, JobRules.load(None)), seed=0)
    types = [each.name for each in instance.gpu_types]
    v100, a100 = (Rates.of(instance).node[types.index(name)] for name in ("V100", "A100"))
    ran = Schedule.of_journal(seen, instance)
    stopped_s = seen.jobs["3"].runs[0].end_s - T  # between two readings
    by_hand = [
        500 * v100[2] + 500 * v100[3] * 2 / 3,
        500 * v100[3] / 3 + 500 * v100[1],
        (stopped_s - 100) * v100[2] + 500 * a100[2],
    ]
    assert ran.energy_eur == pytest.approx(by_hand)
    assert ran.start_s.tolist() == [0.0, 500.0, 100.0]
    assert ran.completion_s.tolist() == [1000.0, 1500.0, 1200.0]


def test_savings_by_hand() -> None:
    submission_s = np.arange(6) * 3600.0

    def result(policy: str, energy: list[float], waits_h: float) -> Schedule:
        start_s = submission_s + 3600.0 * waits_h
        return Schedule(policy, submission_s, start_s, start_s + 3600.0, np.array(energy), np.zeros(6))

    ran, same, better = result("ran", [2.0] * 6, 3.0), result("a", [2.0] * 6, 3.0), result("b", [1.0] * 6, 1.0)
    table = savings_table(ran, [same, better])
    saved = {(row["policy"], str(row["measure"]).split(" [")[0]): row["saved"] for row in table.as_dicts()}
    assert (saved["a", "energy"].value, saved["a", "energy"].interval) == (0.0, (0.0, 0.0))
    # Every hour saves the same: so does every draw of hours.
    assert (saved["b", "total cost"].value, saved["b", "total cost"].interval) == (6.0, (6.0, 6.0))
    assert (saved["b", "mean waiting"].value, saved["b", "mean waiting"].interval) == (2.0, (2.0, 2.0))
    uneven = savings_table(ran, [result("c", [2.0, 2.0, 2.0, 2.0, 2.0, -4.0], 3.0)]).as_dicts()[0]["saved"]
    assert uneven.value == 6.0
    low, high = uneven.interval
    assert low == 0.0
    assert high >= 12.0  # one hour makes all of it: it may be drawn never, or twice and more


def test_the_report_of_three_jobs_is_what_one_counts_by_hand(tmp_path: Path) -> None:
    """Each job has a node to itself; the second waited 40 minutes for nothing: its node was free."""
    jobs = (
        PlayedJob(1, T, 4, ((T, T + 3000, "v1"),), APP),
        PlayedJob(2, T + 60, 4, ((T + 2460, T + 3060, "v2"),), APP),
        PlayedJob(3, T + 60, 8, ((T + 60, T + 1260, "a1"),), APP),
    )
    watched(tmp_path / "j", *jobs)
    done = CliRunner().invoke(
        app,
        ["slurm", "watch", "--report", str(tmp_path / "j"), "--policy", "edf", "--seeds", "0", "--workers", "1",
         "--out", str(tmp_path / "out")],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    waits = {row["policy"]: row["metrics"]["waiting_s"] for row in results["policies"]}
    assert waits["as-traced"] == pytest.approx(2400.0 / 3, abs=1.0)
    assert waits["edf"] == pytest.approx(0.0, abs=1.0)
    assert "as-traced is the schedule that ran" in done.output
    assert "| edf | mean waiting [h] | 0.22 | 0.00 | 0.22 |" in done.output.replace(" [", " [", 1)
    results_of = {name: read_result(tmp_path / "out" / "runs" / name) for name in ("as-traced", "edf")}
    ran = Schedule.of_journal(SeenCluster.of(tmp_path / "j"), results_of["as-traced"].instance)
    replayed = Schedule.of_result(results_of["as-traced"])
    assert ran.energy_eur == pytest.approx(replayed.energy_eur, rel=1e-3)  # durations are blurred by half a second
    assert ran.start_s == pytest.approx(replayed.start_s, abs=1.0)
    assert ran.completion_s == pytest.approx(replayed.completion_s, abs=1.0)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "What the journal saw" in page
    assert "Against what ran" in page
    trace = read_trace(tmp_path / "out" / "trace.csv")
    assert trace.duration_s.tolist() == [3000.0, 600.0, 1200.0]
    succeeds("compare", "--trace", str(tmp_path / "j"), "--scenario",
        str(tmp_path / "out" / "scenario.toml"), "-p", "as-traced,edf", "-r", "as-traced", "--seeds", "0", "-w", "1",
        "--gpu-demand", "exact", "--out", str(tmp_path / "again"))  # fmt: skip
    same = json.loads((tmp_path / "again" / "results.json").read_text())
    assert {row["policy"]: row["metrics"]["waiting_s"] for row in same["policies"]} == waits


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "--journal"),
        (["--journal", "j", "--report", "j"], "nothing beside --report"),
        (["--journal", "j", "--every", "0.5"], "--every"),
        (["--journal", "j", "--for", "soon"], "--for"),
        (["--journal", "j", "--policy", "as-traced"], "as-traced"),
        (["--report", "nothing"], "journal"),
    ],
)
def test_bad_input_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = gpusched("slurm", "watch", *arguments)
    assert done.exit_code == 2
    assert said in done.output
    assert not list(tmp_path.iterdir())
