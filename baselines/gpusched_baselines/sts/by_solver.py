"""STS with a solver that is no kernel: the decisions of the compiled path, plan by plan in Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines.planning.cheapest import any_room, cheapest_fitting
from gpusched_baselines.planning.plan import SHORTEST_SEGMENT
from gpusched_baselines.planning.single_job import SingleJobProblem
from gpusched_baselines.sts.memory import BETTER, better_type_has_room
from gpusched_env.model import EpochDistribution
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import fits, place

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.planning.single_job_plan import Plan
    from gpusched_baselines.solvers.fallback import SingleJobSolver
    from gpusched_env.simulator import View


class _Start(NamedTuple):
    """How the plan of a GPU type begins: expected cost [€], configuration (-1: it misses the due date), wake-up [s]."""

    cost_eur: float = np.inf
    config: int = -1
    wake_s: float = np.inf


@dataclass(frozen=True, slots=True)
class StsBySolver:
    """One round of STS; what it does is written down at `Sts`.

    Args:
        view: The present state.
        solver: Solves single-job problems; must always answer.
        published: Whether a type whose cheapest configuration meets the due date ranks at cost 0.
    """

    view: View
    solver: SingleJobSolver
    published: bool

    def decide(self, order: NDArray[np.int64]) -> None:
        """Place the jobs of the round in `order`."""
        view = self.view
        for job in order.tolist():
            config = self.choose(job)
            if config >= 0:
                place(view.jobs, view.nodes, view.configs, view.room, job, config)

    def choose(self, job: int) -> int:
        """Choose the configuration of one job, and set its wake-up."""
        view = self.view
        if not any_room(view.room):
            view.jobs[job, at.WAKE_S] = -np.inf
            return -1
        held = int(view.jobs[job, at.OLD_CONFIG])
        due_to_wake = False
        least = 1
        if held >= 0:
            least = int(view.configs[held, at.CONFIG_SIZE])
            follows_plan = view.jobs[job, at.WAKE_S] > view.now_s
            due_to_wake = not follows_plan and view.jobs[job, at.WAKE_S] > -np.inf
            stays = follows_plan and fits(view.configs, view.room, held)
            if stays and not better_type_has_room(view.configs, view.room, view.memory, job):
                return held
        config = self._best_plan(job, least + 1) if due_to_wake else -1
        if config < 0:
            config = self._best_plan(job, least)
        if config < 0:
            view.jobs[job, at.WAKE_S] = -np.inf
            config = cheapest_fitting(view.jobs, view.configs, view.room, view.tau, view.planning_rate, view.now_s, job)
        return config

    def _best_plan(self, job: int, least: int) -> int:
        """Solve every GPU type over configurations of at least the size `least`; take the cheapest that fits now."""
        view = self.view
        starts = [self._plan_type(job, v, least) for v in range(len(view.room))]
        best = _Start()
        for start in starts:
            cheaper = best.config < 0 or start.cost_eur < best.cost_eur
            if cheaper and start.config >= 0 and fits(view.configs, view.room, start.config):
                best = start
        if best.config < 0:
            return -1
        for v, start in enumerate(starts):
            view.memory[job, BETTER + v] = start.config + 1 if start.cost_eur < best.cost_eur else 0.0
        view.jobs[job, at.WAKE_S] = best.wake_s
        return best.config

    def _plan_type(self, job: int, gpu_type: int, least: int) -> _Start:
        """Solve one GPU type."""
        view = self.view
        own = (view.configs[:, at.CONFIG_TYPE] == gpu_type) & (view.configs[:, at.CONFIG_SIZE] >= least)
        members = np.flatnonzero(own & np.isfinite(view.tau[job]))
        if not len(members):
            return _Start()
        tau = view.tau[job, members]
        largest = float(view.jobs[job, at.MAX_EPOCHS])
        done = min(float(view.jobs[job, at.EPOCHS]), float(np.nextafter(largest, 0.0)))  # all but done is not done
        price, time_left = view.planning_rate[members] * tau, float(view.jobs[job, at.DUE]) - view.now_s
        plan = self.solver(SingleJobProblem(tau, price, _distribution(view, job), largest, time_left, done))
        if plan.status == "late":
            return _Start()
        cost = 0.0 if plan.status == "slack" and self.published else plan.expected_cost_eur
        return self._start(plan, cost, members, job)

    def _start(self, plan: Plan, cost_eur: float, members: NDArray[np.int64], job: int) -> _Start:
        """Take the first segment of `plan` that is long enough, and when it ends."""
        jobs = self.view.jobs
        largest, done = float(jobs[job, at.MAX_EPOCHS]), float(jobs[job, at.EPOCHS])
        for segment in plan.segments[:-1]:
            if segment.end_epoch < largest and segment.end_epoch - done >= SHORTEST_SEGMENT * largest:
                config = int(members[segment.configuration])
                restarts = config != int(jobs[job, at.OLD_CONFIG]) and not np.isnan(jobs[job, at.START_S])
                wake = self.view.now_s + (segment.end_epoch - done) * self.view.tau[job, config]
                return _Start(cost_eur, config, wake + (jobs[job, at.RESTART_S] if restarts else 0.0))
        return _Start(cost_eur, int(members[plan.segments[-1].configuration]))


def _distribution(view: View, job: int) -> EpochDistribution:
    """Give what is known of the epochs that `job` needs, without the table's padding."""
    row = int(view.jobs[job, at.DISTRIBUTION])
    edges = view.distributions.edges[row]
    bins = int(np.argmax(edges >= 1.0))
    return EpochDistribution(edges[: bins + 1], view.distributions.survival[row, :bins])
