"""One call for many environments: each decides, runs to its next round, and is observed."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpusched_env.arrays import Floats, Ints, Mask, Singles
from gpusched_env.envs.vector.prefetch import prefetch_lines
from gpusched_env.envs.vector.work_queue import (
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
from gpusched_env.kernel import lean_kernel, unlocked_kernel
from gpusched_env.named_arrays import element_like, element_of
from gpusched_env.observation.groups import write_groups
from gpusched_env.observation.notes import Notes
from gpusched_env.observation.observe import observe, write_mask
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.rounds import decide
from gpusched_env.simulator.run import Board, Hidden

LOOK = -1  # in place of an action: the environment is observed, and nothing happens in it
SKIP = -2  # the same, without the observation
OPENED = -1  # thread 0, after it has opened the step
PATIENCE = 5_000  # times that a worker looks for a new round without success before it stops: some 100 µs

# money: float64 (MONEY_ROWS, N).
TIME, PASSED, ENERGY, TARDINESS, TOTAL_ENERGY, TOTAL_TARDINESS, CO2 = range(7)
MONEY_ROWS = 7


class Seen(NamedTuple):
    """What a call writes, a row per environment.

    Attributes:
        job, options, cluster, queue, jobs: The observations, (N, ...).
        mask: What can be placed now, (N, 1 + C).
        money: The present time [s], how far the step moved it [s], the energy and tardiness costs of the step and of
            the episode [€], and the CO2 of the step [kg], (MONEY_ROWS, N).
        current_job: The current job, -1 at the end, (N,).
        idle: Events in a row at which nothing ran and nothing was to come, (N,).
        prices, cap, limits: The groups of the observations, (N, ...); (N, 0) or (N, 0, ...) without one.
    """

    job: Singles
    options: Singles
    cluster: Singles
    queue: Singles
    jobs: Singles
    mask: Mask
    money: Floats
    current_job: Ints
    idle: Ints
    prices: Singles
    cap: Singles
    limits: Singles


class Handles(NamedTuple):
    """Where kernels find the runs (`named_arrays`), a handle per environment."""

    boards: Ints
    hidden: Ints
    notes: Ints


# Kernels get these as plain tuples: beside a compiled function Numba stores the types of its arguments, and would not
# find a class there that has moved since.

hidden_at, notes_at = element_of(Hidden), element_of(Notes)


@unlocked_kernel
def work(
    thread: int, queue: Ints, actions: Ints, seen: tuple[Any, ...], handles: Handles, invalid: Ints, like: Board
) -> None:
    """Do a thread's part of a step: apply the actions, count those that cannot be placed, and observe.

    Thread 0 opens the step with `actions` and `seen`, unless it has before and calls itself `OPENED`, and returns when
    all environments are done, or another thread has failed. Other threads help in one step after the other, and return
    when none has begun for a moment; they read only the shapes of `actions` and `seen`. All boards are of the build of
    `like`.
    """
    if thread == 0:
        open_step(queue, actions, seen)
    thread = max(thread, 0)
    size, idle, number = invalid.shape[0], 0, load(queue, ROUND, 0)
    while thread == 0 or (idle < PATIENCE and load(queue, STOP, 0) == 0):
        first = take(queue, thread, size) if idle == 0 else -1
        if first >= 0:
            last = chunk_end(queue, first, size)
            where = queue[PLACES]
            step_some(
                first, last, elsewhere(actions, where[0]), (
                    elsewhere(seen[0], where[1]), elsewhere(seen[1], where[2]), elsewhere(seen[2], where[3]),
                    elsewhere(seen[3], where[4]), elsewhere(seen[4], where[5]), elsewhere(seen[5], where[6]),
                    elsewhere(seen[6], where[7]), elsewhere(seen[7], where[8]), elsewhere(seen[8], where[9]),
                    elsewhere(seen[9], where[10]), elsewhere(seen[10], where[11]), elsewhere(seen[11], where[12]),
                ), handles, invalid, like,
            )  # fmt: skip
            add(queue, DONE, 0, last - first)
        elif thread == 0:
            if load(queue, DONE, 0) == size or load(queue, FAILED, 0) != 0:
                return
            relax()
        elif load(queue, ROUND, 0) != number:
            idle, number = 0, load(queue, ROUND, 0)
        else:
            idle += 1
            relax()


@lean_kernel
def open_step(queue: Ints, actions: Ints, seen: tuple[Any, ...]) -> None:
    """Write the addresses of actions and observations, and open the round: workers that are awake begin."""
    where = queue[PLACES]
    where[0] = actions.ctypes.data
    where[1] = seen[0].ctypes.data
    where[2] = seen[1].ctypes.data
    where[3] = seen[2].ctypes.data
    where[4] = seen[3].ctypes.data
    where[5] = seen[4].ctypes.data
    where[6] = seen[5].ctypes.data
    where[7] = seen[6].ctypes.data
    where[8] = seen[7].ctypes.data
    where[9] = seen[8].ctypes.data
    where[10] = seen[9].ctypes.data
    where[11] = seen[10].ctypes.data
    where[12] = seen[11].ctypes.data
    open_round(queue)


@lean_kernel
def step_some(
    first: int, last: int, actions: Ints, seen: tuple[Any, ...], handles: Handles, invalid: Ints, like: Board
) -> None:
    """Step the environments `first` to `last` - 1."""
    boards, hidden, notes = handles
    job, options, cluster, queue, jobs, mask, money, current_job, idle, prices, cap, limits = seen
    for i in range(first, last):
        if actions[i] == SKIP:
            continue
        prefetch_lines(boards, notes, i, like)
        board = element_like(like, boards, i)
        clock = board.clock
        before, costs = clock[at.NOW], (0.0, 0.0, 0.0)
        if actions[i] != LOOK and not decide(board, hidden_at(hidden, i), actions[i]):
            invalid[i] += 1
        observe(board, notes_at(notes, i), job[i], options[i], cluster[i], queue[i], jobs[i], mask[i])
        if prices.shape[1] + cap.shape[1] + limits.shape[1] > 0:
            write_groups(board, notes_at(notes, i), prices[i], cap[i], limits[i])
        current_job[i] = _current_job(board)
        idle[i] = board.count[at.IDLE]
        if actions[i] != LOOK:
            costs = _take_costs(clock)
        money[TIME, i] = clock[at.NOW]
        money[PASSED, i] = clock[at.NOW] - before
        money[ENERGY, i], money[TARDINESS, i], money[CO2, i] = costs
        money[TOTAL_ENERGY, i] = clock[at.BILL]
        money[TOTAL_TARDINESS, i] = clock[at.TARDINESS_COST]


@lean_kernel
def _take_costs(clock: Floats) -> tuple[float, float, float]:
    energy, tardiness = clock[at.BILL] - clock[at.PAID_EUR], clock[at.TARDINESS_COST] - clock[at.PAID_TARDINESS]
    co2 = clock[at.CO2_KG] - clock[at.PAID_KG]
    clock[at.PAID_EUR], clock[at.PAID_TARDINESS] = clock[at.BILL], clock[at.TARDINESS_COST]
    clock[at.PAID_KG] = clock[at.CO2_KG]
    return energy, tardiness, co2


@lean_kernel
def mask_all(boards: Ints, masks: Mask, like: Board) -> None:
    """Write what can be placed now in every environment to `masks`, (N, 1 + C)."""
    for i in range(masks.shape[0]):
        board = element_like(like, boards, i)
        job = _current_job(board)
        if job >= 0:
            write_mask(board, job, masks[i])
        else:
            masks[i, 1:] = 0
            masks[i, 0] = 1


@lean_kernel
def write_all_current(boards: Ints, current_job: Ints, like: Board) -> None:
    for i in range(current_job.shape[0]):
        current_job[i] = _current_job(element_like(like, boards, i))


@lean_kernel
def write_left(boards: Ints, left: Floats, like: Board) -> None:
    """Write the share of its jobs that are not done in every environment to `left`, (N,)."""
    for i in range(left.shape[0]):
        board = element_like(like, boards, i)
        left[i] = 1.0 - board.count[at.DONE] / board.jobs.shape[0]


@lean_kernel
def _current_job(board: Board) -> int:
    asked = board.count[at.ASKED]
    return board.order[asked] if asked < board.count[at.TO_ASK] else -1
