"""A roll-out: a round is decided in one way, and what follows by a fixed policy, in one compiled call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.look_ahead.base import plan_by
from gpusched_baselines.look_ahead.rest import cost_of_rest
from gpusched_baselines.look_ahead.stage import reset
from gpusched_baselines.sts_x import memory as of
from gpusched_baselines.sts_x.policy import carry_out
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import accrue, advance, next_event
from gpusched_env.simulator.rounds import PRESSURE, begin_round, commit_round, order_by

if TYPE_CHECKING:
    from gpusched_baselines.look_ahead.base import Base
    from gpusched_baselines.look_ahead.stage import Stage
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board, Hidden

# What a plan says of a job of the round.
CONFIG, NODE, GPU, WAKE = range(4)
PLAN_COLUMNS = 4


@lean_kernel
def write_plan(board: Board, plan: Floats) -> None:
    """Write a plan of the active jobs, (A, PLAN_COLUMNS), to their memory."""
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        board.memory[job, of.ROUND] = board.count[at.ROUND]
        board.memory[job, of.PLANNED], board.memory[job, of.NODE] = plan[i, CONFIG], plan[i, NODE]
        board.memory[job, of.GPU], board.memory[job, of.WAKE] = plan[i, GPU], plan[i, WAKE]


@kernel
def roll_out(
    stage: Stage, fate: Floats, rate: Floats, first: Floats, base: Base, until: float, most: int
) -> tuple[float, float]:
    """Decide the round as `first` says, and those that follow by a policy.

    Args:
        stage: Where it is played.
        fate: What jobs need, and when those that run would be complete: drawn, (J, FATE_COLUMNS).
        rate: Cost rates to plan with [€/s], (C,).
        first: What every active job shall get in the round, (A, PLAN_COLUMNS).
        base: The policy.
        until: When it stops at the latest [s].
        most: After how many rounds it stops at the latest, ≥ 1.

    Returns:
        What it costs from now on, with an estimate of what is left at the end [€]; and when it stopped [s].
    """
    start, work, hidden = stage.start, stage.work, stage.hidden
    reset(start, work)
    hidden.fate[:, :] = fate
    write_plan(work, first)
    _decide(work, hidden)
    clock, rounds = work.clock, 1
    while rounds < most and _goes_on(work, hidden, until):
        if work.count[at.ACTIVE] > 0:
            begin_round(work, True)
            plan_by(stage.plan, rate, base)
            _decide(work, hidden)
            rounds += 1
    paid = clock[at.BILL] + clock[at.LATENESS] - start.clock[at.BILL] - start.clock[at.LATENESS]
    return paid + cost_of_rest(work, hidden, rate), clock[at.NOW]


@kernel
def _decide(board: Board, hidden: Hidden) -> None:
    order_by(board, PRESSURE, False)
    carry_out(board, board.order[: board.count[at.TO_ASK]])
    commit_round(board, hidden)


@kernel
def _goes_on(board: Board, hidden: Hidden, until: float) -> bool:
    """Run to the next event, or to the end if that comes first; return False at the end."""
    time, clock = next_event(board, hidden), board.clock
    if time > until:
        if until > clock[at.NOW]:
            accrue(board, until)
        return False
    if time == np.inf and board.count[at.ACTIVE] == 0:
        return False
    return advance(board, hidden)
