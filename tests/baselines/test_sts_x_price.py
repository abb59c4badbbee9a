"""The price of a GPU-second in STS-X, by hand: four GPUs whose power costs 8 € an hour when all are busy."""

import numpy as np
import pytest

from gpusched_baselines import StsX
from gpusched_baselines.sts_x.capacity_price import capacity_price
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at

HOUR = 3600.0
CERTAIN = EpochDistribution.certain()


def price(gpu_hours: float, value_eur_per_h: float, eur_per_kwh: float = 1.0) -> float:
    """Return the price with one job that is due in four hours, and needs so many GPU-hours until then."""
    gpu_type = GpuType("V", gpu_power_w=1000.0, node_base_power_w=2000.0, memory_gib=16.0, max_gpus_per_node=2)
    job = Job(0.0, 4.0 * HOUR, 0.001, 1.0, CERTAIN, 1.0, {Configuration("V", 1): HOUR})
    nodes = [Node("V", 2), Node("V", 2)]
    state = State(Instance.from_jobs([gpu_type], nodes, [job], energy_price_eur_per_kwh=eur_per_kwh, pue=1.0))
    state.advance()
    values, needs = np.array([value_eur_per_h / HOUR]), np.array([gpu_hours * HOUR])
    return capacity_price(state.board, np.array([0]), values, needs, 0.5 / HOUR)


@pytest.mark.parametrize(
    ("gpu_hours", "load", "expected"),
    [
        (4.0, 0.25, 2.0 * 0.25),
        (8.0, 0.5, 2.0),
        (12.0, 0.75, 2.0 * 2.25),
        (16.0, 1.0, 2.0 * 4.0),
        (32.0, 2.0, 2.0 * 4.0),
    ],
)
def test_the_price_is_what_waiting_is_worth_over_power_times_the_square_of_how_full_the_cluster_is(
    gpu_hours, load, expected
):
    """A value of 16 €/h is twice the power; a load of 0.5 is full, and beyond 1 it makes no difference."""
    assert load == gpu_hours / 4.0 / 4
    assert price(gpu_hours, 16.0) == pytest.approx(expected)


def test_a_small_price_is_none_and_so_is_that_of_time_without_value():
    assert price(4.0, 0.32) == pytest.approx(0.01)
    assert price(4.0, 0.31) == 0.0
    assert price(32.0, 0.0) == 0.0


def test_where_energy_is_free_a_gpu_counts_with_its_adapted_rate():
    """Four GPUs at 0.5 €/h."""
    assert price(8.0, 16.0, eur_per_kwh=0.0) == pytest.approx(16.0 / 2.0)


def late_jobs(count: int, nodes: int) -> Instance:
    """Jobs that are late by hours and cost 100 €/h then; an epoch takes two hours on one GPU, 1.5 h on two."""
    gpu_type = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=2)
    seconds = {Configuration("V", 1): 2.0 * HOUR, Configuration("V", 2): 1.5 * HOUR}
    jobs = [Job(0.0, HOUR, 100.0 / HOUR, 4.0, CERTAIN, 4.0, seconds) for _ in range(count)]
    return Instance.from_jobs([gpu_type], [Node("V", 2)] * nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0)


@pytest.mark.parametrize(("jobs", "nodes", "gpus"), [(2, 3, 2), (3, 3, 1), (3, 4, 2), (6, 3, 1)])
def test_jobs_use_fewer_gpus_only_if_more_are_wanted_than_there_are(jobs, nodes, gpus):
    """Two of three jobs could have two of six GPUs each, but then 85 % of them would not suffice for all of them."""
    log = simulate(late_jobs(jobs, nodes), StsX()).log
    assert log[log[:, at.LOG_START] == 0.0, at.LOG_CONFIG].tolist() == [gpus - 1] * jobs


def test_the_price_without_clearing_leaves_gpus_idle():
    """The two jobs fill two thirds of the six GPUs with what they want, and the price is many times the power."""
    state = State(late_jobs(2, 3))
    state.advance()
    weights, needs = np.full(2, 100.0 / HOUR), np.full(2, 12.0 * HOUR)
    assert capacity_price(state.board, np.arange(2), weights, needs, 0.0) > 50.0
