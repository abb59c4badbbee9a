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
        draws: On how many draws of what jobs need, and of what comes, plans are rolled out, ≥ 2.
        screening: After how many of them the cheapest quarter goes on alone, ≥ 1 and ≤ `draws`.
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

    draws: int = 8
    screening: int = 3
    deviations: int = 12
    rounds: int = 16
    base_rounds: int = 48
    arrivals: int = 6
    certainty: float = 1.0
    bases: tuple[str, ...] = ("sts-x", "atc")
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("draws", 2), ("screening", 1), ("deviations", 0), ("rounds", 1), ("base_rounds", 1)):
            checks.whole(name, getattr(self, name), least)
        checks.whole("arrivals", self.arrivals, 0)
        checks.not_negative("certainty", self.certainty)
        checks.seed(self.seed)
        if self.screening > self.draws:
            raise InputError("screening", self.screening, f"at most draws, {self.draws}")
        if not isinstance(self.bases, tuple) or not self.bases or not set(self.bases) <= set(BASES):
            raise InputError("bases", self.bases, f"a tuple of some of {', '.join(BASES)}")
