"""Jobs on several nodes that spare machines help to synchronise (BytePS): by hand, and what holds for every run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Synchronisation, View, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.slowdown import least_slowdowns
from helpers import helped_instance

HOUR = 3600.0
ONE, FOUR = Configuration("V", 1), Configuration("V", 1, nodes=4)
CERTAIN = EpochDistribution.certain()


class Scripted:
    """Place every job on the configuration that `configs` says."""

    name = "scripted"
    preemption = True

    def __init__(self, *configs: int) -> None:
        self.configs = configs

    def decide(self, view: View, rng: np.random.Generator) -> None:
        for job in view.active:
            view.place(int(job), self.configs[job])


def cluster(singles: int, several: int = 1, cpu_machines: int = 0, nodes: int = 12) -> Instance:
    """Make jobs of 2 epochs: `several` on four nodes, 1 h an epoch without help, then `singles` on one, 3 h an epoch.

    An iteration computes 2 s on one node, and sends the model's size in 1 s: 1/2 s and 3/2 s on four without help.
    """
    gpu = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)
    large = [Job(0.0, 99 * HOUR, 0.001, 2.0, CERTAIN, 2.0, {FOUR: HOUR}) for _ in range(several)]
    small = [Job(0.0, 99 * HOUR, 0.001, 2.0, CERTAIN, 2.0, {ONE: 3 * HOUR}) for _ in range(singles)]
    return Instance.from_jobs(
        [gpu], [Node("V", 1)] * nodes, large + small, [ONE, FOUR], energy_price_eur_per_kwh=1.0, pue=1.0,
        synchronisation=Synchronisation(np.array([[2.0]]), np.array([[1.0]]), cpu_machines),
    )  # fmt: skip


def completions_h(instance: Instance) -> list[float]:
    configs = [int(np.argmin(row)) for row in instance.jobs.seconds_per_epoch]
    return (simulate(instance, Scripted(*configs)).completion_s / HOUR).tolist()


@pytest.mark.parametrize(
    ("spare", "hours"),
    [
        (0, 2.0),
        (1, 2.0 * (0.5 + 24 / 18) / 2.0),  # V(4, 1) = 2·4·3 / (16 + 2)
        (2, 2.0 * (0.5 + 24 / 20) / 2.0),
        (4, 2.0 * (0.5 + 1.0) / 2.0),  # as many as its own: V = 1
        (6, 2.0 * (0.5 + 1.0) / 2.0),  # more help nothing
    ],
)
def test_neighbours_and_cpu_machines_help_alike(spare: int, hours: float):
    assert completions_h(cluster(spare))[0] == pytest.approx(hours, rel=1e-12)
    assert completions_h(cluster(0, cpu_machines=spare))[0] == pytest.approx(hours, rel=1e-12)


def test_what_runs_on_one_node_takes_as_long_as_ever():
    assert completions_h(cluster(2))[1:] == [6.0, 6.0]


def test_nodes_that_are_off_help_nobody():
    assert completions_h(cluster(0, nodes=12)) == [2.0]


def test_jobs_on_several_nodes_share_the_spare_machines():
    """Two on four nodes each and four neighbours: k = 4 · 4/8 = 2 for each."""
    assert completions_h(cluster(4, several=2))[:2] == pytest.approx([1.7, 1.7], rel=1e-12)


def test_help_ends_with_the_job_of_the_neighbour():
    """One neighbour for 6 h; of 8 epochs by 0.9167 h each, 6 h are worth 6.545, and the others take 1 h each."""
    instance = cluster(1)
    jobs = replace(instance.jobs, max_epochs=np.array([8.0, 2.0]), epochs_needed=np.array([8.0, 2.0]))
    slowdown = (0.5 + 24 / 18) / 2.0
    assert completions_h(replace(instance, jobs=jobs))[0] == pytest.approx(6.0 + 8.0 - 6.0 / slowdown, rel=1e-12)


def test_help_changes_no_bill_rate_and_begins_no_interval():
    result = simulate(cluster(4), Scripted(1, 0, 0, 0, 0))
    # 1 € an hour for each of four nodes for 1.5 h, and for four more for 6 h.
    assert result.energy_eur == pytest.approx(4 * 1.5 + 4 * 6.0)
    assert len(result.log) == 4 + 4


def test_policies_plan_without_help():
    state = State(cluster(4))
    state.advance()
    assert state.view.tau[0].tolist() == [np.inf, HOUR]
    assert state.view.jobs[0, at.MIN_TAU] == HOUR


def test_on_two_nodes_nobody_helps():
    two = Configuration("V", 1, nodes=2)
    gpu = GpuType("V", 1000.0, 0.0, 16.0, 1)
    jobs = [Job(0.0, 99 * HOUR, 0.0, 2.0, CERTAIN, 2.0, {two: HOUR})]
    own = Synchronisation(np.array([[2.0]]), np.array([[1.0]]), 9)
    instance = Instance.from_jobs([gpu], [Node("V", 1)] * 3, jobs, [two], synchronisation=own)
    assert simulate(instance, Scripted(0)).completion_s.tolist() == [2 * HOUR]


class Checks:
    """Place jobs as another policy, and look at all speeds of the round before."""

    preemption = True

    def __init__(self, seed: int, instance: Instance) -> None:
        self.name, self.rng, self.instance, self.seen = "checks", np.random.default_rng(seed), instance, []

    def decide(self, view: View, rng: np.random.Generator) -> None:
        least = least_slowdowns(view.board.facts)
        for job in view.active.tolist():
            config, slowdown = int(view.jobs[job, at.OLD_CONFIG]), view.jobs[job, at.SLOWDOWN]
            if config >= 0:
                assert least[int(view.jobs[job, at.APPLICATION]), config] <= slowdown <= 1.0
                fastest = self.instance.fastest_seconds_per_epoch[job, config]
                assert view.tau[job, config] * slowdown >= fastest * (1 - 1e-12)
                self.seen.append((self.instance.configurations[config].nodes, slowdown))
        for job in self.rng.permutation(view.active).tolist():
            any(view.place(job, c) for c in self.rng.permutation(np.flatnonzero(np.isfinite(view.tau[job]))).tolist())


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_planned_is_never_better_than_the_truth(seed: int):
    instance = helped_instance(seed, jobs=25, types=1, span_s=500.0)
    policy = Checks(seed, instance)
    simulate(instance, policy, review_s=20.0)
    assert all(slowdown == 1.0 for nodes, slowdown in policy.seen if nodes < 3)


def test_random_instances_have_jobs_that_are_helped():
    """So the property above says something."""
    seen = []
    for seed in range(10):
        instance = helped_instance(seed, jobs=25, types=1, span_s=500.0)
        policy = Checks(seed, instance)
        simulate(instance, policy, review_s=20.0)
        seen += policy.seen
    assert sum(slowdown < 0.95 for _, slowdown in seen) > 20


def test_an_application_that_only_computes_is_not_helped():
    own = Synchronisation(np.array([[2.0]]), np.array([[0.0]]), 9)
    assert completions_h(replace(cluster(4), synchronisation=own))[0] == 2.0
