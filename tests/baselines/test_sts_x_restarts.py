"""STS-X where restarts are long: plans that keep their configuration, and rounds that keep the running jobs."""

import numpy as np
import pytest

from gpusched_baselines import StsX, make_policy
from gpusched_baselines.sts_x.placements import restarts_are_long
from gpusched_baselines.sts_x.plan import best_throughout, cost_throughout
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.workload import draw_scenario, load_scenario, make_instance

HOUR = 3600.0
ONE, TWO = Configuration("V", 1), Configuration("V", 2)
CERTAIN = EpochDistribution.certain()
HALF_STOP = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
# A busy GPU costs 1 €/h; an epoch takes two hours on one GPU and an hour and a half on two: 2 € and 3 €.
V = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=2)


def job(submission_h: float, due_h: float, epochs: float, weight_eur_per_h: float, distribution=CERTAIN) -> Job:
    seconds = {ONE: 2.0 * HOUR, TWO: 1.5 * HOUR}
    return Job(
        submission_h * HOUR, due_h * HOUR, weight_eur_per_h / HOUR, epochs, distribution, epochs,
        seconds_per_epoch=seconds,
    )  # fmt: skip


def cluster(jobs: list[Job], restart_h: float, nodes: int = 1) -> Instance:
    return Instance.from_jobs(
        [V], [Node("V", 2)] * nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=restart_h * HOUR
    )


def test_the_cost_of_a_job_that_keeps_its_configuration_and_the_best_one_to_the_end():
    """Four epochs, of which half of the jobs need two: 3 are expected, 6 h and 6 € on one GPU.

    With 5 h left half of the jobs are late by 3 h, so 1.5 h are expected; a restart of an hour makes them 2 h, and
    costs 1 €.
    """
    state = State(cluster([job(0, 5, 4.0, 10.0, HALF_STOP)], 1.0))
    state.advance()
    weight = 10.0 / HOUR
    assert cost_throughout(state.board, 0, 0, 1.0 / HOUR, 0.0, weight) == pytest.approx(6.0 + 10.0 * 1.5)
    assert cost_throughout(state.board, 0, 0, 1.0 / HOUR, HOUR, weight) == pytest.approx(7.0 + 10.0 * 2.0)
    assert cost_throughout(state.board, 0, 0, 1.0 / HOUR, 6.0 * HOUR, weight) == pytest.approx(12.0 + 10.0 * 7.0)
    # On two GPUs 3 expected epochs cost 9 € and are late by half an hour in expectation; on one, 6 € and 1.5 h.
    rate = np.array([1.0, 2.0]) / HOUR
    config, cost = best_throughout(state.board, rate, 0, 1.0, 10.0 / HOUR)
    assert (config, cost) == (1, pytest.approx(9.0 + 10.0 * 0.5))
    assert best_throughout(state.board, rate, 0, 1.0, 2.0 / HOUR) == (0, pytest.approx(6.0 + 2.0 * 1.5))
    assert best_throughout(state.board, np.full(2, np.inf), 0, 1.0, 1.0)[0] == -1


@pytest.mark.parametrize(("restart_h", "switches"), [(0.0, 1), (3.0, 0)])
def test_a_plan_changes_configuration_only_if_that_pays_for_the_restart(restart_h, switches):
    """It starts on one GPU and speeds up after half of the epochs, unless that takes three hours."""
    result = simulate(cluster([job(0, 7, 4.0, 3.0, HALF_STOP)], restart_h), StsX())
    assert result.switches.tolist() == [switches]


def test_a_guaranteed_due_date_is_kept_whatever_changes_cost():
    """The second GPU is needed for the last hours; on one to its end the job is late by half an hour, for 0.005 €."""
    instance = cluster([job(0, 7.5, 4.0, 0.01, HALF_STOP)], 0.0)
    assert (simulate(instance, StsX(guarantees=True)).late_jobs, simulate(instance, StsX()).late_jobs) == (0, 1)


def test_a_job_near_its_end_is_not_interrupted_where_a_restart_takes_longer():
    """The second job is more urgent, and would wait an hour at most; the first would have to restart for two."""
    jobs = [job(0, 4.0, 2.0, 1.0), job(3.0, 4.5, 1.0, 2.0)]
    kept = simulate(cluster(jobs, 2.0), StsX())
    assert kept.switches.tolist() == [0, 0]


@pytest.mark.parametrize("restart_s", [600.0, 1800.0])
def test_with_long_restarts_it_costs_less_than_edf_which_restarts_no_job(restart_s):
    """On workloads that no choice was made on."""
    scenario = load_scenario("track:busy").replace({"restart_s": restart_s, "jobs.count": 120})
    instances = [make_instance(scenario, seed) for seed in range(70_000, 70_005)]
    total = {
        name: sum(simulate(instance, policy, record=False).total_eur for instance in instances)
        for name, policy in (("sts-x", StsX()), ("edf", make_policy("edf")))
    }
    assert total["sts-x"] < total["edf"]


@pytest.mark.parametrize(("restart_s", "long"), [(0.0, False), (60.0, False), (80.0, True)])
def test_rounds_are_compared_where_a_restart_is_more_than_a_hundredth_of_the_time_left(restart_s, long):
    """A job of two hours."""
    state = State(cluster([job(0, 4.0, 1.0, 0.1)], restart_s / HOUR))
    state.advance()
    board = state.board
    assert restarts_are_long(board, board.active[: board.count[at.ACTIVE]]) == long


def test_the_round_that_keeps_running_jobs_is_planned_without_the_price_of_gpus():
    """Restarts of half an hour in a full cluster: with that price new jobs stay on the small configurations."""
    scenario = draw_scenario(4, 48)
    costs = {"sts-x": 0.0, "pack": 0.0}
    for seed in range(91000, 91005):
        for name in costs:
            costs[name] += simulate(make_instance(scenario, seed), make_policy(name), record=False).total_eur
    assert costs["sts-x"] < costs["pack"]
