"""The best constructions of a round."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from first_rounds import begin_run
from gpusched_baselines import Greedy, RandomGreedy
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.exchanges import offer
from gpusched_baselines.search.proxy_parts import proxy_cost
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator import layout as at
from instances import random_instance, three_jobs


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
