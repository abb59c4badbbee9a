"""From a solution of the static program to a schedule that can be run, and what that really costs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from gpusched_env.model import JobTable
    from gpusched_reproductions.certify.patterns import Held, Patterns
    from gpusched_reproductions.certify.static_program import StaticSolution

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
        """Give the total cost [€]."""
        return self.energy_eur + self.tardiness_eur


def scheduled(jobs: JobTable, patterns: Patterns, rates: dict[Held, float], solution: StaticSolution) -> StaticSchedule:
    """Hold the patterns of every interval one after the other, in the order that makes jobs least late.

    Nothing is gained by standing still in between, since all jobs are there from the beginning.

    The solver's tolerance may leave a job a little short of its epochs, so all stays are stretched until none is. What
    is left even so is done at the very end, alone, where that costs least.

    Args:
        jobs: The jobs.
        patterns: The patterns that the solution is about.
        rates: The energy cost rate of every pattern, dominated ones too [€/s].
        solution: A solution of the program.
    """
    maker = _Maker(jobs, rates)
    best = StaticSchedule((), 0.0, jobs.epochs_needed, np.full(len(jobs), np.nan))
    stays_s = _stretched(jobs, patterns, solution.seconds)
    least = NEGLIGIBLE * stays_s.max()
    for seconds in stays_s:
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

    def after(self, made: StaticSchedule, parts: Iterable[tuple[Held, float]]) -> StaticSchedule:
        """Go on with `parts`."""
        for held, seconds in parts:
            made = self._hold(made, held, made.now_s + seconds)
        return made

    def finished(self, made: StaticSchedule, patterns: Patterns) -> StaticSchedule:
        """Go on until every job is done."""
        for j in np.flatnonzero(made.epochs_left > 0.0).tolist():
            ways = np.flatnonzero(patterns.speed[:, j] > 0.0)
            alone = [self._alone(j, int(patterns.held[p, j])) for p in ways]
            cost = [self.rates[held] / patterns.speed[p, j] for held, p in zip(alone, ways, strict=True)]
            made = self._hold(made, alone[int(np.argmin(cost))], np.inf)
        return made

    def _alone(self, job: int, config: int) -> Held:
        return tuple(config if j == job else -1 for j in range(len(self.jobs)))

    def _hold(self, made: StaticSchedule, held: Held, until_s: float) -> StaticSchedule:
        """Hold a pattern; a job that is done lets go of what it holds."""
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
        energy_eur = made.energy_eur + stay.seconds * self.rates[stay.held]
        return StaticSchedule((*made.stays, stay), end_s, left, completion_s, energy_eur, tardiness_eur)
