"""Conservative backfilling: every waiting job has a reservation, and no start delays one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.backfill.easy import covered
from gpusched_baselines.backfill.free_gpus import asked_for, limit_s, refuse_cells, same_s, start_within
from gpusched_baselines.backfill.profile import (
    CONFIG,
    DONE,
    FIRST_PART,
    PARTS,
    START_S,
    USABLE,
    Profile,
    earliest,
    free_from,
    last_before,
    profile_of,
    reserve,
    write_parts,
)
from gpusched_baselines.planning.cheapest import any_capacity
from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, Order, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.model import Instance


@kernel
def plan_conservative(board: Board, order: Ints) -> None:
    """Start the jobs of `order`, the waiting ones, (W,), whose reservation has come, and renew the others'."""
    if not any_capacity(board):
        return
    asked, profile, moves = asked_for(board, order), profile_of(board, order.shape[0]), _have_more(board)
    for job in order:
        _keep_reservation(board, profile, job)
    for i in range(order.shape[0]):
        job, row = order[i], board.memory[order[i]]
        if row[CONFIG] > 0.0:
            if not moves and row[START_S] > board.clock[at.NOW] + same_s(board):
                continue
            _reserve_as_in(board, profile, job, -1)
        if covered(board, job, asked[i]):
            _reserve_earliest(board, profile, job, asked[i])
        else:
            row[CONFIG] = 0.0


@kernel
def _have_more(board: Board) -> bool:
    """Whether jobs have ended, or nodes have other GPUs, since reservations were last moved: they are moved now."""
    run, usable = board.memory[0], 0
    for n in range(board.nodes.shape[0]):
        usable += board.nodes[n, at.USABLE]
    more = run[DONE] != board.count[at.DONE] or run[USABLE] != usable
    run[DONE], run[USABLE] = board.count[at.DONE], usable
    return more


@kernel
def _parts(row: Floats) -> Floats:
    return row[FIRST_PART : FIRST_PART + 3 * int(row[PARTS])]


@kernel
def _reserve_as_in(board: Board, profile: Profile, job: int, sign: int) -> bool:
    """Subtract the reservation in the memory of a job from the profile (`sign` 1), or add it (-1)."""
    row = board.memory[job]
    end_s = row[START_S] + limit_s(board, job, int(row[CONFIG]) - 1)
    return reserve(board, profile, row[START_S], end_s, _parts(row), sign)


@kernel
def _keep_reservation(board: Board, profile: Profile, job: int) -> None:
    """Reserve again what the memory has for a job; if that is over, or not free, the job loses its reservation."""
    row, now = board.memory[job], board.clock[at.NOW]
    if row[CONFIG] == 0.0:
        return
    config = int(row[CONFIG]) - 1
    known = row[START_S] >= now - same_s(board) and config < board.tau.shape[1] and board.tau[job, config] < np.inf
    row[START_S] = max(row[START_S], now)
    if not known or not _reserve_as_in(board, profile, job, 1):
        row[CONFIG] = 0.0


@kernel
def _reserve_earliest(board: Board, profile: Profile, job: int, asked: Ints) -> None:
    """Start a job now if it fits; else give it the earliest reservation, which is never after the one that it has."""
    row, now = board.memory[job], board.clock[at.NOW]
    chosen, by_s = -1, row[START_S] if row[CONFIG] > 0.0 else np.inf
    taken = np.empty((0, profile.free.shape[2]), dtype=np.int64)
    for config in asked:
        if config < 0:
            continue
        k, takes = earliest(board, profile, job, config, limit_s(board, job, config), by_s)
        if k >= 0:
            chosen, taken, by_s = config, takes, profile.begin_s[k]
    if chosen >= 0:
        row[START_S], row[CONFIG], row[PARTS] = by_s, chosen + 1.0, write_parts(row, taken)
    if row[CONFIG] == 0.0:
        return
    config = int(row[CONFIG]) - 1
    if row[START_S] > now + same_s(board):
        _reserve_as_in(board, profile, job, 1)
        return
    last = last_before(board, profile, now + limit_s(board, job, config))
    taken = start_within(board, job, config, free_from(profile, 0, last), True, True)
    if taken.shape[0] > 0:
        row[PARTS] = write_parts(row, taken)
        _reserve_as_in(board, profile, job, 1)
    row[CONFIG] = 0.0


@dataclass(frozen=True, slots=True)
class Conservative:
    """Conservative backfilling by time limits (Mu'alem and Feitelson 2001), without preemption.

    What a job asks for, and its time limit, are those of `Easy`. Every waiting job has a reservation, on nodes, from
    the first round with a free GPU after its submission on; it starts then at the latest if all jobs keep their time
    limits. After jobs have ended, the reservations are moved, in order, to the earliest time that delays no other one.

    Quotas are not reserved: a later job of the tenant may take what is left of its quota, and so delay a reservation.
    A job loses its reservation where nodes fail or jobs pass their time limits, and gets another one.

    Args:
        name: Name, as tables show it.
        job_order: The order of the queue: a named order (`submission`, `due`, `weight`, `pressure`), or a function of
            the active jobs.

    Raises:
        InputError: There is no such order.
    """

    name: str = "conservative"
    job_order: Order = "submission"
    preemption: bool = False

    def __post_init__(self) -> None:
        sim.check_order(self.job_order)

    def check(self, instance: Instance) -> None:
        """Check that an instance has no cells.

        Raises:
            InputError: It has.
        """
        refuse_cells(instance)

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory: ten, and three for every part of a node that a job may hold."""
        each = instance.configurations
        return FIRST_PART + 3 * max(c.nodes if c.share == 1.0 else c.gpus_per_node * c.nodes for c in each)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Start waiting jobs, and write their reservations to the memory.

        Raises:
            InputError: The memory has fewer columns than `memory_columns`.
        """
        gpus, nodes = view.configs[:, at.CONFIG_GPUS], view.configs[:, at.CONFIG_NODES]
        needs = FIRST_PART + 3 * int(np.where(view.configs[:, at.CONFIG_UNITS] > 0, gpus * nodes, nodes).max())
        if view.memory.shape[1] < needs:
            raise InputError("memory_columns", view.memory.shape[1], f"{needs} or more")
        plan_conservative(view.board, sim.ask_order(view, self.job_order, waiting_only=True))
