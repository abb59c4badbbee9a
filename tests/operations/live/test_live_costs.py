"""What really ran is priced as the model prices it: worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusched_baselines import edf
from gpusched_env import simulate
from gpusched_env.simulator import Result
from gpusched_operations.live.costs import PlayedRun, RealRun, SeenInRequests, played_back
from gpusched_operations.live.last_drive import Interval
from gpusched_operations.service.decision import Decider, OpenRequest, PolicyCatalogue
from instances import HOUR, three_jobs

NODES = {"node-0": 0, "node-1": 1}  # of 2 GPUs and of 1; a node with u busy GPUs draws 0.1 + 0.9 u kW
JOBS = {"a": 0, "b": 1, "c": 2}


def played(due_s: float = 3.5 * HOUR) -> PlayedRun:
    """Return the run of three jobs, of which only a may be late: at 3.6 € an hour."""
    instance = three_jobs()
    due = np.array([due_s, 100.0 * HOUR, 100.0 * HOUR])
    jobs = replace(instance.jobs, due_s=due)
    names = {c.name: i for i, c in enumerate(instance.configurations)}
    return PlayedRun(replace(instance, jobs=jobs), JOBS, NODES, names)


def result_of(intervals: list[Interval], ended_h: dict[str, float], until_h: float, begin_h: float = 0.0) -> Result:
    run = RealRun(intervals, {name: HOUR * time for name, time in ended_h.items()})
    return Result.of(played_back(played(), run, HOUR * begin_h, HOUR * until_h), "real", 0, 0.0)


def held(job: str, gpus: int, node: str, start_h: float, end_h: float = np.inf) -> Interval:
    return Interval(job, f"Vx{gpus}", (node,), None, HOUR * start_h, HOUR * end_h)


def test_a_node_draws_what_its_busy_gpus_draw_and_jobs_share_it():
    result = result_of([held("a", 1, "node-0", 0.0, 2.0), held("b", 1, "node-0", 1.0, 3.0)], {"a": 2.0, "b": 3.0}, 4.0)
    assert result.energy_eur == pytest.approx(1.0 + 1.9 + 1.0)
    assert result.job_energy_eur == pytest.approx([1.0 + 0.95, 0.95 + 1.0, 0.0])
    assert (result.start_s[:2] / HOUR).tolist() == [0.0, 1.0]
    assert (result.completion_s[:2] / HOUR).tolist() == [2.0, 3.0]


def test_a_job_that_has_not_ended_is_late_and_draws_until_now():
    result = result_of([held("a", 2, "node-0", 1.0)], {}, 5.0)
    assert result.energy_eur == pytest.approx(4.0 * 1.9)
    assert result.tardiness_eur == pytest.approx(1.5 * 3.6)


def test_costs_count_from_the_beginning_of_the_episode():
    result = result_of([held("a", 1, "node-1", 0.0, 6.0)], {"a": 6.0}, 7.0, begin_h=4.0)
    assert result.energy_eur == pytest.approx(2.0)
    assert result.tardiness_eur == pytest.approx(2.0 * 3.6)


def test_intervals_that_overlap_follow_each_other():
    """Of the same job, and of two jobs on the same GPUs: no GPU is held twice, and none is lost."""
    result = result_of(
        [held("a", 1, "node-1", 0.0, 2.0), held("a", 2, "node-0", 1.5, 3.0), held("b", 1, "node-1", 1.9, 4.0)],
        {"a": 3.0, "b": 4.0},
        9.0,
    )
    assert result.energy_eur == pytest.approx(2.0 + 1.9 + 2.0)
    assert result.job_energy_eur.sum() == pytest.approx(result.energy_eur)
    assert result.switches.tolist() == [1, 0, 0]


def test_a_pause_is_a_change_when_it_begins_and_the_start_after_it_is_another():
    stays = [held("a", 1, "node-0", 0.0, 2.0), held("a", 1, "node-0", 3.0, 5.0)]
    for now_h, switches in ((1.0, 0), (2.5, 1), (4.0, 2), (6.0, 2)):
        assert result_of(stays, {"a": 5.0}, now_h).switches.tolist() == [switches, 0, 0]


def test_jobs_that_are_not_told_and_times_after_now_do_not_count():
    known = [held("a", 1, "node-0", 0.0, 5.0)]
    with_others = [*known, held("foreign", 1, "node-1", 0.0, 5.0), held("b", 1, "node-1", 3.0, 5.0)]
    one, other = (result_of(each, {"a": 5.0, "foreign": 5.0}, 2.0) for each in (known, with_others))
    assert one.energy_eur == other.energy_eur == pytest.approx(2.0)
    assert np.isnan(other.completion_s).all()


def test_a_simulated_run_played_back_costs_the_same():
    instance = three_jobs()
    wanted = simulate(instance, edf())
    rows = wanted.intervals().iter_rows(named=True)
    intervals = [
        Interval("abc"[row["job"]], row["configuration"], (f"node-{row['node']}",), None, row["start_s"], row["end_s"])
        for row in rows
    ]
    names = {c.name: i for i, c in enumerate(instance.configurations)}
    ended = dict(zip("abc", wanted.completion_s.tolist(), strict=True))
    state = played_back(PlayedRun(instance, JOBS, NODES, names), RealRun(intervals, ended), 0.0, 50.0 * HOUR)
    found = Result.of(state, "edf", 0, 0.0)
    assert found.job_energy_eur == pytest.approx(wanted.job_energy_eur)
    assert found.job_tardiness_eur == pytest.approx(wanted.job_tardiness_eur)


def opened(now_h: float, nodes: dict[str, tuple[str, int]], **running: tuple[str, str]) -> OpenRequest:
    """Open a request of two jobs that wait, or run as named; a busy GPU draws 1 kW."""
    figures = {"gpu_power_w": 1000.0, "memory_gib": 16.0, "gpus_per_node": 2}
    jobs: list[dict[str, Any]] = [
        {"id": name, "submission_s": 0.0, "due_s": 100.0 * HOUR, "tardiness_weight_eur_per_s": 0.0, "max_epochs": 9.0}
        | {"seconds_per_epoch": {"Vx1": HOUR, "Vx2": HOUR, "Wx1": HOUR}}
        for name in "ab"
    ]
    for job in jobs:
        if job["id"] in running:
            configuration, node = running[job["id"]]
            job["running"] = {"configuration": configuration, "nodes": [node], "since_s": 0.0}
    body = {
        "policy": "edf",
        "now_s": now_h * HOUR,
        "cluster": {
            "gpu_types": [{"name": "V", **figures}, {"name": "W", **figures}],
            "nodes": [{"name": name, "gpu_type": kind, "gpus": gpus} for name, (kind, gpus) in nodes.items()],
        },
        "configurations": ["Vx1", "Vx2", "Wx1"],
        "prices": {"energy_eur_per_kwh": 1.0, "pue": 1.0},
        "jobs": jobs,
    }
    decider = Decider(PolicyCatalogue.of("edf"), b"a key")
    found = decider.open(decider.parse(json.dumps(body).encode()))
    assert found is not None
    return found


def test_what_ran_on_a_node_counts_when_it_is_down_or_others_hold_its_gpus():
    """a held both GPUs of n1 for 3 h, b one of n2, which is down by now; one GPU of n1 is another user's by now."""
    seen = SeenInRequests()
    seen.meet(opened(0.0, {"n2": ("W", 2), "n1": ("V", 2)}, a=("Vx2", "n1"), b=("Wx1", "n2")))
    last = opened(4.0, {"n1": ("V", 1)})
    seen.meet(last)
    intervals = [held("a", 2, "n1", 0.0, 3.0), held("b", 1, "elsewhere", 3.0, 4.0)]
    intervals.append(Interval("b", "Wx1", ("n2",), None, 0.0, 3.0 * HOUR))
    result = Result.of(played_back(seen.of(last, None), RealRun(intervals, {}), 0.0, 4.0 * HOUR), "real", 0, 0.0)
    assert result.energy_eur == pytest.approx(3.0 * 2.0 + 3.0)
    assert result.intervals()["epochs"].to_list() == pytest.approx([3.0, 3.0])
