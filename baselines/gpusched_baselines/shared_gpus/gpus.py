"""Every GPU that is shared, as these policies look at it: how busy it is, and whether it has a host."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.sharing import neighbours, pace_by_duty, write_demand
from gpusched_env.simulator.placement.shared_gpus import slots

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints, Mask
    from gpusched_env.simulator.run import Board


class Gpus(NamedTuple):
    """The shared GPUs; GPU g of node n stands at n · G + g, of N · G.

    Attributes:
        busy: Part of the time for which each is busy: Σ duty · pace; where duties are not known, what is held of it.
        jobs: How many jobs hold a share of it.
        hosted: 1 where one of them is a host.
        kept: Units that guests leave free for a host where there is none, by GPU type, (V,); 0: no share is a host's.
    """

    busy: Floats
    jobs: Floats
    hosted: Mask
    kept: Ints


@kernel
def guest_shares(board: Board) -> Mask:
    """Say of every configuration whether it is a guest's, (C,): a share, but not of the highest priority of its type.

    Where the shares of a type have one priority, all are guests': nobody with a share comes first there.
    """
    configs = board.facts.configs
    guests = np.zeros(configs.shape[0], dtype=np.int8)
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_UNITS] == 0:
            continue
        lowest = highest = configs[c, at.CONFIG_PRIORITY]
        for other in range(configs.shape[0]):
            same_type = configs[other, at.CONFIG_TYPE] == configs[c, at.CONFIG_TYPE]
            if same_type and configs[other, at.CONFIG_UNITS] > 0:
                lowest = min(lowest, configs[other, at.CONFIG_PRIORITY])
                highest = max(highest, configs[other, at.CONFIG_PRIORITY])
        guests[c] = lowest == highest or configs[c, at.CONFIG_PRIORITY] < highest
    return guests


@kernel
def look_at_gpus(board: Board, guests: Mask) -> Gpus:
    """Look at every GPU; `guests` are the shares of guests, (C,)."""
    last, before = neighbours(board)
    hosted = np.zeros(last.shape[0], dtype=np.int8)
    gpus = Gpus(np.zeros(last.shape[0]), np.zeros(last.shape[0]), hosted, _kept_for_hosts(board, guests))
    for gpu in range(last.shape[0]):
        _look(board, guests, gpus, gpu, last[gpu], before)
    return gpus


@kernel
def _kept_for_hosts(board: Board, guests: Mask) -> Ints:
    """Give the least share of a host of every GPU type, in units, (V,)."""
    configs = board.facts.configs
    kept = np.zeros(board.room.shape[0], dtype=np.int64)
    for c in range(configs.shape[0]):
        v, units = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_UNITS]
        if units > 0 and guests[c] == 0 and (kept[v] == 0 or units < kept[v]):
            kept[v] = units
    return kept


@kernel
def look_again(board: Board, guests: Mask, gpus: Gpus, node: int, slot: int) -> None:
    """Look at one GPU again, on which a job was placed."""
    last, before = neighbours(board)
    gpu = node * slots(board) + slot
    _look(board, guests, gpus, gpu, last[gpu], before)


@kernel
def _look(board: Board, guests: Mask, gpus: Gpus, gpu: int, last: int, before: Ints) -> None:
    jobs, facts = board.jobs, board.facts
    gpus.busy[gpu], gpus.jobs[gpu], gpus.hosted[gpu] = 0.0, 0.0, 0
    i, held = last, 0
    while i >= 0:
        config = int(jobs[board.active[i], at.CONFIG])
        held += facts.configs[config, at.CONFIG_UNITS]
        gpus.jobs[gpu] += 1.0
        if guests[config] == 0:
            gpus.hosted[gpu] = 1
        i = before[i]
    if facts.duty.shape[0] == 0 or last < 0:
        gpus.busy[gpu] = held / at.UNITS
        return
    demand = np.zeros(at.PRIORITIES)
    write_demand(board, last, before, demand)
    for p in range(at.PRIORITIES):
        if demand[p] > 0.0:
            gpus.busy[gpu] += demand[p] * pace_by_duty(demand, p, facts.sharing)


@kernel
def least_busy(board: Board, gpus: Gpus, config: int, hosting: bool, closed: Mask, most_busy: float) -> tuple[int, int]:
    """Choose the GPU for a share: the least busy with room; among equals on the node with fewest free GPUs, the first.

    Where there is no host guests leave room for one, if both fit on a GPU and the room is there.

    Args:
        board: The run.
        gpus: Its GPUs as they are now.
        config: The share.
        hosting: Whether it is a host's: a GPU has one host at most.
        closed: Nodes that are closed to the job, (N,).
        most_busy: A GPU on which somebody is must be less busy than that.

    Returns:
        The node and the number of the GPU on it; -1 and -1 if no GPU has room.
    """
    nodes, v = board.nodes, board.facts.configs[config, at.CONFIG_TYPE]
    per_node, best, best_gpu, least, fewest = slots(board), -1, -1, np.inf, 0
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != v or closed[n] != 0:
            continue
        for gpu in range(nodes[n, at.NODE_GPUS]):
            index = n * per_node + gpu
            if not has_room(board, config, n, gpu) or (hosting and gpus.hosted[index] != 0):
                continue
            busy, free = gpus.busy[index], nodes[n, at.FREE]
            if gpus.jobs[index] > 0.0 and busy >= most_busy:
                continue
            used, units = nodes[n, at.NODE_COLUMNS + gpu], board.facts.configs[config, at.CONFIG_UNITS]
            most = at.UNITS - gpus.kept[v]
            if not hosting and gpus.hosted[index] == 0 and max(used, units) <= most < used + units:
                continue
            if busy < least or (busy == least and free < fewest):
                best, best_gpu, least, fewest = n, gpu, busy, free
    return best, best_gpu


@kernel
def has_room(board: Board, config: int, node: int, gpu: int) -> bool:
    """Say whether a share fits on a GPU of a node of its type."""
    nodes = board.nodes
    used = nodes[node, at.NODE_COLUMNS + gpu]
    return used + board.facts.configs[config, at.CONFIG_UNITS] <= at.UNITS and (used > 0 or nodes[node, at.FREE] > 0)
