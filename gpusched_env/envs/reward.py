"""The reward: minus the cost that accrued since the previous step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gpusched_env.model import checks


class Reward(Protocol):
    """Makes a reward of the costs that accrued since the previous step."""

    def __call__(self, energy_eur: float, tardiness_eur: float) -> float:
        """Give the reward for the energy cost [€] and the tardiness cost [€] of one step."""


@dataclass(frozen=True, slots=True)
class CostReward:
    """Minus the cost: the rewards of an episode sum to minus its total cost / `scale_eur`.

    Args:
        scale_eur: What counts as 1 [€], > 0.

    Raises:
        InputError: `scale_eur` is not a finite number > 0.
    """

    scale_eur: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("reward_scale", self.scale_eur)

    def __call__(self, energy_eur: float, tardiness_eur: float) -> float:
        """Give minus the cost over the scale."""
        return -(energy_eur + tardiness_eur) / self.scale_eur
