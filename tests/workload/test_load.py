"""The loads that the page states, and the numbers of jobs at once of the published generator."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import Configuration, GpuType, Instance, Job, Node, simulate
from gpusched_env.model import EpochDistribution
from gpusched_env.model.rates import planning_rate_eur_per_s
from gpusched_env.workload import builtin_scenarios, load_scenario, make_instance, offered_load

PAGE = Path(__file__).parents[2] / "docs" / "your-cluster.md"


def test_the_load_is_the_clusters_time_for_the_jobs_over_the_time_in_which_they_come():
    """Two GPUs at 10 s an epoch and one at 20 s do 0.25 epochs/s: 30 and 20 epochs take 120 and 80 s, in 400 s."""
    types = (GpuType("a", 100.0, 0.0, 16.0), GpuType("b", 100.0, 0.0, 16.0))
    configurations = (Configuration("a", 1), Configuration("a", 2), Configuration("b", 1))
    all_epochs = EpochDistribution.from_masses([1.0])
    seconds = dict(zip(configurations, (10.0, 5.0, 20.0), strict=True))
    jobs = [Job(at, 9e4, 0.0, epochs, all_epochs, epochs, seconds) for at, epochs in ((0.0, 30.0), (400.0, 20.0))]
    instance = Instance.from_jobs(types, (Node("a", 2), Node("b", 1)), jobs, configurations)
    assert offered_load(instance) == pytest.approx(0.5)


def stated() -> dict[str, float]:
    """The load of every scenario as the page's table states it."""
    found: dict[str, float] = {}
    page = PAGE.read_text(encoding="utf-8")
    table = page.split("| name | nodes | GPU types | jobs | arrivals | load | for |\n")[1].split("\n\n")[0]
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        names = re.findall(r"`([a-z0-9-]+)`", cells[0])
        if len(cells) == 7 and names and re.fullmatch(r"[\d., ]+", cells[5]):
            full = [name if not name.startswith("-") else names[0].split("-")[0] + name for name in names]
            loads = [float(text) for text in cells[5].split(",")]
            found |= dict(zip(full, loads if len(loads) > 1 else loads * len(full), strict=True))
    return found


def test_every_scenario_has_the_load_that_the_page_states():
    loads = stated()
    scenarios = builtin_scenarios()
    assert set(loads) == set(scenarios) - {"burst"}
    for name, load in loads.items():
        measured = np.mean([offered_load(make_instance(scenarios[name], seed)) for seed in range(5)])
        assert measured == pytest.approx(load, abs=0.051 if load >= 0.5 else 0.0051), name


@pytest.mark.parametrize(
    ("name", "edf", "sts"),
    [
        ("published-high", 144, 162),
        ("published-exponential", 139, 154),
        ("published-low", 45, 50),
        ("published-high-busy", 400, None),
        ("published-exponential-busy", 200, None),
        ("published-low-busy", 100, 100),
    ],
)
def test_on_100_nodes_as_many_jobs_are_there_at_once_as_in_the_published_program(name, edf, sts):
    """One seed each there, two here; the thesis says about 400, 200 and 100."""
    scenario = load_scenario(name).replace({"cluster.nodes": 100, "jobs.count": 1_000})
    for policy, published in (("edf", edf), ("sts", sts)):
        if published is not None:
            measured = np.mean([_most_at_once(make_instance(scenario, seed), policy) for seed in (0, 1)])
            assert measured == pytest.approx(published, rel=0.16), policy


@pytest.mark.parametrize(("name", "median", "free"), [("published-high", 3.48, 0.055), ("default", 1.0, 0.67)])
def test_the_worst_case_forces_jobs_as_the_pages_say(name, median, free):
    """Cost of an epoch where the worst case is in time over the least cost of one, and for whom the two are equal."""
    costlier = np.concatenate([_forced(make_instance(load_scenario(name), seed)) for seed in range(10)])
    assert np.median(costlier) == pytest.approx(median, abs=0.01)
    assert np.mean(costlier < 1.0001) == pytest.approx(free, abs=0.005)


def _forced(instance: Instance) -> np.ndarray:
    jobs = instance.jobs
    known = np.isfinite(jobs.seconds_per_epoch)
    cost = np.where(known, jobs.seconds_per_epoch, 1.0) * planning_rate_eur_per_s(instance)[jobs.application]
    time_left = (jobs.due_s - jobs.submission_s)[:, None]
    in_time = known & (jobs.seconds_per_epoch * jobs.max_epochs[:, None] <= time_left)
    return np.where(in_time, cost, np.inf).min(axis=1) / np.where(known, cost, np.inf).min(axis=1)


def _most_at_once(instance: Instance, policy: str) -> int:
    result = simulate(instance, make_policy(policy), record=False)
    times = np.concatenate([result.completion_s, instance.jobs.submission_s])
    change = np.repeat([-1, 1], len(instance.jobs))
    return int(np.cumsum(change[np.argsort(times, kind="stable")]).max())
