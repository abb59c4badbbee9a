"""The search of one round: which base is followed, and whether some other plan is better than its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.look_ahead.draws import Arrivals, draw_fate, race, uniforms
from gpusched_baselines.look_ahead.proposals import deviations, plan_of, same_plan
from gpusched_baselines.look_ahead.roll_out import BASES, Base, roll_out
from gpusched_baselines.look_ahead.stage import new_stage
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_baselines.look_ahead.policy import Settings
    from gpusched_baselines.look_ahead.stage import Stage
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

OVERTIME = 5  # how many times as many rounds as the first way another one may take until the same time


@dataclass(slots=True)
class Draws:
    """What is drawn for a round, the same for all ways to decide it.

    Attributes:
        stage: Where it is played.
        rate: Cost rates to plan with [€/s], (C,).
        fates: What jobs need, and when those that run would be complete, (D, J, FATE_COLUMNS).
        arrivals: The jobs that come.
        drawn: The draw whose jobs are about to come, -1 for none yet.
    """

    stage: Stage
    rate: Floats
    fates: Floats
    arrivals: Arrivals
    drawn: int = -1

    @classmethod
    def of(cls, board: Board, rate: Floats, settings: Settings, rng: Generator) -> Draws:
        """Draw for the round that is open on `board`."""
        stage = new_stage(board, settings.arrivals)
        size = int(stage.start.count[at.ACTIVE])
        parts = [uniforms(rng, draws, size) for draws in settings.heats]
        fates = np.full((sum(settings.heats), size + settings.arrivals, at.FATE_COLUMNS), np.inf)
        for fate, uniform in zip(fates, np.concatenate(parts), strict=True):
            draw_fate(stage.start, uniform, fate)
        return cls(stage, rate, fates, Arrivals(board, stage, rng, len(fates)))

    def cost(self, draw: int, plan: Floats, base: Base, until: float, most: int) -> tuple[float, float]:
        """Roll a plan out; see `roll_out`."""
        if self.drawn != draw:
            self.arrivals.come(self.stage, draw, self.fates[draw])
            self.drawn = draw
        return roll_out(self.stage, self.fates[draw], self.rate, plan, base, until, most)


@dataclass(slots=True)
class Ways:
    """Ways to decide the round, of which the first one says when roll-outs stop.

    Attributes:
        draws: What they are rolled out on.
        plans: What they decide.
        bases: The policies that they follow then.
        rounds: After how many rounds the first way stops.
        until: When it stopped on every draw [s], (D,); inf where it has not been rolled out.
    """

    draws: Draws
    plans: list[Floats]
    bases: list[Base]
    rounds: int
    until: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.until = np.full(len(self.draws.fates), np.inf)

    def cost(self, way: int, draw: int) -> float:
        """Give what a way costs on a draw [€]; the first way goes first."""
        most = self.rounds if way == 0 else OVERTIME * self.rounds
        until = np.inf if way == 0 else self.until[draw]
        cost, end = self.draws.cost(draw, self.plans[way], self.bases[way], until, most)
        if way == 0:
            self.until[draw] = end
        return cost


def best_plan(board: Board, rate: Floats, settings: Settings, rng: Generator) -> Floats:
    """Find what every active job shall get in the round that is open on `board`, (A, PLAN_COLUMNS).

    First the bases race, each with its own plan and followed to the end; then the plans that differ from that of the
    winner, which it follows in all of them.

    Args:
        board: The board; nothing on it changes. Its memory holds what STS-X remembers.
        rate: Cost rates to plan with [€/s], (C,).
        settings: How much is tried.
        rng: Where chance comes from.
    """
    draws = Draws.of(board, rate, settings, rng)
    bases = [BASES[name] for name in settings.bases]
    plans = [plan_of(draws.stage, rate, base) for base in bases]
    winner = 0
    if len(bases) > 1:
        rivals = Ways(draws, plans, bases, settings.base_rounds)
        heats = (settings.first + settings.second, 0, settings.challenge)
        winner = race(rivals.cost, len(plans), heats, settings.certainty)
    own, base = plans[winner], bases[winner]
    tried = [own, *(plan for plan in plans if not same_plan(plan, own))]
    tried += deviations(draws.stage, rate, base, own, settings.deviations, rng)
    ways = Ways(draws, tried, [base] * len(tried), settings.rounds)
    return tried[race(ways.cost, len(tried), settings.heats, settings.certainty)]
