"""Path Relinking: never worse than the best of its elite, and feasible on every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from first_rounds import begin_run
from gpusched_baselines import PathRelinking, RandomGreedy
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.path_relinking import guidance, relink
from gpusched_env import Instance
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from instances import random_instance

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
