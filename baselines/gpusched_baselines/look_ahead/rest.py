"""What is still to be paid where a roll-out stops, roughly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.sorting import ranked
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board, Hidden


@kernel
def cost_of_rest(board: Board, hidden: Hidden, rate: Floats) -> float:
    """Estimate the energy and the tardiness of the jobs that are active when a roll-out stops [€].

    Jobs that run go on, each in the configuration where what it still needs costs least, a change included. Those that
    wait begin when the GPUs have done the work before them, by weight per work: as if all GPUs were one machine.

    Args:
        board: The board, between two rounds.
        hidden: The fate that was drawn.
        rate: Cost rates to plan with [€/s], (C,).
    """
    jobs, active, configs = board.jobs, board.active, board.facts.configs
    size, gpus, work, total = board.count[at.ACTIVE], 0, 0.0, 0.0
    for n in range(board.nodes.shape[0] - board.hosts.shape[0]):
        gpus += board.nodes[n, at.NODE_GPUS]
    keys, own = np.empty(size), np.zeros(size)
    for i in range(size):
        job = active[i]
        left = max(0.0, hidden.fate[job, at.NEEDED] - jobs[job, at.EPOCHS])
        held, best = int(jobs[job, at.CONFIG]), int(jobs[job, at.CHEAPEST])
        shown = held if held >= 0 else best
        own[i] = left * board.tau[job, shown] * configs[shown, at.CONFIG_SIZE] / at.UNITS
        keys[i] = -np.inf if held >= 0 else -jobs[job, at.WEIGHT] / max(own[i], 1e-9)
    for i in ranked(keys, size):
        job = active[i]
        left = max(0.0, hidden.fate[job, at.NEEDED] - jobs[job, at.EPOCHS])
        runs = jobs[job, at.CONFIG] >= 0
        total += _least(board, job, left, 0.0 if runs else work / gpus, rate)
        work += own[i]
    return total


@kernel
def _least(board: Board, job: int, left: float, begin: float, rate: Floats) -> float:
    """Give the least that `left` epochs of a job cost that begin in `begin` seconds [€]."""
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    held, least = int(jobs[job, at.CONFIG]), np.inf
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        seconds = left * tau[job, c] * (jobs[job, at.PACE] if c == held else 1.0)
        if c == held:
            seconds += max(0.0, jobs[job, at.READY_S] - now)
        else:
            seconds += jobs[job, at.RESTART_S] if held >= 0 else switch_s(board, job, c)
        late = now + begin + seconds - max(jobs[job, at.DUE], now)
        least = min(least, rate[c] * seconds + jobs[job, at.WEIGHT] * max(0.0, late))
    return least
