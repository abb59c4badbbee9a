"""The exchanges of Local Search, against trying all of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import check_books
from constructed import constructed, may_take, proxy
from gpusched_baselines.search import proxy_parts as its
from gpusched_baselines.search.constructions import Constructions
from gpusched_baselines.search.exchanges import best_exchange
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate
from gpusched_env.simulator.kernels import exchange


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
