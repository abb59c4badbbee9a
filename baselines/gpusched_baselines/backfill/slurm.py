"""Slurm's main scheduler and its backfill plugin, by the rules of their documentation and of Slurm 22.05."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.backfill.easy import covered
from gpusched_baselines.backfill.free_gpus import asked_for, free_now, limit_s, refuse_cells
from gpusched_baselines.backfill.profile import Profile, profile_of
from gpusched_baselines.backfill.whole_nodes import (
    choose_nodes,
    no_reservations,
    open_nodes,
    overlaps,
    reserve_nodes,
    start_on,
)
from gpusched_baselines.planning.cheapest import any_capacity
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, Order, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.model import Instance

MOST_TESTED = 500  # jobs that the plugin tests in a round (the default of bf_max_job_test)
PRECISION_S = 30.0  # of the ends of running jobs [s]: it doubles with every test of a job


@kernel
def plan_slurm(board: Board, order: Ints, plugin: bool, reservations: int, window_s: float) -> int:
    """Start the jobs of `order`, the waiting ones, (W,), as Slurm does.

    The main scheduler starts them in order until one does not fit; then the backfill plugin tests that one and all
    later ones.

    Args:
        plugin: Whether the plugin looks too.
        reservations: Most reservations, ≥ 0.
        window_s: How far ahead they may begin [s].

    Returns:
        How many jobs fit on free GPUs in the end, but wait for a reservation.
    """
    if not any_capacity(board):
        return 0
    asked = asked_for(board, order)
    first = _start_in_order(board, order, asked)
    last = first + MOST_TESTED
    return _backfill(board, order[first:last], asked[first:last], reservations, window_s) if plugin else 0


@kernel
def _start_in_order(board: Board, order: Ints, asked: Ints) -> int:
    """Start jobs until the first one that does not fit; return its index, or how many jobs there are."""
    for i in range(order.shape[0]):
        if covered(board, order[i], asked[i]) and not _start_anywhere(board, order[i], asked[i]):
            return i
    return int(order.shape[0])


@kernel
def _backfill(board: Board, order: Ints, asked: Ints, reservations: int, window_s: float) -> int:
    """Test the jobs of `order`, (W,), which ask for `asked`, (W, V); return what `plan_slurm` does."""
    made, waits, now = 0, np.zeros(order.shape[0], dtype=np.bool_), board.clock[at.NOW]
    # What is free as running jobs end, and the nodes (1: not reserved) in the intervals between reservations.
    ends, nodes = profile_of(board, 0), no_reservations(board, order.shape[0])
    for i in range(order.shape[0]):
        if not any_capacity(board):
            return 0
        if not covered(board, order[i], asked[i]):
            continue
        begin_s, config, chosen = _test(board, ends, nodes, order[i], asked[i], made < reservations)
        if begin_s <= now and start_on(board, order[i], config, chosen):
            ends = profile_of(board, 0)
            continue
        waits[i] = True
        if made < reservations and begin_s <= now + window_s:
            reserve_nodes(board, nodes, begin_s, begin_s + limit_s(board, order[i], config), chosen)
            made += 1
    refused = 0
    for i in range(order.shape[0]):
        refused += 1 if waits[i] and _fits_now(board, order[i], asked[i]) else 0
    return refused


@kernel
def _fits_now(board: Board, job: int, asked: Ints) -> bool:
    for config in asked:
        if config >= 0 and sim.can_place(board, job, config):
            return True
    return False


@kernel
def _start_anywhere(board: Board, job: int, asked: Ints) -> bool:
    """Start a job with the first configuration that fits on free GPUs; return whether one does."""
    free, every = free_now(board), np.ones(board.nodes.shape[0], dtype=np.int64)
    for config in asked:
        if config >= 0 and sim.can_place(board, job, config):
            chosen = choose_nodes(board, job, config, free, every)
            if chosen.any() and start_on(board, job, config, chosen):
                return True
    return False


@kernel
def _test(
    board: Board, ends: Profile, nodes: Profile, job: int, asked: Ints, reserves: bool
) -> tuple[float, int, Ints]:
    """Find the earliest start of a job over its configurations.

    Returns:
        That time [s], the configuration, and its nodes, (N,); inf, -1 and none if there is no start: without
        `reserves` if it is not now.
    """
    best_s, best, chosen = np.inf, -1, np.zeros(board.nodes.shape[0], dtype=np.int64)
    for config in asked:
        if config < 0:
            continue
        begin_s, found = _earliest(board, ends, nodes, job, config, reserves)
        if begin_s < best_s:
            best_s, best, chosen = begin_s, config, found
    return best_s, best, chosen


@kernel
def _earliest(board: Board, ends: Profile, nodes: Profile, job: int, config: int, reserves: bool) -> tuple[float, Ints]:
    """Find the earliest start of a job with a configuration that keeps all reservations [s], and its nodes, (N,).

    A start is tested with the nodes that no reservation needs within the job's time limit from a time on: now, then
    when a reservation ends that had other nodes.
    """
    from_s, length_s = board.clock[at.NOW], limit_s(board, job, config)
    while True:
        allowed, later_s = open_nodes(board, nodes, from_s, from_s + length_s)
        begin_s, chosen = _when_it_fits(board, ends, job, config, allowed, ends.size[0] if reserves else 0)
        begin_s = max(begin_s, from_s)
        if begin_s > later_s and reserves:
            from_s = later_s
        elif board.clock[at.NOW] < begin_s < np.inf and overlaps(board, nodes, begin_s, begin_s + length_s, chosen):
            from_s = begin_s
        else:
            return begin_s, chosen


@kernel
def _when_it_fits(board: Board, ends: Profile, job: int, config: int, allowed: Ints, size: int) -> tuple[float, Ints]:
    """Find when a job fits on the allowed nodes, (N,), if running jobs end by their limits [s], and where, (N,).

    Only the first `size` ends count. The time is inf if it fits after none of them.

    Running jobs that end close to each other are taken away together, and the job starts after the last of them: those
    that end within 30 s (`PRECISION_S`) of a full half minute after the first end, then 60 s, 120 s and so on.
    """
    chosen = choose_nodes(board, job, config, free_now(board), allowed)
    if chosen.any():
        return board.clock[at.NOW], chosen
    window_s, from_s, k = PRECISION_S, -1.0, 1
    while k < size:
        last = -1
        while k < size:
            if (allowed * (ends.free[k] != ends.free[k - 1]).sum(axis=1)).any():
                from_s = ends.begin_s[k] - ends.begin_s[k] % PRECISION_S + PRECISION_S if from_s < 0.0 else from_s
                last = k
            k += 1
            if last >= 0 and k < size and ends.begin_s[k] > from_s + window_s:
                break
        if last < 0:
            break
        while k < size and ends.begin_s[k] > from_s + window_s:
            window_s *= 2.0
        chosen = choose_nodes(board, job, config, ends.free[last], allowed)
        if chosen.any():
            return ends.begin_s[last], chosen
    return np.inf, chosen


@dataclass(frozen=True, slots=True)
class SlurmBackfill:
    """Slurm's main scheduler and backfill plugin (`sched/backfill`), without preemption.

    What a job asks for, and its time limit, are those of `Easy`.

    1. Jobs start in order until the first one that does not fit.
    2. From that one on, 500 jobs (`bf_max_job_test`) are tested: a job starts if that delays no reservation; else it
       gets one, at the earliest time at which enough nodes are free if running jobs end by their limits. A reservation
       is of whole nodes.
    3. Ends of running jobs count as in Slurm: with a precision of 30 s, which doubles as a job is tested at later ends.
    4. Nodes are chosen as in Slurm: from the smallest set of neighbours that is enough, the first ones by index.

    Every round makes all reservations again. Jobs that the quota of their tenant stops are passed over, as in Slurm.

    Args:
        name: Name, as tables show it.
        job_order: The order of the queue: a named order (`submission`, `due`, `weight`, `pressure`), or a function of
            the active jobs.
        reservations: Most reservations, ≥ 0 (`bf_job_part_count_reserve`); None: no limit.
        window_s: How far ahead reservations may begin [s], > 0 (`bf_window`); by default a day, as in Slurm.
        plugin: Whether there is a backfill plugin (`sched/backfill`); else the main scheduler is alone
            (`sched/builtin`).

    Raises:
        InputError: There is no such order, or a number is out of its range.
    """

    name: str = "slurm-backfill"
    job_order: Order = "submission"
    reservations: int | None = None
    window_s: float = 86_400.0
    plugin: bool = True
    preemption: bool = False

    def __post_init__(self) -> None:
        sim.check_order(self.job_order)
        check_backfill(self.reservations, self.window_s, self.plugin)

    def check(self, instance: Instance) -> None:
        """Check that an instance has no cells.

        Raises:
            InputError: It has.
        """
        refuse_cells(instance)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Start waiting jobs."""
        order = sim.ask_order(view, self.job_order, waiting_only=True)
        plan_slurm(view.board, order, self.plugin, most_reservations(self.reservations, order), self.window_s)


def check_backfill(reservations: int | None, window_s: float, plugin: bool) -> None:
    """Check the settings of Slurm's backfilling.

    Raises:
        InputError: One of them is out of its range.
    """
    if reservations is not None:
        checks.whole("reservations", reservations, 0)
    checks.positive("window_s", window_s)
    if not isinstance(plugin, bool):
        raise InputError("plugin", plugin, "True or False")


def most_reservations(reservations: int | None, order: Ints) -> int:
    return len(order) if reservations is None else reservations
