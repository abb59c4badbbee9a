"""The mixed-integer program of a small static instance, a lower bound on every schedule, and its schedule."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.solvers.bin_program import NAME, load_pyomo, new_highs, solve
from gpusched_baselines.solvers.errors import SolverFailedError
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, JobTable, checks
from gpusched_reproductions.certify.hours import Hours
from gpusched_reproductions.certify.patterns import Held, Patterns


@dataclass(frozen=True, slots=True, eq=False)
class StaticSolution:
    """What the program says on one grid of times.

    Attributes:
        boundaries_s: The beginnings of the intervals [s], from 0; the last interval has no end, (K,).
        seconds: How long each pattern holds in each interval [s], (K, P).
        objective_eur: Cost of the best solution found [€]; no schedule need cost so little.
        bound_eur: No schedule costs less [€].
    """

    boundaries_s: NDArray[np.float64]
    seconds: NDArray[np.float64]
    objective_eur: float
    bound_eur: float


def solve_static(
    jobs: JobTable,
    patterns: Patterns,
    boundaries_s: Iterable[float],
    limit_s: float = 60.0,
    hours: Hours | None = None,
) -> StaticSolution:
    """Solve the program of jobs that are all there at time 0 and need `epochs_needed`.

    Every schedule, preemptive or not, spends some time y_{k,p} ≥ 0 in pattern p within interval k, which begins at t_k.
    So it satisfies

    - Σ_p y_{k,p} ≤ the length of interval k;
    - Σ_{k,p} speed_{j,p} · y_{k,p} ≥ X_j for every job;
    - T_j ≥ (t_k - d_j) · z_{j,k} + the time that job j works in interval k, for every interval that begins at its
      due date or later, where z_{j,k} is 1 if it works in that interval or a later one, else 0.

    Its cost is Σ rate_p · y_{k,p} + Σ ω_j · T_j or more. Due dates are always boundaries, so an interval lies wholly
    before or after one. Where no job is late, the program is exact, since patterns within an interval may be put in any
    order; where several late jobs end in the same interval, each may count as if it went first, and finer
    boundaries make the bound sharper.

    Where the price of energy or the cap of the site changes, an interval begins, and has the price and the patterns of
    its time; the last interval has the least price from then on, and the highest cap.

    Args:
        boundaries_s: Further times at which an interval begins [s]; 0 and the due dates are always among them.
        hours: Prices and caps by time; None: one price, and no cap.
    """
    hours = Hours() if hours is None else hours
    starts = np.unique([0.0, *jobs.due_s.tolist(), *boundaries_s, *hours.starts_s()])
    program = _Program(jobs, patterns, starts, hours)
    model = program.model(load_pyomo())
    solved = solve(new_highs(presolve=False, seconds=limit_s), model)
    if solved is None:
        raise SolverFailedError(NAME, "it finds no schedule at all")
    seconds = np.array([[model.held[k, p].value for p in model.patterns] for k in model.intervals])
    return StaticSolution(starts, np.maximum(0.0, seconds) * program.unit_s, solved.objective, max(0.0, solved.bound))


class _Program:
    """The program in Pyomo, with time in a unit that suits the instance."""

    def __init__(self, jobs: JobTable, patterns: Patterns, starts: NDArray[np.float64], hours: Hours) -> None:
        finite = np.where(np.isfinite(jobs.seconds_per_epoch), jobs.seconds_per_epoch, 0.0)
        slowest_s = jobs.epochs_needed * finite.max(axis=1)
        self.unit_s = float(slowest_s.max())
        self._slowest = slowest_s / self.unit_s
        self._starts = starts / self.unit_s
        self._lengths = np.append(np.diff(self._starts), np.inf)
        self._due = jobs.due_s / self.unit_s
        self._weight = jobs.tardiness_weight_eur_per_s * self.unit_s
        self._rate = hours.factors(starts)[:, None] * patterns.rate_eur_per_s * self.unit_s
        self._allowed = hours.allowed(starts, patterns.rate_eur_per_s)
        self._share = patterns.speed * self.unit_s / jobs.epochs_needed  # of the job's epochs, per unit of time
        self._runs = [np.flatnonzero(patterns.speed[:, j] > 0.0).tolist() for j in range(len(jobs))]

    def model(self, pyomo: Any) -> Any:
        """Build the program; `held[k, p]` is the time that pattern p is held in interval k."""
        model = pyomo.ConcreteModel()
        model.jobs, model.intervals = range(len(self._due)), range(len(self._starts))
        model.patterns = range(self._rate.shape[1])
        model.held = pyomo.Var(
            model.intervals, model.patterns, bounds=lambda _, k, p: (0.0, None if self._allowed[k, p] else 0.0)
        )
        model.late = pyomo.Var(model.jobs, bounds=(0.0, None))
        self._add_work(pyomo, model)
        self._add_tardiness(pyomo, model)
        energy = pyomo.quicksum(
            float(self._rate[k, p]) * model.held[k, p] for k in model.intervals for p in model.patterns
        )
        tardiness = pyomo.quicksum(float(self._weight[j]) * model.late[j] for j in model.jobs)
        model.cost = pyomo.Objective(expr=energy + tardiness)
        return model

    def _add_work(self, pyomo: Any, model: Any) -> None:
        def done(j: int) -> Any:
            return (float(self._share[p, j]) * model.held[k, p] for k in model.intervals for p in self._runs[j])

        model.no_longer = pyomo.Constraint(
            model.intervals[:-1],
            rule=lambda m, k: pyomo.quicksum(m.held[k, p] for p in m.patterns) <= float(self._lengths[k]),
        )
        model.all_done = pyomo.Constraint(model.jobs, rule=lambda _, j: pyomo.quicksum(done(j)) >= 1.0)

    def _add_tardiness(self, pyomo: Any, model: Any) -> None:
        after = [(j, k) for j in model.jobs for k in model.intervals if self._starts[k] >= self._due[j]]
        pairs = [(j, k) for j, k in after if self._weight[j] > 0.0]
        model.goes_on = pyomo.Var(pairs, domain=pyomo.Binary)

        def working(j: int, k: int) -> Any:
            return pyomo.quicksum(model.held[k, p] for p in self._runs[j])

        def works_only_if_it_goes_on(model: Any, j: int, k: int) -> Any:
            return working(j, k) <= float(min(self._lengths[k], self._slowest[j])) * model.goes_on[j, k]

        def tardiness(model: Any, j: int, k: int) -> Any:
            return model.late[j] >= float(self._starts[k] - self._due[j]) * model.goes_on[j, k] + working(j, k)

        later = [(j, k) for j, k in pairs if (j, k - 1) in model.goes_on]
        model.works_only_if = pyomo.Constraint(pairs, rule=works_only_if_it_goes_on)
        # What goes on has gone on before: this follows from the others, and makes the search shorter.
        model.no_gap = pyomo.Constraint(later, rule=lambda m, j, k: m.goes_on[j, k] <= m.goes_on[j, k - 1])
        model.tardiness = pyomo.Constraint(pairs, rule=tardiness)


MOST_TO_PERMUTE = 6
NEGLIGIBLE = 1e-12  # of the longest stay: shorter ones are the solver's tolerance
ROUNDING = 1e-11  # relative


@dataclass(frozen=True, slots=True)
class Stay:
    """A time for which the jobs hold the same.

    Attributes:
        start_s: From when on [s].
        seconds: For how long [s].
        held: The configuration of every job, -1 for none.
    """

    start_s: float
    seconds: float
    held: Held


@dataclass(frozen=True, slots=True, eq=False)
class StaticSchedule:
    """A schedule of a static instance, or the beginning of one.

    Attributes:
        stays: What is held when, by start; a job that is done holds nothing.
        now_s: When the last stay ends [s].
        epochs_left: Epochs that every job still needs, (J,); all 0 in a whole schedule.
        completion_s: Completion of every job [s], NaN before it, (J,).
        energy_eur: Energy cost [€].
        tardiness_eur: Tardiness cost of the jobs that are done [€].
    """

    stays: tuple[Stay, ...]
    now_s: float
    epochs_left: NDArray[np.float64]
    completion_s: NDArray[np.float64]
    energy_eur: float = 0.0
    tardiness_eur: float = 0.0

    @property
    def total_eur(self) -> float:
        return self.energy_eur + self.tardiness_eur


def scheduled(
    jobs: JobTable,
    patterns: Patterns,
    rates: dict[Held, float],
    solution: StaticSolution,
    hours: Hours | None = None,
) -> StaticSchedule:
    """Hold the patterns of every interval one after the other, in the order that makes jobs least late.

    Nothing is gained by standing still in between, since all jobs are there from the beginning, unless prices or caps
    change: then what is held in an interval begins with it.

    The solver's tolerance may leave a job a little short of its epochs, so all stays are stretched until none is. What
    is left even so is done at the very end, alone, where that costs least.

    Args:
        rates: The energy cost rate of every pattern, dominated ones too [€/s].
    """
    maker = _Maker(jobs, rates, Hours() if hours is None else hours)
    best = StaticSchedule((), 0.0, jobs.epochs_needed, np.full(len(jobs), np.nan))
    stays_s = _stretched(jobs, patterns, solution.seconds)
    least = NEGLIGIBLE * stays_s.max()
    for start_s, seconds in zip(solution.boundaries_s.tolist(), stays_s, strict=True):
        if maker.hours.change:
            best = replace(best, now_s=max(best.now_s, start_s))
        chosen = np.flatnonzero(seconds > least)
        parts = tuple((tuple(patterns.held[p].tolist()), float(seconds[p])) for p in chosen)
        orders = permutations(parts) if len(parts) <= MOST_TO_PERMUTE else [parts]
        best = min((maker.after(best, order) for order in orders), key=lambda made: made.total_eur)
    return maker.finished(best, patterns)


def _stretched(jobs: JobTable, patterns: Patterns, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    done = seconds.sum(axis=0) @ patterns.speed / jobs.epochs_needed
    return seconds * max(1.0, 1.0 / float(done.min()))


@dataclass(frozen=True, slots=True, eq=False)
class _Maker:
    jobs: JobTable
    rates: dict[Held, float]
    hours: Hours

    def after(self, made: StaticSchedule, parts: Iterable[tuple[Held, float]]) -> StaticSchedule:
        for held, seconds in parts:
            made = self._hold(made, held, made.now_s + seconds)
        return made

    def finished(self, made: StaticSchedule, patterns: Patterns) -> StaticSchedule:
        for j in np.flatnonzero(made.epochs_left > 0.0).tolist():
            ways = np.flatnonzero(patterns.speed[:, j] > 0.0)
            alone = [self._alone(j, int(patterns.held[p, j])) for p in ways]
            cost = [self.rates[held] / patterns.speed[p, j] for held, p in zip(alone, ways, strict=True)]
            made = self._hold(made, alone[int(np.argmin(cost))], np.inf)
        return made

    def _alone(self, job: int, config: int) -> Held:
        return tuple(config if j == job else -1 for j in range(len(self.jobs)))

    def _hold(self, made: StaticSchedule, held: Held, until_s: float) -> StaticSchedule:
        while made.now_s * (1.0 + ROUNDING) < until_s:
            held = tuple(c if made.epochs_left[j] > 0.0 else -1 for j, c in enumerate(held))
            running = [j for j, c in enumerate(held) if c >= 0]
            if not running:
                break
            to_do_s = {j: float(made.epochs_left[j] * self.jobs.seconds_per_epoch[j, held[j]]) for j in running}
            seconds = min(until_s - made.now_s, *to_do_s.values())
            made = self._longer(made, Stay(made.now_s, seconds, held), to_do_s)
        return made

    def _longer(self, made: StaticSchedule, stay: Stay, to_do_s: dict[int, float]) -> StaticSchedule:
        """Add a stay in which no job ends before the stay does."""
        jobs, end_s = self.jobs, stay.start_s + stay.seconds
        left, completion_s, tardiness_eur = made.epochs_left.copy(), made.completion_s.copy(), made.tardiness_eur
        for j, seconds in to_do_s.items():
            left[j] *= max(0.0, 1.0 - stay.seconds / seconds)
            if left[j] <= ROUNDING * jobs.epochs_needed[j]:
                left[j] = 0.0
                completion_s[j] = end_s
                tardiness_eur += float(jobs.tardiness_weight_eur_per_s[j] * max(0.0, end_s - jobs.due_s[j]))
        energy_eur = made.energy_eur + self.hours.priced_s(stay.start_s, end_s) * self.rates[stay.held]
        return StaticSchedule((*made.stays, stay), end_s, left, completion_s, energy_eur, tardiness_eur)


BOUND_ROUNDING = 1e-5  # relative: the solver's tolerance
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
        """Return what the best schedule found costs [€]."""
        return self.schedule.total_eur


def certify_static(instance: Instance, *, limit_s: float = 20.0, target: float = TARGET) -> StaticCertificate:
    """Bound the cost of every schedule of `instance`, even of one that knows how many epochs each job needs.

    Schedules may preempt and reconfigure jobs at any time for nothing; a restart overhead only makes them costlier, so
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
    everything, hours = Patterns.of(instance), Hours.of(instance)
    rates, patterns = everything.rates(), everything.undominated()
    bound, boundaries = 0.0, list[float]()
    schedules: list[StaticSchedule] = []
    while len(schedules) < MOST_GRIDS:
        left = limit_s - (time.perf_counter() - begin)
        solution = solve_static(instance.jobs, patterns, boundaries, max(left, 1.0), hours)
        schedules.append(scheduled(instance.jobs, patterns, rates, solution, hours))
        bound = max(bound, solution.bound_eur)
        best = min(schedules, key=lambda made: made.total_eur)
        finer = _finer(solution.boundaries_s.tolist(), instance, (schedules[-1], best))
        seconds = time.perf_counter() - begin
        if best.total_eur <= bound * (1.0 + target) or seconds >= limit_s or len(finer) == len(solution.boundaries_s):
            break
        boundaries = finer
    if bound > best.total_eur * (1.0 + BOUND_ROUNDING):
        raise SolverFailedError(NAME, f"its bound, {bound} €, is above a schedule that costs {best.total_eur} €")
    bound = min(bound, best.total_eur)
    return StaticCertificate(bound, best, len(rates), len(schedules), seconds)


def _check(instance: Instance) -> None:
    submission_s = instance.jobs.submission_s
    if np.any(submission_s > 0.0):
        raise InputError("jobs.submission_s", submission_s.tolist(), "0 for every job: the instance is static")
    if instance.interference is not None:
        raise InputError("interference", "a model", "none: what a job holds must say how fast it is")
    refuse_spread(instance)
    if instance.find("network") is not None:
        raise InputError("synchronisation", "a model", "none: what a job holds must say how fast it is")


def refuse_spread(instance: Instance) -> None:
    names = [configuration.name for configuration in instance.configurations if configuration.spread]
    if names:
        raise InputError("configurations", names, "none that is spread: what a job holds must say how fast it is")


def _finer(boundaries_s: list[float], instance: Instance, schedules: Iterable[StaticSchedule]) -> list[float]:
    """Add when late jobs end: there an interval should begin, unless it were too short to mean anything."""
    finer = boundaries_s.copy()
    for schedule in schedules:
        for end_s in schedule.completion_s[schedule.completion_s > instance.jobs.due_s].tolist():
            if min(abs(end_s - boundary_s) for boundary_s in finer) > SHORTEST * schedule.now_s:
                finer.append(end_s)
    return finer
