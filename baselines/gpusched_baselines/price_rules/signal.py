"""A price, or grams of CO2 per kWh, that is constant on periods of any lengths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """A step function of time.

    Args:
        start_s: When each period begins [s], (P,), rising; the first value holds before it, the last one goes on.
        value: The value in each period, (P,), finite.

    Raises:
        InputError: There is no period, the starts do not rise, or a value is not finite.
    """

    start_s: NDArray[np.float64]
    value: NDArray[np.float64]
    _sum: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        start, value = np.asarray(self.start_s, dtype=np.float64), np.asarray(self.value, dtype=np.float64)
        if start.ndim != 1 or not len(start) or not np.all(np.diff(start) > 0.0):
            raise InputError("signal.start_s", start.tolist(), "rising times, one or more")
        if value.shape != start.shape or not np.all(np.isfinite(value)):
            raise InputError("signal.value", value.tolist(), f"{len(start)} finite numbers, one for each period")
        object.__setattr__(self, "start_s", start)
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "_sum", np.concatenate([[0.0], np.cumsum(np.diff(start) * value[:-1])]))

    def at(self, time_s: float) -> float:
        return float(self.value[self._period(time_s)])

    def integral(self, begin_s: ArrayLike, end_s: ArrayLike) -> NDArray[np.float64]:
        """Return the integrals from `begin_s` to `end_s` [value · s]: numbers, or arrays of one shape."""
        total: NDArray[np.float64] = self._until(end_s) - self._until(begin_s)
        return total

    def steps(self, begin_s: float, end_s: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the parts of periods from `begin_s` to a later `end_s`: edges [s], (K + 1,), and values, (K,)."""
        inner = self.start_s[(self.start_s > begin_s) & (self.start_s < end_s)]
        edges = np.concatenate([[begin_s], inner, [end_s]])
        return edges, self.value[self._period(edges[:-1])]

    def _period(self, time_s: ArrayLike) -> NDArray[np.int64]:
        found: NDArray[np.int64] = np.maximum(np.searchsorted(self.start_s, time_s, side="right") - 1, 0)
        return found

    def _until(self, time_s: ArrayLike) -> NDArray[np.float64]:
        period = self._period(time_s)
        total: NDArray[np.float64] = (
            self._sum[period] + (np.asarray(time_s) - self.start_s[period]) * self.value[period]
        )
        return total
