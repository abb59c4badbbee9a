"""What keeps a network from a choice that must be late where another one is not, and the weight is worth it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import may_have
from gpusched_env.simulator.survival import expected_left
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_env.simulator.run import Board


@kernel
def guarded(board: Board, job: int, config: int) -> int:
    """Give the choice that is made in place of another: itself, unless it must be late.

    A configuration must be late if the job, with the epochs that it is expected to need yet, ends after its due date
    there. Where another one that can be placed now would end in time, and its energy costs less than the energy of the
    choice and its lateness, the cheapest such takes its place. Waiting is left alone: who waits is asked again in time.

    Args:
        board: The board, with the job at hand not placed.
        job: The job's index.
        config: The choice: a configuration, or -1 to wait.
    """
    if config < 0:
        return config
    epochs = expected_left(board, job)
    lateness, least = _ends_late(board, job, config, epochs)
    if lateness <= 0.0:
        return config
    least += board.jobs[job, at.WEIGHT] * lateness
    for c in range(board.facts.configs.shape[0]):
        if board.tau[job, c] < np.inf and may_have(board, job, c):
            late, energy = _ends_late(board, job, c, epochs)
            if late <= 0.0 and energy < least:
                config, least = c, energy
    return config


@lean_kernel
def _ends_late(board: Board, job: int, config: int, epochs: float) -> tuple[float, float]:
    """Give how much later than due a job ends in a configuration [s], and what its energy costs till then [€]."""
    seconds = switch_s(board, job, config) + epochs * board.tau[job, config]
    time_left = board.jobs[job, at.DUE] - board.clock[at.NOW]
    return max(0.0, seconds - time_left), seconds * board.planning_rate[config]
