"""One call for many environments: each decides, runs to its next round, and is observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gpusched_env.envs.vector.batch import BINS, JOBS, NODES, SITE, SLOWDOWN
from gpusched_env.envs.vector.board import (
    DONE,
    FAILED,
    PLACES,
    ROUND,
    STOP,
    add,
    chunk_end,
    elsewhere,
    load,
    open_round,
    relax,
    take,
)
from gpusched_env.envs.vector.prefetch import fetch_row
from gpusched_env.kernel import lean_kernel, unlocked_kernel
from gpusched_env.observation.mask import write_mask
from gpusched_env.observation.observe import observe_next
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.decisions import decide

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints, Mask, Singles
    from gpusched_env.envs.vector.arrays import Arrays
    from gpusched_env.envs.vector.shared import Bins, Site

LOOK = -1  # in place of an action: the environment is observed, and nothing happens in it
SKIP = -2  # the same, without the observation
PATIENCE = 5_000  # times that a helper looks in vain for a new round before it stops: some 100 µs

# money: float64 (MONEY_ROWS, N).
TIME, ENERGY, TARDINESS, TOTAL_ENERGY, TOTAL_TARDINESS = range(5)
MONEY_ROWS = 5


class Seen(NamedTuple):
    """What a call writes, a row per environment.

    Attributes:
        job, options, cluster, queue: The observations, (N, ...).
        mask: What can be placed now, (N, 1 + C).
        money: The present time [s], the energy and tardiness costs of the step and of the episode [€], (MONEY_ROWS, N).
        at_hand: The job at hand, -1 at the end, (N,).
    """

    job: Singles
    options: Singles
    cluster: Singles
    queue: Singles
    mask: Mask
    money: Floats
    at_hand: Ints


class Notes(NamedTuple):
    """What observations remember from one decision to the next (`gpusched_env.observation.tallies`), and scratch.

    Attributes:
        tallies: int64 (N, TALLY_COLUMNS + V).
        sums: float64 (N, SUM_COLUMNS).
        spare: Scratch, int64 (N, V, SPARE_COLUMNS + G + 1): environments done in one go use the row of the first.
    """

    tallies: Ints
    sums: Floats
    spare: Ints


# Kernels get these as plain tuples: beside a compiled function Numba stores the types of its arguments, and would not
# find a class there that has moved since.


@unlocked_kernel
def work(
    thread: int, board: Ints, actions: Ints, seen: tuple[Any, ...], sizes: Ints, batch: Arrays, sites: Site, bins: Bins,
    notes: Notes, log: Floats, preemption: bool, kind: int, invalid: Ints,
) -> None:  # fmt: skip
    """Do a thread's part of a step: apply the actions, count those that cannot be placed, and observe.

    Thread 0 opens the step with `actions` and `seen`, and returns when all environments are done, or another thread has
    failed. Other threads help in one step after the other, and return when none has begun for a moment; `actions` and
    `seen` only tell them shapes.
    """
    if thread == 0:
        _open(board, actions, seen)
    size, idle, number = sizes.shape[0], 0, load(board, ROUND, 0)
    while thread == 0 or (idle < PATIENCE and load(board, STOP, 0) == 0):
        first = take(board, thread, size) if idle == 0 else -1
        if first >= 0:
            last = chunk_end(board, first, size)
            where = board[PLACES]
            step_some(
                first, last, elsewhere(actions, where[0]), (
                    elsewhere(seen[0], where[1]), elsewhere(seen[1], where[2]), elsewhere(seen[2], where[3]),
                    elsewhere(seen[3], where[4]), elsewhere(seen[4], where[5]), elsewhere(seen[5], where[6]),
                    elsewhere(seen[6], where[7]),
                ), sizes, batch, sites, bins, notes, log, preemption, kind, invalid,
            )  # fmt: skip
            add(board, DONE, 0, last - first)
        elif thread == 0:
            if load(board, DONE, 0) == size or load(board, FAILED, 0) != 0:
                return
            relax()
        elif load(board, ROUND, 0) != number:
            idle, number = 0, load(board, ROUND, 0)
        else:
            idle += 1
            relax()


@lean_kernel
def _open(board: Ints, actions: Ints, seen: tuple[Any, ...]) -> None:
    """Say where the actions are and where observations go, and open the round."""
    where = board[PLACES]
    where[0] = actions.ctypes.data
    where[1] = seen[0].ctypes.data
    where[2] = seen[1].ctypes.data
    where[3] = seen[2].ctypes.data
    where[4] = seen[3].ctypes.data
    where[5] = seen[4].ctypes.data
    where[6] = seen[5].ctypes.data
    where[7] = seen[6].ctypes.data
    open_round(board)


@lean_kernel
def step_some(
    first: int, last: int, actions: Ints, seen: tuple[Any, ...], sizes: Ints, batch: Arrays, sites: Site, bins: Bins,
    notes: Notes, log: Floats, preemption: bool, kind: int, invalid: Ints,
) -> None:  # fmt: skip
    """Step the environments `first` to `last` - 1."""
    (
        all_jobs, hidden, tau, _, active, keys, order, all_nodes, room, clocks, counts, all_slowdown, planned, survival,
        tail,
    ) = batch  # fmt: skip
    all_configs, node_rate, planning_rate, least_rate, types, offers = sites
    (edges,) = bins
    tallies, sums, spare = notes
    out_job, out_options, out_cluster, out_queue, mask, money, at_hand = seen
    for i in range(first, last):
        if actions[i] == SKIP:
            continue
        _fetch_ahead(i, all_jobs, tau, survival, counts, order)
        s, jobs, nodes = sizes[i, SITE], all_jobs[i, : sizes[i, JOBS]], all_nodes[i, : sizes[i, NODES]]
        configs, clock, count = all_configs[s], clocks[i], counts[i]
        energy, tardiness = clock[at.BILL], clock[at.LATENESS]
        if actions[i] != LOOK:
            slowdown = all_slowdown[i, : sizes[i, SLOWDOWN]]
            placed = decide(
                jobs, hidden[i], nodes, configs, room[i], tau[i], node_rate[s], slowdown, planned[i], clock, count,
                active[i], log, keys[i], order[i], preemption, kind, least_rate[s], actions[i],
            )  # fmt: skip
            invalid[i] += 0 if placed else 1
        observe_next(
            jobs, nodes, configs, tau[i], planning_rate[s], least_rate[s], node_rate[s], clock, count, active[i],
            order[i], room[i], edges[sizes[i, BINS]], survival[i], tail[i], types[s], offers[s], tallies[i], sums[i],
            spare[first], out_job[i], out_options[i], out_cluster[i], out_queue[i], mask[i],
        )  # fmt: skip
        at_hand[i] = -1 if count[at.ASKED] == count[at.TO_ASK] else order[i, count[at.ASKED]]
        money[TIME, i] = clock[at.NOW]
        money[ENERGY, i] = clock[at.BILL] - energy
        money[TARDINESS, i] = clock[at.LATENESS] - tardiness
        money[TOTAL_ENERGY, i] = clock[at.BILL]
        money[TOTAL_TARDINESS, i] = clock[at.LATENESS]


@lean_kernel
def _fetch_ahead(i: int, jobs: Floats, tau: Floats, survival: Floats, counts: Ints, order: Ints) -> None:
    """Have what the next two environments' observations will read of their jobs brought into the cache.

    The jobs of many environments do not fit there together. Which row of `survival` a job needs stands in its own row,
    which is therefore fetched one environment earlier.
    """
    if i + 2 < jobs.shape[0]:
        asked = counts[i + 2, at.ASKED] + 1  # read once: another thread may be at work there
        if asked < counts[i + 2, at.TO_ASK]:
            job = order[i + 2, asked]
            fetch_row(jobs[i + 2], job)
            fetch_row(tau[i + 2], job)
    if i + 1 < jobs.shape[0]:
        asked = counts[i + 1, at.ASKED] + 1
        if asked < counts[i + 1, at.TO_ASK]:
            job = order[i + 1, asked]
            fetch_row(survival[i + 1], int(jobs[i + 1, job, at.DISTRIBUTION]))


@lean_kernel
def mask_all(
    sites: Ints, configs: Ints, room: Ints, tau: Floats, counts: Ints, order: Ints, masks: Mask
) -> None:  # fmt: skip
    """Write what can be placed now in every environment to `masks`, (N, 1 + C); `sites` are the rows of `configs`."""
    for i in range(masks.shape[0]):
        asked = counts[i, at.ASKED]
        if asked < counts[i, at.TO_ASK]:
            write_mask(configs[sites[i]], room[i], tau[i], order[i, asked], masks[i])
        else:
            masks[i, 1:] = 0
            masks[i, 0] = 1
