"""Rounds that are planned as a whole on a scratch board, and then carried out in the order in which jobs are asked.

A planner sets aside what jobs hold, places them as it likes, writes what they then hold into the policy's memory, and
puts all back. Nothing but `memory` has changed. Then jobs are decided as planned, one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.choice import Choice, apply_choice
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.placement.free_capacity import clear, measure
from gpusched_env.simulator.placement.held_nodes import further_places
from gpusched_env.simulator.placement.placement import can_place, place, resize, set_preferred_node

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board
    from gpusched_env.simulator.view import View

# Columns of the policy's memory of a job.
ROUND = 0  # round that the next ones are of
PLANNED = 1  # configuration planned for this round, -1 for none
NODE = 2  # the node, or the first of several, planned for it; -1: wherever it fits
GPU = 3  # the shared GPU there, -1 for whole GPUs
TIMER = 4  # its timer [s]; inf for never

HELD = 3  # what a job holds: configuration, node, shared GPU
HELD_BEFORE = HELD + 2  # and its previous place; then its further places


@lean_kernel
def _copy(into: Ints, rows: Ints) -> None:
    """Copy a matrix; an assignment of all of it would compile the texts of its errors, too."""
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            into[row, column] = rows[row, column]


@lean_kernel
def held_columns(board: Board) -> int:
    """Return the columns that `keep` needs: `HELD_BEFORE`, and those of further places."""
    return HELD_BEFORE + further_places(board)


@kernel
def keep(board: Board, order: Ints, held: Floats, kept: Ints) -> None:
    """Write what every job of `order`, (A,), holds to `held`, (A, `held_columns`), and the nodes to `kept`."""
    jobs, nodes = board.jobs, board.nodes
    for i in range(order.shape[0]):
        held[i, 0] = jobs[order[i], at.CONFIG]
        held[i, 1] = jobs[order[i], at.NODE]
        held[i, 2] = jobs[order[i], at.SLOT]
        for k in range(further_places(board)):
            held[i, HELD_BEFORE + k] = jobs[order[i], at.JOB_COLUMNS + k]
    _copy(kept, nodes)


@kernel
def restore(board: Board, order: Ints, held: Floats, kept: Ints) -> None:
    """Restore for every job of `order` what `keep` wrote; `capacity` is not updated."""
    jobs, nodes = board.jobs, board.nodes
    for i in range(order.shape[0]):
        jobs[order[i], at.CONFIG] = held[i, 0]
        jobs[order[i], at.NODE] = held[i, 1]
        jobs[order[i], at.SLOT] = held[i, 2]
        for k in range(further_places(board)):
            jobs[order[i], at.JOB_COLUMNS + k] = held[i, HELD_BEFORE + k]
    _copy(nodes, kept)


@kernel
def show_nodes(board: Board, shown: Ints, powered: bool) -> None:
    """Show the nodes as another table has them, with what is free there.

    With `powered`, GPUs that are not free there draw power; else the power of the site stays as it is.
    """
    kilowatts = board.clock[at.KW]
    _copy(board.nodes, shown)
    measure(board)
    if not powered:
        board.clock[at.KW] = kilowatts


@kernel
def can_place_on(board: Board, job: int, config: int, node: int) -> bool:
    """Whether a job, which holds nothing, can be placed with a configuration, on a node where it fits."""
    preferred = board.jobs[job, at.PREFERRED_NODE]
    board.jobs[job, at.PREFERRED_NODE] = node
    fits: bool = can_place(board, job, config)
    board.jobs[job, at.PREFERRED_NODE] = preferred
    return fits


@kernel
def begin_plan(board: Board, emptied: bool) -> tuple[Floats, Ints]:
    """Keep what the active jobs hold and where they were, and begin to plan: on an empty cluster if `emptied`.

    Returns:
        What jobs held, (A, `held_columns`), and the nodes. No job has a timer in `memory` yet.
    """
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    held, kept = np.empty((active.shape[0], held_columns(board))), np.empty_like(board.nodes)
    keep(board, active, held, kept)
    for i in range(active.shape[0]):
        held[i, HELD], held[i, HELD + 1] = jobs[active[i], at.PREFERRED_NODE], jobs[active[i], at.PREFERRED_SLOT]
        board.memory[active[i], TIMER] = np.inf
    if emptied:
        clear(board, active)
    return held, kept


@kernel
def write_plan(board: Board) -> None:
    """Write what the active jobs hold now to `memory`, as the plan of the round; their timers are there already."""
    jobs, memory = board.jobs, board.memory
    for job in board.active[: board.count[at.ACTIVE]]:
        memory[job, ROUND], memory[job, PLANNED] = board.count[at.ROUND], jobs[job, at.CONFIG]
        memory[job, NODE], memory[job, GPU] = jobs[job, at.NODE], jobs[job, at.SLOT]


@kernel
def end_plan(board: Board, held: Floats, kept: Ints) -> None:
    """End planning: restore the board as it was when `begin_plan` returned `held` and `kept`; `memory` stays."""
    jobs, active = board.jobs, board.active[: board.count[at.ACTIVE]]
    for i in range(active.shape[0]):
        jobs[active[i], at.PREFERRED_NODE], jobs[active[i], at.PREFERRED_SLOT] = held[i, HELD], held[i, HELD + 1]
    restore(board, active, held, kept)
    measure(board)


@kernel
def execute_plan(board: Board, order: Ints) -> None:
    for job in order:
        config, timer = planned(board, job)
        give(board, job, config, timer)


@kernel
def planned(board: Board, job: int) -> tuple[int, float]:
    return int(board.memory[job, PLANNED]), board.memory[job, TIMER]


@kernel
def give(board: Board, job: int, config: int, timer: float) -> None:
    """Place a job with a configuration, -1 for none, in the planned place if known and free; set its timer [s]."""
    memory = board.memory
    apply_choice(board, job, False, timer)
    if config >= 0:
        if memory[job, NODE] >= 0.0:
            set_preferred_node(board, job, int(memory[job, NODE]), int(memory[job, GPU]))
        place(board, job, config)


class PlannedPolicy:
    """A policy that plans a whole round when its first job is asked, and then decides job by job as planned.

    So one such policy should decide the whole round. A subclass writes the plan to the memory in `_plan`, and may have
    kernels of its own for a placement that differs from the plan.
    """

    __slots__ = ()
    job_order: str
    preemption: bool
    _execute_plan = staticmethod(execute_plan)
    _planned = staticmethod(planned)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - chance has no part in plans
        """Plan the round, and place its jobs."""
        self._plan(view)
        self._execute_plan(view.board, ask_order(view, self.job_order, waiting_only=not self.preemption))

    def choose(self, view: View, job: int) -> Choice:
        """Choose the configuration, the timer and the place of one job."""
        if view.memory[job, ROUND] != view.count[at.ROUND]:
            self._plan(view)
        config, timer = self._planned(view.board, job)
        node, gpu = int(view.memory[job, NODE]), int(view.memory[job, GPU])
        if config < 0 or node < 0:
            return Choice(int(config), float(timer))
        return Choice(int(config), float(timer), node=node, gpu=gpu if gpu >= 0 else None)

    def _plan(self, view: View) -> None:
        raise NotImplementedError


@lean_kernel
def set_timer_at(board: Board, job: int, time: float) -> None:
    """Set the timer of a job to a time [s]; inf for never."""
    board.jobs[job, at.TIMER_S] = time


@lean_kernel
def grow(board: Board, job: int, config: int) -> None:
    """Set a job's configuration to a larger one, on its node; `capacity` is not updated.

    From whole GPUs it grows to more of them; from a share to a larger one of the same GPU, or to whole GPUs. The caller
    checks that they are free and that the quota covers them (`can_resize`).
    """
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    node, slot, held = int(jobs[job, at.NODE]), int(jobs[job, at.SLOT]), int(jobs[job, at.CONFIG])
    if slot < 0:
        more = configs[config, at.CONFIG_GPUS] - configs[held, at.CONFIG_GPUS]
        nodes[node, at.FREE] -= more
        hooks.count_busy(board, node, nodes[node, at.FREE] + more, nodes[node, at.FREE])
    elif configs[config, at.CONFIG_UNITS] == 0:
        nodes[node, at.NODE_COLUMNS + slot] -= configs[held, at.CONFIG_UNITS]
        more = configs[config, at.CONFIG_GPUS] - (1 if nodes[node, at.NODE_COLUMNS + slot] == 0 else 0)
        nodes[node, at.FREE] -= more
        hooks.count_busy(board, node, nodes[node, at.FREE] + more, nodes[node, at.FREE])
        jobs[job, at.SLOT] = -1.0
    else:
        nodes[node, at.NODE_COLUMNS + slot] += configs[config, at.CONFIG_UNITS] - configs[held, at.CONFIG_UNITS]
    resize(board, job, config)


@kernel
def empty_as(board: Board, order: Ints, nodes: Ints, capacity: Ints) -> None:
    """Empty the cluster of the jobs of `order`; the arguments `nodes` and `capacity` are those of the empty cluster."""
    _copy(board.nodes, nodes)
    _copy(board.capacity, capacity)
    hooks.empty_nodes(board)
    for job in order:
        board.jobs[job, at.CONFIG], board.jobs[job, at.NODE], board.jobs[job, at.SLOT] = -1.0, -1.0, -1.0
    hooks.empty_jobs(board)
