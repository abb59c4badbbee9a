"""One round of STS-X: who runs now, on what, and who waits until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.planning.first_segment import Scratch, new_scratch
from gpusched_baselines.planning.plan import SLACK
from gpusched_baselines.search.solution import HELD, keep, restore
from gpusched_baselines.sts_x.plan import plan_job, price_out
from gpusched_baselines.sts_x.spread import spread
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import (
    fits,
    forget_place,
    keeps_config,
    moves_on,
    place,
    would_restart,
)
from gpusched_env.simulator.placement.room import clear, measure
from gpusched_env.simulator.sorting import ranked_in_groups

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints, Mask
    from gpusched_env.simulator.run import Board

# Columns of the policy's memory of a job.
ROUND = 0  # round that the other columns are of
PLANNED = 1  # configuration that it shall get in this round, -1 for none
LEAVES = 2  # 1 if it shall not come back to its previous place
WAKE = 3  # its wake-up [s]

START_MARGIN = 0.01  # a job that waits starts when its slack has fallen to this part of its worst-case time
WORTH_A_RESTART = 0.9  # a job changes over to what costs at most this part of what it has, restart included
KEEP_MARGIN = 0.03  # one that runs is no longer interrupted below this: between the two it goes on as it is

# The order in which a round places its jobs: in groups, and by a key within a group.
MUST_BE_LATE, URGENT_IN_PLACE, URGENT, CALM_RUNNING, CALM = range(5)


class Plans(NamedTuple):
    """The plans of the active jobs, a row for each.

    Attributes:
        jobs: The jobs, (A,).
        seconds: Seconds per epoch of every configuration, restart included, (A, C).
        price: Cost per epoch [€], likewise, (A, C).
        first: What each begins with, (A,).
        wake: When it wakes up [s], (A,).
        urgent: 1 if it must run now, (A,).
        group: Its group in the order, (A,).
        key: Its key there, (A,).
    """

    jobs: Ints
    seconds: Floats
    price: Floats
    first: Ints
    wake: Floats
    urgent: Mask
    group: Ints
    key: Floats


@kernel
def plan_round(board: Board, rate: Floats, waits: bool, consolidates: bool, spreads: bool, smith: bool) -> None:
    """Plan the round on an empty cluster; write what every job shall get to `memory`, and nothing else.

    A job whose cheapest configuration would still meet the due date later is *calm*: it runs if that takes no other
    node than those that are on, or if calm jobs can fill another one; else it waits, and wakes up when its slack ends.
    Every other job is *urgent*: it runs now as its plan says, or as a plan over what still fits does. A calm job that
    runs, and would have to restart, is not interrupted.

    Args:
        rate: Cost rates to plan with [€/s], (C,).
        waits: Whether jobs with slack may wait.
        consolidates: Whether jobs leave nodes that the round can do without.
        spreads: Whether idle GPUs of nodes that are on are given to jobs there.
        smith: Whether jobs that must be late go first, by Smith's rule.
    """
    active, jobs = board.active[: board.count[at.ACTIVE]], board.jobs
    scratch = new_scratch(board.facts.configs.shape[0])
    plans = _plan_jobs(board, rate, waits, smith, scratch)
    held, kept, homes = np.empty((active.shape[0], HELD)), np.empty_like(board.nodes), np.empty((active.shape[0], 2))
    keep(board, active, held, kept)
    for i in range(active.shape[0]):
        homes[i, 0], homes[i, 1] = jobs[active[i], at.HOME], jobs[active[i], at.HOME_SLOT]
    clear(board, active)
    _place_jobs(board, plans, consolidates, scratch)
    if spreads:
        spread(board, active)
    for i in range(active.shape[0]):
        _remember(board, active[i], plans.wake[i])
        jobs[active[i], at.HOME], jobs[active[i], at.HOME_SLOT] = homes[i, 0], homes[i, 1]
    restore(board, active, held, kept)
    measure(board)


@kernel
def _plan_jobs(board: Board, rate: Floats, waits: bool, smith: bool, scratch: Scratch) -> Plans:
    """Plan every active job, and rank them."""
    active, size = board.active[: board.count[at.ACTIVE]], board.facts.configs.shape[0]
    total = active.shape[0]
    plans = Plans(
        active,
        np.empty((total, size)),
        np.empty((total, size)),
        np.empty(total, dtype=np.int64),
        np.empty(total),
        np.zeros(total, dtype=np.int8),
        np.empty(total, dtype=np.int64),
        np.empty(total),
    )
    for i in range(total):
        seconds, price = plans.seconds[i], plans.price[i]
        price_out(board, rate, active[i], seconds, price)
        status, plans.first[i], plans.wake[i] = plan_job(board, active[i], seconds, price, scratch)
        plans.urgent[i] = 0 if waits and status == SLACK else 1
        _rank(board, plans, i, smith)
    return plans


@kernel
def _place_jobs(board: Board, plans: Plans, consolidates: bool, scratch: Scratch) -> None:
    """Place the jobs as planned on the empty cluster, in their order."""
    configs, room, first = board.facts.configs, board.room, plans.first
    demand = np.zeros(room.shape[0])  # GPUs that calm jobs want and do not have yet, by type
    for i in range(first.shape[0]):
        gpus = configs[first[i], at.CONFIG_SIZE] / at.UNITS
        demand[configs[first[i], at.CONFIG_TYPE]] += (1 - plans.urgent[i]) * gpus
    for i in ranked_in_groups(plans.group, plans.key):
        job, v = plans.jobs[i], configs[first[i], at.CONFIG_TYPE]
        if plans.urgent[i] == 1:
            if not _put(board, job, first[i], True, consolidates):
                plans.wake[i] = _put_what_fits(board, plans, i, consolidates, scratch)
            continue
        opens = demand[v] >= room[v, at.LARGEST] or keeps_config(board, job, first[i])
        if _put(board, job, first[i], opens, consolidates):
            plans.wake[i] = np.inf
        elif would_restart(board, job):  # rather than wait for something better, it goes on as it is
            _put(board, job, int(board.jobs[job, at.OLD_CONFIG]), True, consolidates)
        demand[v] -= configs[first[i], at.CONFIG_SIZE] / at.UNITS


@kernel
def _remember(board: Board, job: int, wake: float) -> None:
    """Write what the job shall get."""
    jobs, memory = board.jobs, board.memory
    memory[job, ROUND], memory[job, PLANNED] = board.count[at.ROUND], jobs[job, at.CONFIG]
    memory[job, LEAVES] = 1.0 if jobs[job, at.HOME] != jobs[job, at.OLD_NODE] else 0.0
    memory[job, WAKE] = wake


@kernel
def _rank(board: Board, plans: Plans, i: int, smith: bool) -> None:
    """Tell whether the job is calm after all, what it begins with and when it wakes up, and its place in the order.

    Jobs that must be late come first, by Smith's rule (time left over weight), then urgent ones and calm ones, each by
    slack. Of jobs that restarts cost something, those that run come before the others.
    """
    jobs, now, job = board.jobs, board.clock[at.NOW], plans.jobs[i]
    left, time_left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], jobs[job, at.DUE] - now
    if plans.urgent[i] == 0:
        held = int(jobs[job, at.OLD_CONFIG])
        in_time = would_restart(board, job) and left * plans.seconds[i, held] < time_left
        if in_time and plans.price[i, plans.first[i]] > WORTH_A_RESTART * plans.price[i, held]:
            plans.first[i] = held
        worst = left * plans.seconds[i, plans.first[i]]
        slack = time_left - worst
        plans.urgent[i] = 1 if slack <= (KEEP_MARGIN if held >= 0 else START_MARGIN) * worst else 0
        plans.wake[i] = now + slack - 0.999 * START_MARGIN * worst if plans.urgent[i] == 0 else np.inf
        plans.key[i], plans.group[i] = slack, CALM_RUNNING if would_restart(board, job) else CALM
    if plans.urgent[i] == 1:
        fastest = left * jobs[job, at.MIN_TAU]
        plans.key[i] = time_left - fastest
        plans.group[i] = URGENT_IN_PLACE if keeps_config(board, job, plans.first[i]) else URGENT
        if smith and time_left < fastest and jobs[job, at.WEIGHT] > 0.0:
            plans.key[i], plans.group[i] = fastest / jobs[job, at.WEIGHT], MUST_BE_LATE


@kernel
def _put_what_fits(board: Board, plans: Plans, i: int, consolidates: bool, scratch: Scratch) -> float:
    """Plan an urgent job over what fits now, place it, and return its wake-up; inf if nothing fits."""
    possible = scratch.seconds
    for c in range(possible.shape[0]):
        possible[c] = plans.seconds[i, c] if fits(board, c) else np.inf
    _, config, wake = plan_job(board, plans.jobs[i], possible, plans.price[i], scratch)
    if config < 0:
        return np.inf
    _put(board, plans.jobs[i], config, True, consolidates)
    return wake


@kernel
def _put(board: Board, job: int, config: int, may_open: bool, consolidates: bool) -> bool:
    """Place a job, on a node that is on if there is one with room, on another one only with `may_open`."""
    if not fits(board, config):
        return False
    opening, leaves = moves_on(board, job, config)
    if opening and not may_open:
        return False
    if leaves and consolidates:
        forget_place(board, job)
    return place(board, job, config)
