"""What Path Relinking is guided by: how much slow work a round does for its money."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board

LEAST_COST_EUR = 1e-9  # a job that costs nothing counts as one that costs this


@kernel
def guidance(board: Board, order: Ints, left: Floats) -> float:
    """Sum max execution time / (energy cost + tardiness cost) over the jobs that run [s/€]: the more the better.

    All three are those of the epochs left; the energy cost is the job's part of that of its nodes, as full as they are.

    Args:
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
    """
    jobs, tau = board.jobs, board.tau
    total = 0.0
    for i in range(order.shape[0]):
        config = int(jobs[order[i], at.CONFIG])
        if config >= 0:
            rate = charge(board, order[i], config)
            total += merit(board, order[i], left[i], left[i] * tau[order[i], config], rate)
    return total


@kernel
def merit(board: Board, job: int, left: float, seconds: float, rate: float) -> float:
    """Give one job's part of the guidance [s/€], if it runs for `seconds` at `rate` [€/s]."""
    jobs, now = board.jobs, board.clock[at.NOW]
    late = max(0.0, now + seconds - jobs[job, at.DUE])
    return left * jobs[job, at.MAX_TAU] / max(LEAST_COST_EUR, rate * seconds + jobs[job, at.WEIGHT] * late)
