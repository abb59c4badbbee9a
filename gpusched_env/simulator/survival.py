"""Survival functions in kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats


@kernel
def bin_of(edges: Floats, fraction: float) -> int:
    """Find the bin [edges[b], edges[b + 1]) that holds `fraction`; the last one with a length for 1 and above."""
    b = min(int(np.searchsorted(edges, fraction, side="right")), edges.shape[0] - 1) - 1
    while b > 0 and edges[b] >= 1.0:
        b -= 1
    return b


@kernel
def survival_after(edges: Floats, survival: Floats, tail: Floats, fraction: float) -> float:
    """Give ∫ S from `fraction` to 1: summed from the far end, so that small tails keep all their digits."""
    b = bin_of(edges, fraction)
    return tail[b + 1] + survival[b] * (edges[b + 1] - min(fraction, 1.0))


@kernel
def expected_left(edges: Floats, survival: Floats, tail: Floats, fraction: float) -> float:
    """Give the expected rest ∫ S(x)/S(w) dx over x > w, given that w = `fraction` was survived.

    A job that should be dead by now is taken to need everything that is left.
    """
    alive = survival[bin_of(edges, fraction)]
    if alive <= 0.0:
        return 1.0 - fraction
    return survival_after(edges, survival, tail, fraction) / alive
