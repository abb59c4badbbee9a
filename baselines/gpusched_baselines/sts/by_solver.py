"""The plans of STS by a solver that is no kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.cheapest import cheapest_fitting
from gpusched_baselines.planning.plan import SHORTEST_SEGMENT
from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.sts.decision import LATE_RANK, look, take_best
from gpusched_env.model import EpochDistribution
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.planning.single_job import Plan
    from gpusched_baselines.solvers.fallback import SingleJobSolver
    from gpusched_env.simulator import View

NO_PLAN = (np.inf, -1, np.inf)
"""The row of a GPU type on which the due date is missed."""


def choose_by_solver(
    view: View, job: int, published: bool, restarts_small: bool, solver: SingleJobSolver
) -> tuple[int, float]:
    """Choose the configuration, -1 to wait, and the wake-up [s], NaN to keep it, of one job.

    Args:
        view: The present state.
        job: The job's index.
        published: Whether a type whose cheapest configuration meets the due date ranks at cost 0, and one that misses
            it, with its fastest configuration, at `LATE_RANK`.
        restarts_small: Whether a job that waits may take fewer GPUs than it last held.
        solver: Solves single-job problems; must always answer.
    """
    config, wake, least, speeds_up = look(view.board, job, restarts_small)
    if least == 0:
        return config, wake
    for size in (least + 1, least) if speeds_up else (least,):
        plans = np.array([_plan_type(view, job, v, size, published, solver) for v in range(len(view.room))])
        config, wake = take_best(view.board, job, plans)
        if config >= 0:
            return config, wake
    return cheapest_fitting(view.board, view.board.planning_rate, job), -np.inf


def _plan_type(
    view: View, job: int, gpu_type: int, least: int, published: bool, solver: SingleJobSolver
) -> tuple[float, int, float]:
    """Solve one GPU type: the row of `plans`."""
    own = (view.configs[:, at.CONFIG_TYPE] == gpu_type) & (view.configs[:, at.CONFIG_SIZE] >= least)
    members = np.flatnonzero(own & np.isfinite(view.tau[job]))
    if not len(members):
        return NO_PLAN
    tau = view.tau[job, members]
    largest = float(view.jobs[job, at.MAX_EPOCHS])
    done = min(float(view.jobs[job, at.EPOCHS]), float(np.nextafter(largest, 0.0)))  # all but done is not done
    price, time_left = view.planning_rate[members] * tau, float(view.jobs[job, at.DUE]) - view.now_s
    plan = solver(SingleJobProblem(tau, price, _distribution(view, job), largest, time_left, done))
    if plan.status == "late":
        return (LATE_RANK, int(members[plan.segments[-1].configuration]), np.inf) if published else NO_PLAN
    cost = 0.0 if plan.status == "slack" and published else plan.expected_cost_eur
    return cost, *_start(view, job, plan, members)


def _start(view: View, job: int, plan: Plan, members: NDArray[np.int64]) -> tuple[int, float]:
    """Take the first segment of `plan` that is long enough, and when it ends [s]."""
    jobs = view.jobs
    largest, done = float(jobs[job, at.MAX_EPOCHS]), float(jobs[job, at.EPOCHS])
    for segment in plan.segments[:-1]:
        if segment.end_epoch < largest and segment.end_epoch - done >= SHORTEST_SEGMENT * largest:
            config = int(members[segment.configuration])
            wake = view.now_s + (segment.end_epoch - done) * view.tau[job, config]
            return config, wake + switch_s(view.board, job, config)
    return int(members[plan.segments[-1].configuration]), np.inf


def _distribution(view: View, job: int) -> EpochDistribution:
    """Give what is known of the epochs that `job` needs, without the table's padding."""
    edges = view.edges[int(view.jobs[job, at.EDGES])]
    bins = int(np.argmax(edges >= 1.0))
    return EpochDistribution(edges[: bins + 1], view.survival[int(view.jobs[job, at.DISTRIBUTION]), :bins])
