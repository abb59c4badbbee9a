"""The single-job solvers side by side: time, objective, and how often the optimum is missed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.bursts import burst, hardest_burst
from benchmarks.figure import Figure
from gpusched_baselines import SingleJobProblem
from gpusched_baselines.planning.single_job import solve_exactly
from gpusched_baselines.solvers import SOLVER_NAMES, SolverFailedError, SolverMissingError, single_job_solver
from gpusched_env.model import planning_rate_eur_per_s
from gpusched_env.simulator.survival import survival_after

if TYPE_CHECKING:
    from gpusched_baselines import Plan
    from gpusched_env import Instance

MISSED = 1e-3  # an objective this much above the optimum, relative to it, misses the optimum


class Problem(NamedTuple):
    """A single-job problem on one GPU type, with its optimal cost [€]."""

    problem: SingleJobProblem
    optimum_eur: float


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
    """Return the first problems, one for each job and GPU type, that need a plan that speeds up on the way."""
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
            own = rate[jobs.application[job], allowed]
            problem = SingleJobProblem(tau, tau * own, distribution, jobs.max_epochs[job], time_left)
            plan = solve_exactly(problem)
            if plan.status == "tight":
                chosen.append(Problem(problem, plan.expected_cost_eur))
    return chosen


def true_cost_eur(problem: SingleJobProblem, plan: Plan) -> float:
    """Return the expected cost of a plan [€]; the published program has that of its last iterate."""
    largest, curve = problem.max_epochs, problem.curve
    cost = 0.0
    for segment in plan.segments:
        ends = segment.start_epoch / largest, segment.end_epoch / largest
        epochs = (survival_after(curve, ends[0]) - survival_after(curve, ends[1])) * largest / problem.alive
        cost += problem.cost_eur_per_epoch[segment.configuration] * epochs
    return cost


def _figures(title: str, name: str, problems: list[Problem]) -> list[Figure]:
    solver = single_job_solver(name)
    times, excess, failed = [], [], 0
    for problem, optimum_eur in problems:
        begin = time.perf_counter()
        try:
            plan = solver(problem)
        except SolverMissingError as error:
            return [Figure(title, (), "ms", note=str(error))]
        except SolverFailedError:
            failed += 1
            continue
        times.append(1000.0 * (time.perf_counter() - begin))
        excess.append(true_cost_eur(problem, plan) / optimum_eur - 1.0)
    if not times:
        return [Figure(title, (), "ms", note=f"all {failed} solves failed")]
    missed = 100.0 * float(np.mean(np.array(excess) > MISSED))
    note = f"{len(problems)} tight problems, {failed} failed; largest excess {100.0 * max(excess):.2g} %"
    return [
        Figure(f"{title}: one solve", tuple(times), "ms", note=note),
        Figure("  mean cost above the optimum", (max(0.0, 100.0 * float(np.mean(excess))),), "%"),
        Figure("  solves that miss it by more than 0.1 %", (missed,), "%"),
    ]
