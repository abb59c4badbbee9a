"""A round that is planned as a whole, whole GPUs first, and then carried out in whatever order jobs are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.search.exchanges import HELD, keep, restore
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import place, prefer_place
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.room import clear, measure
from gpusched_env.simulator.placement.shared_gpus import slots
from gpusched_env.simulator.policy import Choice, apply_choice

if TYPE_CHECKING:
    from gpusched_baselines.shared_gpus.gpus import Gpus
    from gpusched_env.arrays import Floats, Ints, Mask
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board

# Columns of the policy's memory of a job.
ROUND = 0  # round that the other columns are of
PLANNED = 1  # configuration that it shall get in this round, -1 for none
NODE = 2  # the node, the first of several
SLOT = 3  # the shared GPU of it, -1 for whole GPUs
WAKE = 4  # when it is asked again [s]; inf for never

HELD_BEFORE = HELD + 2  # what a job holds, and its previous place


@kernel
def put_aside(board: Board, emptied: bool) -> tuple[Floats, Ints]:
    """Keep what the active jobs hold and where they were, and begin to plan: on an empty cluster if `emptied`.

    Returns:
        What jobs held, (A, HELD_BEFORE), and the nodes.
    """
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    held, kept = np.empty((active.shape[0], HELD_BEFORE)), np.empty_like(board.nodes)
    keep(board, active, held, kept)
    for i in range(active.shape[0]):
        held[i, HELD], held[i, HELD + 1] = jobs[active[i], at.HOME], jobs[active[i], at.HOME_SLOT]
        board.memory[active[i], WAKE] = np.inf
    if emptied:
        clear(board, active)
    return held, kept


@kernel
def write_plan(board: Board, held: Floats, kept: Ints) -> None:
    """Write what the active jobs hold now to `memory`, as the plan of the round; then all is as before it."""
    jobs, memory, active = board.jobs, board.memory, board.active[: board.count[at.ACTIVE]]
    for i in range(active.shape[0]):
        job = active[i]
        memory[job, ROUND], memory[job, PLANNED] = board.count[at.ROUND], jobs[job, at.CONFIG]
        memory[job, NODE], memory[job, SLOT] = jobs[job, at.NODE], jobs[job, at.SLOT]
        jobs[job, at.HOME], jobs[job, at.HOME_SLOT] = held[i, HELD], held[i, HELD + 1]
    restore(board, active, held, kept)
    measure(board)


@kernel
def carry_out(board: Board, order: Ints) -> None:
    """Give the jobs of `order`, in turn, what was planned for them."""
    memory = board.memory
    for job in order:
        apply_choice(board, job, False, memory[job, WAKE])
        if memory[job, PLANNED] >= 0.0:
            prefer_place(board, job, int(memory[job, NODE]), int(memory[job, SLOT]))
            place(board, job, int(memory[job, PLANNED]))


def is_planned(view: View, job: int) -> bool:
    """Say whether this round is planned already."""
    return bool(view.memory[job, ROUND] == view.count[at.ROUND])


def planned_choice(view: View, job: int) -> Choice:
    """Give what was planned for a job."""
    memory = view.memory[job]
    wake = float(memory[WAKE])
    if memory[PLANNED] < 0.0:
        return Choice(-1, wake)
    gpu = None if memory[SLOT] < 0.0 else int(memory[SLOT])
    return Choice(int(memory[PLANNED]), wake, node=int(memory[NODE]), gpu=gpu)


@kernel
def free_of_hosts(board: Board, gpus: Gpus, node: int) -> int:
    """Count the GPUs of a node that are free, or on which there are guests only."""
    count, per_node = board.nodes[node, at.FREE], slots(board)
    for gpu in range(per_node):
        index = node * per_node + gpu
        if gpus.jobs[index] > 0.0 and gpus.hosted[index] == 0:
            count += 1
    return count


@kernel
def nodes_for(board: Board, gpus: Gpus, config: int, closed: Mask, moving: bool) -> Ints:
    """Choose the nodes for whole GPUs, (k,); none if they do not fit.

    One node: that with fewest GPUs free that will do; with `moving`, where guests may have to leave, that with most.
    Several: whole nodes, those with most GPUs free first.
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
            if (free_of_hosts(board, gpus, n) if moving else free) < needed:
                continue
            if best < 0 or (free > best_free if moving or wanted > 1 else free < best_free):
                best, best_free = n, free
        if best < 0:
            return chosen[:0]
        chosen[k], taken[best] = best, 1
    return chosen


@kernel
def send_guests_away(board: Board, gpus: Gpus, node: int, needed: int) -> None:
    """Take their GPUs from guests of a node until `needed` are free: GPU by GPU, those without a host."""
    jobs, per_node = board.jobs, slots(board)
    for gpu in range(per_node):
        if board.nodes[node, at.FREE] >= needed:
            return
        index = node * per_node + gpu
        if gpus.jobs[index] == 0.0 or gpus.hosted[index] != 0:
            continue
        for job in board.active[: board.count[at.ACTIVE]]:
            if int(jobs[job, at.NODE]) == node and int(jobs[job, at.SLOT]) == gpu:
                release(board, job)
        gpus.busy[index], gpus.jobs[index] = 0.0, 0.0


@kernel
def roomiest(board: Board, gpus: Gpus, config: int, closed: Mask) -> None:
    """Close the nodes to be kept for a configuration that does not fit: those with most GPUs free of hosts."""
    nodes, configs = board.nodes, board.facts.configs
    needed = configs[config, at.CONFIG_GPUS]
    for _ in range(configs[config, at.CONFIG_NODES]):
        best, most = -1, -1
        for n in range(nodes.shape[0]):
            if closed[n] == 0 and nodes[n, at.NODE_TYPE] == configs[config, at.CONFIG_TYPE]:
                free = free_of_hosts(board, gpus, n)
                if nodes[n, at.NODE_GPUS] >= needed and free > most:
                    best, most = n, free
        if best >= 0:
            closed[best] = 1
