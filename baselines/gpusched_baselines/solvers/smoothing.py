"""Smoothed survival functions: ramps in place of the steps at bin edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = 0.01
"""Width of a ramp, as a fraction of the bin before the edge, or of the narrower of the two bins that it joins."""


@dataclass(frozen=True, slots=True, eq=False)
class SmoothedSurvival:
    """S with linear ramps in place of steps: continuous, piecewise linear, never rising.

    Its integral F has a continuous derivative and is quadratic on every piece.

    Attributes:
        knots: Where pieces meet, as fractions of the maximum epochs, from 0 to 1, (P,).
        values: The smoothed S at the knots, (P,).
        integrals: F at the knots, (P,).
    """

    knots: NDArray[np.float64]
    values: NDArray[np.float64]
    integrals: NDArray[np.float64]

    @classmethod
    def of(cls, edges: NDArray[np.float64], survival: NDArray[np.float64], width: float = WIDTH) -> SmoothedSurvival:
        """Smooth the survival function that is `survival[b]` from `edges[b]` to `edges[b + 1]`: our own form.

        Every ramp has its middle on an inner edge, so that across a whole ramp the integral is that of S.

        Raises:
            InputError: `width` is not in (0, 1].
        """
        if not 0.0 < width <= 1.0:
            raise InputError("width", width, "a number in (0, 1]")
        lengths = np.diff(edges)
        half = 0.5 * width * np.minimum(lengths[:-1], lengths[1:])
        inner = np.stack([edges[1:-1] - half, edges[1:-1] + half], axis=1).ravel()
        knots = np.concatenate([edges[:1], inner, edges[-1:]])
        values = np.repeat(survival, 2)
        pieces = 0.5 * (values[:-1] + values[1:]) * np.diff(knots)
        return cls(knots, values, np.append(0.0, np.cumsum(pieces)))

    @classmethod
    def published(cls, edges: NDArray[np.float64], survival: NDArray[np.float64]) -> SmoothedSurvival:
        """Smooth as the published program does: a ramp from w - h to w before every edge w, down to 0 before the last.

        A bin without mass is one with the bin after it, and h is `WIDTH` of the bin that ends at w.
        """
        after = np.append(survival[1:], 0.0)
        steps = np.flatnonzero(survival > after)
        ends = edges[1:][steps]
        starts = ends - WIDTH * np.diff(ends, prepend=0.0)
        knots = np.concatenate([edges[:1], np.stack([starts, ends], axis=1).ravel()])
        values = np.concatenate([survival[:1], np.stack([survival[steps], after[steps]], axis=1).ravel()])
        if ends[-1] < edges[-1]:
            knots, values = np.append(knots, edges[-1]), np.append(values, 0.0)
        pieces = 0.5 * (values[:-1] + values[1:]) * np.diff(knots)
        return cls(knots, values, np.append(0.0, np.cumsum(pieces)))

    def value(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the smoothed S at the fractions `x` in [0, 1]."""
        piece, slope = self._piece(x)
        return self.values[piece] + slope * (x - self.knots[piece])

    def slope(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the derivative of the smoothed S at `x`, ≤ 0; at a knot that of the piece after it."""
        return self._piece(x)[1]

    def integral(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give F(x), the integral of the smoothed S from 0 to `x`."""
        piece, slope = self._piece(x)
        beyond = x - self.knots[piece]
        return self.integrals[piece] + beyond * (self.values[piece] + 0.5 * slope * beyond)

    def _piece(self, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        piece = np.clip(np.searchsorted(self.knots, x, side="right") - 1, 0, len(self.knots) - 2)
        lengths = self.knots[piece + 1] - self.knots[piece]
        rise = self.values[piece + 1] - self.values[piece]
        return piece, np.divide(rise, lengths, out=np.zeros_like(rise), where=lengths > 0.0)
