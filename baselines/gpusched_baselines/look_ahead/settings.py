"""How much is tried in a round."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_baselines.look_ahead.base import BASES
from gpusched_env.errors import InputError
from gpusched_env.model import checks


@dataclass(frozen=True, slots=True)
class Settings:
    """How much `LookAhead` tries in a round.

    Args:
        first: Draws of what jobs need, and of what comes, on which all plans are rolled out, ≥ 1.
        second: Draws on which the cheapest quarter goes on, ≥ 0.
        challenge: Draws on which the one that is cheapest then must win again, ≥ 2.
        deviations: How many plans are drawn in which one job is told what to do, ≥ 0.
        rounds: How many rounds a roll-out has, ≥ 1.
        base_rounds: How many it has where bases are compared, ≥ 1: what one of them puts off counts in the end.
        arrivals: How many jobs may come in a roll-out, ≥ 0.
        certainty: How sure it must be that another plan is better, in standard errors of the difference, ≥ 0.
        bases: The policies that roll-outs may follow, of "sts-x" and "atc"; the first one unless another is better.
        seed: Seed of the draws, with the number of the round: so decisions are the same through every door.

    Raises:
        InputError: One of them is of the wrong kind or out of its range.
    """

    first: int = 3
    second: int = 3
    challenge: int = 8
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
        checks.whole("challenge", self.challenge, 2)
        checks.not_negative("certainty", self.certainty)
        checks.seed(self.seed)
        if not isinstance(self.bases, tuple) or not self.bases or not set(self.bases) <= set(BASES):
            raise InputError("bases", self.bases, f"a tuple of some of {', '.join(BASES)}")

    @property
    def heats(self) -> tuple[int, int, int]:
        """Give the draws of a race, in parts."""
        return self.first, self.second, self.challenge
