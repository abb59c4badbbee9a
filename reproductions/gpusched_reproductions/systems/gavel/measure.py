"""What is measured of a run, as Gavel's authors do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
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

    Jobs go on coming until the last of them is done.

    Raises:
        InputError: The instance has too few jobs for that.
    """
    times_s = np.empty(0)

    def look(state: State) -> None:
        nonlocal times_s
        jobs = state.board.jobs[first:last]
        if last <= state.board.count[at.SUBMITTED] < len(instance.jobs) and not np.any(np.isnan(jobs[:, at.END_S])):
            times_s = jobs[:, at.END_S] - jobs[:, at.SUBMISSION]
            raise _DoneError

    try:
        simulate(instance, policy, record=False, on_round=look)
    except _DoneError:
        return float(times_s.mean()) / 3600.0
    raise InputError("jobs", len(instance.jobs), f"more, so that jobs come until job {last - 1} is done")


def makespan_h(instance: Instance, policy: Policy) -> float:
    """Give when the last job is done [h]."""
    return float(simulate(instance, policy, record=False).completion_s.max()) / 3600.0
