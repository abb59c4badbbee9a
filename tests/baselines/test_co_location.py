"""Times on shared GPUs with the expected co-runners; by hand, and their value to STS-X."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import StsX, make_policy
from gpusched_baselines.planning.cheapest import rates_by_utilisation, rates_of_shares, with_co_runners
from gpusched_env import Configuration, GpuType, Instance, Interference, Job, Node, UtilisationModel, simulate
from gpusched_env.simulator import State
from gpusched_env.workload import load_scenario, make_instance
from instances import CERTAIN, random_instance

QUARTER, GUARANTEED, OPPORTUNISTIC = (
    Configuration("V", 1, share=0.25),
    Configuration("V", 1, share=0.6, priority=1),
    Configuration("V", 1, share=0.4),
)


def three_jobs(configurations: tuple[Configuration, ...], interference: object, count: int = 3) -> Instance:
    """Make two jobs of application a and one of b, or more in this order, a second per epoch alone."""
    gpu = GpuType("V", 100.0, 100.0, 16.0, 1)
    seconds = dict.fromkeys(configurations, 1.0)
    names = ("aab" * count)[:count]
    jobs = [Job(0.0, 1e6, 0.1, 10.0, CERTAIN, 10.0, seconds, application=name) for name in names]
    return Instance.from_jobs(
        [gpu], [Node("V", 1)], jobs, configurations, mechanisms=[interference] if interference else []
    )


def times(instance: Instance) -> np.ndarray:
    state = State(instance)
    state.advance()
    return with_co_runners(state.board).tau


def test_a_share_counts_with_average_pairs_in_a_full_gpu():
    """Beside a with 2/3 and b with 1/3, a takes 1 + 2/3 0.3 + 1/3 0.9 = 1.5 in the mean: three others add 1.5."""
    slowdown = np.array([[[1.3, 1.9], [1.0, 1.6]]])
    tau = times(three_jobs((QUARTER,), Interference(slowdown)))
    assert tau[:, 0] == pytest.approx([2.5, 2.5, 1.0 + 3 * 0.2])


def test_an_opportunistic_job_counts_with_an_average_guaranteed_one_and_that_with_the_overhead():
    """Mean utilisation (0.6 + 0.6 + 0.3) / 3 = 0.5: an opportunistic job of 0.6 fills 0.85 · 0.5 of the time."""
    tau = times(three_jobs((GUARANTEED, OPPORTUNISTIC), UtilisationModel(np.array([[0.6, 0.3]]))))
    assert tau[:, 0] == pytest.approx([1.03] * 3)
    assert tau[:, 1] == pytest.approx([0.6 / 0.425, 0.6 / 0.425, 1.0])


def test_it_is_never_worse_than_the_worst_and_without_a_model_the_board_stays():
    instance = three_jobs((QUARTER,), None)
    state = State(instance)
    state.advance()
    assert with_co_runners(state.board) is state.board
    rough = instance.with_mechanisms(Interference(np.full((1, 2, 2), 3.0)))
    state = State(rough)
    state.advance()
    assert (with_co_runners(state.board).tau <= state.board.tau).all()


def test_where_gpus_draw_power_by_utilisation_a_share_counts_with_its_part_of_what_its_gpu_draws_at_rest():
    """100 W base, 100 W busy and 20 W at rest: at a mean utilisation of 0.5 a GPU draws 160 W with its node.

    Four jobs in quarters need 0.6 + 3 · 0.5 and 0.3 + 3 · 0.5 of its time: so each works 0.6 / 2.1 or 0.3 / 1.8 of it.
    Each pays a quarter of the 120 W at rest.
    """
    instance = three_jobs(
        (QUARTER, Configuration("V", 1)), UtilisationModel(np.array([[0.6, 0.3]]), idle_power_w=np.array([20.0]))
    )
    state = State(instance)
    state.advance()
    rate = rates_by_utilisation(state.board, state.board.least_rate)
    work = (2.0 * 0.6 / 2.1 + 0.3 / 1.8) / 3.0
    each = [(0.12 * at_rest + 0.08 * part) * 0.172 * 1.58 / 3600.0 for at_rest, part in ((0.25, work), (1.0, 0.5))]
    assert rate == pytest.approx(np.array([each, each]))  # both applications
    plain = State(instance.with_mechanisms(replace(instance.find("shares"), idle_power_w=None)))
    plain.advance()
    assert rates_by_utilisation(plain.board, plain.board.least_rate) is plain.board.least_rate


def test_a_share_costs_as_much_of_its_gpu_as_the_holders_that_can_be_expected_leave():
    """With three active jobs one holder is expected: a quarter costs the whole GPU. With twenty four, its capacity."""
    for jobs, part in ((3, 1.0), (7, 1.0 / 2.1), (20, 0.25)):
        state = State(three_jobs((QUARTER, Configuration("V", 1)), None, count=jobs))
        state.advance()
        quarter, whole = rates_of_shares(state.board, state.board.least_rate)[0]
        assert quarter == pytest.approx(part * whole)
        assert whole == state.board.least_rate[0, 1]


def test_where_energy_is_free_a_share_has_its_part_of_the_small_price_of_a_gpu_by_expected_holders():
    state = State(replace(three_jobs((QUARTER, Configuration("V", 1)), None), energy_price_eur_per_kwh=0.0))
    state.advance()
    quarter, whole = StsX().rates(state.board)[0]
    assert quarter == whole > 0.0  # three active jobs: one holder


def test_where_power_follows_utilisation_gpu_seconds_have_a_price():
    """Half of the 200 W of the busy GPU and its node is added for a GPU held, for a quarter a quarter of that.

    Three jobs are expected to hold a GPU one by one: a quarter pays all of the 120 W at rest, as a whole GPU does.
    """
    model = UtilisationModel(np.array([[0.6, 0.3]]), idle_power_w=np.array([20.0]))
    state = State(three_jobs((QUARTER, Configuration("V", 1)), model))
    state.advance()
    board = state.board
    work, per_kw = (2.0 * 0.6 / 2.1 + 0.3 / 1.8) / 3.0, 0.172 * 1.58 / 3600.0
    expected = [(0.12 + 0.08 * work + 0.125 * 0.2) * per_kw, (0.12 + 0.08 * 0.5 + 0.5 * 0.2) * per_kw]
    assert rates_of_shares(board, board.least_rate) == pytest.approx(np.array([expected, expected]))


def test_where_there_are_opportunistic_shares_sts_x_saves_by_expected_co_runners():
    values = {
        "sharing.interference": "utilisation", "sharing.utilisation": [0.1, 0.8], "sharing.fractions": [0.6, 0.4],
        "sharing.priorities": [1, 0], "jobs.count": 40, "cluster.nodes": 4,
    }  # fmt: skip
    scenario = load_scenario("sharing").replace(values)
    costs = dict.fromkeys(("sts-x", "sts-x:worst-co-runners"), 0.0)
    for seed in range(20_000, 20_004):
        for name in costs:
            costs[name] += simulate(make_instance(scenario, seed), make_policy(name), record=False).total_eur
    assert costs["sts-x"] < 0.9 * costs["sts-x:worst-co-runners"]


def test_where_due_dates_are_guaranteed_plans_have_the_worst_co_runners():
    different = 0
    for seed in range(12):
        instance = random_instance(seed, kinds=True, interference=True)
        guaranteed = simulate(instance, StsX(guarantees=True)).log.tobytes()
        assert guaranteed == simulate(instance, StsX(guarantees=True, co_located=False)).log.tobytes()
        different += (
            simulate(instance, StsX()).log.tobytes() != simulate(instance, StsX(co_located=False)).log.tobytes()
        )
    assert different > 0  # elsewhere co-runners change the costs on these instances
