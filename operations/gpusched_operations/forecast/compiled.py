"""Whole rollouts in one compiled call, for policies whose rounds are kernels; others decide from Python.

Each kernel runs from an open round until the jobs that were there are over, or a time, and does in every round what
`decide` of its policy does. It lets other threads run meanwhile. It returns whether the policy stalled.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, dispatch
from gpusched_baselines.index_rules.policy import IndexRule, place_by_index
from gpusched_baselines.index_rules.ranks import Rule
from gpusched_baselines.planning.cheapest import ESTIMATE, any_capacity, left_of_all, with_co_runners
from gpusched_baselines.sts import Sts, finish, place_by_plans
from gpusched_baselines.sts_x.job_plan import PlanOptions
from gpusched_baselines.sts_x.plan import unadapted
from gpusched_baselines.sts_x.policy import StsX, execute_plan, plan_round
from gpusched_env.kernel import kernel, threaded_kernel
from gpusched_env.simulator import Board, Hidden
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy_run import MOST_IDLE_EVENTS, MOST_IDLE_S
from gpusched_env.simulator.rounds import NAMED_ORDERS, order_by
from gpusched_env.simulator.stepping import accrue, advance, begin_round, commit_round, next_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import Policy

    Run: TypeAlias = Callable[[Board, Hidden, Ints, float], bool]

OVER, STALLED, GOES_ON = range(3)


def compiled_run(policy: Policy, board: Board) -> Run | None:
    """Return the kernel that runs a policy from an open round, with its settings; None if there is none.

    Args:
        board: The board of the run: with shares STS-X plans in Python, and index rules where jobs slow others down.
    """
    order = getattr(policy, "job_order", None)
    if not isinstance(order, str):
        return None
    number, alone = NAMED_ORDERS[order], with_co_runners(board) is board
    if type(policy) is DispatchPolicy:
        return partial(_run_dispatch, number, policy.preemption, ESTIMATE[policy.epochs])
    if type(policy) is Sts and policy.solver == "exact":
        return partial(_run_sts, number, (policy.rank == "published", policy.restarts_small, policy.postprocess))
    if type(policy) is IndexRule and alone:
        return partial(_run_index, number, policy.rule)
    if type(policy) is StsX and alone and not _plans_in_python(board):
        return partial(_run_sts_x, number, policy.options, policy.rates(board))
    return None


def _plans_in_python(board: Board) -> bool:
    """Whether STS-X needs Python: for rates of shares, for power limits under a cap, for plans by price."""
    shares = bool((board.facts.configs[:, at.CONFIG_UNITS] > 0).any())
    return shares or board.clock[at.CAP_KW] < np.inf or bool(board.has_prices and len(board.prices))


@threaded_kernel
def _run_dispatch(
    order: int, preemption: bool, estimate: int, board: Board, hidden: Hidden, present: Ints, until: float
) -> bool:
    state = GOES_ON
    while state == GOES_ON:
        if any_capacity(board):
            order_by(board, order, not preemption)
            asked = board.order[: board.count[at.TO_ASK]]
            dispatch(board, asked, left_of_all(board, asked, estimate))
        state = to_next_round(board, hidden, present, preemption, until)
    return state == STALLED


@threaded_kernel
def _run_sts(
    order: int, settings: tuple[bool, bool, bool], board: Board, hidden: Hidden, present: Ints, until: float
) -> bool:
    state = GOES_ON
    while state == GOES_ON:
        order_by(board, order, False)
        asked = board.order[: board.count[at.TO_ASK]]
        place_by_plans(board, asked, settings[0], settings[1])
        if settings[2]:
            finish(board, asked)
        state = to_next_round(board, hidden, present, True, until)
    return state == STALLED


@threaded_kernel
def _run_index(order: int, rule: Rule, board: Board, hidden: Hidden, present: Ints, until: float) -> bool:
    state = GOES_ON
    while state == GOES_ON:
        order_by(board, order, False)
        place_by_index(board, board.order[: board.count[at.TO_ASK]], rule)
        state = to_next_round(board, hidden, present, True, until)
    return state == STALLED


@threaded_kernel
def _run_sts_x(
    order: int, options: PlanOptions, rate: Floats, board: Board, hidden: Hidden, present: Ints, until: float
) -> bool:
    state = GOES_ON
    while state == GOES_ON:
        plan_round(board, options, unadapted(board.count[at.ACTIVE], rate))
        order_by(board, order, False)
        execute_plan(board, board.order[: board.count[at.TO_ASK]])
        state = to_next_round(board, hidden, present, True, until)
    return state == STALLED


@kernel
def to_next_round(board: Board, hidden: Hidden, present: Ints, preemption: bool, until: float) -> int:
    """Close the round, run to the next one, and open it.

    Returns:
        `GOES_ON`; `OVER` if the jobs are over or it is time; or `STALLED` if jobs wait for ever (see `simulate`).
    """
    jobs, clock, count = board.jobs, board.clock, board.count
    commit_round(board, hidden)
    while True:
        time = next_event(board, hidden)
        if time == np.inf:
            time = clock[at.NOW] + clock[at.IDLE_REVIEW]
        if time > until:
            accrue(board, hidden, until)
            return OVER
        done = count[at.DONE]
        if not advance(board, hidden):
            return OVER
        if clock[at.NOW] - clock[at.LAST_BUSY] > MOST_IDLE_S and count[at.IDLE] > MOST_IDLE_EVENTS:
            return STALLED
        if count[at.DONE] > done:
            over = True
            for job in present:
                over = over and not np.isnan(jobs[job, at.END_S])
            if over:
                return OVER
        if count[at.ACTIVE] > 0:
            begin_round(board, preemption)
            return GOES_ON
