from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import gpusched, succeeds
from gpusched_baselines.registry import make_policy
from gpusched_env import load_instance
from gpusched_env.model import EpochDistribution
from gpusched_env.simulator import simulate
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.snapshot import given_done, take_snapshot
from gpusched_operations.live.snapshot_page import (
    defaults_table,
    jobs_table,
    left_out_table,
    nodes_left_out_table,
    policies_table,
    sentences,
)
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode
from gpusched_operations.service.decision import Decider, PolicyCatalogue

DATA = Path(__file__).parent / "data"
READ = ("--squeue", str(DATA / "squeue.json"), "--nodes", str(DATA / "nodes.txt"), "--at", "2026-11-26T01:49:21+00:00")
KILOWATT = {"name": "V", "gpu_power_w": 1000.0, "memory_gib": 16.0, "gpus_per_node": 2}
RULES = {
    "gpu_types": {"v": KILOWATT},
    "prices": {"energy_eur_per_kwh": 1.0, "pue": 1.0},
    "applications": {"mine": {"seconds_per_epoch": {"V": [3600.0, 2000.0]}, "max_epochs": 4.0}},
    "defaults": {"app": "mine", "due": "+100h", "weight": 0.0},
}
WAITS = LiveJob("7", "short", gpus=1, submit_s=1800.0, reason="Resources")
RUNS = replace(
    WAITS, id="8", name="long", phase="running", start_s=3600.0, holds=(("v1", 1),), comment="gpusched checkpoint=yes"
)
CLUSTER = LiveCluster("slurm", 7200.0, (LiveNode("v1", "v", 2),), (WAITS, RUNS))
DECIDER = Decider(PolicyCatalogue.of("edf,edf:preemptive"), b"a key")


def test_what_policies_would_do_worked_out_by_hand() -> None:
    """A busy GPU costs 1 € an hour, an epoch takes one; the running job has three of four left, the other one four."""
    taken = take_snapshot(CLUSTER, JobRules.of(RULES), ["edf", "edf:preemptive"], DECIDER)
    now, edf, _ = policies_table(taken).as_dicts()
    assert (now["policy"], now["start"], now["keep"], now["wait"]) == ("as it is", 0, 1, 1)
    assert now["energy_eur_per_h"] == pytest.approx(1.0)
    assert now["expected_cost_eur"] == pytest.approx(3.0)
    assert (edf["policy"], edf["start"], edf["keep"], edf["wait"]) == ("edf", 1, 1, 0)
    assert edf["power_kw"] == pytest.approx(2.0)
    assert edf["expected_cost_eur"] == pytest.approx(7.0)
    runs, waits = jobs_table(taken).as_dicts()
    assert (runs["job"], runs["epochs"], runs["edf"]) == ("8", "1 of 4", "keep Vx1 on v1")
    assert (waits["job"], waits["edf"]) == ("7", "start Vx1 on v1")
    assert waits["now"].replace("\N{NO-BREAK SPACE}", " ") == "waits 1 h 30 min, Resources"
    assert "1 of 2 GPUs on 1 nodes are held by 1 running jobs, and 1 jobs wait." in sentences(taken)[0]
    taken_for = {row["taken"]: row["jobs"] for row in defaults_table(taken).as_dicts()}
    assert taken_for["application: mine"] == 2
    assert taken_for["checkpoints: no"] == 1


def test_slices_count_in_sevenths_of_a_gpu() -> None:
    node = replace(CLUSTER.nodes[0], parts=(("a100_3g.20gb", 2), ("A100-MIG-1g.5gb", 4), ("shard", 8)))
    said = sentences(take_snapshot(replace(CLUSTER, nodes=(node,)), JobRules.of(RULES), ["edf"], DECIDER))
    assert "Beside them are 6 slices of GPUs (4 A100-MIG-1g.5gb, 2 a100_3g.20gb), 10/7 of a GPU in all." in said
    assert "Not counted as GPUs: 8 shard." in said


CHEAP_LATER = {"start_s": [0.0, 18_000.0], "eur_per_kwh": [2.0, 1.0]}


def test_a_job_that_a_policy_defers_shows_until_when_and_what_that_saves() -> None:
    """Energy costs half after three hours: four hours of 1 kW at 2 €, the last at 1 €, or all of them then."""
    rules = JobRules.of(RULES | {"prices": RULES["prices"] | {"series": CHEAP_LATER}})
    taken = take_snapshot(
        replace(CLUSTER, jobs=(WAITS,)), rules, [rules.default_policy], Decider(PolicyCatalogue.of("sts-x"), b"a key")
    )
    (waits,) = jobs_table(taken).as_dicts()
    assert waits["sts-x"] == "wait, waits until 1970-01-01 05:00 UTC, to save 3.00 EUR"
    assert policies_table(taken).as_dicts()[1]["expected_cost_eur"] == pytest.approx(4.0)


def test_by_default_jobs_wait_only_where_prices_change() -> None:
    one, series = (
        JobRules.of(RULES),
        {"prices": RULES["prices"] | {"series": CHEAP_LATER | {"eur_per_kwh": [2.0, 2.0]}}},
    )
    assert one.default_policy == JobRules.of(RULES | series).default_policy == "sts-x:no-waiting"


def test_the_instance_is_what_is_left() -> None:
    instance = take_snapshot(CLUSTER, JobRules.of(RULES), ["edf"], DECIDER).instance
    assert instance is not None
    jobs = instance.jobs
    assert jobs.submission_s.tolist() == [0.0, 0.0]
    assert sorted(jobs.max_epochs.tolist()) == [3.0, 4.0] == sorted(jobs.epochs_needed.tolist())
    assert jobs.due_s.tolist() == [1800.0 + 360_000.0 - 7200.0] * 2
    result = simulate(instance, make_policy("edf"))
    assert result.energy_eur == pytest.approx(7.0)


def test_a_wait_is_forecast() -> None:
    """Both GPUs are held for three hours: the one that waits starts then, and the policy cannot stop one for it."""
    other = replace(RUNS, id="9")
    cluster = replace(CLUSTER, jobs=(WAITS, RUNS, other))
    taken = take_snapshot(cluster, JobRules.of(RULES), ["edf"], DECIDER, samples=5)
    row = next(row for row in jobs_table(taken).as_dicts() if row["job"] == "7")
    assert (row["edf"], row["edf_wait"]) == ("wait", "3\N{NO-BREAK SPACE}h")
    (_, edf) = policies_table(taken).as_dicts()
    assert edf["forecast_total_eur"] == pytest.approx(10.0)


FULL = LiveCluster(
    "slurm",
    7200.0,
    (LiveNode("v1", "v100", 4),),
    (
        LiveJob("1", gpus=4, phase="running", start_s=3600.0, submit_s=0.0, time_limit_s=7200.0, holds=(("v1", 4),)),
        LiveJob("2", gpus=4, submit_s=60.0, time_limit_s=7200.0),
    ),
)


def test_a_job_waits_for_one_that_may_not_be_stopped() -> None:
    """One hour of the limit is left: the second job starts when the first ends, within that hour."""
    decider = Decider(PolicyCatalogue.of("edf,sts"), b"a key")
    taken = take_snapshot(FULL, JobRules(), ["sts", "edf"], decider, samples=9)
    forecast = taken.answers[2].forecast
    assert forecast is not None
    first, second = forecast["jobs"]
    assert second["start_s"] == pytest.approx(first["end_s"])
    assert 7200.0 < first["end_s"][0] < first["end_s"][-1] <= 7200.0 + 3600.0
    assert taken.request.fields["policy"] == "edf"
    assert taken.instance is not None
    runs, waits = jobs_table(taken).as_dicts()
    assert (runs["edf"], runs["sts"]) == ("keep V100x4 on v1", "not told")
    assert (waits["edf"], waits["sts"]) == ("wait", "wait, no GPUs now")
    assert [row["told"] for row in policies_table(taken).as_dicts()] == [2, 0, 2]
    assert "sts cannot decide here: jobs that it may not stop hold all GPUs" in policies_table(taken).notes[0]
    assert left_out_table(taken).rows == ()


def test_a_policy_that_stops_jobs_may_find_no_gpus() -> None:
    """The command says so; the request is one that can be asked."""
    taken = take_snapshot(FULL, JobRules(), ["sts"], Decider(PolicyCatalogue.of("sts"), b"a key"), samples=3)
    assert "sts: jobs that it may not stop hold all GPUs, so that all others wait." in sentences(taken)
    assert taken.request.fields["policy"] == "edf"
    assert taken.answers[0].answer is not None
    assert json.loads(DECIDER(json.dumps(taken.request.fields).encode()))["waiting"] == 1


@pytest.mark.parametrize(
    ("node", "said", "why"),
    [
        (
            LiveNode("v1", "v100", 4, allocated=4),
            "4 of 4 GPUs on 1 nodes are held, 4 of them by jobs that cannot be seen; 0 jobs are seen to run",
            "jobs that the policy is not told hold all of its GPUs; jobs that cannot be seen hold 4",
        ),
        (LiveNode("v1", "v100", 4, available=False, state="DOWN*"), "0 of 4 GPUs", "no job may start on it: DOWN*"),
        (LiveNode("v1", "x", 4), "0 of 4 GPUs", "no GPU type of the model is known for x"),
    ],
)
def test_a_cluster_without_a_gpu_for_anybody_is_shown_with_the_reason(node: LiveNode, said: str, why: str) -> None:
    """Nothing starts, all jobs are in the list of those that policies are not told, and no file can be asked."""
    waits = replace(FULL.jobs[1], gpu_type=node.gpu_type)
    taken = take_snapshot(replace(FULL, nodes=(node,), jobs=(waits,)), JobRules(), ["edf", "edf:preemptive"], DECIDER)
    assert said in sentences(taken)[0]
    assert "edf: no GPU is left on which a job may start, so that all jobs wait." in sentences(taken)
    assert [row["job"] for row in left_out_table(taken).as_dicts()] == ["2"]
    assert why in nodes_left_out_table(taken).as_dicts()[0]["why"]
    assert (taken.instance, jobs_table(taken).rows) == (None, ())


def test_why_a_job_waits_stands_once() -> None:
    """A long reason would leave no room for the column of reasons."""
    reason = "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved"
    waits = replace(WAITS, reason=reason, waits_for=reason)
    (row,) = left_out_table(
        take_snapshot(replace(CLUSTER, jobs=(waits,)), JobRules.of(RULES), ["edf"], DECIDER)
    ).as_dicts()
    assert row["now"].replace("\N{NO-BREAK SPACE}", " ") == "waits 1 h 30 min"
    assert row["why"] == f"waits for something else: {reason}"


def test_policies_are_told_different_jobs() -> None:
    free = replace(FULL, nodes=(*FULL.nodes, LiveNode("v2", "v100", 4)))
    taken = take_snapshot(free, JobRules(), ["edf", "sts"], Decider(PolicyCatalogue.of("edf,sts"), b"a key"))
    assert "sts: told 1, since others run and may not be stopped." in sentences(taken)
    runs, waits = jobs_table(taken).as_dicts()
    assert (runs["edf"], runs["sts"]) == ("keep V100x4 on v1", "not told")
    assert waits["edf"] == waits["sts"] == "start V100x4 on v2"


def test_a_policy_that_cannot_decide_there_is_told_and_the_others_answer() -> None:
    decider = Decider(PolicyCatalogue.of("edf,agent:default"), b"a key")
    many = replace(CLUSTER, nodes=(LiveNode("v1", "v", 2), LiveNode("w1", "w", 400)))
    rules = JobRules.of(RULES | {"gpu_types": {"v": KILOWATT, "w": KILOWATT | {"name": "W", "gpus_per_node": 400}}})
    taken = take_snapshot(many, rules, ["agent:default", "edf"], decider)
    _, agent, edf = taken.answers
    assert agent.answer is None
    assert agent.error
    assert edf.answer is not None
    assert "agent:default cannot decide here" in policies_table(taken).notes[0]


def test_without_jobs_there_is_a_page_and_no_instance() -> None:
    taken = take_snapshot(replace(CLUSTER, jobs=()), JobRules.of(RULES), ["edf"], DECIDER, samples=5)
    assert taken.instance is None
    assert jobs_table(taken).rows == ()


@given(
    st.lists(st.floats(0.0, 10.0), min_size=1, max_size=6).filter(lambda masses: sum(masses) > 0.1),
    st.floats(0.001, 0.99),
)
def test_what_is_left_is_the_distribution_given_what_is_done(masses: list[float], done: float) -> None:
    """P(X > x | X > done) on a grid, and its mean, against the definition."""
    whole = EpochDistribution.from_masses(masses)
    left = given_done(whole, done)

    def more_than(distribution: EpochDistribution, x: float) -> float:
        place = int(np.searchsorted(distribution.edges, x, side="right")) - 1
        return float(distribution.survival[place]) if place < len(distribution.survival) else 0.0

    if more_than(whole, done) == 0.0:
        assert left.survival.tolist() == [1.0]
        return
    grid = [x for x in np.linspace(done, 1.0, 23)[:-1] if np.min(np.abs(whole.edges - x)) > 1e-9]
    for x in grid:
        share = (x - done) / (1.0 - done)
        assert more_than(left, share) == pytest.approx(more_than(whole, x) / more_than(whole, done))


def test_the_folder_of_the_command(tmp_path: Path) -> None:
    out = tmp_path / "now"
    run = succeeds("slurm", "snapshot", "--out", str(out), "-p", "edf", "--forecast", "3", *READ)
    assert "Policies are told 10 of these jobs." in run.output
    assert {path.name for path in out.iterdir()} == {"request.json", "instance.json", "index.html"}
    page = (out / "index.html").read_text("utf-8")
    assert "start A100x2 on a" in page
    assert "comment of job 30" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    instance = load_instance(out / "instance.json")
    assert len(instance.jobs) == 10
    answer = json.loads(DECIDER((out / "request.json").read_bytes()))
    assert len(answer["jobs"]) == 10
    succeeds("slurm", "snapshot", "--out", str(out), "-p", "edf", "--forecast", "0", *READ)


def test_objects_of_kubernetes(tmp_path: Path) -> None:
    given = ["--kueue", str(DATA / "kueue.yaml"), "-p", "edf", "--forecast", "0", "--at", "2026-11-26T09:00+00:00"]
    succeeds("slurm", "snapshot", "--out", str(tmp_path / "now"), *given)
    assert "A cluster of Kueue" in (tmp_path / "now" / "index.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--squeue", "no.json"], "no.json"),
        (["--squeue", str(DATA / "squeue.json")], "--nodes"),
        (["--nodes", str(DATA / "nodes.txt")], "--squeue with --nodes"),
        (["--kai", "a.zip", "--kueue", "b.yaml"], "--kueue and --kai"),
        (["--at", "2026-11-26"], "--at"),
        ([*READ[:4], "--at", "noon"], "--at"),
        ([*READ, "--policies", "nobody"], "nobody"),
        ([*READ, "--forecast", "-1"], "--forecast"),
        ([*READ, "--partition", "nowhere"], "cluster.nodes"),
        ([*READ, "--rules", "no.toml"], "no.toml"),
    ],
)
def test_what_is_refused_leaves_no_folder(given: list[str], said: str, tmp_path: Path) -> None:
    run = gpusched("slurm", "snapshot", "--out", str(tmp_path / "now"), *given)
    assert run.exit_code != 0
    assert said in run.output + str(run.exception)
    assert not (tmp_path / "now").exists()
