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
PARTS = 7  # parts of nodes that are reserved; from `FIRST_PART` on three columns for each: node, column, and amount
# And in the first row, of the run:
DONE = 8  # jobs completed, and GPUs that nodes have, when reservations were last moved
USABLE = 9
FIRST_PART = 10


class Profile(NamedTuple):
    """What is free in each of K intervals, of which `size[0]` are in use.

    Attributes:
        begin_s: When each begins [s], rising, the first one now, (K,).
        row: Its place in `free`, (K,): after those in use, places that are not.
        free: Tables of free GPUs, (K, N, 1 + G).
        size: (1,).
    """

    begin_s: Floats
    row: Ints
    free: Ints
    size: Ints


@kernel
def profile_of(board: Board, waiting: int) -> Profile:
    """Make the profile of the jobs that hold GPUs, with space for reservations of `waiting` jobs."""
    running, ends = by_limit(board)
    now, active = free_now(board), board.active[: board.count[at.ACTIVE]]
    most = running.shape[0] + 5 * waiting + 2
    profile = Profile(
        np.empty(most),
        np.arange(most),
        np.empty((most, now.shape[0], now.shape[1]), dtype=np.int64),
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
    return profile


@kernel
def interval_from(board: Board, profile: Profile, time: float) -> int:
    """Return the interval that begins at a time [s], ≥ now; the one in which it is is divided."""
    begin_s, row, size = profile.begin_s, profile.row, profile.size[0]
    k = size - 1
    while begin_s[k] > time + same_s(board):
        k -= 1
    if begin_s[k] >= time - same_s(board):
        return k
    new = row[size]
    for i in range(size, k + 1, -1):
        begin_s[i], row[i] = begin_s[i - 1], row[i - 1]
    begin_s[k + 1], row[k + 1] = time, new
    profile.free[new] = profile.free[row[k]]
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
    fits = _subtract_all(profile, first, stop, parts, sign)
    if not fits:
        _subtract_all(profile, first, stop, parts, -sign)
    return fits


@kernel
def _subtract_all(profile: Profile, first: int, stop: int, parts: Floats, sign: int) -> bool:
    """Subtract the parts of a reservation, or add them, in the intervals from `first` to before `stop`."""
    fits = True
    for p in range(0, parts.shape[0], 3):
        n, column, amount = int(parts[p]), int(parts[p + 1]), sign * int(parts[p + 2])
        for k in range(first, stop):
            fits &= subtract(profile.free[profile.row[k]], n, column, amount)
    return fits


@kernel
def earliest(board: Board, profile: Profile, job: int, config: int, length_s: float, by_s: float) -> tuple[int, Ints]:
    """Find the first interval, which begins before `by_s`, from which on a job fits for `length_s` seconds.

    Returns:
        The interval, -1 if there is none; and what it takes of the tables, (N, 1 + G).
    """
    begin_s, size, same = profile.begin_s, profile.size[0], same_s(board)
    blocked = np.full(board.nodes.shape[0], -1)  # the last interval so far in which the job has no part of a node
    needs, last = _nodes_needed(board, config), -1
    for k in range(size):
        if begin_s[k] >= by_s - same:
            break
        while last + 1 < size and (last < k or begin_s[last + 1] < begin_s[k] + length_s - same):
            last += 1
            _block(board, config, profile.free[profile.row[last]], last, blocked)
        open_nodes = 0
        for n in range(blocked.shape[0]):
            open_nodes += 1 if blocked[n] < k else 0
        if open_nodes >= needs:
            taken = start_within(board, job, config, free_from(profile, k, last), False, True)
            if taken.shape[0] > 0:
                return k, taken
    return -1, np.empty((0, profile.free.shape[2]), dtype=np.int64)


@lean_kernel
def _nodes_needed(board: Board, config: int) -> int:
    """Return how many nodes a configuration needs at least."""
    return 1 if board.facts.configs[config, at.CONFIG_SPREAD] > 0 else board.facts.configs[config, at.CONFIG_NODES]


@kernel
def _block(board: Board, config: int, free: Ints, k: int, blocked: Ints) -> None:
    """Write interval `k` to `blocked`, (N,), for the nodes in whose row of a table a job has no part."""
    nodes, configs = board.nodes, board.facts.configs
    v, gpus, units = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS], configs[config, at.CONFIG_UNITS]
    for n in range(blocked.shape[0]):
        if nodes[n, at.NODE_TYPE] != v or (free[n, 0] < gpus and units == 0):
            blocked[n] = k


@kernel
def free_from(profile: Profile, first: int, last: int) -> Ints:
    """Return what is free in all intervals from `first` to `last`, (N, 1 + G)."""
    free = profile.free[profile.row[first]].copy()
    for k in range(first, last + 1):
        table = profile.free[profile.row[k]]
        if free.shape[1] > 1:
            free = common(free, table)
            continue
        for n in range(free.shape[0]):
            free[n, 0] = min(free[n, 0], table[n, 0])
    return free


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
