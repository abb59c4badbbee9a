"""The pressure of a job: how little time it has left, and where it is too little, what that costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@lean_kernel
def pressure(board: Board, job: int, left: float) -> float:
    """Give t + least execution time of `left` epochs - due date [s]; where that is positive, times ω [€].

    So jobs that must be late rank by what their lateness costs so far, before all others, which rank by slack.
    """
    jobs = board.jobs
    over_s = board.clock[at.NOW] + left * jobs[job, at.MIN_TAU] - jobs[job, at.DUE]
    return over_s * jobs[job, at.WEIGHT] if over_s > 0.0 else over_s


@kernel
def pressures(board: Board, chosen: Ints, left: Floats) -> Floats:
    """Give the pressures of the active jobs `chosen`, (A,), that are taken to have `left` epochs left, (A,)."""
    found = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        found[i] = pressure(board, chosen[i], left[i])
    return found
