"""EASY backfilling: the first job that does not fit has a reservation, and later jobs may start if they keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.backfill.free_gpus import (
    asked_for,
    by_limit,
    common,
    free_now,
    limit_s,
    same_s,
    start_within,
    subtract,
)
from gpusched_baselines.planning.cheapest import any_capacity
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, Order, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator


@kernel
def plan_easy(board: Board, order: Ints) -> None:
    """Start the jobs of `order`, the waiting ones, (W,), by EASY."""
    if not any_capacity(board):
        return
    asked, head = asked_for(board, order), -1
    shadow_s, later = np.inf, np.empty((2, 0, 0), dtype=np.int64)
    for i in range(order.shape[0]):
        if not any_capacity(board):
            break
        if head < 0:
            if not start_now(board, order[i], asked[i]) and covered(board, order[i], asked[i]):
                shadow_s, later = first_reservation(board, order[i], asked[i])
                head = i if shadow_s < np.inf else -1
        else:
            _backfill(board, order[i], asked[i], order[head], asked[head], shadow_s, later)


@kernel
def covered(board: Board, job: int, asked: Ints) -> bool:
    """Whether the quota of the job's tenant covers a configuration that it asks for now; else it is passed over."""
    for config in asked:
        if config >= 0 and sim.within_quota(board, job, config):
            return True
    return False


@kernel
def start_now(board: Board, job: int, asked: Ints) -> bool:
    """Start a job with the first configuration that fits; return whether one does."""
    for config in asked:
        if config >= 0 and sim.can_place(board, job, config):
            return sim.place(board, job, config)
    return False


@kernel
def first_reservation(board: Board, job: int, asked: Ints) -> tuple[float, Ints]:
    """Find when a job can start by the time limits of the jobs that hold GPUs.

    Returns:
        That time, the shadow time [s], and what is free from then on, with the job's GPUs and without, (2, N, 1 + G);
        inf and no tables if it does not fit on an empty cluster.
    """
    running, ends = by_limit(board)
    active = board.active[: board.count[at.ACTIVE]]
    held, kept = np.empty((active.shape[0], sim.held_columns(board))), np.empty_like(board.nodes)
    sim.keep(board, active, held, kept)
    shadow_s, later = np.inf, np.empty((2, 0, 0), dtype=np.int64)
    for i in range(running.shape[0]):
        sim.release(board, running[i])
        if i + 1 < running.shape[0] and ends[i + 1] <= ends[i] + same_s(board):
            continue
        free = free_now(board)
        if start_now(board, job, asked):
            shadow_s, later = ends[i], np.stack((free, free_now(board)))
            break
    sim.restore(board, active, held, kept)
    sim.measure(board)
    return shadow_s, later


@kernel
def _backfill(board: Board, job: int, asked: Ints, head: int, of_head: Ints, shadow_s: float, later: Ints) -> None:
    """Start a job if it ends by the shadow time, or if the head of the queue then has enough other GPUs.

    What it takes of both tables of `later`, (2, N, 1 + G), is subtracted.
    """
    now = board.clock[at.NOW]
    for config in asked:
        if config < 0 or not sim.can_place(board, job, config):
            continue
        if now + limit_s(board, job, config) <= shadow_s + same_s(board):
            sim.place(board, job, config)
            return
        taken = start_within(board, job, config, common(free_now(board), later[1]), True, True)
        if taken.shape[0] == 0:
            taken = _start_in_its_place(board, job, config, head, of_head, later)
        if taken.shape[0] > 0:
            _subtract_all(later[0], taken)
            _subtract_all(later[1], taken)
            return


@kernel
def _start_in_its_place(board: Board, job: int, config: int, head: int, of_head: Ints, later: Ints) -> Ints:
    """Start a job on reserved GPUs if the head of the queue fits on others then, and move its reservation there.

    Returns:
        What the job takes, (N, 1 + G); (0, 1 + G) if it does not start.
    """
    free = common(free_now(board), later[0])
    taken, rest = start_within(board, job, config, free, False, True), later[0].copy()
    _subtract_all(rest, taken)
    for other in of_head:
        if taken.shape[0] == 0 or other < 0:
            continue
        moved = start_within(board, head, other, rest, False, True)
        if moved.shape[0] > 0:
            later[1] = later[0]
            _subtract_all(later[1], moved)
            return start_within(board, job, config, free, True, True)
    return taken[:0]


@kernel
def _subtract_all(free: Ints, taken: Ints) -> None:
    for n in range(taken.shape[0]):
        for column in range(taken.shape[1]):
            subtract(free, n, column, taken[n, column])


@dataclass(frozen=True, slots=True)
class Easy:
    """EASY backfilling by time limits (Lifka 1995; Mu'alem and Feitelson 2001), without preemption.

    1. A job asks for one configuration of every GPU type: the cheapest that meets its due date, from its submission on
       an empty cluster, else the fastest. Its time limit is that of all epochs it may need, and its start-up.
    2. Waiting jobs start in order, each on the first of its types that has the GPUs free.
    3. The first job that does not fit has a reservation: at the earliest time at which its GPUs are free if the running
       jobs end by their time limits, on the nodes that are best then.
    4. Later jobs start if they fit and end by that time, or if the first job has enough other GPUs then: its
       reservation may move to other nodes, but not to a later time.

    Jobs that the quota of their tenant stops are passed over, as in Slurm. Quotas are not reserved: a later job of the
    same tenant may take what is left of its quota, and so delay the first one.

    Args:
        name: Name, as tables show it.
        job_order: The order of the queue: a named order (`submission`, `due`, `weight`, `pressure`), or a function of
            the active jobs.

    Raises:
        InputError: There is no such order.
    """

    name: str = "easy"
    job_order: Order = "submission"
    preemption: bool = False

    def __post_init__(self) -> None:
        sim.check_order(self.job_order)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Start waiting jobs."""
        plan_easy(view.board, sim.ask_order(view, self.job_order, waiting_only=True))
