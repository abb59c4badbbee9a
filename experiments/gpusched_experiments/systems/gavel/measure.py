"""What is measured of a run, as Gavel's authors do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.simulate import simulate

if TYPE_CHECKING:
    from gpusched_env.model import Instance
    from gpusched_env.simulator import Policy, State

FIRST, LAST = 4000, 5000  # the jobs that are measured of a steady state, the last excluded


class _DoneError(Exception):
    """All that is measured has happened."""


def mean_completion_h(instance: Instance, policy: Policy, first: int = FIRST, last: int = LAST) -> float:
    """Give the mean time from submission to completion [h] of the jobs `first` to `last` - 1.

    Jobs go on coming until the last of them is done; the instance must have enough.
    """
    times_s = np.empty(0)

    def look(state: State) -> None:
        nonlocal times_s
        jobs = state.board.jobs[first:last]
        if state.board.count[at.SUBMITTED] >= last and not np.any(np.isnan(jobs[:, at.END_S])):
            times_s = jobs[:, at.END_S] - jobs[:, at.SUBMISSION]
            raise _DoneError

    try:
        result = simulate(instance, policy, record=False, on_round=look)
        times_s = (result.completion_s - instance.jobs.submission_s)[first:last]
    except _DoneError:
        pass
    return float(times_s.mean()) / 3600.0


def makespan_h(instance: Instance, policy: Policy) -> float:
    """Give when the last job is done [h]."""
    return float(simulate(instance, policy, record=False).completion_s.max()) / 3600.0
