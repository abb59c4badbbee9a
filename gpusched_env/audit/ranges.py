"""Ranges that numbers of a run folder must lie in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Range:
    """What a number may be.

    Attributes:
        allowed: The range in words, as errors give it.
        lowest: Least number.
        highest: Largest number.
        open: Whether the least number itself is out of the range.
    """

    allowed: str
    lowest: float = -math.inf
    highest: float = math.inf
    open: bool = False

    def check(self, where: str, value: float) -> None:
        """Raise InputError, which names the field `where`, unless `value` is in the range."""
        if not self.lowest <= value <= self.highest or (self.open and value == self.lowest):
            raise InputError(where, value, self.allowed)

    def check_each(self, where: str, values: Sequence[float]) -> None:
        """Check every value of the list `where`."""
        for index, value in enumerate(values):
            self.check(f"{where}[{index}]", value)


ANY = Range("a finite number")
TIME = Range("a number >= 0 and <= 1e12", 0.0, 1e12)
NOT_NEGATIVE = Range("a number >= 0", 0.0)
POSITIVE = Range("a number > 0", 0.0, open=True)
AT_LEAST_ONE = Range("a number >= 1", 1.0)


def index_below(count: int) -> Range:
    """Give the range of the indices into a list of `count` values."""
    return Range(f"an index from 0 to {count - 1}", 0, count - 1)
