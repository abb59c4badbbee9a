"""Moves and exchanges of Local Search change the cost of a round by what they are said to."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from constructed import constructed, may_take, proxy
from first_rounds import begin_run
from gpusched_baselines.search import proxy_parts as its
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.exchanges import best_exchange, sweep_moves
from gpusched_env import Configuration, Instance, Node
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate
from gpusched_env.simulator.kernels import exchange
from small_instances import KILOWATT, hours_job


def snapshot(view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return view.jobs.copy(), view.nodes.copy(), view.capacity.copy()


def back_to(view: View, saved: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    board = view.board
    board.jobs[:], board.nodes[:], board.capacity[:] = saved


def sweep_slowly(view: View, found: Constructions) -> int:
    """Try all moves as `sweep_moves` does; return how many jobs moved."""
    moved = 0
    for i, job in enumerate(found.order):
        saved, best, least = snapshot(view), -1, proxy(view, found) * (1 - 1e-12)
        for config in range(len(view.configs)):
            if not may_take(view, job, config, found.left[i]):
                continue
            view.release(job)
            if view.place(job, config):
                cost = proxy(view, found)
                if cost < least:
                    best, least = config, cost
            back_to(view, saved)
        if best >= 0:
            view.release(job)
            view.place(job, best)
            moved += 1
    return moved


def sweep(view: View, found: Constructions) -> None:
    sweep_moves(view.board, found.order, found.left)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), kinds=st.booleans(), slack=st.sampled_from([0.02, 0.5, 1.0, 5.0]))
def test_every_job_makes_the_move_that_helps_most(seed, kinds, slack):
    view, found = constructed(seed, kinds, slack)
    saved = snapshot(view)
    sweep_slowly(view, found)
    by_hand = proxy(view, found)
    back_to(view, saved)
    sweep(view, found)
    check_books(view)
    assert proxy(view, found) == pytest.approx(by_hand, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), kinds=st.booleans(), slack=st.sampled_from([0.02, 0.5, 1.0, 5.0]))
def test_moves_only_help_and_no_running_job_stops(seed, kinds, slack):
    view, found = constructed(seed, kinds, slack)
    before, ran = proxy(view, found), view.jobs[:, at.CONFIG] >= 0
    missed = [not may_take_now(view, found, i) for i in range(len(found.order))]
    sweep(view, found)
    assert proxy(view, found) <= before * (1 + 1e-12)
    assert (view.jobs[ran, at.CONFIG] >= 0).all()
    for i in range(len(found.order)):
        if view.jobs[found.order[i], at.CONFIG] >= 0 and ran[found.order[i]]:
            assert missed[i] or may_take_now(view, found, i)


def may_take_now(view: View, found: Constructions, i: int) -> bool:
    """Return whether a running job is in time with what it holds, at worst."""
    job = found.order[i]
    ends = view.now_s + found.left[i] * view.tau[job, int(view.jobs[job, at.CONFIG])]
    return bool(view.jobs[job, at.CONFIG] < 0 or ends <= view.jobs[job, at.DUE] + 1e-6)


def test_there_are_rounds_in_which_running_and_waiting_jobs_move():
    """The instances of the tests above have moves that help."""
    running = waiting = 0
    for seed in range(30):
        view, found = constructed(seed, kinds=bool(seed % 2))
        before = view.jobs[:, at.CONFIG].copy()
        sweep(view, found)
        changed = view.jobs[:, at.CONFIG] != before
        running += int((changed & (before >= 0)).sum())
        waiting += int((changed & (before < 0)).sum())
    assert min(running, waiting) > 0


def test_of_moves_that_cost_the_same_the_first_is_made():
    alike = [Configuration("V", 1), Configuration("W", 1)]
    jobs, types = [hours_job(0.5, dict.fromkeys(alike, 1.0))], [KILOWATT, replace(KILOWATT, name="W")]
    view = begin_run(Instance.from_jobs(types, [Node("W", 1), Node("V", 1)], jobs, alike)).view
    sweep_moves(view.board, np.array([0]), np.array([1.0]))
    assert view.jobs[0, at.CONFIG] == 0


def allowed(view: View, found: Constructions) -> list[tuple[int, int]]:
    pairs = []
    for k, other in enumerate(found.order):
        for i, job in enumerate(found.order[:k]):
            own, theirs = int(view.jobs[job, at.CONFIG]), int(view.jobs[other, at.CONFIG])
            if theirs < 0 or not may_take(view, job, theirs, found.left[i]):
                continue
            if own < 0 or may_take(view, other, own, found.left[k]):
                pairs.append((i, k))
    return pairs


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 10_000), kinds=st.booleans(), slack=st.sampled_from([0.02, 0.5, 1.0, 5.0]))
def test_the_best_exchange_is_the_best_of_all_that_are_allowed(seed, kinds, slack):
    view, found = constructed(seed, kinds, slack)
    before = proxy(view, found)
    costs = {}
    for i, k in allowed(view, found):
        exchange(view.board, found.order[i], found.order[k])
        check_books(view)
        costs[i, k] = proxy(view, found)
        exchange(view.board, found.order[i], found.order[k])
    seen = its.see(view.board, found.order, found.left)
    bill = bill_rate(view.board)
    i, k, cost = best_exchange(view.board, found.order, found.left, seen, bill, before)
    if i < 0:
        assert min(costs.values(), default=np.inf) >= before * (1 - 1e-9)
    else:
        assert costs[i, k] == pytest.approx(min(costs.values()), rel=1e-9)
        assert cost == pytest.approx(costs[i, k], rel=1e-9)
        assert cost < before


def test_there_are_rounds_that_each_kind_of_exchange_improves():
    """The instances of the test above have exchanges that help."""
    kinds = {"swap": 0, "turn": 0, "none": 0}
    for seed in range(60):
        view, found = constructed(seed, kinds=bool(seed % 2), slack=5.0 if seed % 3 else 1.0)
        seen = its.see(view.board, found.order, found.left)
        bill = bill_rate(view.board)
        i, _, _ = best_exchange(view.board, found.order, found.left, seen, bill, proxy(view, found))
        kinds["none" if i < 0 else "turn" if seen.jobs[i, its.HOLDS] < 0 else "swap"] += 1
    assert min(kinds.values()) > 0
