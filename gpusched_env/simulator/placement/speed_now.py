"""The speed of a job if it were placed now."""

from __future__ import annotations

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import can_place
from gpusched_env.simulator.run import Board


@kernel
def speed_now(board: Board, job: int, config: int) -> float:
    """Return the speed that `job` would have with `config` if it were placed now, 1 as alone; 0 if it does not fit.

    It is 1 where no mechanism changes it: on GPUs of its own. With a model of the network it is what the machines that
    are on now give; without help, and with all nodes of the cluster sending, it is 1.
    """
    speed = hooks.speed_if_placed(board, job, config, np.nan)
    if np.isnan(speed):
        fits = int(board.jobs[job, at.CONFIG]) == config or can_place(board, job, config)
        return 1.0 if fits else 0.0
    return speed


@kernel
def seconds_now(board: Board, job: int, config: int) -> float:
    """Return the seconds per epoch of `job` with `config` if it were placed now; inf if it does not fit."""
    speed = speed_now(board, job, config)
    if speed == 0.0:
        return float("inf")
    own = int(board.jobs[job, at.APPLICATION])
    return board.tau[job, config] / (board.facts.planned[own, config] * speed)
