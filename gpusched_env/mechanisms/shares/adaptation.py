"""The delay with which limits of memory and of computing follow the jobs on a shared GPU (`SharedMemory.adapt_s`)."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Mask
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.shares.slowdown import Residents, residents, write_demand
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

PRIMES = 67_108_859, 67_108_837  # below 2^26: products of two, and both marks in one number, are exact in float64
POINTS = 22_801_763, 41_161_739  # where the polynomials of the marks are taken


@kernel
def lost_s(board: Board, slowdowns: Floats, same: Mask) -> Floats:
    """Return how long every active job stands because the jobs beside it have changed [s], (A,), and note who they are.

    Args:
        board: The run, with the placement of a round that ends.
        slowdowns: The new true seconds per epoch over planned ones, (A,).
        same: Whether a job holds the same as when the round began, (A,).
    """
    jobs, count, active, planned = board.jobs, board.count, board.active, board.facts.planned
    lost, equal = np.zeros(count[at.ACTIVE]), np.full(count[at.ACTIVE], np.inf)
    if board.facts.sharing[at.ADAPT_S] == 0.0:
        return lost
    marks = np.zeros(count[at.ACTIVE]), np.zeros(count[at.ACTIVE])
    _look_beside(board, residents(board), marks, equal)
    for i in range(count[at.ACTIVE]):
        job, config = active[i], int(jobs[active[i], at.CONFIG])
        mark = marks[0][i] * PRIMES[1] + marks[1][i]
        if config >= 0 and mark != (jobs[job, at.BESIDE] if same[i] != 0 else 0.0):
            factor = planned[int(jobs[job, at.APPLICATION]), config]
            until = equal[i]
            if same[i] != 0:
                until = min(until, 1.0 / (jobs[job, at.SLOWDOWN] * factor))
            lost[i] = board.facts.sharing[at.ADAPT_S] * max(0.0, 1.0 - until * slowdowns[i] * factor)
        jobs[job, at.BESIDE] = mark
    return lost


@kernel
def _look_beside(board: Board, on: Residents, marks: tuple[Floats, Floats], equal: Floats) -> None:
    """Write two marks of the jobs beside each job, (A,), 0 for none, and its speed if priorities were equal; inf: any.

    A mark identifies the set S of pairs of a GPU and a job there, each a number k: it is Π (x + k) over S, modulo a
    prime p, at a fixed point x. Two sets have the same one with a probability of |S| / p, both marks with 1e-14.
    """
    jobs, active, configs, demand = board.jobs, board.active, board.facts.configs, np.zeros(at.PRIORITIES)
    for gpu in range(on.last.shape[0]):
        if on.last[gpu] < 0:
            continue
        write_demand(board, gpu, on, demand)
        total, top, lowest = _levels(demand)
        place = on.last[gpu]
        while place >= 0:
            i, other = on.holder[place], on.last[gpu]
            while other >= 0:
                if on.holder[other] != i:
                    pair = active[on.holder[other]] * on.last.shape[0] + gpu + 1
                    for m in range(2):
                        marks[m][i] = max(1.0, marks[m][i]) * ((POINTS[m] + pair) % PRIMES[m]) % PRIMES[m]
                other = on.before[other]
            if lowest < top == configs[int(jobs[active[i], at.CONFIG]), at.CONFIG_PRIORITY]:
                equal[i] = min(equal[i], 1.0, 1.0 / total)
            place = on.before[place]


@lean_kernel
def _levels(demand: Floats) -> tuple[float, int, int]:
    total, top, lowest = 0.0, -1, -1
    for p in range(demand.shape[0]):
        if demand[p] > 0.0:
            total += demand[p]
            top, lowest = p, p if lowest < 0 else lowest
    return total, top, lowest
