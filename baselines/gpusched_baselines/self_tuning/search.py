"""One check: candidates are tried on resampled workloads, and the best one again on fresh ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpusched_baselines.self_tuning.candidates import a_rule, directions, has_controls, policy_of
from gpusched_baselines.self_tuning.resampling import PER_ROUND, Workloads
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.own_state import with_state
from gpusched_env.simulator.kernels import Floats, View, at

FIRST_STEP, LEAST_STEP, MOST_STEP = 0.4, 0.15, 0.8
"""Standard deviation of changes of controls, at first and within what borders."""
LONGER, SHORTER = 1.4, 1.4**-0.5
"""The step after a change that saves, and after one that saves neither forward nor backward."""
OTHERS = 0.1
"""Part of the candidates that are rules."""
FEW, MANY = 0.15, 0.4
"""Part of the directions in which a change goes, each as likely."""
REJECTED = 0.003
"""A candidate that costs so much more than the best one on the workloads tried so far is tried on no other."""
MOST = 0.2
"""On fresh workloads a simulation stops at this logarithm of the cost over that of the present choice."""
LOAN = 1.5
"""What checks may have taken, as a multiple of what the rounds so far allow: tuned early, it saves longer."""
LEAST = 12
"""A check for which there is work for fewer simulations is left out."""


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """When and how candidates are tried.

    Args:
        checks: Submissions at which they are, numbers of jobs so far, ≥ 2, rising.
        jobs: Jobs that come in a workload, ≥ 1.
        samples: Workloads of the search, ≥ 1.
        fresh: Other workloads, on which the best candidate must save again, ≥ 2.
        work: Work of simulations allowed for a round of the run (`Workloads.work`), ≥ 0.
        margin: Least saving there, as a part of the cost, from 0 to 1.
        certainty: Standard errors by which the saving there is more than that, ≥ 0.
        seed: Seed of what is drawn.

    Raises:
        InputError: One of them is of the wrong type or out of its range.
    """

    checks: tuple[int, ...] = (60, 120, 200, 320, 500, 800)
    jobs: int = 160
    samples: int = 3
    fresh: int = 4
    work: float = 100.0
    margin: float = 0.005
    certainty: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.checks, tuple) or any(one >= other for one, other in pairwise((1, *self.checks))):
            raise InputError("checks", self.checks, "a tuple of whole numbers >= 2 that rise")
        for name, least in (("jobs", 1), ("samples", 1), ("fresh", 2)):
            checks.whole(name, getattr(self, name), least)
        for name in ("work", "margin", "certainty"):
            checks.not_negative(name, getattr(self, name))
        if self.margin >= 1.0:
            raise InputError("margin", self.margin, "a number from 0 to 1")
        checks.seed(self.seed)


def tuned_choice(view: View, own: Floats, spent: float, settings: TuningSettings) -> tuple[Floats, float]:
    """Return the best choice that is found, or the present one, `own`; and the work that this took.

    Where prices change it is `own`: a round that is planned over their periods takes too long. So it is where a
    mechanism keeps state of its own.

    Args:
        spent: The work of the checks before.
    """
    board = view.board
    budget = settings.work * LOAN * float(board.count[at.ROUND]) - spent
    changes = board.has_prices and len(board.prices)
    if changes or with_state(board.mechanisms) is not None or LEAST * _work_of_one(view, settings.jobs) > budget:
        return own, 0.0
    known = int(board.count[at.SUBMITTED])
    workloads = Workloads(view, settings.samples + settings.fresh, settings.jobs, settings.seed + known)
    search = _Search(workloads, view.gpu_types, own, settings)
    best = search.best(budget, np.random.default_rng([settings.seed, known]))
    return (best if search.saves(best) else own), workloads.work


def _work_of_one(view: View, coming: int) -> float:
    """Return the work of a simulation as expected from the run so far."""
    count, configs = view.board.count, len(view.configurations)
    rounds = count[at.ROUND] / count[at.SUBMITTED] * (count[at.ACTIVE] + coming)
    return float(rounds * (1.0 + count[at.ACTIVE] * configs / PER_ROUND))


class _Search:
    def __init__(self, workloads: Workloads, gpu_types: tuple[str, ...], own: Floats, settings: TuningSettings) -> None:
        self._workloads, self._types, self._own, self._settings = workloads, gpu_types, own, settings
        self._base: list[float] = []

    def best(self, budget: float, rng: np.random.Generator) -> Floats:
        """Return the choice with the least mean of the logarithm of cost over that of the present one.

        It is changed at random: a (1+1) evolution strategy. A change of controls that saves is made again; after one
        that does not, its contrary is tried. Now and then a rule is tried instead.
        """
        best, least, step = self._own, np.zeros(self._settings.samples), FIRST_STEP
        across, again = directions(len(self._types)), None
        for draw in range(len(least)):
            if not 0.0 < self._base_of(draw) < np.inf:  # nothing to save, or more rounds than a simulation may have
                return best
        most = budget - 2.0 * self._settings.fresh * self._workloads.work / len(least)  # the rest is for `saves`
        while has_controls(best) and self._workloads.work < most:
            if again is None and rng.random() < OTHERS:
                found = self._tried(choice := a_rule(best, rng), least)
                best, least = (best, least) if found is None else (choice, found)
                continue
            change, is_new = _change(across, rng) * step if again is None else again, again is None
            choice = best.copy()
            choice[1:] = np.clip(best[1:] + change, -1.0, 1.0)
            found = self._tried(choice, least)
            if found is not None:
                best, least, again = choice, found, change
                step = min(MOST_STEP, step * LONGER)
            else:
                again = -change if is_new else None
                step = step if is_new else max(LEAST_STEP, step * SHORTER)
        return best

    def saves(self, best: Floats) -> bool:
        """Whether a choice surely saves on fresh workloads."""
        first, settings = self._settings.samples, self._settings
        if best is self._own:
            return False
        gains: list[float] = []
        for draw in range(first, first + settings.fresh):
            if not 0.0 < self._base_of(draw) < np.inf:
                return False
            gains.append(self._ratio(best, draw, MOST))
            if len(gains) > 1 and np.mean(gains) > np.log(1.0 - settings.margin):
                return False
        error = np.std(gains, ddof=1) / np.sqrt(len(gains))
        return bool(np.mean(gains) + settings.certainty * error < np.log(1.0 - settings.margin))

    def _tried(self, choice: Floats, least: Floats) -> Floats | None:
        """Return the logarithms of the cost over that of the present choice, (S,); None if they are not less."""
        found: list[float] = []
        for draw in range(len(least)):
            most = least[: draw + 1].sum() + REJECTED * (draw + 1) - sum(found)
            found.append(self._ratio(choice, draw, most))
            if found[-1] >= most:
                return None
        return np.array(found) if np.mean(found) < least.mean() else None

    def _ratio(self, choice: Floats, draw: int, most: float) -> float:
        """Return the logarithm of what a choice costs over what the present one does; `most` if it is more."""
        base = self._base_of(draw)
        cost = self._workloads.cost(draw, policy_of(choice, self._types), base * float(np.exp(most)))
        return min(most, float(np.log(cost / base)))

    def _base_of(self, draw: int) -> float:
        """Return what a workload costs with the present choice [€]; draws are asked in their order."""
        if draw == len(self._base):
            self._base.append(self._workloads.cost(draw, policy_of(self._own, self._types), goes_on=True))
        return self._base[draw]


def _change(across: Floats, rng: np.random.Generator) -> Floats:
    """Return a random change of controls, (K,), as a sum of some of the directions `across`, (M, K)."""
    chosen = rng.random(len(across)) < (FEW if rng.random() < 0.5 else MANY)
    chosen[rng.integers(len(across))] = True
    change: Floats = (rng.standard_normal(len(across)) * chosen) @ across
    return change
