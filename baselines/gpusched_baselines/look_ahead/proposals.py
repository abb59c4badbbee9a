"""What else a round could decide: the plans of other policies, and plans in which one job is told what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.index_rules.round import plan_round as plan_by_index
from gpusched_baselines.look_ahead.roll_out import CONFIG, WAKE, write_choice
from gpusched_baselines.look_ahead.stage import reset
from gpusched_baselines.sts_x import steering as of
from gpusched_baselines.sts_x.round import plan_round
from gpusched_baselines.sts_x.steering import unsteered
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_baselines.look_ahead.roll_out import Base
    from gpusched_baselines.look_ahead.stage import Stage
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board

PATIENCE = 0.05  # for how long a job is told to wait, of the time that it is expected to run yet
PLANNED = [of.PLANNED, of.NODE, of.GPU, of.WAKE]  # the columns of memory that a plan is read from
REMEMBERED = slice(of.ROUND + 1, None)  # those of what is known of a job; 0 for nothing


class Order(NamedTuple):
    """What a job is told: the only configuration that it may have, -1 to wait."""

    job: int
    config: int


def plan_of(stage: Stage, rate: Floats, base: Base, order: Order | None = None) -> Floats:
    """Plan the round by a policy, while one job does as it is told.

    Args:
        stage: Where it is planned.
        rate: Cost rates to plan with [€/s], (C,).
        base: The policy.
        order: What the job is told; None if nobody is told anything.

    Returns:
        What every active job shall get, (A, PLAN_COLUMNS).
    """
    work, times = stage.work, stage.plan.tau
    reset(stage.start, work)
    size = int(work.count[at.ACTIVE])
    if order is None:
        _plan(stage.plan, rate, base)
    elif order.config < 0:
        work.active[order.job : size - 1] = stage.start.active[order.job + 1 : size]
        work.count[at.ACTIVE] = size - 1
        _plan(stage.plan, rate, base)
        work.memory[order.job, PLANNED] = -1.0, -1.0, -1.0, _wait_until(stage.start, order.job)
    else:
        own = times[order.job].copy()
        times[order.job] = np.where(np.arange(len(own)) == order.config, own, np.inf)
        work.memory[order.job, REMEMBERED] = 0.0
        _plan(stage.plan, rate, base)
        times[order.job] = own
    return work.memory[:size, PLANNED]


def _plan(board: Board, rate: Floats, base: Base) -> None:
    """Plan as `plan_by` does, through the kernels that the policies themselves call."""
    if not base.by_index:
        plan_round(board, base.parts, unsteered(board.count[at.ACTIVE], rate))
        return
    plan_by_index(board, base.rule)
    for job in board.active[: board.count[at.ACTIVE]].tolist():
        write_choice(board, base.rule, job)


def _wait_until(start: Board, job: int) -> float:
    """Give when a job that is told to wait is asked again [s]."""
    seconds = expected_left(start, job) * start.jobs[job, at.CHEAPEST_TAU]
    return float(start.clock[at.NOW] + max(1.0, PATIENCE * seconds))


@kernel
def worthwhile(board: Board, rate: Floats) -> Ints:
    """List what jobs may be told, rows of job and configuration, (n, 2): to wait, and what no other dominates.

    A configuration dominates another one if its epochs take at most as long and cost at most as much, and one of the
    two less; of equal ones the first does.
    """
    tau, size = board.tau, board.count[at.ACTIVE]
    found, n = np.empty((size * (tau.shape[1] + 1), 2), dtype=np.int64), 0
    for job in range(size):
        for c in range(-1, tau.shape[1]):
            if c < 0 or (tau[job, c] < np.inf and not _dominated(tau[job], rate, c)):
                found[n, 0], found[n, 1] = job, c
                n += 1
    return found[:n]


@kernel
def _dominated(seconds: Floats, rate: Floats, config: int) -> bool:
    own = rate[config] * seconds[config]
    for c in range(seconds.shape[0]):
        cost = rate[c] * seconds[c]
        if (
            c != config
            and seconds[c] <= seconds[config]
            and cost <= own
            and (seconds[c] < seconds[config] or cost < own or c < config)
        ):
            return True
    return False


def deviations(stage: Stage, rate: Floats, base: Base, own: Floats, most: int, rng: Generator) -> list[Floats]:
    """Draw plans that differ from the policy's own because one job is told what to do; all are different.

    Args:
        stage: Where they are planned.
        rate: Cost rates to plan with [€/s], (C,).
        base: The policy.
        own: Its own plan, (A, PLAN_COLUMNS).
        most: How many are drawn; those that come out the same count once.
        rng: Where chance comes from.
    """
    reset(stage.start, stage.work)
    orders = worthwhile(stage.plan, rate)
    orders = orders[own[orders[:, 0], CONFIG] != orders[:, 1]]
    known = [own]
    for job, config in orders[rng.permutation(len(orders))[:most]].tolist():
        plan = plan_of(stage, rate, base, Order(job, config))
        if not any(same_plan(plan, other) for other in known):
            known.append(plan)
    return known[1:]


def same_plan(one: Floats, other: Floats) -> bool:
    """Say whether two plans give every job the same in the same place."""
    return bool(np.array_equal(one[:, :WAKE], other[:, :WAKE]))
