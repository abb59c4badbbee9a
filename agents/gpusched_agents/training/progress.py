"""How far a training run has come, and its curve."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(slots=True)
class Progress:
    """How far a run has come.

    Attributes:
        phase: `imitation` or `learning`.
        imitated: Decisions of the warm start.
        learnt: Decisions of reinforcement learning.
        curve: A point for each evaluation.
        worse: Evaluations since the best one.
        seconds: Seconds spent, over all sessions.
    """

    phase: str = "imitation"
    imitated: int = 0
    learnt: int = 0
    curve: list[dict[str, Any]] = field(default_factory=list)
    worse: int = 0
    seconds: float = 0.0

    @property
    def steps(self) -> int:
        """Decisions so far."""
        return self.imitated + self.learnt


def cost_of(point: Mapping[str, Any]) -> float:
    """Give that by which evaluations are compared: what the agent costs over STS-X if that was measured, else in €."""
    return float(point.get("relative", point["total_eur"]))


def best_point(curve: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Give the evaluation whose agent is kept: the best, of equals the first."""
    return min(curve, key=cost_of)


def csv_of(curve: list[dict[str, Any]]) -> str:
    """Write the curve as a table; a field that a point does not have is empty."""
    names = list(dict.fromkeys(name for point in curve for name in point))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(curve)
    return text.getvalue()
