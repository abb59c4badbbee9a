"""Shared GPUs: several jobs on one GPU, each with a share of it; to its node it is one busy GPU."""

from __future__ import annotations

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.shares.slowdown import residents
from gpusched_env.mechanisms.shares.speed import fastest_open_gpu, speed_in_place
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.whole_gpus import hold, let_go
from gpusched_env.simulator.run import Board


@kernel
def slots(board: Board) -> int:
    """Count the GPUs of a node that can be shared: all that the largest node has, or 0 if no configuration shares."""
    nodes = board.nodes
    return (nodes.shape[1] - at.NODE_COLUMNS) // 2


@kernel
def best_slot(board: Board, job: int, config: int) -> tuple[int, int]:
    """Choose the GPU for a share, which fits somewhere: its node, and its number there.

    First the job's previous shared GPU, if the share still fits there. Then the shared GPU with most units used; among
    equals one on which the share fitted before the round began, so that new jobs leave space for returning
    ones. If the instance asks for it, the one on which the job is fastest comes before the fullest. Else a GPU that is
    not shared yet is used, on the node that fits best for one GPU.
    """
    jobs, nodes, configs, capacity = board.jobs, board.nodes, board.facts.configs, board.capacity
    v, units = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_UNITS]
    if of_several(board, config):
        return _best_block(board, job, config)
    preferred, preferred_slot = int(jobs[job, at.PREFERRED_NODE]), int(jobs[job, at.PREFERRED_SLOT])
    if preferred >= 0 and preferred_slot >= 0 and nodes[preferred, at.NODE_TYPE] == v:
        used = nodes[preferred, at.NODE_COLUMNS + preferred_slot]
        if used + units <= at.UNITS and (used > 0 or nodes[preferred, at.FREE] > 0):
            return preferred, preferred_slot
    best, best_gpu = -1, -1
    if board.facts.sharing[at.FASTEST] > 0.0:
        best, best_gpu, _ = fastest_open_gpu(board, job, config)
    elif capacity[v, at.FREE_SHARE] >= units:
        best, best_gpu = _fullest_slot(board, v, units)
    if best < 0:
        best = find_node(board, v, 1, preferred)
        best_gpu = _closed_slot(board, best)
    return best, best_gpu


@lean_kernel
def of_several(board: Board, config: int) -> bool:
    """Whether a configuration is a share of each of several GPUs."""
    configs = board.facts.configs
    return (
        configs[config, at.CONFIG_UNITS] > 0 and configs[config, at.CONFIG_GPUS] * configs[config, at.CONFIG_NODES] > 1
    )


@lean_kernel
def has_room(board: Board, config: int, node: int, slot: int, before: bool) -> bool:
    """Whether a share fits on its GPUs from `slot` of `node` on: now, or `before` the round began.

    Those of one node are a block: `slot` is a multiple of their number. Several nodes are consecutive, and whole.
    """
    nodes, configs, v = board.nodes, board.facts.configs, board.facts.configs[config, at.CONFIG_TYPE]
    units, gpus, last = (
        configs[config, at.CONFIG_UNITS],
        configs[config, at.CONFIG_GPUS],
        node + configs[config, at.CONFIG_NODES],
    )
    column = at.NODE_COLUMNS + ((nodes.shape[1] - at.NODE_COLUMNS) // 2 if before else 0)
    if node < 0 or slot < 0 or last > nodes.shape[0] or slot % gpus != 0:
        return False
    for n in range(node, last):
        whole = configs[config, at.CONFIG_NODES] == 1 or nodes[n, at.NODE_GPUS] == gpus
        if nodes[n, at.NODE_TYPE] != v or not whole or slot + gpus > nodes[n, at.NODE_GPUS]:
            return False
        idle = 0
        for gpu in range(slot, slot + gpus):
            used = nodes[n, column + gpu]
            if used + units > at.UNITS:
                return False
            idle += 1 if used == 0 else 0
        if idle > nodes[n, at.OLD_FREE if before else at.FREE]:
            return False
    return True


@lean_kernel
def block_fits(board: Board, config: int) -> bool:
    gpus = board.facts.configs[config, at.CONFIG_GPUS]
    for n in range(board.nodes.shape[0]):
        for slot in range(0, board.nodes[n, at.NODE_GPUS], gpus):
            if has_room(board, config, n, slot, False):
                return True
    return False


@kernel
def _best_block(board: Board, job: int, config: int) -> tuple[int, int]:
    """Choose the GPUs of a share of several, which fits somewhere: the first node and the first GPU.

    First the preferred ones, then those on which it fitted before the round began, then those with most GPUs that are
    shared already; of equals, those on which the job is fastest, if the instance asks for that, else the fullest.
    """
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    node, slot = int(jobs[job, at.PREFERRED_NODE]), int(jobs[job, at.PREFERRED_SLOT])
    if has_room(board, config, node, slot, False):
        return node, slot
    on, best, best_slot, best_key = residents(board), -1, -1, (-1.0, -1.0, -1.0)
    gpus = configs[config, at.CONFIG_GPUS]
    for n in range(nodes.shape[0]):
        for first in range(0, nodes[n, at.NODE_GPUS], gpus):
            if not has_room(board, config, n, first, False):
                continue
            shared, used = 0, 0
            for each in range(n, n + configs[config, at.CONFIG_NODES]):
                for gpu in range(first, first + gpus):
                    shared += 1 if nodes[each, at.NODE_COLUMNS + gpu] > 0 else 0
                    used += nodes[each, at.NODE_COLUMNS + gpu]
            key = (1.0 if has_room(board, config, n, first, True) else 0.0, float(shared), float(used))
            if board.facts.sharing[at.FASTEST] > 0.0:
                key = (key[0], key[1], speed_in_place(board, job, config, n, first, on))
            if key > best_key:
                best, best_slot, best_key = n, first, key
    return best, best_slot


@kernel
def join_all(board: Board, config: int, node: int, slot: int) -> None:
    configs = board.facts.configs
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(slot, slot + configs[config, at.CONFIG_GPUS]):
            join(board, n, gpu, configs[config, at.CONFIG_UNITS])


@kernel
def leave_all(board: Board, config: int, node: int, slot: int) -> None:
    configs = board.facts.configs
    for n in range(node, node + configs[config, at.CONFIG_NODES]):
        for gpu in range(slot, slot + configs[config, at.CONFIG_GPUS]):
            leave(board, n, gpu, configs[config, at.CONFIG_UNITS])


@kernel
def _fullest_slot(board: Board, gpu_type: int, units: int) -> tuple[int, int]:
    nodes = board.nodes
    last = slots(board)
    best, best_gpu, best_key = -1, -1, -1
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != gpu_type or nodes[n, at.FREE] == nodes[n, at.USABLE]:
            continue
        for gpu in range(nodes[n, at.NODE_GPUS]):
            used = nodes[n, at.NODE_COLUMNS + gpu]
            if used == 0 or used + units > at.UNITS:
                continue
            key = 2 * used + (1 if nodes[n, at.NODE_COLUMNS + last + gpu] + units <= at.UNITS else 0)
            if key > best_key:
                best, best_gpu, best_key = n, gpu, key
    return best, best_gpu


@kernel
def _closed_slot(board: Board, node: int) -> int:
    """Find a GPU of `node` that is not shared now: the first that was not shared before the round either, if any."""
    nodes = board.nodes
    last = slots(board)
    first = -1
    for gpu in range(nodes[node, at.NODE_GPUS]):
        if nodes[node, at.NODE_COLUMNS + gpu] > 0:
            continue
        if nodes[node, at.NODE_COLUMNS + last + gpu] == 0:
            return gpu
        if first < 0:
            first = gpu
    return first


@kernel
def largest_free_share(board: Board, gpu_type: int) -> int:
    """Count the most units that are free on a GPU of type `gpu_type` that is shared already."""
    nodes = board.nodes
    most = 0
    if slots(board) == 0:
        return 0
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] != gpu_type or nodes[n, at.FREE] == nodes[n, at.USABLE]:
            continue
        for gpu in range(nodes[n, at.NODE_GPUS]):
            used = nodes[n, at.NODE_COLUMNS + gpu]
            if used > 0:
                most = max(most, at.UNITS - used)
    return most


@kernel
def join(board: Board, node: int, gpu: int, units: int) -> None:
    """Hold `units` of a shared GPU; the first share takes the whole GPU from its node."""
    nodes, capacity = board.nodes, board.capacity
    gpu_type = nodes[node, at.NODE_TYPE]
    used = nodes[node, at.NODE_COLUMNS + gpu]
    nodes[node, at.NODE_COLUMNS + gpu] = used + units
    if used == 0:
        hold(board, node, 1)
        capacity[gpu_type, at.FREE_SHARE] = max(capacity[gpu_type, at.FREE_SHARE], at.UNITS - units)
    elif at.UNITS - used == capacity[gpu_type, at.FREE_SHARE]:
        capacity[gpu_type, at.FREE_SHARE] = largest_free_share(board, gpu_type)


@kernel
def leave(board: Board, node: int, gpu: int, units: int) -> None:
    """Release `units` of a shared GPU; with the last share the node gets the whole GPU back."""
    nodes, capacity = board.nodes, board.capacity
    gpu_type = nodes[node, at.NODE_TYPE]
    left = nodes[node, at.NODE_COLUMNS + gpu] - units
    nodes[node, at.NODE_COLUMNS + gpu] = left
    if left > 0:
        capacity[gpu_type, at.FREE_SHARE] = max(capacity[gpu_type, at.FREE_SHARE], at.UNITS - left)
        return
    let_go(board, node, 1)
    if at.UNITS - units == capacity[gpu_type, at.FREE_SHARE]:
        capacity[gpu_type, at.FREE_SHARE] = largest_free_share(board, gpu_type)
