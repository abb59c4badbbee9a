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


@pytest.mark.parametrize(
    ("placed", "cost"),
    [
        # B on node 1 ends at 2 h; C on node 0 at 1⅓ h, the first completion. A, left out, would be 0.5 h late: 180 €.
        ([(B, X1), (C, X2)], 4 / 3 * (1.9 + 1.0) + 100 * 0.001 * 1800),
        # C on node 1 until 2 h: 0.5 h late, 5.40 €. A on node 0 until 2⅔ h: not late at 2 h, the first completion.
        ([(C, X1), (A, X2)], 2 * (1.0 + 1.9) + 0.003 * 1800),
        # The same with A beside B on node 0, which would be late at 4 h.
        ([(C, X1), (A, X1), (B, X1)], 2 * (1.0 + 1.9) + 0.003 * 1800),
        # A on node 1 until 4 h: 0.5 h late, 1.80 €. C, left out, could end at 2 h at the slowest: 540 €.
        ([(A, X1)], 4 * 1.0 + 0.001 * 1800 + 100 * 0.003 * 1800),
        ([], 100 * 0.001 * 1800 + 100 * 0.003 * 1800),
    ],
)
def test_the_cost_is_the_energy_until_the_first_completion_tardiness_then_and_a_hundredfold_that_of_jobs_left_out(
    placed, cost
):
    assert proxy(*placed) == pytest.approx(cost)
