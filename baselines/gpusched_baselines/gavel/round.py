"""Gavel's round mechanism (section 6 of the paper): rounds of equal length in which jobs get nearly their shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel import memory as of
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.sorting import ranked

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def place_as_before(board: Board) -> None:
    """Give every job what it had when the round of decisions began, and nothing to the others."""
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        if board.jobs[job, at.OLD_CONFIG] >= 0:
            place(board, job, int(board.jobs[job, at.OLD_CONFIG]))


@kernel
def wake_all(board: Board, time_s: float) -> None:
    """Ask for a round at `time_s` [s] on behalf of every job: whichever completes before, one is left to ask."""
    for i in range(board.count[at.ACTIVE]):
        board.jobs[board.active[i], at.WAKE_S] = time_s


@kernel
def reset(board: Board, jobs: Ints, x: Floats, kind: Ints, half_s: float) -> None:
    """Begin to count anew with the shares `x`: what jobs got less than their old shares goes to their deficits.

    Args:
        jobs: The active jobs, (A,).
        x: Their new shares, (A, K).
        kind: GPU types of the options, (K,).
        half_s: The time that every job has got of every option to begin with, half a round [s].
    """
    memory, now, options = board.memory, board.clock[at.NOW], x.shape[1]
    own, types = 3 * options, board.room.shape[0]
    since = now - memory[0, own + of.RESET_AT]
    for v in range(types):
        memory[0, own + of.TOTALS + v] = 0.0
    for i in range(jobs.shape[0]):
        row = memory[jobs[i]]
        for k in range(options):
            if row[own + of.KNOWN] > 0.0:
                row[2 * options + k] += row[k] * since - (row[options + k] - half_s)
            row[k], row[options + k] = x[i, k], half_s
            memory[0, own + of.TOTALS + kind[k]] += half_s
        row[own + of.KNOWN] = 1.0
    memory[0, own + of.RESET_AT] = now
    memory[0, own + of.SEEN] = 1.0 + board.count[at.SUBMITTED] + board.count[at.DONE]


@kernel
def place_by_priority(
    board: Board, jobs: Ints, config: Ints, kind: Ints, order: Ints, round_s: float, idle_too: bool
) -> None:
    """Fill the GPU types one after the other, each with the jobs of highest priority that fit.

    The priority of an option is x / (time got in it / time that all got on its type); of equals the larger deficit goes
    first, then the larger x, then the earlier job.

    Args:
        jobs: The active jobs, (A,).
        config: The configurations of their options, (A, K); -1 for none.
        kind: GPU types of the options, (K,).
        order: The GPU types in the order in which they are filled, (V,).
        round_s: Length of the round [s].
        idle_too: Whether GPUs that are left go to jobs that have no share of their type.
    """
    memory, options = board.memory, kind.shape[0]
    own, most = 3 * kind.shape[0], jobs.shape[0] * kind.shape[0]
    keys, who = np.empty((3, most)), np.empty((2, most), dtype=np.int64)
    for v in order:
        n, total = 0, memory[0, own + of.TOTALS + v]
        for i in range(jobs.shape[0]):
            row = memory[jobs[i]]
            if board.jobs[jobs[i], at.CONFIG] >= 0 or row[own + of.KNOWN] == 0.0:
                continue
            for k in range(options):
                if kind[k] != v or config[i, k] < 0 or not (row[k] > 0.0 or idle_too):
                    continue
                keys[0, n], keys[1, n], keys[2, n] = -row[k] * total / row[options + k], -row[2 * options + k], -row[k]
                who[0, n], who[1, n] = i, k
                n += 1
        for r in _by_keys(keys, n):
            i, k = who[0, r], who[1, r]
            if board.jobs[jobs[i], at.CONFIG] < 0 and place(board, jobs[i], config[i, k]):
                memory[jobs[i], options + k] += round_s
                memory[0, own + of.TOTALS + v] += round_s


@kernel
def _by_keys(keys: Floats, size: int) -> Ints:
    """Sort by the first row of keys, equals by the second, then the third, then the index."""
    order = np.arange(size)
    for key in range(keys.shape[0] - 1, -1, -1):
        sorted_keys = np.empty(size)
        for i in range(size):
            sorted_keys[i] = keys[key, order[i]]
        order = order[ranked(sorted_keys, size)]
    return order
