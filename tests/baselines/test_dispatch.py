"""Dispatch over the jobs of a round, on the instance of `test_hand_computed.py`."""

import numpy as np

from first_rounds import begin_run
from gpusched_baselines.dispatching.dispatch import dispatch
from gpusched_env.simulator import layout as at
from instances import three_jobs

A, B, C = range(3)
X1, X2 = range(2)


def test_a_job_that_holds_something_keeps_it():
    """B holds node 0 with both GPUs, though one would be cheaper; A takes what is left, in time or not, and C waits."""
    state = begin_run(three_jobs())
    view = state.view
    assert view.place(B, X2)
    dispatch(view.board, np.array([B, A, C]), np.array([2.0, 4.0, 2.0]))
    assert view.jobs[:, at.CONFIG].tolist() == [X1, X2, -1]
