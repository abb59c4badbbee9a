"""Gavel's programs, by hand, against plain linear programs, and against every point of a grid."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gavel_demands import demand, feasible_grid, random_demand
from gpusched_baselines.gavel.allox import allox
from gpusched_baselines.gavel.hierarchical import quantile_entities, water_filling
from gpusched_baselines.gavel.objectives import (
    any_fifo,
    cost_slo,
    fifo,
    finish_time,
    las,
    las_without_speeds,
    makespan,
)
from gpusched_baselines.gavel.program import raised

OBJECTIVES = (las, makespan, finish_time, cost_slo, fifo, las_without_speeds, allox)


def time_got(of, x):
    """Return the quantity that max-min fairness makes equal, for shares (..., A, K): (..., A)."""
    return of.size / of.weight * (of.speed * x).sum(axis=-1) / of.proportional


def soonest(of, x):
    return (of.speed * x).sum(axis=-1) / of.left


def fair_finish(of, x):
    share = np.minimum(of.capacity / (len(of.job) * of.size[:, None]), 1.0)
    share = share / np.maximum(1.0, share.sum(axis=1, keepdims=True))
    alone = of.isolated_s + of.left / (of.speed * share).sum(axis=1)
    with np.errstate(divide="ignore"):
        return -(of.age_s + of.left / (of.speed * x).sum(axis=-1)) / alone


def time_alone(of, x):
    return of.size / of.weight * x.sum(axis=-1)


def best_level(of, measure):
    """Return the most that the worst-off job can have of a linear measure, by the linear program as in the paper."""
    jobs, options = of.speed.shape
    worth = np.stack([measure(of, np.tile(each, (jobs, 1))) for each in np.eye(options)], axis=1)
    each_job, each_type = np.kron(np.eye(jobs), np.ones(options)), np.kron(np.ones(jobs), np.eye(options))
    rows = np.vstack([-each_job * worth.ravel(), each_job, each_type * of.gpus.ravel()])
    level = np.append(np.ones(jobs), np.zeros(jobs + options))
    limits = np.concatenate([np.zeros(jobs), np.ones(jobs), of.capacity])
    return -linprog([0.0] * jobs * options + [-1.0], A_ub=np.column_stack([rows, level]), b_ub=limits).fun


@pytest.mark.parametrize(
    ("program", "measure"), [(las, time_got), (las_without_speeds, time_alone), (makespan, soonest)]
)
@pytest.mark.parametrize("seed", range(9))
def test_the_worst_off_job_has_what_the_linear_program_gives_it(program, measure, seed):
    of = random_demand(seed, 1 + seed)
    assert measure(of, program(of)).min() == pytest.approx(best_level(of, measure), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_point_of_a_grid_ends_sooner_for_the_worst_off_job(seed):
    of = random_demand(seed)
    worst, on_grid = fair_finish(of, finish_time(of)).min(), fair_finish(of, feasible_grid(of)).min(axis=1)
    assert worst >= on_grid.max() - 5e-3
    assert worst <= on_grid.max() + 0.35  # else the grid would be too coarse


@pytest.mark.parametrize("program", OBJECTIVES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 9))
def test_no_job_has_more_than_all_the_time_and_no_gpu_is_assigned_twice(program, seed, jobs):
    of = random_demand(seed, jobs)
    x = program(of)
    assert np.all(x >= 0.0)
    assert np.all(x.sum(axis=1) <= 1.0 + 1e-9)
    assert np.all(of.used(x) <= of.capacity + 1e-6)


def test_max_min_fairness_sends_each_job_where_it_gains_most():
    """x_prop is half and half: A counts 4 / 2.5 on the first type, B as much on the second; each has its own GPU."""
    of = demand([[4, 1], [1, 4]])
    np.testing.assert_allclose(las(of), [[1, 0], [0, 1]], atol=1e-6)
    assert time_got(of, las(of)) == pytest.approx([1.6, 1.6])


def test_a_job_with_twice_the_weight_gets_twice_the_time_and_one_on_two_gpus_half():
    of = demand([[1], [1]], capacity=(1,), weight=[1, 2])
    np.testing.assert_allclose(las(of)[:, 0], [1 / 3, 2 / 3], atol=1e-6)
    of = demand([[1], [1]], [[1], [2]], capacity=(2,))
    np.testing.assert_allclose(las(of)[:, 0], [1, 0.5], atol=1e-6)


def test_without_speeds_all_get_the_same_time():
    of = demand([[1, 9], [1, 9]])
    np.testing.assert_allclose(las_without_speeds(of), 0.5, atol=1e-6)
    of = demand([[1]] * 4, capacity=(1,))
    np.testing.assert_allclose(las_without_speeds(of)[:, 0], 0.25, atol=1e-6)
    of = demand([[1, 0], [1, 1]])  # it is not known that the first cannot run on the second type
    np.testing.assert_allclose(las_without_speeds(of), [[0.5, 0], [0.5, 0.5]], atol=1e-6)


# Sizes of jobs, GPUs of the types, and the optimum of ECOS 2.0 (by cvxpy 1.4) for jobs whose types are equally fast.
EQUALLY_FAST = [
    ([1], (1, 3), [[0.287433, 0.712567]]),
    ([1, 1], (1, 3), [[0.283473, 0.716527]] * 2),
    ([1, 2, 1], (2, 4), [[0.390046, 0.609954], [0.267840, 0.518806], [0.390046, 0.609954]]),
    ([1, 4], (4, 4, 4), [[1 / 3] * 3, [0.257433] * 3]),
]


@pytest.mark.parametrize(("sizes", "capacity", "published"), EQUALLY_FAST)
def test_of_equal_optima_it_is_that_of_the_published_solver(sizes, capacity, published):
    """A division by GPUs would give 1/4 and 3/4 of the time."""
    shape = (len(sizes), len(capacity))
    of = demand(np.ones(shape), np.broadcast_to(np.array(sizes)[:, None], shape), capacity)
    np.testing.assert_allclose(las_without_speeds(of), published, atol=1e-5)
    np.testing.assert_allclose(las(of), published, atol=1e-5)


def test_jobs_that_are_alike_are_solved_for_once_and_count_each():
    """36 GPUs for 60 jobs of one and 20 of two: the levels are equal, and all GPUs are used."""
    size = np.repeat([1, 2], [60, 20])[:, None]
    of = demand(np.ones((80, 1)), size, (36,))
    x = las_without_speeds(of)[:, 0]
    np.testing.assert_allclose(x[:60], 36 / 80, atol=1e-6)
    np.testing.assert_allclose(x[60:], 18 / 80, atol=1e-6)


def test_where_rounding_hinders_the_last_digits_it_is_still_that_optimum():
    """120 jobs, 108 GPUs of three types: a job of one GPU has 0.3 of the time of each type, and no corner."""
    size = np.repeat([1, 2, 4, 8], [60, 20, 20, 20])[:, None] * np.ones((1, 3))
    of = demand(np.ones((120, 3)), size, (36, 36, 36))
    np.testing.assert_allclose(las_without_speeds(of), 0.3 / size, atol=1e-6)


def test_the_makespan_of_two_equal_jobs_on_one_gpu_is_that_of_both_in_turn():
    of = demand([[2], [2]], capacity=(1,), left=[10, 30])
    assert soonest(of, makespan(of)) == pytest.approx([1 / 20, 1 / 20])


def test_finish_time_fairness_prefers_jobs_that_have_waited():
    """In isolation, on half a GPU, both need 20 s for what is left; one has waited for 20 s.

    If it has done nothing, 10 / (20 a) = (20 + 10 / (1 - a)) / 20, so that a = 1 - √½. If what it has done took the 20
    s, it is as it would be in isolation.
    """
    of = demand([[1], [1]], capacity=(1,), left=[10, 10], age_s=[0, 20])
    np.testing.assert_allclose(finish_time(of)[:, 0], [1 - 0.5**0.5, 0.5**0.5], rtol=1e-3)
    of = replace(of, isolated_s=np.array([0.0, 20.0]))
    np.testing.assert_allclose(finish_time(of)[:, 0], [0.5, 0.5], rtol=1e-3)
    of = demand([[4, 1], [1, 4]], left=[8, 8])  # each has the type that it is faster on: 2 s instead of 3.2
    assert -fair_finish(of, finish_time(of)) == pytest.approx([0.625, 0.625], rel=2e-3)


def test_costs_are_least_that_keep_due_dates_and_due_dates_that_cannot_be_kept_are_left_out():
    """The second type is twice as fast and three times as costly."""
    columns = {"rate": [[1, 3]], "left": [10]}
    np.testing.assert_allclose(cost_slo(demand([[1, 2]], due_in_s=[20], **columns)), [[1, 0]], atol=1e-7)
    np.testing.assert_allclose(cost_slo(demand([[1, 2]], due_in_s=[8], **columns)), [[0.75, 0.25]], atol=1e-7)
    for due in (4.0, -1.0):  # it cannot be met any more, or it has passed
        np.testing.assert_allclose(cost_slo(demand([[1, 2]], due_in_s=[due], **columns)), [[1, 0]], atol=1e-7)


def test_a_multi_gpu_job_is_priced_by_the_gpu_as_published():
    """All GPUs cost the same: per price of one GPU the job of two does 3, that of one 2, and 2 and 1.5 per GPU used."""
    of = demand([[3], [2]], [[2], [1]], (2,), rate=[[2], [1]])
    np.testing.assert_allclose(cost_slo(of)[:, 0], [0.5, 1], atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_interior_point_is_as_good_as_the_vertex(seed):
    of = random_demand(seed, 12)
    worth = of.size[:, None] * of.speed / (of.weight * of.proportional)[:, None]
    vertex = raised(of, worth, np.ones(12), np.zeros(12)).x
    assert time_got(of, las(of)).min() == pytest.approx(time_got(of, vertex).min(), rel=1e-6)


def test_allox_matches_jobs_to_places_in_queues():
    """One GPU each of two types: 2 + (2 + 4) for the short jobs on the first, 9 for the long one on the second."""
    of = demand([[1, 0.1], [1, 0.1], [1, 1]], left=[2, 4, 9])
    np.testing.assert_array_equal(allox(of), [[1, 0], [0, 0], [0, 1]])
    kept = replace(of, before=np.array([[0, 0], [1.0, 0], [0, 0]]))
    np.testing.assert_array_equal(allox(kept), [[0, 0], [1, 0], [0, 1]])


def test_first_in_first_out_takes_the_fastest_free_type_no_job_overtakes_and_without_speeds_it_keeps_what_it_drew():
    of = demand([[2, 1], [2, 1], [1, 2], [3, 3]], [[1] * 2, [1] * 2, [2] * 2, [1] * 2], (1, 2))
    np.testing.assert_array_equal(fifo(of), [[1, 0], [0, 1], [0, 0], [0, 0]])
    rng = np.random.default_rng(0)
    of = demand([[2, 1]] * 4, capacity=(2, 1), before=[[0, 0.0], [0, 1], [0, 0], [0, 0]])
    x = any_fifo(of, rng)
    np.testing.assert_array_equal(x, [[1, 0], [0, 1], [1, 0], [0, 0]])


ONE_TWO = np.array([1.0, 2.0])


def test_entities_share_by_weight_and_their_jobs_share_what_they_get():
    of = demand([[1]] * 3, capacity=(1,), entity=[0, 1, 1])
    np.testing.assert_allclose(water_filling(of, ONE_TWO, "fairness")[:, 0], 1 / 3, atol=1e-6)
    np.testing.assert_allclose(water_filling(of, ONE_TWO, "fifo")[:, 0], [1 / 3, 2 / 3, 0], atol=1e-6)


def test_what_a_job_cannot_take_goes_to_the_others():
    """Two GPUs: the first of entity 1 has a whole one at level 1/2; of the half that is left its next one gets 2/3."""
    of = demand([[1]] * 3, capacity=(2,), entity=[0, 1, 1])
    np.testing.assert_allclose(water_filling(of, ONE_TWO, "fifo")[:, 0], [2 / 3, 1, 1 / 3], atol=1e-6)


def test_jobs_above_the_least_level_rise_too():
    """Job 0 can use the slow type only; plain max-min fairness may stop at its level, water filling does not."""
    of = demand([[1, 0], [1, 1], [1, 1]], capacity=(1, 1))
    x = water_filling(of, np.ones(1), "fairness")
    assert x.sum() == pytest.approx(2.0, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), jobs=st.integers(1, 8))
def test_the_worst_off_has_as_much_as_with_max_min_fairness(seed, jobs):
    of = random_demand(seed, jobs)

    def least(x):
        return (of.size / of.weight * of.thr(x) / of.proportional).min()

    x = water_filling(of, np.ones(1), "fairness")
    assert least(x) == pytest.approx(least(las(of)), rel=1e-5)
    assert np.all(of.used(x) <= of.capacity + 1e-6)


def test_entities_are_quantiles_of_the_weights():
    assert quantile_entities(np.array([5.0, 1, 3, 2, 4, 6]), 3).tolist() == [2, 0, 1, 0, 1, 2]
    assert quantile_entities(np.array([1.0, 1, 1]), 3).tolist() == [0, 0, 0]
    assert quantile_entities(np.array([1.0, 2]), 1).tolist() == [0, 0]
