"""The guidance of Path Relinking, on the instance of `test_hand_computed.py`.

Node 0 has two GPUs, node 1 one; r(1) = 1.0 €/h, r(2) = 1.9 €/h. An epoch takes 1 h on x1 and 40 min on x2. At most, A
needs 4 epochs by 3.5 h (0.001 €/s late), B 2 by 10 h, C 2 by 1.5 h (0.003 €/s): 4 h, 2 h, 2 h in the slowest way.
"""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_baselines.search.path_relinking import guidance
from gpusched_env.simulator import State, View
from instances import HOUR, three_jobs

A, B, C = range(3)
NONE, X1, X2 = -1, 0, 1
ORDER = np.array([C, A, B])
LEFT = np.array([2.0, 4.0, 2.0])


def placed(*pairs: tuple[int, int]) -> View:
    """Open the first round and place (job, configuration) in turn."""
    state = State(three_jobs())
    state.advance()
    state.begin_round(preemption=True)
    for job, config in pairs:
        assert state.view.place(job, config)
    return state.view


def value(view: View) -> float:
    """Return the guidance in hours per €."""
    return guidance(view.board, ORDER, LEFT) / HOUR


def test_it_is_time_by_energy_cost():
    """B alone on node 1: 2 h / 2.0 €."""
    assert value(placed((B, X1))) == pytest.approx(2 / 2.0)


def test_tardiness_at_the_end_counts_as_cost():
    """A alone on node 1 ends at 4 h: 4 h / (4.0 + 1.80 €)."""
    assert value(placed((A, X1))) == pytest.approx(4 / 5.8)


def test_the_jobs_of_a_node_share_its_cost():
    """B on node 1; A and C on node 0, 0.95 €/h each: A 3.80 + 1.80 €, C 1.90 + 5.40 €."""
    assert value(placed((B, X1), (A, X1), (C, X1))) == pytest.approx(2 / 2.0 + 4 / 5.6 + 2 / 7.3)


def test_more_gpus_cost_more_and_take_less_time():
    """C on x2, on node 0, for 1⅓ h at 1.9 €/h."""
    assert value(placed((C, X2))) == pytest.approx(2 / (4 / 3 * 1.9))


def test_the_times_are_those_of_the_epochs_left():
    view = placed((B, X1))
    half = guidance(view.board, ORDER, LEFT / 2)
    assert half / HOUR == pytest.approx(1 / 1.0)


def test_a_job_that_costs_nothing_counts_much_but_not_without_end():
    view = placed((B, X1))
    view.board.node_rate[:] = 0.0
    total = guidance(view.board, ORDER, LEFT)
    assert total == pytest.approx(2 * HOUR / 1e-9)
