"""Local Search, by hand and by the rules that it keeps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from first_rounds import begin_run
from gpusched_baselines import LocalSearch, RandomGreedy, make_policy
from gpusched_baselines.search.proxy_parts import proxy_cost
from gpusched_env import Configuration, GpuType, Instance, Job, Node, Policy
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from instances import CERTAIN, HOUR, random_instance

FAST, SLOW = Configuration("F", 1), Configuration("S", 1)


def decided(instance: Instance, policy: Policy, seed: int = 0) -> State:
    state = begin_run(instance, preemption=policy.preemption)
    policy.decide(state.view, np.random.default_rng(seed))
    return state


def held(state: State) -> list[int]:
    return state.view.jobs[:, at.CONFIG].astype(int).tolist()


def proxy(state: State) -> float:
    view = state.view
    return proxy_cost(view.board, view.active)


def two_types(long_due_h: float) -> Instance:
    """Make two jobs and two nodes with one GPU: F costs 1.0 €/h and does an epoch an hour, S 0.6 €/h in two hours.

    "long" has 10 epochs, "short" one, due after 100 h.
    """
    types = [GpuType("F", 1000.0, 0.0, 16.0), GpuType("S", 600.0, 0.0, 16.0)]
    seconds = {FAST: HOUR, SLOW: 2.0 * HOUR}
    jobs = [
        Job(0.0, long_due_h * HOUR, 0.01, 10.0, CERTAIN, 10.0, seconds),
        Job(0.0, 100.0 * HOUR, 0.01, 1.0, CERTAIN, 1.0, seconds),
    ]
    return Instance.from_jobs(types, [Node("F", 1), Node("S", 1)], jobs, energy_price_eur_per_kwh=1.0, pue=1.0)


def test_it_finds_a_swap_that_greedy_misses():
    """Both prefer F (10 € to 12 €, 1.0 € to 1.2 €). long has the higher pressure: F, and S is left for short.

    The first completion is at 2 h: 1.6 · 2 = 3.20 €. Swapped it is at 1 h: 1.60 €. Long ends at 20 h, in time.
    """
    greedy, search = (decided(two_types(90.0), p) for p in (RandomGreedy(constructions=0), LocalSearch(0)))
    assert held(greedy) == [0, 1]
    assert held(search) == [1, 0]
    assert (proxy(greedy), proxy(search)) == (pytest.approx(3.2), pytest.approx(1.6))


@pytest.mark.parametrize(("due_h", "reason"), [(15.0, "it would end at 20 h"), (8.0, "late by 2 h on F, by 12 on S")])
def test_no_swap_makes_a_job_miss_its_due_date_or_a_late_one_slower(due_h, reason):
    assert held(decided(two_types(due_h), LocalSearch(0))) == [0, 1], reason


def test_a_job_keeps_the_gpus_that_it_needs_the_published_search_only_exchanges_and_no_iterations_do_nothing():
    assert held(decided(two_types(90.0), LocalSearch(0, iterations=0))) == [0, 1]
    assert held(decided(idle_gpu(), LocalSearch(0, moves=False, fill=True))) == [1]
    assert held(decided(two_types(90.0), LocalSearch(0, moves=False))) == [1, 0]
    assert held(decided(idle_gpu(due_h=1.7), LocalSearch(0))) == [1]


def idle_gpu(weight: float = 0.01, due_h: float = 100.0) -> Instance:
    """Make a node with two GPUs of 1.0 €/h and no base power, and a job of 2 epochs: 1 h on one GPU, 0.8 h on both."""
    one, two = Configuration("V", 1), Configuration("V", 2)
    job = Job(0.0, due_h * HOUR, weight, 2.0, CERTAIN, 2.0, {one: HOUR, two: 0.8 * HOUR})
    gpu = GpuType("V", 1000.0, 0.0, 16.0)
    return Instance.from_jobs([gpu], [Node("V", 2)], [job], energy_price_eur_per_kwh=1.0, pue=1.0)


def test_a_job_gives_back_the_gpus_that_cost_more_than_they_save():
    """Greedy with `fill` assigns the idle GPU: 1.6 h at 2.0 €/h are 3.20 €; one GPU takes 2 h at 1.0: 2.00 €."""
    greedy, search = (decided(idle_gpu(), p) for p in (make_policy("greedy:fill"), LocalSearch(0, fill=True)))
    assert (held(greedy), held(search)) == ([1], [0])
    assert (proxy(greedy), proxy(search)) == (pytest.approx(3.2), pytest.approx(2.0))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kinds=st.booleans(),
    moves=st.booleans(),
    jobs=st.integers(1, 15),
    interference=st.booleans(),
)
def test_it_is_never_worse_than_random_greedys_best(seed, kinds, moves, jobs, interference):
    instance = random_instance(seed, jobs=jobs, nodes=4, span_s=0.0, kinds=kinds, interference=interference)
    best = decided(instance, RandomGreedy(constructions=20), seed)
    search = decided(instance, LocalSearch(constructions=20, moves=moves), seed)
    check_books(search.view)
    assert proxy(search) <= proxy(best)


def test_it_often_is_better():
    better = 0
    for seed in range(20):
        instance = random_instance(seed, nodes=6, span_s=0.0)
        instance = replace(instance, jobs=replace(instance.jobs, due_s=5.0 * instance.jobs.due_s))
        best, search = (decided(instance, p, seed) for p in (RandomGreedy(20), LocalSearch(20)))
        better += proxy(search) < proxy(best)
    assert better > 10
