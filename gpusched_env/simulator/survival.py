"""Survival functions, as arrays and for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.model import EpochDistribution
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

SAME_EPOCH = 1e-12
"""Epochs this close below a bin edge, as a fraction of the maximum epochs, have reached it: the rest is rounding.

The epochs done follow from times, which the simulator resolves to 1e-15 of the present time (`events.SAME_TIME`): that
is this much up to a thousand times a job's full time.
"""


class Curve(NamedTuple):
    """The survival function of one distribution.

    Attributes:
        edges: Bin edges as fractions of the maximum epochs, (B + 1,).
        survival: S on each bin, (B,), not rising.
        tail: ∫ S from each edge to 1, (B + 1,).
    """

    edges: Floats
    survival: Floats
    tail: Floats


@dataclass(frozen=True, slots=True, eq=False)
class DistributionTable:
    """D distributions, padded on the right to the most bins B with bins of no length and no survivors.

    Attributes:
        bins: The row of `edges` that each distribution has, (D,).
        edges: Different edges of bins, as fractions of the maximum epochs, (E, B + 1).
        survival: S on each bin, (D, B).
        tail: ∫ S from each edge to 1, (D, B + 1); the first column is the mean.
    """

    bins: NDArray[np.int64]
    edges: NDArray[np.float64]
    survival: NDArray[np.float64]
    tail: NDArray[np.float64]

    @classmethod
    def of(cls, distributions: Sequence[EpochDistribution]) -> DistributionTable:
        """Make the table of `distributions`."""
        bins = max(len(d.survival) for d in distributions)
        edges = np.ones((len(distributions), bins + 1))
        survival = np.zeros((len(distributions), bins))
        for d, distribution in enumerate(distributions):
            edges[d, : len(distribution.edges)] = distribution.edges
            survival[d, : len(distribution.survival)] = distribution.survival
        tail = np.zeros_like(edges)
        tail[:, :-1] = np.cumsum((survival * np.diff(edges, axis=1))[:, ::-1], axis=1)[:, ::-1]
        rows: dict[bytes, int] = {}
        own = np.array([rows.setdefault(each.tobytes(), len(rows)) for each in edges])
        different = np.frombuffer(b"".join(rows)).reshape(len(rows), -1).copy()
        return cls(own, different, survival, tail)

    def curve(self, distribution: int) -> Curve:
        """Return the survival function of a distribution."""
        return Curve(self.edges[self.bins[distribution]], self.survival[distribution], self.tail[distribution])


@kernel
def curve_of(board: Board, job: int) -> Curve:
    """Return the survival function of a job."""
    row = int(board.jobs[job, at.DISTRIBUTION])
    return Curve(board.edges[int(board.jobs[job, at.EDGES])], board.survival[row], board.tail[row])


@kernel
def bin_of(edges: Floats, fraction: float) -> int:
    """Find the bin [edges[b], edges[b + 1]) that holds `fraction`; the last one with a length for 1 and above.

    A fraction that is less than `SAME_EPOCH` below an edge is on it.
    """
    b = min(int(np.searchsorted(edges, fraction + SAME_EPOCH, side="right")), edges.shape[0] - 1) - 1
    while b > 0 and edges[b] >= 1.0:
        b -= 1
    return b


@lean_kernel
def likely_bin(edges: Floats, fraction: float) -> int:
    """Find the bin that `bin_of` finds; at once if bins are equal."""
    reached = fraction + SAME_EPOCH
    b = int(reached * (edges.shape[0] - 1))
    if 0 <= b < edges.shape[0] - 1 and edges[b] <= reached < edges[b + 1]:
        return b
    return bin_of(edges, fraction)


@kernel
def survival_after(curve: Curve, fraction: float) -> float:
    """Return ∫ S from `fraction` to 1: summed from the far end, so that small tails keep all their digits."""
    b = bin_of(curve.edges, fraction)
    return curve.tail[b + 1] + curve.survival[b] * (curve.edges[b + 1] - min(fraction, 1.0))


@kernel
def expected_rest(curve: Curve, fraction: float) -> float:
    """Return the expected rest ∫ S(x)/S(w) dx over x > w, given that w = `fraction` was survived.

    A job that has passed its last bin with survivors is taken to need all epochs left.
    """
    alive = curve.survival[bin_of(curve.edges, fraction)]
    if alive <= 0.0:
        return 1.0 - fraction
    return survival_after(curve, fraction) / alive


@kernel
def expected_left(board: Board, job: int) -> float:
    """Return the expected epochs left of a job, given those done."""
    largest = board.jobs[job, at.MAX_EPOCHS]
    return expected_rest(curve_of(board, job), board.jobs[job, at.EPOCHS] / largest) * largest
