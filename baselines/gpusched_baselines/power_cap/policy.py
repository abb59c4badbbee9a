"""STS-X whose power limits under a cap follow a reference rule, in place of its price of power."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_baselines.power_cap.rules import by_thresholds, by_tiers, uniform
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env.errors import InputError
from gpusched_env.simulator.kernels import Board

RULES = {"uniform": uniform, "tiers": by_tiers, "thresholds": by_thresholds}


@dataclass(frozen=True, slots=True)
class CappedStsX(StsX):
    """STS-X that differs only in the rule by which the jobs of a planned round get lower power limits under a cap.

    - *uniform*: one limit for all, the highest with which the site stays under its cap.
    - *tiers*: tiers by slack; those whose slack allows a loss of 50, 25 or 10 % of their speed are slowed down
      first, by no more than that.
    - *thresholds*: above 80 % of the cap jobs with slack are slowed down by one step, above 89 % they get the lowest
      limit and the others one step; limits are released 5 points below.

    Args:
        rule: The rule: one of those.
        name: Name, as tables show it.

    Raises:
        InputError: There is no such rule.
    """

    rule: str = "uniform"
    name: str = "cap:uniform"

    def __post_init__(self) -> None:
        StsX.__post_init__(self)
        if self.rule not in RULES:
            raise InputError("rule", self.rule, f"one of {', '.join(RULES)}")

    def _lower_limits(self, board: Board) -> bool:
        return RULES[self.rule](board)
