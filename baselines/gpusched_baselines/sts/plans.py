"""The plans of STS: the exact single-job problem on every GPU type."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.planning.hull import lower_hull
from gpusched_baselines.planning.plan import LATE, SHORTEST_SEGMENT, SLACK, solve
from gpusched_baselines.sts.decision import COST, FIRST, PLAN_COLUMNS, WAKE
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import curve_of

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


class Scratch(NamedTuple):
    """What a round's plans are made in.

    Attributes:
        members: Configurations of a GPU type, (C,).
        hull: Those of them on the hull, (C,).
        points: Seconds and cost per epoch of the members, then of the hull, (4, C).
        starts: Epochs at which the hull's points start, (C + 1,).
        plans: How the plan of each GPU type begins, (V, PLAN_COLUMNS).
    """

    members: Ints
    hull: Ints
    points: Floats
    starts: Floats
    plans: Floats


@kernel
def new_scratch(board: Board) -> Scratch:
    """Make the scratch of a round."""
    size, types = board.facts.configs.shape[0], board.room.shape[0]
    indices = np.empty((2, size), dtype=np.int64)
    return Scratch(indices[0], indices[1], np.empty((4, size)), np.empty(size + 1), np.empty((types, PLAN_COLUMNS)))


@kernel
def plan_types(board: Board, job: int, least: int, published: bool, scratch: Scratch) -> None:
    """Solve every GPU type over its configurations of at least the size `least`; write `scratch.plans`."""
    for v in range(scratch.plans.shape[0]):
        cost, first, wake = _plan_type(board, job, v, least, published, scratch)
        scratch.plans[v, COST], scratch.plans[v, FIRST], scratch.plans[v, WAKE] = cost, first, wake


@kernel
def _plan_type(
    board: Board, job: int, gpu_type: int, least: int, published: bool, scratch: Scratch
) -> tuple[float, int, float]:
    """Solve one GPU type: expected cost [€], first configuration (-1 if the due date is missed), wake-up [s]."""
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    points = _hull_of_type(board, job, gpu_type, least, scratch)
    if points == 0:
        return np.inf, -1, np.inf
    largest, done, starts = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS], scratch.starts[: points + 1]
    seconds, price, time_left = scratch.points[2, :points], scratch.points[3, :points], jobs[job, at.DUE] - now
    status, cost = solve(seconds, price, curve_of(board, job), done, largest, time_left, starts)
    if status == LATE:
        return np.inf, -1, np.inf
    if status == SLACK and published:
        cost = 0.0
    k = 0
    while starts[k + 1] < largest and starts[k + 1] - done < SHORTEST_SEGMENT * largest:
        k += 1
    config = scratch.members[scratch.hull[k]]
    wake = np.inf
    if starts[k + 1] < largest:
        restarts = config != int(jobs[job, at.OLD_CONFIG]) and not np.isnan(jobs[job, at.START_S])
        wake = now + (starts[k + 1] - done) * tau[job, config]
        wake += jobs[job, at.RESTART_S] if restarts else 0.0
    return cost, config, wake


@kernel
def _hull_of_type(board: Board, job: int, gpu_type: int, least: int, scratch: Scratch) -> int:
    """Write the hull of a GPU type's configurations to `scratch`; return how many points it has."""
    configs, points = board.facts.configs, scratch.points
    n = 0
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == gpu_type and configs[c, at.CONFIG_SIZE] >= least:
            scratch.members[n] = c
            points[0, n] = board.tau[job, c]
            points[1, n] = board.planning_rate[c] * points[0, n]
            n += 1
    found = lower_hull(points[0, :n], points[1, :n], scratch.hull)
    for k in range(found):
        points[2, k], points[3, k] = points[0, scratch.hull[k]], points[1, scratch.hull[k]]
    return found
