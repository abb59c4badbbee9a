"""The prices of GPU types: a type that others need more costs more."""

import numpy as np
import pytest

from gpusched_baselines import StsX
from gpusched_baselines.sts_x.capacity_price import capacity_price
from gpusched_baselines.sts_x.plan import unadapted
from gpusched_baselines.sts_x.type_prices import FILLED, MOST, RECENT, _take_latest_prices, with_type_prices
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, UtilisationModel, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernels import FREE_COLUMNS

HOUR = 3600.0
T, V = Configuration("T", 1), Configuration("V", 1)
CERTAIN = EpochDistribution.certain()


def kind(name: str) -> GpuType:
    return GpuType(name, gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=1)


def cluster(jobs: list[Job], nodes: int = 1) -> Instance:
    every = [Node(name, 1) for name in ("T", "V") for _ in range(nodes)]
    return Instance.from_jobs(
        [kind("T"), kind("V")], every, jobs, [T, V], energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0
    )


def job(submission_h: float, on_t: float, on_v: float) -> Job:
    """A job of one epoch, of so many hours on T and on V, due 3 h after it comes."""
    start = submission_h * HOUR
    return Job(start, start + 3.0 * HOUR, 0.001, 1.0, CERTAIN, 1.0, seconds_per_epoch={T: on_t * HOUR, V: on_v * HOUR})


def rates_after(instance: Instance, events: int, rate: tuple[float, float] = (1.0, 1.0)) -> np.ndarray:
    """Return the rates with prices of types after so many events at which nothing is decided, as factors, (C,).

    All jobs have one application.
    """
    state = State(instance)
    for _ in range(events):
        state.advance()
    per_s = np.array([rate]) / HOUR
    return (with_type_prices(state.board, unadapted(1, per_s)).rate / per_s)[0]


def shares(gap_h: float, gpus: dict[str, int], *, by_utilisation: bool = True) -> Instance:
    """Jobs of an hour on half a GPU of the slow type S, or of half an hour on one of the fast type F.

    A node of S draws 100 W at rest, one of F 150 W; nodes have two GPUs.
    """
    types = [GpuType("S", 100.0, 100.0, 16.0, 2), GpuType("F", 150.0, 150.0, 16.0, 2)]
    configurations = tuple(Configuration(name, 1, share=0.5) for name in "SF")
    every = [
        Job(
            start,
            start + 9.0 * HOUR,
            0.001,
            1.0,
            CERTAIN,
            1.0,
            dict(zip(configurations, (HOUR, HOUR / 2), strict=True)),
        )
        for start in gap_h * HOUR * np.arange(24)
    ]
    at_rest = np.zeros(2) if by_utilisation else None
    return Instance.from_jobs(
        types, [Node(name, 2) for name, count in gpus.items() for _ in range(count)], every, configurations,
        energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=0.0,
        mechanisms=[UtilisationModel(np.full((2, 1), 0.5), idle_power_w=at_rest)],
    )  # fmt: skip


IN_FULL_NODES = (0.075, 0.152)
"""Cost of a share of S and of F in full nodes [€/h]: a job costs 0.075 or 0.076 €."""


def test_on_shared_gpus_a_type_is_not_used_where_the_jobs_need_fewer_nodes_without_it():
    """4.4 jobs/h, a filled cluster's 3.7: 2.2 GPUs of S in two nodes, so that 0.9 of a node is at rest: 329 + 90 W.

    Of F they are 1.1 GPUs in one node, 0.45 of which is at rest: 333 + 68 W. At 11.8 jobs/h 5.9 GPUs of S in three
    nodes are 885 + 5 W, 2.95 of F in two 897 + 79 W. Two nodes of S do not suffice for those.
    """
    few = rates_after(shares(0.28, {"S": 8, "F": 8}), 24, IN_FULL_NODES)
    assert (few[0] > 1.3, few[1]) == (True, 1.0)
    many = rates_after(shares(0.104, {"S": 8, "F": 8}), 24, IN_FULL_NODES)
    assert (many[0], many[1] > 1.3) == (1.0, True)
    short = rates_after(shares(0.104, {"S": 2, "F": 8}), 24, IN_FULL_NODES)
    assert (short[0] > 1.3, short[1]) == (True, 1.0)


def test_on_shared_gpus_no_type_has_a_price_where_all_together_do_not_suffice_or_power_is_fixed():
    assert rates_after(shares(0.1, {"S": 1, "F": 1}), 24, IN_FULL_NODES).tolist() == [1.0, 1.0]
    fixed = shares(0.1, {"S": 8, "F": 8}, by_utilisation=False)
    assert rates_after(fixed, 24, IN_FULL_NODES).tolist() == [1.0, 1.0]


def mixed(gap_h: float) -> list[Job]:
    """In turn a job that is nearly as good on V, and one that is far better on T."""
    return [job(gap_h * i, 1.0, *((1.1,) if i % 2 == 0 else (2.0,))) for i in range(24)]


def test_a_type_that_all_want_costs_as_much_more_as_the_next_best_for_those_who_can_leave():
    """All want T, which has room for half of them. At 1.1 times its price those that need it less are indifferent."""
    factors = rates_after(cluster(mixed(0.6)), 24)
    assert factors[1] == 1.0
    assert 1.02 < factors[0] < 1.4


def test_types_with_room_for_all_or_for_one_job_keep_their_prices_and_prices_fade_in_overload():
    assert rates_after(cluster(mixed(4.0)), 24).tolist() == [1.0, 1.0]
    assert rates_after(cluster([job(0.0, 2.5, 2.9)]), 1).tolist() == [1.0, 1.0]
    # The jobs come twelve times as fast: 24 h of work on both nodes in 4.2 h. Then tardiness decides, not the type.
    assert 1.0 < rates_after(cluster(mixed(0.05)), 24)[0] < 1.02


def test_no_type_costs_more_than_the_most():
    only = [job(0.01 * i, 1.0, 50.0) for i in range(RECENT + 5)]
    assert 1.0 < rates_after(cluster(only), RECENT + 5)[0] <= MOST
    assert 0.0 < FILLED <= 1.0


def test_jobs_that_are_submitted_together_go_on_from_the_prices_before_them():
    """The steps begin at the prices of the latest job that was the newest in a round, which is not the one before."""
    jobs = [job(0.6 * (i - i % 3), 1.0, *((1.1,) if i % 2 == 0 else (2.0,))) for i in range(24)]
    state = State(cluster(jobs))
    for _ in range(7):
        state.advance()
        with_type_prices(state.board, unadapted(1, np.ones((1, 2)) / HOUR))
    state.advance()
    _take_latest_prices(state.board, 0)
    latest, newest = state.board.memory[20], state.board.memory[23]
    assert latest[FREE_COLUMNS] > 0.0
    assert newest[[FREE_COLUMNS, FREE_COLUMNS + 3]].tolist() == latest[[FREE_COLUMNS, FREE_COLUMNS + 3]].tolist()


def test_those_who_need_a_type_less_leave_it():
    """The jobs that T suits get it more often. With type prices of 0 all together cost 128.51 €."""
    instances = [cluster(mixed(gap_h)) for gap_h in (0.55, 0.6, 0.65, 0.7, 0.8)]
    assert sum(simulate(instance, StsX()).total_eur for instance in instances) < 0.985 * 128.51


def price(value_eur_per_h: float, eur_per_kwh: float = 1.0) -> float:
    """Return the price on four GPUs whose power costs 8 €/h."""
    gpu_type = GpuType("V", gpu_power_w=1000.0, node_base_power_w=2000.0, memory_gib=16.0, max_gpus_per_node=2)
    job = Job(0.0, 4.0 * HOUR, 0.001, 1.0, CERTAIN, 1.0, {Configuration("V", 1): HOUR})
    nodes = [Node("V", 2), Node("V", 2)]
    state = State(Instance.from_jobs([gpu_type], nodes, [job], energy_price_eur_per_kwh=eur_per_kwh, pue=1.0))
    state.advance()
    return capacity_price(state.board, np.array([value_eur_per_h / HOUR]), 0.5 / HOUR)


def test_the_price_is_what_waiting_is_worth_over_power_and_a_small_one_is_none():
    assert price(16.0) == pytest.approx(2.0)
    assert price(0.08) == pytest.approx(0.01)
    assert price(0.079) == 0.0
    # Energy is free: four GPUs at 0.5 €/h.
    assert price(16.0, eur_per_kwh=0.0) == pytest.approx(16.0 / 2.0)


def late_jobs(count: int, nodes: int, on_two_h: float = 1.5, *others: Configuration) -> Instance:
    """Jobs that are late by hours and cost 100 €/h then; an epoch takes two hours on one GPU, four on others."""
    gpu_type = GpuType("V", gpu_power_w=1000.0, node_base_power_w=0.0, memory_gib=16.0, max_gpus_per_node=2)
    seconds = {Configuration("V", 1): 2.0 * HOUR, Configuration("V", 2): on_two_h * HOUR}
    seconds |= dict.fromkeys(others, 4.0 * HOUR)
    jobs = [Job(0.0, HOUR, 100.0 / HOUR, 4.0, CERTAIN, 4.0, seconds) for _ in range(count)]
    return Instance.from_jobs(
        [gpu_type], [Node("V", 2)] * nodes, jobs, list(seconds), energy_price_eur_per_kwh=1.0, pue=1.0
    )


@pytest.mark.parametrize(("jobs", "nodes", "gpus"), [(2, 3, 2), (3, 3, 2), (4, 3, 1), (6, 3, 1)])
def test_jobs_use_fewer_gpus_only_if_more_are_wanted_than_there_are(jobs, nodes, gpus):
    """A second GPU saves 50 €, half an hour, for one GPU-hour more, which costs the n - 1 others 100 (n - 1) / 6 €."""
    log = simulate(late_jobs(jobs, nodes), StsX()).log
    assert log[log[:, at.LOG_START] == 0.0, at.LOG_CONFIG].tolist() == [gpus - 1] * jobs


@pytest.mark.parametrize("others", [(), (Configuration("V", 1, share=0.5),)])
@pytest.mark.parametrize(("jobs", "gpus"), [(2, 2), (3, 1)])
def test_idle_gpus_have_no_price_also_where_a_gpu_can_be_shared(jobs, gpus, others):
    """A second GPU saves 10 € for 1.8 GPU-hours, 30 € to another job. Two jobs want 4 of 6 GPUs, three want all."""
    instance = late_jobs(jobs, 3, 1.9, *others)
    log = simulate(instance, StsX()).log
    first = log[log[:, at.LOG_START] == 0.0, at.LOG_CONFIG].astype(int)
    assert [instance.configurations[config] for config in first] == [Configuration("V", gpus)] * jobs


def test_the_price_without_clearing_leaves_gpus_idle():
    """The two jobs fill two thirds of the six GPUs with what they want, and the price is many times the power."""
    state = State(late_jobs(2, 3))
    state.advance()
    assert capacity_price(state.board, np.full(2, 100.0 / HOUR), 0.0) > 30.0
