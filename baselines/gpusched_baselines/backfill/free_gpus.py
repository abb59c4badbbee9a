"""What is free on every node now and later, and how long jobs may run: what backfilling compares.

A table of free GPUs, (N, 1 + G), has for every node its free GPUs, and the free units of each of its G GPUs, where they
can be shared; else G is 0. A GPU that is shared is not free. What a job takes is such a table too: GPUs, then units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.cheapest import worth
from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

if TYPE_CHECKING:
    from gpusched_env.model import Instance

OVERRUN_S = 1.0  # a job that has passed its time limit is expected to end this much later [s]


def refuse_cells(instance: Instance) -> None:
    """Check that an instance has no cells: what is free on a node later is not known, since cells move between hosts.

    Raises:
        InputError: It has.
    """
    if instance.first_machine:
        raise InputError("tenancy", "cells", "none, quota or private: cells move between hosts")


@lean_kernel
def same_s(board: Board) -> float:
    """Return the difference below which two times are the same [s]."""
    return 1e3 * (sim.SAME_TIME_S + sim.SAME_TIME * board.clock[at.NOW])


@lean_kernel
def limit_s(board: Board, job: int, config: int) -> float:
    """Return the time limit of a job that would start now with `config` [s]: all its epochs, and its start-up."""
    jobs = board.jobs
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    return sim.switch_s(board, job, config) + left * board.tau[job, config]


@kernel
def limit_end_s(board: Board, job: int) -> float:
    """Return when a job that holds GPUs ends by its time limit [s]; it is after the present time."""
    jobs, now, config = board.jobs, board.clock[at.NOW], int(board.jobs[job, at.CONFIG])
    if jobs[job, at.OLD_CONFIG] < 0.0:
        return now + limit_s(board, job, config)
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    end = max(now, jobs[job, at.READY_S]) + left * board.tau[job, config]
    return end if end > now + same_s(board) else now + OVERRUN_S


@kernel
def by_limit(board: Board) -> tuple[Ints, Floats]:
    """List the jobs that hold GPUs, (R,), and when they end by their time limits [s], (R,): the first end first."""
    active = board.active[: board.count[at.ACTIVE]]
    chosen, ends, n = np.empty(active.shape[0], dtype=np.int64), np.empty(active.shape[0]), 0
    for job in active:
        if board.jobs[job, at.CONFIG] >= 0.0:
            chosen[n], ends[n] = job, limit_end_s(board, job)
            n += 1
    order = sim.ranked(ends, n)
    return chosen[order], ends[order]


@kernel
def asked_for(board: Board, order: Ints) -> Ints:
    """Return the configurations that the jobs of `order`, (W,), ask for, best first, (W, V); -1 for none.

    That is one of every GPU type: the cheapest that meets the due date, from the submission on an empty cluster, else
    the fastest. The types are in the same order.
    """
    jobs, tau, configs = board.jobs, board.tau, board.facts.configs
    asked = np.full((order.shape[0], board.capacity.shape[0]), -1)
    held, kept = sim.begin_plan(board, True)
    for i in range(order.shape[0]):
        job, n = order[i], 0
        rate, time_left = (
            board.planning_rate[int(jobs[job, at.APPLICATION])],
            jobs[job, at.DUE] - jobs[job, at.SUBMISSION],
        )
        for v in range(asked.shape[1]):
            best, least = -1, (True, np.inf, np.inf)
            for c in range(tau.shape[1]):
                if configs[c, at.CONFIG_TYPE] != v or tau[job, c] == np.inf or not sim.can_place(board, job, c):
                    continue
                value = worth(jobs[job, at.MAX_EPOCHS] * tau[job, c], time_left, rate[c])
                if best < 0 or value < least:
                    best, least = c, value
            k = n
            while best >= 0 and k > 0:
                other = asked[i, k - 1]
                if not least < worth(jobs[job, at.MAX_EPOCHS] * tau[job, other], time_left, rate[other]):
                    break
                asked[i, k] = other
                k -= 1
            if best >= 0:
                asked[i, k] = best
                n += 1
    sim.end_plan(board, held, kept)
    return asked


@kernel
def free_now(board: Board) -> Ints:
    """Return the table of free GPUs of the board, (N, 1 + G)."""
    nodes, shared = board.nodes, sim.slots(board)
    free = np.empty((nodes.shape[0], 1 + shared), dtype=np.int64)
    for n in range(nodes.shape[0]):
        free[n, 0] = nodes[n, at.FREE]
        for gpu in range(shared):
            free[n, 1 + gpu] = at.UNITS - nodes[n, at.NODE_COLUMNS + gpu]
    return free


@kernel
def show(board: Board, free: Ints, powered: bool) -> None:
    """Write a table of free GPUs to the nodes; what jobs hold there is not changed.

    With `powered`, all GPUs that are not free draw power, as those of reservations will; else those that jobs hold.
    """
    shown = board.nodes.copy()
    for n in range(free.shape[0]):
        shown[n, at.FREE] = free[n, 0]
        for gpu in range(free.shape[1] - 1):
            shown[n, at.NODE_COLUMNS + gpu] = at.UNITS - free[n, 1 + gpu]
    sim.show_nodes(board, shown, powered)


@kernel
def common(one: Ints, other: Ints) -> Ints:
    """Return what is free in two tables, (N, 1 + G): a GPU without a share in a table can have one if a GPU is free."""
    free = np.minimum(one, other)
    for n in range(free.shape[0]):
        for column in range(1, free.shape[1]):
            for table in (one, other):
                if table[n, column] == at.UNITS and table[n, 0] == 0:
                    free[n, column] = 0
    return free


@kernel
def subtract(free: Ints, n: int, column: int, amount: int) -> bool:
    """Subtract GPUs of node `n` (`column` 0) or units of one of its GPUs from a table; return whether they were free.

    A negative amount is added.
    """
    closed = column > 0 and free[n, column] == at.UNITS
    free[n, column] -= amount
    if column > 0:
        free[n, 0] += (1 if free[n, column] == at.UNITS else 0) - (1 if closed else 0)
    return free[n, column] >= 0 and free[n, 0] >= 0


@kernel
def start_within(board: Board, job: int, config: int, free: Ints, starts: bool, powered: bool) -> Ints:
    """Find a place for a job in a table of free GPUs, (N, 1 + G); with `starts` place it there, else change nothing.

    Returns:
        What it takes, (N, 1 + G); (0, 1 + G) if it does not fit.
    """
    real, taken = board.nodes.copy(), np.empty((0, free.shape[1]), dtype=np.int64)
    node, slot, chain = -1, -1, np.empty(0, dtype=np.int64)
    show(board, free, powered)
    if sim.can_place(board, job, config) and sim.place(board, job, config):
        taken = free - free_now(board)
        for n in range(taken.shape[0]):
            for column in range(1, taken.shape[1]):
                taken[n, 0] -= 1 if taken[n, column] > 0 and free[n, column] == at.UNITS else 0
        node, slot = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.SLOT])
        chain = sim.chain_of(board, job).copy()
        sim.release(board, job)
    sim.restore(board, chain[:0], np.empty((0, 0)), real)  # the nodes alone, with the chains of other jobs
    sim.measure(board)
    if starts and node >= 0:
        if not sim.can_place_on(board, job, config, node) or (
            slot >= 0 and not sim.has_room(board, config, node, slot, False)
        ):
            return taken[:0]
        sim.put_back(board, job, config, node, slot, chain)
    return taken
