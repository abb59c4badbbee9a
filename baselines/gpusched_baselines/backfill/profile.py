"""The profile of conservative backfilling: what is free from now on, with the reservations of all waiting jobs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.backfill.free_gpus import by_limit, common, free_now, same_s, start_within, subtract
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

# Columns of the policy's memory of a job, after those of a plan:
START_S = 5  # when it may start [s]
CONFIG = 6  # 1 + the configuration; 0: it has no reservation
PARTS = 7  # parts of nodes that are reserved, then three columns for each: node, column of the table, and amount
FIRST_PART = 8


class Profile(NamedTuple):
    """What is free in each of K intervals, of which `size[0]` are in use.

    Attributes:
        begin_s: When each begins [s], rising, the first one now, (K,).
        free: Its table of free GPUs, (K, N, 1 + G).
        gpus: The free GPUs of each type, (K, V).
        size: (1,).
    """

    begin_s: Floats
    free: Ints
    gpus: Ints
    size: Ints


@kernel
def profile_of(board: Board, waiting: int) -> Profile:
    """Make the profile of the jobs that hold GPUs, with space for reservations of `waiting` jobs."""
    running, ends = by_limit(board)
    now, active = free_now(board), board.active[: board.count[at.ACTIVE]]
    most = running.shape[0] + 5 * waiting + 2
    profile = Profile(
        np.empty(most),
        np.empty((most, now.shape[0], now.shape[1]), dtype=np.int64),
        np.zeros((most, board.capacity.shape[0]), dtype=np.int64),
        np.ones(1, dtype=np.int64),
    )
    profile.begin_s[0], profile.free[0] = board.clock[at.NOW], now
    held, kept = np.empty((active.shape[0], sim.held_columns(board))), np.empty_like(board.nodes)
    sim.keep(board, active, held, kept)
    for i in range(running.shape[0]):
        sim.release(board, running[i])
        if i + 1 == running.shape[0] or ends[i + 1] > ends[i] + same_s(board):
            profile.begin_s[profile.size[0]], profile.free[profile.size[0]] = ends[i], free_now(board)
            profile.size[0] += 1
    sim.restore(board, active, held, kept)
    sim.measure(board)
    for k in range(profile.size[0]):
        for n in range(now.shape[0]):
            profile.gpus[k, board.nodes[n, at.NODE_TYPE]] += profile.free[k, n, 0]
    return profile


@kernel
def interval_from(board: Board, profile: Profile, time: float) -> int:
    """Return the interval that begins at a time [s], ≥ now; the one in which it is is divided."""
    begin_s, size = profile.begin_s, profile.size[0]
    k = size - 1
    while begin_s[k] > time + same_s(board):
        k -= 1
    if begin_s[k] >= time - same_s(board):
        return k
    for i in range(size, k + 1, -1):
        begin_s[i], profile.free[i], profile.gpus[i] = begin_s[i - 1], profile.free[i - 1], profile.gpus[i - 1]
    begin_s[k + 1], profile.free[k + 1], profile.gpus[k + 1] = time, profile.free[k], profile.gpus[k]
    profile.size[0] += 1
    return k + 1


@kernel
def last_before(board: Board, profile: Profile, time: float) -> int:
    """Return the last interval that begins before a time [s]."""
    k = profile.size[0] - 1
    while k > 0 and profile.begin_s[k] >= time - same_s(board):
        k -= 1
    return k


@kernel
def reserve(board: Board, profile: Profile, begin_s: float, end_s: float, parts: Floats, sign: int) -> bool:
    """Subtract a reservation, (3 P,), from the profile (`sign` 1) if it is free, or add it again (-1).

    Returns:
        False if it is not free; then nothing has changed.
    """
    first = interval_from(board, profile, begin_s)
    stop = interval_from(board, profile, end_s)
    fits = _subtract_all(board, profile, first, stop, parts, sign)
    if not fits:
        _subtract_all(board, profile, first, stop, parts, -sign)
    return fits


@kernel
def _subtract_all(board: Board, profile: Profile, first: int, stop: int, parts: Floats, sign: int) -> bool:
    """Subtract the parts of a reservation, or add them, in the intervals from `first` to before `stop`."""
    fits, nodes = True, board.nodes
    for p in range(0, parts.shape[0], 3):
        n, column, amount = int(parts[p]), int(parts[p + 1]), sign * int(parts[p + 2])
        for k in range(first, stop):
            before = profile.free[k, n, 0]
            fits &= subtract(profile.free[k], n, column, amount)
            profile.gpus[k, nodes[n, at.NODE_TYPE]] += profile.free[k, n, 0] - before
    return fits


@kernel
def earliest(board: Board, profile: Profile, job: int, config: int, length_s: float, by_s: float) -> tuple[int, Ints]:
    """Find the first interval, which begins before `by_s`, from which on a job fits for `length_s` seconds.

    Returns:
        The interval, -1 if there is none; and what it takes of the tables, (N, 1 + G).
    """
    size = _least_gpus(board, config)
    v, k = board.facts.configs[config, at.CONFIG_TYPE], 0
    while k < profile.size[0] and profile.begin_s[k] < by_s - same_s(board):
        last, full = last_before(board, profile, profile.begin_s[k] + length_s), -1
        for i in range(k, last + 1):
            full = i if profile.gpus[i, v] < size else full
        if full >= 0:
            k = full + 1
            continue
        taken = start_within(board, job, config, free_from(profile, k, last), False)
        if taken.shape[0] > 0:
            return k, taken
        k += 1
    return -1, np.empty((0, profile.free.shape[2]), dtype=np.int64)


@kernel
def free_from(profile: Profile, first: int, last: int) -> Ints:
    """Return what is free in all intervals from `first` to `last`, (N, 1 + G)."""
    free = common(profile.free[first], profile.free[last])
    for k in range(first + 1, last):
        free = common(free, profile.free[k])
    return free


@lean_kernel
def _least_gpus(board: Board, config: int) -> int:
    """Return how many free GPUs a configuration needs; a share may find a GPU that is shared already."""
    configs = board.facts.configs
    return (
        0
        if configs[config, at.CONFIG_UNITS] > 0
        else configs[config, at.CONFIG_GPUS] * configs[config, at.CONFIG_NODES]
    )


@kernel
def write_parts(row: Floats, taken: Ints) -> int:
    """Write what a job takes of a table, (N, 1 + G), to columns of the memory; return how many parts it has."""
    parts = 0
    for n in range(taken.shape[0]):
        for column in range(taken.shape[1]):
            if taken[n, column] != 0:
                row[FIRST_PART + 3 * parts], row[FIRST_PART + 3 * parts + 1] = n, column
                row[FIRST_PART + 3 * parts + 2] = taken[n, column]
                parts += 1
    return parts
