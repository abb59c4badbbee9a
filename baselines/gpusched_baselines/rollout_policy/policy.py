"""The rollout policy, and its settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.rollout_policy.samples import (
    SampledArrivals,
    best_arm,
    deviations,
    plan_of,
    same_plan,
    sample_outcome,
    uniforms,
)
from gpusched_baselines.rollout_policy.simulation import BASES, Base, new_copy, simulate_copy, with_future, write_plan
from gpusched_baselines.sts_x.policy import StsX, choose_planned, execute_plan
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.model.own_state import with_state
from gpusched_env.simulator.kernels import Board, Floats, PlannedPolicy, View, at

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator


OVERTIME = 5  # most rounds of another alternative until the same time, as a multiple of those of the first one


class Samples:
    """The samples of the round that is open on a board, the same for all alternatives of the decision.

    Attributes:
        copy: The simulation copy.
        outcomes: Realised demand of jobs, and when running ones would be complete, (D, J, OUTCOME_COLUMNS).
    """

    def __init__(self, board: Board, rate: Floats, settings: RolloutSettings, rng: Generator) -> None:
        self.copy, self._rate = new_copy(board, settings.arrivals), rate
        size = int(self.copy.start.count[at.ACTIVE])
        parts = [uniforms(rng, draws, size) for draws in settings.heats]
        self.outcomes = np.full((sum(settings.heats), size + settings.arrivals, at.OUTCOME_COLUMNS), np.inf)
        for outcome, uniform in zip(self.outcomes, np.concatenate(parts), strict=True):
            sample_outcome(self.copy.start, uniform, outcome)
        self._arrivals = SampledArrivals(board, self.copy, rng, len(self.outcomes))
        self._future = 0 if with_state(board.mechanisms) is None else int(rng.integers(2**32))
        self._drawn = -1  # the sample whose arrivals are on the copy

    def costs(self, plans: list[Floats], bases: list[Base], rounds: int) -> Callable[[int, int], float]:
        """Return a function from an alternative of the decision and a sample to the cost [€].

        The first alternative must be simulated first on every sample, for `rounds` rounds; the others stop at the same
        time.
        """
        until = np.full(len(self.outcomes), np.inf)

        def cost(way: int, draw: int) -> float:
            if self._drawn != draw:
                self.copy = with_future(self.copy, self._future, draw)
                self._arrivals.come(self.copy, draw, self.outcomes[draw])
                self._drawn = draw
            end, most = (np.inf, rounds) if way == 0 else (until[draw], OVERTIME * rounds)
            total, end = simulate_copy(self.copy, self.outcomes[draw], self._rate, plans[way], bases[way], end, most)
            if way == 0:
                until[draw] = end
            return total

        return cost


def best_plan(board: Board, rate: Floats, settings: RolloutSettings, rng: Generator) -> Floats:
    """Find the best plan of the active jobs in the round that is open on `board`, (A, PLAN_COLUMNS).

    Best-arm racing compares first the base policies, each with its own plan; then the plan of the winner with plans
    that differ from it, all followed by the winner.

    Args:
        board: The board; nothing on it changes. Its memory holds that of STS-X.
        rate: Cost rates to plan with [€/s], (A, C).
    """
    draws = Samples(board, rate, settings, rng)
    bases = [BASES[name] for name in settings.bases]
    plans = [plan_of(draws.copy, rate, base) for base in bases]
    winner = 0
    if len(bases) > 1:
        heats = (settings.first + settings.second, 0, settings.challenger_samples)
        winner = best_arm(draws.costs(plans, bases, settings.base_rounds), len(plans), heats, settings.certainty)
    own, base = plans[winner], bases[winner]
    tried = [own, *(plan for plan in plans if not same_plan(plan, own))]
    tried += deviations(draws.copy, rate, base, own, settings.deviations, rng)
    costs = draws.costs(tried, [base] * len(tried), settings.rounds)
    return tried[best_arm(costs, len(tried), settings.heats, settings.certainty)]


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """How many plans and samples `RolloutPolicy` tries in a round.

    Args:
        first: Samples of realised demand and of arrivals on which all plans are simulated, ≥ 1.
        second: Samples on which the cheapest quarter of the plans is simulated too, ≥ 0.
        challenger_samples: Samples on which the cheapest plan of these, the challenger, must win again, ≥ 2.
        deviations: Number of random plans in which the decision on one job is fixed, ≥ 0.
        rounds: Number of rounds of a simulation, ≥ 1.
        base_rounds: Number of rounds where base policies are compared, ≥ 1: more, so that deferred work counts.
        arrivals: Most arrivals in a simulation, ≥ 0.
        certainty: Least advantage of another plan, in standard errors of the difference, ≥ 0.
        bases: The policies that simulations may follow, of "sts-x" and "atc"; the first one unless another is better.
        seed: Seed of the samples, with the number of the round: so decisions are the same through every interface.

    Raises:
        InputError: One of them is of the wrong type or out of its range.
    """

    first: int = 3
    second: int = 3
    challenger_samples: int = 8
    deviations: int = 12
    rounds: int = 16
    base_rounds: int = 48
    arrivals: int = 6
    certainty: float = 2.0
    bases: tuple[str, ...] = ("sts-x", "atc")
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("first", "rounds", "base_rounds"):
            checks.whole(name, getattr(self, name), 1)
        for name in ("second", "deviations", "arrivals"):
            checks.whole(name, getattr(self, name), 0)
        checks.whole("challenger_samples", self.challenger_samples, 2)
        checks.not_negative("certainty", self.certainty)
        checks.seed(self.seed)
        if not isinstance(self.bases, tuple) or not self.bases or not set(self.bases) <= set(BASES):
            raise InputError("bases", self.bases, f"a tuple of some of {', '.join(BASES)}")

    @property
    def heats(self) -> tuple[int, int, int]:
        return self.first, self.second, self.challenger_samples


@dataclass(frozen=True, slots=True)
class RolloutPolicy(PlannedPolicy):
    """Rollout policy, our own: STS-X, improved in every round by sampled simulations.

    At the decision on the first job of a round, it samples several times the epochs that every active job still needs,
    from the distribution given those done, and arrivals, from the jobs so far and their arrival rate. On each sample
    the simulator runs the next rounds, decided by a fixed policy, and the cost of the rest is estimated. In this way
    STS-X is compared with `atc`, and the plan of the better one with others: that of the other one, and plans in which
    one job may use only one configuration, or waits, and the other jobs are planned with that. A plan that is cheaper
    in the mean, by more than chance explains, is chosen; then the jobs are decided one by one, as STS-X does. That is
    one step of policy improvement (Bertsekas, Tsitsiklis and Wu, 1997) in every round.

    Under a cap its simulations plan within the cap, where STS-X lowers limits by a price of power. It has the
    information of other policies: it does not know the realised demand or future arrivals.

    Args:
        settings: The settings of the search.
        name: Name, as tables show it.
    """

    settings: RolloutSettings = field(default_factory=RolloutSettings)
    name: str = "rollout"
    job_order: str = "pressure"
    preemption: bool = True
    _execute_plan = staticmethod(execute_plan)
    _planned = staticmethod(choose_planned)

    def _plan(self, view: View) -> None:
        board = view.board
        rng = np.random.default_rng([self.settings.seed, int(board.count[at.ROUND]), int(board.count[at.SUBMITTED])])
        write_plan(board, best_plan(board, StsX().rates(board), self.settings, rng))
