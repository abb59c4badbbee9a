"""Every shared GPU: how busy it is, whether it has a guaranteed job, and how jobs are placed on it.

In all functions `opportunistic` are the shares of opportunistic jobs, (C,), and `gpus` the present state of the GPUs,
kept up to date.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.cheapest import worth
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, Mask, Residents, at, kernel, lean_kernel


@kernel
def free_of_guaranteed(board: Board, gpus: Gpus, node: int) -> int:
    count, per_node = board.nodes[node, at.FREE], sim.slots(board)
    for gpu in range(per_node):
        index = node * per_node + gpu
        if gpus.jobs[index] > 0.0 and gpus.guaranteed[index] == 0:
            count += 1
    return count


@kernel
def nodes_for(board: Board, gpus: Gpus, config: int, closed: Mask, moving: bool) -> Ints:
    """Choose the nodes for whole GPUs, (k,); none if they do not fit.

    One node: that with fewest free GPUs of those that suffice; with `moving`, where opportunistic jobs may be
    preempted, that with most. Several: whole nodes, those with most free GPUs first.
    """
    nodes, configs = board.nodes, board.facts.configs
    wanted, needed = configs[config, at.CONFIG_NODES], configs[config, at.CONFIG_GPUS]
    chosen = np.empty(wanted, dtype=np.int64)
    taken = closed.copy()
    for k in range(wanted):
        best, best_free = -1, 0
        for n in range(nodes.shape[0]):
            if taken[n] != 0 or nodes[n, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
                continue
            if wanted > 1 and nodes[n, at.NODE_GPUS] != needed:
                continue
            free = nodes[n, at.FREE]
            if (free_of_guaranteed(board, gpus, n) if moving else free) < needed:
                continue
            if best < 0 or (free > best_free if moving or wanted > 1 else free < best_free):
                best, best_free = n, free
        if best < 0:
            return chosen[:0]
        chosen[k], taken[best] = best, 1
    return chosen


@kernel
def preempt_opportunistic(board: Board, gpus: Gpus, node: int, needed: int) -> None:
    """Preempt opportunistic jobs of a node until `needed` GPUs are free: GPU by GPU, without a guaranteed job."""
    per_node = sim.slots(board)
    for gpu in range(per_node):
        if board.nodes[node, at.FREE] >= needed:
            return
        index = node * per_node + gpu
        if gpus.jobs[index] == 0.0 or gpus.guaranteed[index] != 0:
            continue
        for job in board.active[: board.count[at.ACTIVE]]:
            if _covers(board, job, node, gpu):
                _take_away(board, gpus, job)


@lean_kernel
def _covers(board: Board, job: int, node: int, gpu: int) -> bool:
    jobs, configs = board.jobs, board.facts.configs
    config, slot, first = int(jobs[job, at.CONFIG]), int(jobs[job, at.SLOT]), int(jobs[job, at.NODE])
    if config < 0 or slot < 0:
        return False
    there = first <= node < first + configs[config, at.CONFIG_NODES]
    return there and slot <= gpu < slot + configs[config, at.CONFIG_GPUS]


@kernel
def _take_away(board: Board, gpus: Gpus, job: int) -> None:
    jobs = board.jobs
    config, node, slot = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    sim.release(board, job)
    look_again(board, np.ones(board.facts.configs.shape[0], dtype=np.int8), gpus, config, node, slot)


@kernel
def close_emptiest(board: Board, gpus: Gpus, config: int, closed: Mask) -> None:
    """Close the nodes to be kept for a configuration that does not fit: most GPUs without guaranteed jobs first."""
    nodes, configs = board.nodes, board.facts.configs
    needed = configs[config, at.CONFIG_GPUS]
    if configs[config, at.CONFIG_UNITS] > 0 and configs[config, at.CONFIG_NODES] > 1:
        _close_consecutive(board, gpus, config, closed)
        return
    for _ in range(configs[config, at.CONFIG_NODES]):
        best, most = -1, -1
        for n in range(nodes.shape[0]):
            if closed[n] == 0 and nodes[n, at.NODE_TYPE] == configs[config, at.CONFIG_TYPE]:
                free = free_of_guaranteed(board, gpus, n)
                if nodes[n, at.NODE_GPUS] >= needed and free > most:
                    best, most = n, free
        if best >= 0:
            closed[best] = 1


@kernel
def _close_consecutive(board: Board, gpus: Gpus, config: int, closed: Mask) -> None:
    """Close as many consecutive nodes as a share takes: those with most GPUs without guaranteed jobs, the first."""
    nodes, configs, wanted = board.nodes, board.facts.configs, board.facts.configs[config, at.CONFIG_NODES]
    best, most = -1, -1
    for first in range(nodes.shape[0] - wanted + 1):
        free = 0
        for n in range(first, first + wanted):
            right = nodes[n, at.NODE_TYPE] == configs[config, at.CONFIG_TYPE] and closed[n] == 0
            whole = nodes[n, at.NODE_GPUS] == configs[config, at.CONFIG_GPUS]
            free = free + free_of_guaranteed(board, gpus, n) if free >= 0 and right and whole else -1
        if free > most:
            best, most = first, free
    for n in range(best, best + wanted if best >= 0 else best):
        closed[n] = 1


class Gpus(NamedTuple):
    """The shared GPUs; GPU g of node n has the index n · G + g, of N · G.

    Attributes:
        busy: Part of the time for which each is busy: Σ utilisation · speed; where utilisations are not known, the part
            of it that jobs hold.
        jobs: How many jobs hold a share of it.
        guaranteed: Whether one of them is a guaranteed job.
        kept: Units that opportunistic jobs leave free for a guaranteed job where there is none, by GPU type, (V,); 0:
            no share is guaranteed.
    """

    busy: Floats
    jobs: Floats
    guaranteed: Mask
    kept: Ints


@kernel
def opportunistic_shares(board: Board) -> Mask:
    """Return for every configuration whether it is opportunistic, (C,): a share below its type's highest priority.

    Where all shares of a type have the same priority, all are opportunistic: no job with a share goes first there.
    """
    configs = board.facts.configs
    opportunistic = np.zeros(configs.shape[0], dtype=np.int8)
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_UNITS] == 0:
            continue
        lowest = highest = configs[c, at.CONFIG_PRIORITY]
        for other in range(configs.shape[0]):
            same_type = configs[other, at.CONFIG_TYPE] == configs[c, at.CONFIG_TYPE]
            if same_type and configs[other, at.CONFIG_UNITS] > 0:
                lowest = min(lowest, configs[other, at.CONFIG_PRIORITY])
                highest = max(highest, configs[other, at.CONFIG_PRIORITY])
        opportunistic[c] = lowest == highest or configs[c, at.CONFIG_PRIORITY] < highest
    return opportunistic


@kernel
def look_at_gpus(board: Board, opportunistic: Mask) -> Gpus:
    on, number = sim.residents(board), board.nodes.shape[0] * sim.slots(board)
    guaranteed, kept = np.zeros(number, dtype=np.int8), _kept_for_guaranteed(board, opportunistic)
    gpus = Gpus(np.zeros(number), np.zeros(number), guaranteed, kept)
    for gpu in range(number):
        _look(board, opportunistic, gpus, gpu, on)
    return gpus


@kernel
def _kept_for_guaranteed(board: Board, opportunistic: Mask) -> Ints:
    """Return the least share of a guaranteed job of every GPU type, in units, (V,)."""
    configs = board.facts.configs
    kept = np.zeros(board.capacity.shape[0], dtype=np.int64)
    for c in range(configs.shape[0]):
        v, units = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_UNITS]
        if units > 0 and opportunistic[c] == 0 and (kept[v] == 0 or units < kept[v]):
            kept[v] = units
    return kept


@kernel
def look_again(board: Board, opportunistic: Mask, gpus: Gpus, config: int, node: int, slot: int) -> None:
    on, per_node, configs = sim.residents(board), sim.slots(board), board.facts.configs
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(n * per_node + slot, n * per_node + slot + configs[config, at.CONFIG_GPUS]):
            _look(board, opportunistic, gpus, gpu, on)


@kernel
def _look(board: Board, opportunistic: Mask, gpus: Gpus, gpu: int, on: Residents) -> None:
    jobs, facts = board.jobs, board.facts
    gpus.busy[gpu], gpus.jobs[gpu], gpus.guaranteed[gpu] = 0.0, 0.0, 0
    place, held = on.last[gpu], 0
    while place >= 0:
        config = int(jobs[board.active[on.holder[place]], at.CONFIG])
        held += facts.configs[config, at.CONFIG_UNITS]
        gpus.jobs[gpu] += 1.0
        if opportunistic[config] == 0:
            gpus.guaranteed[gpu] = 1
        place = on.before[place]
    if not board.has_shares or facts.utilisation.shape[0] == 0 or on.last[gpu] < 0:
        gpus.busy[gpu] = held / at.UNITS
        return
    demand = np.zeros(at.PRIORITIES)
    sim.write_demand(board, gpu, on, demand)
    filled = sim.filled_part(board, gpu, on, -1, -1)
    for p in range(at.PRIORITIES):
        if demand[p] > 0.0:
            gpus.busy[gpu] += demand[p] * sim.speed_by_utilisation(demand, p, filled, facts.sharing)


@kernel
def least_busy(
    board: Board, gpus: Gpus, config: int, guaranteed: bool, closed: Mask, most_busy: float
) -> tuple[int, int, float]:
    """Choose the GPU for a share: the least busy on which it fits; of equals on the node with fewest free GPUs, first.

    Of several GPUs the busiest counts. Where there is no guaranteed job, opportunistic jobs leave its share free, if
    both fit on a GPU and it is free.

    Args:
        guaranteed: Whether it is the share of a guaranteed job: a GPU has one guaranteed job at most.
        closed: Nodes that are closed to the job, (N,).
        most_busy: A GPU with jobs must be less busy than that.

    Returns:
        The node, the number of the GPU on it, the first of several, and for what part of the time it is busy; -1, -1
        and inf if it fits on no GPU.
    """
    nodes, configs, v = board.nodes, board.facts.configs, board.facts.configs[config, at.CONFIG_TYPE]
    best, best_gpu, least, fewest = -1, -1, np.inf, 0
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != v or closed[n : n + configs[config, at.CONFIG_NODES]].any():
            continue
        for gpu in range(0, nodes[n, at.NODE_GPUS], configs[config, at.CONFIG_GPUS]):
            if not sim.has_room(board, config, n, gpu, False):
                continue
            busy, free = _busiest(board, gpus, config, guaranteed, n, gpu, most_busy), nodes[n, at.FREE]
            if busy < least or (busy == least and free < fewest):
                best, best_gpu, least, fewest = n, gpu, busy, free
    return best, best_gpu, least


@kernel
def _busiest(board: Board, gpus: Gpus, config: int, guaranteed: bool, node: int, slot: int, most_busy: float) -> float:
    """Return for what part of the time the busiest of a share's GPUs is busy; inf where `least_busy` rules one out."""
    nodes, configs, per_node = board.nodes, board.facts.configs, sim.slots(board)
    units, most, busiest = configs[config, at.CONFIG_UNITS], at.UNITS - gpus.kept[configs[config, at.CONFIG_TYPE]], 0.0
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(slot, slot + configs[config, at.CONFIG_GPUS]):
            index, used = n * per_node + gpu, nodes[n, at.NODE_COLUMNS + gpu]
            if (guaranteed and gpus.guaranteed[index] != 0) or (
                gpus.jobs[index] > 0.0 and gpus.busy[index] >= most_busy
            ):
                return np.inf
            if not guaranteed and gpus.guaranteed[index] == 0 and max(used, units) <= most < used + units:
                return np.inf
            busiest = max(busiest, gpus.busy[index])
    return busiest


@kernel
def place_guaranteed(
    board: Board, opportunistic: Mask, gpus: Gpus, closed: Mask, full: Mask, job: int, most_busy: float
) -> bool:
    """Place a job on whole GPUs or with a guaranteed share, as cheaply as its due date allows; return whether it fits.

    Args:
        closed: Nodes that are closed to the job, (N,).
        full: Configurations that are known not to fit, (C,); more are marked.
        most_busy: A GPU with opportunistic jobs must be less busy than that; below 0 only idle ones are allowed.
    """
    while True:
        config = cheapest_guaranteed(board, opportunistic, full, job)
        if config < 0:
            return False
        if board.facts.configs[config, at.CONFIG_UNITS] > 0:
            node, gpu, _ = least_busy(board, gpus, config, True, closed, most_busy)
            if node >= 0:
                put_share(board, opportunistic, gpus, job, config, node, gpu)
                return True
        elif place_whole(board, gpus, closed, job, config, most_busy >= 0.0):
            return True
        full[config] = 1


@kernel
def place_whole(board: Board, gpus: Gpus, closed: Mask, job: int, config: int, moving: bool) -> bool:
    """Place a job on whole GPUs, if they fit; with `moving`, opportunistic jobs are preempted if necessary."""
    configs = board.facts.configs
    if configs[config, at.CONFIG_NODES] > 1 and closed.any():
        return False
    if configs[config, at.CONFIG_SPREAD] > 0:
        return sim.place(board, job, config)
    chosen = nodes_for(board, gpus, config, closed, False)
    if chosen.shape[0] == 0 and moving:
        chosen = nodes_for(board, gpus, config, closed, True)
    if chosen.shape[0] == 0:
        return False
    for node in chosen:
        preempt_opportunistic(board, gpus, node, configs[config, at.CONFIG_GPUS])
    sim.set_preferred_node(board, job, chosen[0], -1)
    return sim.place(board, job, config)


@kernel
def cheapest_guaranteed(board: Board, opportunistic: Mask, full: Mask, job: int) -> int:
    """Choose among whole GPUs and guaranteed shares within the quota and not known to be full: the cheapest in time.

    A job that may be the guaranteed job of a GPU does not take it whole: alone there it is as fast, and opportunistic
    jobs can use the rest.
    """
    jobs, tau = board.jobs, board.tau
    left, time_left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], jobs[job, at.DUE] - board.clock[at.NOW]
    best, least, own = -1, (True, np.inf, np.inf), int(jobs[job, at.APPLICATION])
    for c in range(tau.shape[1]):
        if opportunistic[c] != 0 or full[c] != 0 or tau[job, c] == np.inf or board.least_rate[own, c] == np.inf:
            continue
        if not sim.within_quota(board, job, c):
            continue
        if board.facts.configs[c, at.CONFIG_UNITS] == 0 and _may_be_guaranteed(board, opportunistic, c, job):
            continue
        value = worth(left * tau[job, c], time_left, board.planning_rate[own, c])
        if best < 0 or value < least:
            best, least = c, value
    return best


@lean_kernel
def may_own(board: Board, opportunistic: Mask, job: int) -> bool:
    for c in range(opportunistic.shape[0]):
        if opportunistic[c] == 0 and board.tau[job, c] < np.inf:
            return True
    return False


@lean_kernel
def _may_be_guaranteed(board: Board, opportunistic: Mask, config: int, job: int) -> bool:
    """Return whether a job may be the guaranteed job of as many GPUs in place of `config`, which is whole GPUs."""
    configs = board.facts.configs
    for c in range(opportunistic.shape[0]):
        share = configs[c, at.CONFIG_UNITS] > 0 and opportunistic[c] == 0
        for column in (at.CONFIG_GPUS, at.CONFIG_NODES):
            share = share and configs[c, column] == configs[config, column]
        if share and configs[c, at.CONFIG_TYPE] == configs[config, at.CONFIG_TYPE] and board.tau[job, c] < np.inf:
            return True
    return False


@kernel
def put_share(board: Board, opportunistic: Mask, gpus: Gpus, job: int, config: int, node: int, gpu: int) -> None:
    sim.set_preferred_node(board, job, node, gpu)
    sim.place(board, job, config)
    look_again(board, opportunistic, gpus, config, node, gpu)


@kernel
def promote(board: Board, opportunistic: Mask, gpus: Gpus, closed: Mask) -> None:
    """Move the slowest opportunistic jobs to idle GPUs while they gain more time than a restart takes.

    On `closed` nodes, (N,), no GPU counts as idle.
    """
    tried = np.zeros(board.jobs.shape[0], dtype=np.int8)
    while True:
        job, speed = slowest_opportunistic(board, opportunistic, tried)
        if job < 0:
            return
        tried[job] = 1
        config, node, gpu = _idle_gpu(board, opportunistic, gpus, closed, job)
        if config < 0:
            continue
        own, held = int(board.jobs[job, at.APPLICATION]), int(board.jobs[job, at.CONFIG])
        alone_s = sim.expected_left(board, job) * board.tau[job, held] / board.facts.planned[own, held]
        stays = node == int(board.jobs[job, at.NODE])
        if (1.0 / speed - 1.0) * alone_s <= board.jobs[job, at.RESUMING_S if stays else at.RESTART_S]:
            continue
        left_node, left_gpu = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
        sim.release(board, job)
        sim.set_preferred_node(board, job, node, gpu)
        sim.place(board, job, config)
        look_again(board, opportunistic, gpus, held, left_node, left_gpu)
        look_again(board, opportunistic, gpus, config, node, gpu)


@kernel
def slowest_opportunistic(board: Board, opportunistic: Mask, tried: Mask) -> tuple[int, float]:
    """Find the opportunistic job with the lowest speed below 1 that was not tried yet, and its speed; -1: none."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    on = sim.residents(board)
    slowest, least = -1, 1.0
    for job in active:
        config = int(jobs[job, at.CONFIG])
        if config < 0 or opportunistic[config] == 0 or tried[job] != 0:
            continue
        speed = sim.speed_in_place(board, job, config, int(jobs[job, at.NODE]), int(jobs[job, at.SLOT]), on)
        if speed < least:
            slowest, least = job, speed
    return slowest, least


@kernel
def _idle_gpu(board: Board, opportunistic: Mask, gpus: Gpus, closed: Mask, job: int) -> tuple[int, int, int]:
    """Find a guaranteed share of an idle GPU of an opportunistic job's type: share, node and GPU; -1: none."""
    configs, v = board.facts.configs, board.facts.configs[int(board.jobs[job, at.CONFIG]), at.CONFIG_TYPE]
    for c in range(opportunistic.shape[0]):
        share = configs[c, at.CONFIG_UNITS] > 0 and opportunistic[c] == 0 and configs[c, at.CONFIG_TYPE] == v
        if not share or board.tau[job, c] == np.inf or not sim.can_resize(board, job, c):
            continue
        node, gpu, _ = least_busy(board, gpus, c, True, closed, -1.0)
        if node >= 0:
            return c, node, gpu
    return -1, -1, -1
