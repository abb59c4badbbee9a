"""The proxy cost of a round, by hand, on the instance of `test_hand_computed.py`.

Node 0 has two GPUs, node 1 one; r(1) = 1.0 €/h, r(2) = 1.9 €/h. An epoch takes 1 h on x1 and 40 min on x2.

    job   max epochs   due      weight
    A     4            3.5 h    0.001 €/s
    B     2            10 h     0.002 €/s
    C     2            1.5 h    0.003 €/s
"""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines.search.proxy_parts import proxy_cost
from instances import three_jobs

A, B, C = range(3)
X1, X2 = range(2)


def proxy(*placed: tuple[int, int]) -> float:
    """Return the proxy of the first round with the given (job, configuration), placed in turn."""
    state = begin_run(three_jobs())
    view = state.view
    for job, config in placed:
        assert view.place(job, config)
    return proxy_cost(view.board, np.array([C, A, B]))


def test_without_late_jobs_the_cost_is_the_energy_until_the_first_completion():
    """B on x1, on node 1, ends at 2 h; C on x2, on node 0, at 1⅓ h. A, left out, would miss 3.5 h by 0.5 h: 180 €."""
    assert proxy((B, X1), (C, X2)) == pytest.approx(4 / 3 * (1.9 + 1.0) + 100 * 0.001 * 1800)


def test_a_job_that_runs_late_counts_with_its_tardiness_at_the_first_completion():
    """C on x1, on node 1, until 2 h: 0.5 h late, 5.40 €. A on x2, on node 0, until 2⅔ h: not late at 2 h."""
    assert proxy((C, X1), (A, X2)) == pytest.approx(2 * (1.0 + 1.9) + 0.003 * 1800)


def test_tardiness_counts_up_to_the_first_completion_alone():
    """C on x1, on node 1, ends first, at 2 h; A beside B on node 0 would be late at 4 h, and is not at 2 h."""
    assert proxy((C, X1), (A, X1), (B, X1)) == pytest.approx(2 * (1.0 + 1.9) + 0.003 * 1800)


def test_a_job_that_is_left_out_counts_hundredfold():
    """A on x1, on node 1, until 4 h: 0.5 h late, 1.80 €. C, left out, could end at 2 h at the slowest: 540 €."""
    assert proxy((A, X1)) == pytest.approx(4 * 1.0 + 0.001 * 1800 + 100 * 0.003 * 1800)


def test_an_empty_round_costs_what_is_left_out():
    assert proxy() == pytest.approx(100 * 0.001 * 1800 + 100 * 0.003 * 1800)
