"""No policy's decisions depend on the epochs that unfinished jobs will need, or on jobs and prices to come."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from any_instance import AnyInstance
from compiled_policies import POLICIES
from gpusched_baselines import make_policy
from gpusched_env import Instance, Result, Scenario, make_instance, simulate
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernels import forecast_prices
from instances import random_instance


def until(result: Result, time_s: float) -> np.ndarray:
    """Cut the intervals of a run at `time_s`: job, node, configuration, start, end."""
    log = result.log[result.log[:, at.LOG_START] < time_s]
    rows = log[:, [at.LOG_JOB, at.LOG_NODE, at.LOG_CONFIG, at.LOG_START, at.LOG_END]].copy()
    rows[:, 4] = np.minimum(rows[:, 4], time_s)
    return rows[np.lexsort((rows[:, 0], rows[:, 3]))]


def altered_after(instance: Instance, result: Result, time_s: float, seed: int) -> Instance:
    """Change the epochs needed of every job that is not done at `time_s`, to more than it has done by then."""
    rng = np.random.default_rng(seed)
    done = np.zeros(len(instance.jobs))
    for row in result.log:
        working = max(0.0, min(time_s, row[at.LOG_END]) - row[at.LOG_READY])
        if row[at.LOG_START] < time_s:
            done[int(row[at.LOG_JOB])] += (
                working / instance.jobs.seconds_per_epoch[int(row[at.LOG_JOB]), int(row[at.LOG_CONFIG])]
            )
    largest, needed = instance.jobs.max_epochs, instance.jobs.epochs_needed.copy()
    open_jobs = result.completion_s > time_s
    share = rng.uniform(0.05, 1.0, len(needed))
    needed[open_jobs] = (done + (largest - done) * share)[open_jobs]
    return replace(instance, jobs=replace(instance.jobs, epochs_needed=np.minimum(needed, largest)))


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.9))
def test_the_past_does_not_depend_on_epochs_to_be_done_and_on_jobs_to_come(name, seed, share):
    instance = random_instance(seed, jobs=10, nodes=3, kinds=bool(seed % 2), interference=bool(seed % 4 == 3))
    first = simulate(instance, POLICIES[name])
    time_s = float(first.completion_s.max() * share)
    other = altered_after(instance, first, time_s, seed)
    jobs = other.jobs
    to_come = jobs.submission_s > time_s
    changed = replace(
        jobs,
        due_s=jobs.due_s + 1000.0 * to_come,
        tardiness_weight_eur_per_s=jobs.tardiness_weight_eur_per_s + 1.0 * to_come,
        seconds_per_epoch=jobs.seconds_per_epoch * np.where(to_come, 0.3, 1.0)[:, None],
    )
    second = simulate(replace(other, jobs=changed), POLICIES[name])
    np.testing.assert_array_equal(until(first, time_s), until(second, time_s))


class ByPrice:
    """Starts jobs by what it can know of prices: the mean of all that is published and forecast from now on."""

    name, preemption = "by-price", False

    def decide(self, view: View, rng: np.random.Generator) -> None:
        edges = view.now_s + 300.0 * np.arange(13.0)
        ahead = np.empty(12)
        forecast_prices(view.board, edges, ahead)
        known = np.nansum(view.prices[:, at.PERIOD_PRICE]) + min(view.known_until_s, 1e9)
        for job in view.waiting:
            if ahead[0] <= ahead.mean() or view.now_s > 4_000.0:
                options = np.flatnonzero(np.isfinite(view.tau[job]))
                view.place(int(job), int(options[int(known * 1000.0) % len(options)]))
            else:
                view.set_timer(int(job), view.now_s + 100.0)


@pytest.mark.parametrize(
    ("name", "seed"), [("rollout", 0), *((name, seed) for name in ("by-price", "sts-x") for seed in range(4))]
)
def test_the_past_does_not_depend_on_prices_that_are_not_published(name, seed):
    instance, rng = random_instance(seed, jobs=10, nodes=3), np.random.default_rng(seed)
    starts = np.arange(-20.0, 100.0) * 300.0
    series = PriceSeries(starts, rng.uniform(0.01, 0.5, 120), published_s=starts - 400.0, forecast_noise=0.1)
    time_s = float(rng.uniform(600.0, 3_000.0))
    later = starts - 400.0 > time_s
    other = replace(series, eur_per_kwh=np.where(later, rng.uniform(0.01, 0.5, 120), series.eur_per_kwh))
    policy = ByPrice() if name == "by-price" else make_policy(name)
    first, second = (simulate(instance.with_mechanisms(each), policy) for each in (series, other))
    assert first.energy_eur != second.energy_eur
    np.testing.assert_array_equal(until(first, time_s), until(second, time_s))


def test_the_check_itself_finds_a_leak():
    """A policy that peeks at the epochs needed is caught."""
    instance = random_instance(5, jobs=10, nodes=3)

    class Peeker:
        name = "peeker"
        preemption = False

        def __init__(self, needed: np.ndarray) -> None:
            self.needed = needed

        def decide(self, view, rng):
            for job in sorted(view.waiting, key=lambda j: self.needed[j]):
                options = np.flatnonzero(np.isfinite(view.tau[job]))
                view.place(int(job), int(options[int(self.needed[job] * 1000) % len(options)]))

    first = simulate(instance, Peeker(instance.jobs.epochs_needed))
    time_s = float(first.completion_s.max() * 0.5)
    other = altered_after(instance, first, time_s, 1)
    second = simulate(other, Peeker(other.jobs.epochs_needed))
    assert not np.array_equal(until(first, time_s), until(second, time_s))


ROWS = "submission_s,start_s,duration_s,gpus\n0,100,1000,4\n10,50,200,8\n20,60,50,2\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS, encoding="utf-8")
    return Scenario(cluster={"nodes": 1, "gpu_types": ["V100"]}, trace={"path": str(path)})


def shown(rows: np.ndarray) -> tuple[list[float], list[float]]:
    """Return what rows of jobs say of their traced starts and configurations, without rows that are not there yet."""
    there = rows[~np.isnan(rows[:, at.SUBMISSION])]
    return there[:, at.TRACED_START_S].tolist(), there[:, at.TRACED_CONFIG].tolist()


@dataclass
class Reader:
    """Decides as EDF, and notes what it sees of the jobs that are there."""

    name: str = "reader"
    preemption: bool = True
    seen: list[tuple[list[float], list[float]]] = field(default_factory=list)

    def decide(self, view, rng):
        self.seen.append(shown(view.jobs))
        make_policy("edf").decide(view, rng)


@dataclass
class Replayer(Reader):
    replays: bool = True


def test_only_a_policy_that_replays_sees_traced_starts(scenario):
    instance = make_instance(scenario, 0)
    assert instance.jobs.traced_start_s.tolist() == [100.0, 50.0, 60.0]
    for policy in (Reader(), Replayer(replays=False)):
        simulate(instance, policy)
        assert len(policy.seen[-1][0]) == 3
        for starts, configurations in policy.seen:
            assert np.isnan(starts).all()
            assert set(configurations) == {-1.0}
    policy = Replayer()
    instance = make_instance(scenario, 0)
    simulate(instance, policy)
    assert policy.seen[0] == ([100.0], [float(instance.jobs.traced_config[0])])
    assert policy.seen[-1] == ([100.0, 50.0, 60.0], instance.jobs.traced_config.astype(float).tolist())


def test_environments_never_show_them(scenario):
    single = AnyInstance(make_instance(scenario, 0))
    single.reset()
    several = GpuClusterVectorEnv(1, scenario)
    several.reset(seed=0)
    assert all(instance.jobs.traced_start_s is not None for instance in (single.instance, *several.instances))
    for view in (single.view, several.views[0]):
        starts, configurations = shown(view.jobs)
        assert starts
        assert np.isnan(starts).all()
        assert set(configurations) == {-1.0}
