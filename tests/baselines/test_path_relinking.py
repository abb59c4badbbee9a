"""Path Relinking: its elite, the paths between them, and its rounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from first_rounds import begin_run
from gpusched_baselines import Greedy, PathRelinking, RandomGreedy
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.exchanges import offer
from gpusched_baselines.search.path_relinking import guidance, relink
from gpusched_baselines.search.proxy_parts import proxy_cost
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.simulator import View
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator import layout as at
from instances import HOUR, random_instance, three_jobs

cases = st.builds(
    random_instance,
    st.integers(0, 10_000),
    jobs=st.integers(1, 15),
    nodes=st.integers(2, 5),
    span_s=st.just(0.0),
    kinds=st.booleans(),
    interference=st.booleans(),
)


def opened(instance: Instance) -> View:
    state = begin_run(instance)
    return state.view


def value(view: View, found: Constructions) -> float:
    return guidance(view.board, found.order, found.left)


def elite_of(instance: Instance, seed: int, size: int = 6) -> tuple[View, Constructions, list[float]]:
    """Make the elite that Path Relinking has with this seed, and the guidance of each."""
    view = opened(instance)
    found = Constructions.of(view, np.random.default_rng(seed), 30, size=size)
    values = []
    for k in range(len(found.costs)):
        found.restore(view, k)
        values.append(value(view, found))
    return view, found, values


@settings(max_examples=60, deadline=None)
@given(instance=cases, seed=st.integers(0, 100))
def test_it_is_never_worse_than_the_best_of_its_elite(instance, seed):
    _, found, values = elite_of(instance, seed)
    view = opened(instance)
    PathRelinking(constructions=30, elite=6).decide(view, np.random.default_rng(seed))
    check_books(view)
    assert value(view, found) >= max(values)
    assert (view.jobs[:, at.CONFIG] >= 0).any()


def test_paths_often_lead_to_something_better():
    better = 0
    for seed in range(20):
        instance = random_instance(seed, jobs=20, nodes=5, span_s=0.0, kinds=bool(seed % 2))
        _, found, values = elite_of(instance, seed)
        view = opened(instance)
        PathRelinking(constructions=30, elite=6).decide(view, np.random.default_rng(seed))
        better += value(view, found) > max(values)
    assert better > 5


@settings(max_examples=60, deadline=None)
@given(instance=cases, seed=st.integers(0, 100))
def test_every_path_stays_feasible_and_its_best_solution_is_worth_what_it_says(instance, seed):
    view, found, _ = elite_of(instance, seed)
    start, goal = 0, len(found.costs) - 1
    held, kept = np.empty_like(found.held[0]), np.empty_like(found.kept[0])
    found.restore(view, start)
    goals = found.held[goal, :, 0].copy()
    best = relink(view.board, found.order, found.left, goals, held, kept)
    check_books(view)
    reached = view.jobs[found.order, at.CONFIG]
    assert ((reached == goals) | (reached < 0)).all()
    if best == -np.inf:
        assert (reached[found.held[start, :, 0] != goals] < 0).all()  # what differs did not fit in any step
        return
    found.held[start], found.kept[start] = held, kept
    found.restore(view, start)
    check_books(view)
    assert value(view, found) == pytest.approx(best, rel=1e-12)


def test_with_one_of_the_elite_it_is_random_greedy():
    for seed in range(5):
        one, other = (opened(random_instance(seed, span_s=0.0, kinds=True)) for _ in range(2))
        PathRelinking(constructions=20, elite=1).decide(one, np.random.default_rng(seed))
        RandomGreedy(constructions=20).decide(other, np.random.default_rng(seed))
        np.testing.assert_array_equal(one.jobs, other.jobs)


def proxy(view) -> float:
    return proxy_cost(view.board, view.active)


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 5))
def test_the_cheapest_are_kept_and_equals_once(offered, size):
    view = begin_run(three_jobs()).view
    order = view.active
    costs = np.full(size, np.inf)
    held, kept = np.zeros((size, len(order), sim.HELD)), np.zeros((size, *view.nodes.shape), dtype=np.int64)
    for cost in offered:
        view.board.jobs[order, at.CONFIG] = cost  # stands for the construction that costs this
        offer(view.board, order, float(cost), costs, held, kept)
    best = sorted(set(offered))[:size]
    assert sorted(costs[np.isfinite(costs)]) == best
    assert sorted(held[np.isfinite(costs), 0, 0]) == best


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), kinds=st.booleans())
def test_every_one_of_the_elite_can_be_restored_and_costs_what_it_says(seed, kinds):
    view = begin_run(random_instance(seed, jobs=8, span_s=0.0, kinds=kinds)).view
    found = Constructions.of(view, np.random.default_rng(seed), 30, size=5)
    assert 1 <= len(found.costs) <= 5
    for k in range(len(found.costs)):
        found.restore(view, k)
        check_books(view)
        assert proxy(view) == pytest.approx(found.costs[k], rel=1e-12)
    found.restore_best(view)
    assert proxy(view) == pytest.approx(found.costs.min(), rel=1e-12)


def test_the_size_of_the_elite_does_not_change_the_best_nor_what_is_drawn():
    bests, drawn = [], []
    for size in (1, 4):
        rng = np.random.default_rng(7)
        view = begin_run(random_instance(3, span_s=0.0, kinds=True)).view
        bests.append(Constructions.of(view, rng, 50, size=size).costs.min())
        drawn.append(rng.random())
    assert bests[0] == bests[1]
    assert drawn[0] == drawn[1]


def test_without_constructions_the_elite_is_greedys_round():
    one, other = begin_run(random_instance(5, span_s=0.0)), begin_run(random_instance(5, span_s=0.0))
    Greedy().decide(one.view, np.random.default_rng(0))
    RandomGreedy(constructions=0).decide(other.view, np.random.default_rng(0))
    np.testing.assert_array_equal(one.view.jobs, other.view.jobs)
    np.testing.assert_array_equal(one.view.nodes, other.view.nodes)


A, B, C = range(3)

NONE, X1, X2 = -1, 0, 1

ORDER = np.array([C, A, B])

LEFT = np.array([2.0, 4.0, 2.0])


def placed(*pairs: tuple[int, int]) -> View:
    state = begin_run(three_jobs())
    for job, config in pairs:
        assert state.view.place(job, config)
    return state.view


@pytest.mark.parametrize(
    ("held", "hours_per_eur"),
    [
        pytest.param([(B, X1)], 2 / 2.0, id="time by energy cost: B alone on node 1, 2 h / 2.0 €"),
        pytest.param(
            [(A, X1)], 4 / 5.8, id="tardiness at the end is a cost: A alone ends at 4 h, 4 h / (4.0 + 1.80 €)"
        ),
        # B on node 1; A and C on node 0, 0.95 €/h each: A 3.80 + 1.80 €, C 1.90 + 5.40 €.
        pytest.param([(B, X1), (A, X1), (C, X1)], 2 / 2.0 + 4 / 5.6 + 2 / 7.3, id="the jobs of a node share its cost"),
        pytest.param([(C, X2)], 2 / (4 / 3 * 1.9), id="more GPUs cost more and take less: 1⅓ h at 1.9 €/h on node 0"),
    ],
)
def test_the_guidance_is_time_by_cost(held, hours_per_eur):
    assert guidance(placed(*held).board, ORDER, LEFT) / HOUR == pytest.approx(hours_per_eur)


def test_the_guidance_is_that_of_the_epochs_left_and_of_no_cost_much_but_not_without_end():
    assert guidance(placed((B, X1)).board, ORDER, LEFT / 2) / HOUR == pytest.approx(1 / 1.0)
    view = placed((B, X1))
    view.board.node_rate[:] = 0.0
    total = guidance(view.board, ORDER, LEFT)
    assert total == pytest.approx(2 * HOUR / 1e-9)


def walk(view: View, *goal: int) -> tuple[float, list[tuple[int, int]]]:
    """Move towards the configurations `goal` of A, B, C; return the best value on the way, and what they hold there."""
    held, kept = np.full((3, 3), np.nan), np.zeros_like(view.nodes)
    best = relink(view.board, ORDER, LEFT, np.array(goal, dtype=float)[ORDER], held, kept)
    there = {int(job): (int(row[0]), int(row[1])) for job, row in zip(ORDER, np.nan_to_num(held, nan=-9), strict=True)}
    return best / HOUR, [there[job] for job in (A, B, C)]


def now_held(view: View) -> list[int]:
    return view.jobs[:, at.CONFIG].astype(int).tolist()


def test_a_path_ends_at_the_goal_and_its_best_solution_is_kept():
    """From B on node 1 to C alone on x2. First C comes, 2 h / 2.5333 €, then B goes: the best is both."""
    view = placed((B, X1))
    best, there = walk(view, NONE, NONE, X2)
    assert best == pytest.approx(2 / 2.0 + 2 / (4 / 3 * 1.9))
    assert there == [(-1, -1), (X1, 1), (X2, 0)]
    assert now_held(view) == [NONE, NONE, X2]


def test_the_start_is_not_part_of_the_path_and_a_job_that_no_longer_fits_waits():
    best, _ = walk(placed((B, X1)), NONE, X1, NONE)
    assert best == -np.inf
    best, there = walk(placed((B, X1)), NONE, NONE, NONE)
    assert (best, there) == (0.0, [(-1, -1)] * 3)
    # A and B on x1 on node 0, C on x1 on node 1, to A on x2, B and C as they are: A waits, and is not placed again.
    view = placed((C, X1), (A, X1), (B, X1))
    assert view.jobs[:, at.NODE].tolist() == [0, 0, 1]
    best, _ = walk(view, X2, X1, X1)
    assert best == -np.inf
    assert now_held(view) == [NONE, X1, X1]


def test_what_does_not_fit_is_tried_again_and_at_last_one_job_waits():
    """From C on x2 on node 0 and A on x1 on node 1 to A on x2 and B on x1.

    By gain, B (2 h / 2.0 €), A (4 / 5.0667 - 4 / 5.8), C (-2 / 2.5333): B and A do not fit. C goes: A alone is left.
    B comes, on node 0, where it fits best. A does not fit on x2, so it waits, and now no node has two free GPUs for it.
    The best is A on x1 on node 1 with B on x1 on node 0.
    """
    view = placed((C, X2), (A, X1))
    best, there = walk(view, X2, X1, NONE)
    assert best == pytest.approx(4 / 5.8 + 2 / 2.0)
    assert there == [(X1, 1), (X1, 0), (-1, -1)]
    assert now_held(view) == [NONE, X1, NONE]


def test_a_job_that_leaves_its_place_returns_as_soon_as_it_fits():
    """Two nodes of two types with one GPU each, two jobs that swap: neither fits until one of them waits."""
    types = [GpuType("F", 1000.0, 0.0, 16.0), GpuType("S", 600.0, 0.0, 16.0)]
    certain = EpochDistribution.certain()
    job = Job(0.0, 100.0 * HOUR, 0.01, 10.0, certain, 10.0, {Configuration(v.name, 1): HOUR for v in types})
    state = begin_run(Instance.from_jobs(types, [Node("F", 1), Node("S", 1)], [job, job]))
    view, order, left = state.view, np.array([0, 1]), np.array([10.0, 10.0])
    assert view.place(0, 0)
    assert view.place(1, 1)
    held, kept = np.zeros((2, 3)), np.zeros_like(view.nodes)
    best = relink(view.board, order, left, np.array([1.0, 0.0]), held, kept)
    assert now_held(view) == [1, 0]
    assert held[:, 0].tolist() == [1, 0]
    assert best > 0
