"""The plans of STS: the exact single-job problem on every GPU type, and the last step of its round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.idle_gpus import give_left_shares
from gpusched_baselines.planning.cheapest import WORST_CASE, left_of_all
from gpusched_baselines.planning.plan import LATE, SLACK, find_hull, first_segment, solve_job
from gpusched_baselines.sts.decision import COST, FIRST, GIVEN, LATE_RANK, LEAST, WAKE
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.room import measure
from gpusched_env.simulator.placement.shared_gpus import slots
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_baselines.planning.plan import Scratch
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


@kernel
def plan_types(board: Board, job: int, least: int, published: bool, scratch: Scratch, plans: Floats) -> None:
    """Solve every GPU type over its configurations of at least the size `least`; write `plans`, (V, PLAN_COLUMNS).

    With `published` a type whose cheapest configuration meets the due date ranks at cost 0, and one that misses it,
    with its fastest configuration, at `LATE_RANK`; else the latter has no plan.
    """
    for v in range(plans.shape[0]):
        plans[v, COST], plans[v, FIRST], plans[v, WAKE] = _plan_type(board, job, v, least, published, scratch)


@kernel
def _plan_type(
    board: Board, job: int, gpu_type: int, least: int, published: bool, scratch: Scratch
) -> tuple[float, int, float]:
    """Solve one GPU type: expected cost [€], first configuration (-1 if the due date is missed), wake-up [s]."""
    jobs, configs = board.jobs, board.facts.configs
    members, size = scratch.members, 0
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == gpu_type and configs[c, at.CONFIG_SIZE] >= least:
            members[size], scratch.seconds[size] = c, board.tau[job, c]
            scratch.price[size] = board.planning_rate[c] * board.tau[job, c]
            size += 1
    points = find_hull(scratch.seconds[:size], scratch.price[:size], scratch)
    if points == 0:
        return np.inf, -1, np.inf
    status, cost = solve_job(board, job, points, jobs[job, at.DUE] - board.clock[at.NOW], scratch)
    if status == LATE:
        return (LATE_RANK, members[scratch.hull[points - 1]], np.inf) if published else (np.inf, -1, np.inf)
    k, wake = first_segment(board, job, scratch)
    config = members[scratch.hull[k]]
    wake += switch_s(board, job, config)
    return 0.0 if status == SLACK and published else cost, config, wake


@kernel
def finish(board: Board, order: Ints) -> None:
    """Give what is left of shared GPUs to the jobs of the round, `order`, and remember what each had chosen itself.

    A job keeps its own size as the least that it is planned with, so it may give back what it was given.
    """
    if slots(board) == 0:
        return
    jobs, memory, configs = board.jobs, board.memory, board.facts.configs
    own = np.empty(order.shape[0], dtype=np.int64)
    for i in range(order.shape[0]):
        own[i] = int(jobs[order[i], at.CONFIG])
    give_left_shares(board, order, left_of_all(board, order, WORST_CASE))
    measure(board)
    for i in range(order.shape[0]):
        held = int(jobs[order[i], at.CONFIG])
        memory[order[i], GIVEN] = held + 1 if held != own[i] else 0
        if held != own[i]:
            memory[order[i], LEAST] = configs[own[i], at.CONFIG_SIZE]
