"""Whole nodes: which ones a job takes, and which are reserved when, as in Slurm."""

from __future__ import annotations

import numpy as np

from gpusched_baselines.backfill.free_gpus import free_now, same_s, start_within
from gpusched_baselines.backfill.profile import Profile, interval_from
from gpusched_env.simulator.kernels import Board, Ints, at, kernel


@kernel
def no_reservations(board: Board, waiting: int) -> Profile:
    """Return one interval, from now on, with space for the reservations of `waiting` jobs."""
    most = 2 * waiting + 2
    nodes = np.ones((most, board.nodes.shape[0], 1), dtype=np.int64)
    begin_s = np.full(most, board.clock[at.NOW])
    return Profile(begin_s, np.arange(most), nodes, np.ones(1, dtype=np.int64))


@kernel
def start_on(board: Board, job: int, config: int, chosen: Ints) -> bool:
    return start_within(board, job, config, only_on(free_now(board), chosen), True, False).shape[0] > 0


@kernel
def only_on(free: Ints, nodes: Ints) -> Ints:
    """Return a table of free GPUs, (N, 1 + G), in which those of other nodes than `nodes`, (N,), are not free."""
    return free * nodes.reshape((-1, 1))


@kernel
def reserve_nodes(board: Board, nodes: Profile, begin_s: float, end_s: float, chosen: Ints) -> None:
    """Reserve whole nodes, (N,), for an interval [s]; join intervals that have the same nodes then."""
    first = interval_from(board, nodes, begin_s)
    for k in range(first, interval_from(board, nodes, end_s)):
        nodes.free[nodes.row[k], :, 0] *= 1 - chosen
    for k in range(nodes.size[0] - 1, 0, -1):
        if (nodes.free[nodes.row[k]] == nodes.free[nodes.row[k - 1]]).all():
            joined = nodes.row[k]
            for i in range(k, nodes.size[0] - 1):
                nodes.begin_s[i], nodes.row[i] = nodes.begin_s[i + 1], nodes.row[i + 1]
            nodes.size[0] -= 1
            nodes.row[nodes.size[0]] = joined


@kernel
def choose_nodes(board: Board, job: int, config: int, free: Ints, allowed: Ints) -> Ints:
    """Choose nodes for a job in a table of free GPUs, (N, 1 + G), among the `allowed` ones, (N,).

    Slurm takes nodes from the smallest set of neighbours that is enough, else from the largest set, and then from
    others; of a set, the first nodes by index.

    Returns:
        1 for every chosen node, (N,); all 0 if the job does not fit.
    """
    nodes, configs = board.nodes, board.facts.configs
    chosen = np.zeros(nodes.shape[0], dtype=np.int64)
    gpus, needs = configs[config, at.CONFIG_GPUS], configs[config, at.CONFIG_NODES]
    if configs[config, at.CONFIG_UNITS] > 0 or configs[config, at.CONFIG_SPREAD] > 0:
        taken = start_within(board, job, config, only_on(free, allowed), False, False)
        for n in range(taken.shape[0]):
            chosen[n] = 1 if taken[n].any() else 0
        return chosen
    fits = (allowed > 0) & (nodes[:, at.NODE_TYPE] == configs[config, at.CONFIG_TYPE]) & (free[:, 0] >= gpus)
    if fits.sum() < needs:
        return chosen
    while needs > 0:
        first, size = best_set(fits, needs)
        chosen[first : first + min(size, needs)] = 1
        fits[first : first + size] = False
        needs -= size
    return chosen


@kernel
def best_set(fits: Ints, needs: int) -> tuple[int, int]:
    """Return where the best set of neighbours begins among the nodes that fit, (N,), and how many nodes it has."""
    best, size, begin = -1, 0, 0
    for n in range(fits.shape[0]):
        begin = n + 1 if not fits[n] else begin
        if not fits[n] or (n + 1 < fits.shape[0] and fits[n + 1]):
            continue
        found = n + 1 - begin
        if best < 0 or (found > size if size < needs else needs <= found < size):
            best, size = begin, found
    return best, size


@kernel
def open_nodes(board: Board, nodes: Profile, begin_s: float, end_s: float) -> tuple[Ints, float]:
    """Return the nodes that are not reserved from `begin_s` to `end_s`, (N,), and when there are others [s], or inf."""
    allowed, later_s, size = np.ones(board.nodes.shape[0], dtype=np.int64), np.inf, nodes.size[0]
    for k in range(size):
        if k + 1 < size and nodes.begin_s[k + 1] <= begin_s + same_s(board):
            continue
        here = allowed * nodes.free[nodes.row[k], :, 0]
        if k + 1 < size and later_s == np.inf and (nodes.free[nodes.row[k + 1], :, 0] > here).any():
            later_s = nodes.begin_s[k + 1]
        if nodes.begin_s[k] > end_s + same_s(board):
            break
        allowed = here
    return allowed, later_s


@kernel
def overlaps(board: Board, nodes: Profile, begin_s: float, end_s: float, chosen: Ints) -> bool:
    """Whether one of the nodes, (N,), is reserved for some of the time from `begin_s` to `end_s`."""
    size = nodes.size[0]
    for k in range(size):
        over = k + 1 < size and nodes.begin_s[k + 1] <= begin_s + same_s(board)
        if not over and nodes.begin_s[k] < end_s - same_s(board) and (chosen > nodes.free[nodes.row[k], :, 0]).any():
            return True
    return False
