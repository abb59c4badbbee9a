"""The single-job solvers side by side: time, objective, and how often the optimum is missed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bursts import burst, hardest_burst
from benchmarks.figure import Figure
from gpusched_baselines import solve_single_job
from gpusched_baselines.solvers import SOLVER_NAMES, SolverFailedError, SolverMissingError, single_job_solver
from gpusched_env.model import planning_rate_eur_per_s

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_baselines import Plan
    from gpusched_env import EpochDistribution, Instance

MISSED = 1e-3  # an objective this much above the optimum, relative to it, misses the optimum


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A single-job problem on one GPU type, with its optimal cost [€]."""

    seconds_per_epoch: np.ndarray
    cost_eur_per_epoch: np.ndarray
    distribution: EpochDistribution
    max_epochs: float
    time_left_s: float
    optimum_eur: float

    def solved_by(self, solver: Callable[..., Plan]) -> Plan:
        """Solve it."""
        return solver(
            self.seconds_per_epoch, self.cost_eur_per_epoch, self.distribution, self.max_epochs, self.time_left_s
        )


def measure(nodes: int = 25, problems: int = 200) -> list[Figure]:
    """Solve the same tight problems with every solver.

    Args:
        nodes: Nodes of the two bursts whose problems are taken, with 4 jobs a node.
        problems: Most problems of each burst.
    """
    bursts = {"burst": burst(nodes, 4), "hardest burst": hardest_burst(nodes, 4)}
    figures = []
    for title, instance in bursts.items():
        chosen = tight_problems(instance, problems)
        for name in SOLVER_NAMES if chosen else ():
            figures += _figures(f"{name}, {title}", name, chosen)
    return figures


def tight_problems(instance: Instance, most: int) -> list[Problem]:
    """Give the first problems, one for each job and GPU type, that need a plan that speeds up on the way."""
    rate, jobs, types = planning_rate_eur_per_s(instance), instance.jobs, instance.type_of_configuration
    chosen: list[Problem] = []
    for job in range(len(jobs)):
        for v in range(len(instance.gpu_types)):
            allowed = (types == v) & np.isfinite(jobs.seconds_per_epoch[job])
            if len(chosen) == most or not allowed.any():
                continue
            tau = jobs.seconds_per_epoch[job, allowed]
            distribution = jobs.distributions[jobs.distribution[job]]
            time_left = jobs.due_s[job] - jobs.submission_s[job]
            plan = solve_single_job(tau, tau * rate[allowed], distribution, jobs.max_epochs[job], time_left)
            if plan.status == "tight":
                facts = (distribution, float(jobs.max_epochs[job]), float(time_left), plan.expected_cost_eur)
                chosen.append(Problem(tau, tau * rate[allowed], *facts))
    return chosen


def _figures(title: str, name: str, problems: list[Problem]) -> list[Figure]:
    solver = single_job_solver(name)
    times, excess, failed = [], [], 0
    for problem in problems:
        begin = time.perf_counter()
        try:
            plan = problem.solved_by(solver)
        except SolverMissingError as error:
            return [Figure(title, (), "ms", note=str(error))]
        except SolverFailedError:
            failed += 1
            continue
        times.append(1000.0 * (time.perf_counter() - begin))
        excess.append(plan.expected_cost_eur / problem.optimum_eur - 1.0)
    if not times:
        return [Figure(title, (), "ms", note=f"all {failed} solves failed")]
    missed = 100.0 * float(np.mean(np.array(excess) > MISSED))
    note = f"{len(problems)} tight problems, {failed} failed; largest excess {100.0 * max(excess):.2g} %"
    return [
        Figure(f"{title}: one solve", tuple(times), "ms", note=note),
        Figure("  mean cost above the optimum", (max(0.0, 100.0 * float(np.mean(excess))),), "%"),
        Figure("  solves that miss it by more than 0.1 %", (missed,), "%"),
    ]
