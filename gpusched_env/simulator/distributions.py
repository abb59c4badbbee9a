"""Distributions of epochs needed as arrays that kernels read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.model import EpochDistribution


@dataclass(frozen=True, slots=True, eq=False)
class DistributionTable:
    """D distributions, padded on the right to the most bins B with bins of no length and no survivors.

    Attributes:
        edges: Bin edges as fractions of the maximum epochs, (D, B + 1).
        survival: S on each bin, (D, B).
        tail: ∫ S from each edge to 1, (D, B + 1); the first column is the mean.
    """

    edges: NDArray[np.float64]
    survival: NDArray[np.float64]
    tail: NDArray[np.float64]

    @classmethod
    def of(cls, distributions: Sequence[EpochDistribution]) -> DistributionTable:
        """Make the table of `distributions`."""
        bins = max(len(d.survival) for d in distributions)
        edges = np.ones((len(distributions), bins + 1))
        survival = np.zeros((len(distributions), bins))
        for row, distribution in enumerate(distributions):
            edges[row, : len(distribution.edges)] = distribution.edges
            survival[row, : len(distribution.survival)] = distribution.survival
        tail = np.zeros_like(edges)
        tail[:, :-1] = np.cumsum((survival * np.diff(edges, axis=1))[:, ::-1], axis=1)[:, ::-1]
        return cls(edges, survival, tail)
