"""Times on shared GPUs beside the company to be expected there, in place of the worst that there can be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.sharing import pace_by_duty
from gpusched_env.simulator.run import Board

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats


def beside_company(board: Board) -> Board:
    """Give the board with the times per epoch to be expected on shared GPUs; itself if nobody slows others down.

    Everything else is the same, not a copy: what is placed on it is placed on `board`.
    """
    if board.facts.slowdown.shape[0] == 0 and board.facts.duty.shape[0] == 0:
        return board
    tau = board.tau.copy()
    write_times(board, tau)
    return Board(**board.__getstate__() | {"tau": tau})


def rates_by_duty(board: Board, rate: Floats) -> Floats:
    """Give the rates of configurations [€/s], (C,), where GPUs draw power by their duty: for the active jobs' mean.

    `rate` is that of busy GPUs. A share counts with all that its GPU draws at rest: work draws the same wherever it is
    done, so that others on the GPU save nothing but that, and slow the job down.
    """
    facts, clock = board.facts, board.clock
    if not facts.spared.size or not facts.duty.size or not board.count[at.ACTIVE]:
        return rate
    mix = _mix(board)
    types, gpus = facts.configs[:, at.CONFIG_TYPE], facts.configs[:, at.CONFIG_GPUS] * facts.configs[:, at.CONFIG_NODES]
    work = mix @ (facts.duty.T[:, types] / _factors(board, mix))
    kilowatts = facts.spared[types] * gpus * (1.0 - work)
    return rate / facts.shares - kilowatts * clock[at.PRICE] * clock[at.PUE] / 3600.0


@kernel
def _mix(board: Board) -> Floats:
    """Give the part of the active jobs that each application has, (A,)."""
    mix = np.zeros(board.facts.planned.shape[0])
    for i in range(board.count[at.ACTIVE]):
        mix[int(board.jobs[board.active[i], at.APPLICATION])] += 1.0 / board.count[at.ACTIVE]
    return mix


@kernel
def _factors(board: Board, mix: Floats) -> Floats:
    """Give the factors on times beside such a mix of applications, (A, C); 1 but on shares."""
    planned, configs = board.facts.planned, board.facts.configs
    factor = np.ones_like(planned)
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_UNITS] > 0:
            for a in range(planned.shape[0]):
                factor[a, c] = min(_factor(board, a, c, mix), planned[a, c])
    return factor


@kernel
def write_times(board: Board, tau: Floats) -> None:
    """Write the times on shares of the active jobs, each beside jobs like the average of them.

    Args:
        board: The board.
        tau: A copy of its seconds per epoch, (J, C); those of active jobs on shares are written.
    """
    jobs, configs, planned = board.jobs, board.facts.configs, board.facts.planned
    factor = _factors(board, _mix(board))
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        own = int(jobs[job, at.APPLICATION])
        for c in range(configs.shape[0]):
            if configs[c, at.CONFIG_UNITS] > 0 and tau[job, c] < np.inf:
                tau[job, c] *= factor[own, c] / planned[own, c]


@kernel
def _factor(board: Board, own: int, config: int, mix: Floats) -> float:
    """Give the factor on the time of an application with a share of a GPU that others like the active jobs fill."""
    configs, facts = board.facts.configs, board.facts
    v, free = configs[config, at.CONFIG_TYPE], at.UNITS - configs[config, at.CONFIG_UNITS]
    least, priority = at.UNITS + 1, configs[config, at.CONFIG_PRIORITY]
    host, guest = priority, priority
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == v and 0 < configs[c, at.CONFIG_UNITS] <= free:
            host, guest = max(host, configs[c, at.CONFIG_PRIORITY]), min(guest, configs[c, at.CONFIG_PRIORITY])
            if configs[c, at.CONFIG_PRIORITY] == priority:
                least = min(least, configs[c, at.CONFIG_UNITS])
    others = free // least
    if facts.duty.shape[0] == 0:
        mean = 0.0
        for a in range(mix.shape[0]):
            mean += mix[a] * facts.slowdown[v, own, a]
        return 1.0 + others * (mean - 1.0)
    duty = 0.0
    for a in range(mix.shape[0]):
        duty += mix[a] * facts.duty[v, a]
    demand = np.zeros(at.PRIORITIES)
    if host > priority:
        others = 0
    demand[host] = duty
    demand[guest] = duty
    demand[priority] = facts.duty[v, own] + others * duty
    return 1.0 / pace_by_duty(demand, priority, facts.sharing)
