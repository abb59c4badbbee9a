"""How far any schedule of a small static instance can be from the best one: a bound, and a schedule close to it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.solvers.bin_program import NAME
from gpusched_baselines.solvers.errors import SolverFailedError
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_reproductions.certify.patterns import Patterns
from gpusched_reproductions.certify.static_program import StaticSchedule, scheduled, solve_static

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusched_env.model import Instance

ROUNDING = 1e-5  # relative: the solver's tolerance
SHORTEST = 1e-6  # interval, relative to the schedule
TARGET = 1e-4  # relative gap between schedule and bound that is small enough
MOST_GRIDS = 20


@dataclass(frozen=True, slots=True, eq=False)
class StaticCertificate:
    """A bound below every schedule of an instance, and the best schedule found: the optimum lies between the two.

    Attributes:
        bound_eur: No schedule costs less [€].
        schedule: The best schedule found.
        patterns: How many patterns the jobs have.
        grids: How many grids of times were solved.
        seconds: Wall clock [s].
    """

    bound_eur: float
    schedule: StaticSchedule
    patterns: int
    grids: int
    seconds: float

    @property
    def best_eur(self) -> float:
        """Give what the best schedule found costs [€]."""
        return self.schedule.total_eur


def certify_static(instance: Instance, *, limit_s: float = 20.0, target: float = TARGET) -> StaticCertificate:
    """Bound the cost of every schedule of `instance`, even of one that knows how many epochs each job needs.

    Schedules may preempt and reconfigure jobs at any time for nothing; a restart overhead only makes them dearer, so
    the bound holds with one too. The program is solved on ever finer grids, refined where late jobs end, until bound
    and schedule meet or the time is up; the best bound and the best schedule of all grids count.

    Args:
        instance: An instance with all jobs submitted at 0, small enough to list its patterns.
        limit_s: Most wall clock [s], > 0; the first grid is begun in any case.
        target: Relative gap between schedule and bound at which to stop, ≥ 0.

    Raises:
        InputError: A job is submitted later, jobs on one GPU slow one another down, or there are too many patterns.
        SolverMissingError: Pyomo or highspy is missing.
        SolverFailedError: HiGHS found no solution at all, or its bound contradicts a schedule.
    """
    _check(instance)
    checks.positive("limit_s", limit_s)
    checks.not_negative("target", target)
    begin = time.perf_counter()
    everything = Patterns.of(instance)
    rates, patterns = everything.rates(), everything.undominated()
    bound, boundaries = 0.0, list[float]()
    schedules: list[StaticSchedule] = []
    while len(schedules) < MOST_GRIDS:
        left = limit_s - (time.perf_counter() - begin)
        solution = solve_static(instance.jobs, patterns, boundaries, max(left, 1.0))
        schedules.append(scheduled(instance.jobs, patterns, rates, solution))
        bound = max(bound, solution.bound_eur)
        best = min(schedules, key=lambda made: made.total_eur)
        finer = _finer(solution.boundaries_s.tolist(), instance, (schedules[-1], best))
        seconds = time.perf_counter() - begin
        if best.total_eur <= bound * (1.0 + target) or seconds >= limit_s or len(finer) == len(solution.boundaries_s):
            break
        boundaries = finer
    if bound > best.total_eur * (1.0 + ROUNDING):
        raise SolverFailedError(NAME, f"its bound, {bound} €, is above a schedule that costs {best.total_eur} €")
    bound = min(bound, best.total_eur)
    return StaticCertificate(bound, best, len(rates), len(schedules), seconds)


def _check(instance: Instance) -> None:
    submission_s = instance.jobs.submission_s
    if np.any(submission_s > 0.0):
        raise InputError("jobs.submission_s", submission_s.tolist(), "0 for every job: the instance is static")
    if instance.interference is not None:
        raise InputError("interference", "a model", "none: what a job holds must say how fast it is")
    if instance.synchronisation is not None:
        raise InputError("synchronisation", "a model", "none: what a job holds must say how fast it is")


def _finer(boundaries_s: list[float], instance: Instance, schedules: Iterable[StaticSchedule]) -> list[float]:
    """Add when late jobs end: there an interval should begin, unless it were too short to mean anything."""
    finer = boundaries_s.copy()
    for schedule in schedules:
        for end_s in schedule.completion_s[schedule.completion_s > instance.jobs.due_s].tolist():
            if min(abs(end_s - boundary_s) for boundary_s in finer) > SHORTEST * schedule.now_s:
                finer.append(end_s)
    return finer
