"""A measured figure, and its target."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
PAUSE_S = 0.3
"""Before each measurement: threads that the last one used look for more work for a moment, and would be in the way."""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a figure.

    Args:
        limit: The limit, in the figure's unit.
        at_least: Whether the figure should be at or above the limit; else at or below it.
    """

    limit: float
    at_least: bool

    def met(self, value: float) -> bool:
        """Return whether `value` reaches the target."""
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {short(self.limit)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure.

    Args:
        name: What was measured.
        values: One value for each repetition; empty if it could not be measured, and then `note` has the reason.
        unit: Unit of the values.
        target: Target of the median, if any.
        note: Further information.
        before: What it was at an earlier commit, if that is known.
    """

    name: str
    values: tuple[float, ...]
    unit: str
    target: Target | None = None
    note: str = ""
    before: str = ""

    @property
    def median(self) -> float | None:
        """Return the median over the repetitions, None without any."""
        return statistics.median(self.values) if self.values else None

    @property
    def met(self) -> bool | None:
        """Return whether the median reaches the target; None without a target or a value."""
        return self.target.met(self.median) if self.target and self.median is not None else None

    def as_dict(self) -> dict[str, Any]:
        """Return the figure in types of JSON."""
        return {
            "name": self.name,
            "unit": self.unit,
            "median": self.median,
            "values": list(self.values),
            "target": str(self.target) if self.target else None,
            "met": self.met,
            "note": self.note,
            "before": self.before,
        }


def at_least(limit: float) -> Target:
    """Make the target of a figure that should be large."""
    return Target(limit, at_least=True)


def at_most(limit: float) -> Target:
    """Make the target of a figure that should be small."""
    return Target(limit, at_least=False)


def interleaved(
    contenders: Mapping[str, Callable[[], T]], repetitions: int, *, warm_up: bool = True
) -> dict[str, tuple[T, ...]]:
    """Measure contenders in turn, `repetitions` times, so that other load on the machine affects all equally.

    Args:
        contenders: By name, a function that does the work once and returns its measure.
        repetitions: Number of repetitions, ≥ 1.
        warm_up: Whether each runs once before, unmeasured: compilation and caches are not what is measured.

    Returns:
        The measures by name, in order of the repetitions: values with the same index belong together.
    """
    if warm_up:
        for contender in contenders.values():
            contender()
    values: dict[str, list[T]] = {name: [] for name in contenders}
    for _ in range(repetitions):
        for name, contender in contenders.items():
            time.sleep(PAUSE_S)
            values[name].append(contender())
    return {name: tuple(measured) for name, measured in values.items()}


def ratios(above: tuple[float, ...], below: tuple[float, ...]) -> tuple[float, ...]:
    """Divide two interleaved measures, repetition by repetition."""
    return tuple(a / b for a, b in zip(above, below, strict=True))


def short(value: float) -> str:
    """Write a number with three digits, or as a whole number above 1,000."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
