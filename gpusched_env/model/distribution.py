"""How many epochs a job will need: its survival function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import ArrayLike, NDArray


@lru_cache(maxsize=16)
def equal_bins(bins: int) -> NDArray[np.float64]:
    """Return the edges of equal bins of (0, 1], (bins + 1,), read-only."""
    return checks.frozen_array(np.linspace(0.0, 1.0, bins + 1))


@dataclass(frozen=True, slots=True, eq=False)
class EpochDistribution:
    """The distribution of the epochs a job needs, as a fraction of its maximum epochs E_j.

    The survival function S_j(x) = P(X_j > x) is constant on bins, so X_j takes its values at the bins' right
    edges: a job that "ends in bin b" ends when it has done `edges[b + 1] · E_j` epochs.

    Args:
        edges: Bin edges as fractions of the maximum epochs, shape (B + 1,), strictly increasing from 0 to 1.
        survival: P(X_j > x) for x in [edges[b], edges[b + 1]), shape (B,); starts at 1, never rises, ≥ 0.
        family: Name of the family that it was made from; every result records it.

    Raises:
        InputError: The edges or the survival values do not have that form.
    """

    edges: NDArray[np.float64]
    survival: NDArray[np.float64]
    family: str = "histogram"

    def __post_init__(self) -> None:
        edges, survival = checks.frozen_array(self.edges), checks.frozen_array(self.survival)
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "survival", survival)
        if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0.0 or edges[-1] != 1.0 or not np.all(np.diff(edges) > 0):
            raise InputError("distribution.edges", edges.tolist(), "strictly increasing numbers from 0 to 1")
        if survival.shape != (len(edges) - 1,):
            raise InputError("distribution.survival", survival.tolist(), f"{len(edges) - 1} numbers, one for each bin")
        falls = np.all(np.diff(survival) <= 0) and np.all(survival >= 0)
        if not falls or survival[0] != 1.0:
            raise InputError("distribution.survival", survival.tolist(), "numbers from 1 downwards, none below 0")

    @classmethod
    def certain(cls) -> EpochDistribution:
        """Make the distribution of a job that needs all of its maximum epochs."""
        return cls(np.array([0.0, 1.0]), np.array([1.0]), "certain")

    @classmethod
    def from_masses(
        cls, masses: ArrayLike, edges: ArrayLike | None = None, family: str = "histogram"
    ) -> EpochDistribution:
        """Make a distribution from the probability of ending in each bin.

        Args:
            masses: Weights of the bins, shape (B,), ≥ 0, not all 0; scaled to sum to 1.
            edges: Bin edges, shape (B + 1,); equal bins by default.
            family: Name of the family.

        Raises:
            InputError: A weight is negative or not finite, or all are 0.
        """
        weights = np.asarray(masses, dtype=np.float64)
        if weights.ndim != 1 or not np.all(np.isfinite(weights)) or np.any(weights < 0) or not weights.sum() > 0:
            raise InputError("distribution.masses", weights.tolist(), "numbers >= 0 with a positive sum")
        tail = np.cumsum(weights[::-1])[::-1]
        bins = np.linspace(0.0, 1.0, len(weights) + 1) if edges is None else np.asarray(edges, dtype=np.float64)
        return cls(bins, tail / tail[0], family)

    @classmethod
    def from_runs(cls, fractions: ArrayLike, bins: int = 100) -> EpochDistribution:
        """Make the histogram of finished runs.

        Args:
            fractions: Epochs needed by each run as a fraction of its maximum epochs, in (0, 1], shape (R,), R ≥ 1.
            bins: Number of equal bins of (0, 1]; a run at an edge counts in the bin that ends there.

        Raises:
            InputError: There is no run, or a fraction is out of its range.
        """
        shares = np.asarray(fractions, dtype=np.float64)
        if shares.ndim != 1 or not len(shares) or not np.all((shares > 0.0) & (shares <= 1.0)):
            raise InputError("distribution.fractions", shares.tolist(), "numbers > 0 and <= 1, one or more")
        edges = np.linspace(0.0, 1.0, checks.whole("distribution.bins", bins) + 1)
        bin_of_run = np.searchsorted(edges, shares * (1.0 - 1e-12), side="left") - 1
        return cls.from_masses(np.bincount(np.maximum(bin_of_run, 0), minlength=bins))

    @classmethod
    def from_quantiles(cls, probabilities: ArrayLike, fractions: ArrayLike, bins: int = 100) -> EpochDistribution:
        """Make a distribution from quantiles, with straight lines between them; equal ones are a mass at one point.

        Args:
            probabilities: Rising from 0 to 1, shape (Q,), Q ≥ 2.
            fractions: The quantiles as fractions of the maximum epochs, > 0, never falling, the last 1, shape (Q,).
            bins: Number of equal bins of (0, 1].

        Raises:
            InputError: A value is out of its range or order.
        """
        p, x = np.asarray(probabilities, dtype=np.float64), np.asarray(fractions, dtype=np.float64)
        if p.ndim != 1 or len(p) < 2 or p[0] != 0.0 or p[-1] != 1.0 or not np.all(np.diff(p) > 0.0):
            raise InputError("distribution.probabilities", p.tolist(), "numbers that rise from 0 to 1")
        if x.shape != p.shape or not x[0] > 0.0 or not np.all(np.diff(x) >= 0.0) or x[-1] != 1.0:
            raise InputError("distribution.fractions", x.tolist(), f"{len(p)} numbers > 0 that never fall, the last 1")
        edges = np.linspace(0.0, 1.0, checks.whole("distribution.bins", bins) + 1)
        above = np.searchsorted(x, edges, side="right")
        inside = (above > 0) & (above < len(x))
        high = np.where(inside, above, 1)
        part = (edges - x[high - 1]) / np.where(inside, x[high] - x[high - 1], 1.0)
        cdf = np.where(inside, p[high - 1] + (p[high] - p[high - 1]) * part, above / len(x))
        return cls.from_masses(np.diff(cdf))

    @classmethod
    def of_rows(cls, masses: ArrayLike, family: str = "histogram") -> tuple[EpochDistribution, ...]:
        """Make the distribution of each row, as `from_masses` does, on equal bins.

        Args:
            masses: Weights of the bins, shape (D, B), ≥ 0, none of the rows all 0.
            family: Name of the family.

        Raises:
            InputError: A weight is negative or not finite, or all of a row are 0.
        """
        weights = np.asarray(masses, dtype=np.float64)
        good = weights.ndim == 2 and np.all(np.isfinite(weights)) and np.all(weights >= 0)
        if not good or not np.all(weights.sum(axis=1) > 0):
            raise InputError("distribution.masses", weights.tolist(), "rows of numbers >= 0, each with a positive sum")
        tail = np.cumsum(weights[:, ::-1], axis=1)[:, ::-1]
        survival = checks.frozen_array(tail / tail[:, :1])
        edges = equal_bins(weights.shape[1])
        return tuple(cls._checked(edges, row, family) for row in survival)

    @classmethod
    def _checked(cls, edges: NDArray[np.float64], survival: NDArray[np.float64], family: str) -> EpochDistribution:
        value = object.__new__(cls)
        for name, given in (("edges", edges), ("survival", survival), ("family", family)):
            object.__setattr__(value, name, given)
        return value

    @property
    def masses(self) -> NDArray[np.float64]:
        """Return the probability of ending in each bin, shape (B,)."""
        return self.survival - np.append(self.survival[1:], 0.0)

    @property
    def mean(self) -> float:
        """Return the mean epochs needed, as a fraction of the maximum epochs: ∫ S(x) dx."""
        return float(np.dot(self.survival, np.diff(self.edges)))

    def sample(self, rng: Generator) -> float:
        """Draw the epochs needed, as a fraction of the maximum epochs: the right edge of a bin."""
        return float(self.fractions_at(np.array([rng.random()]))[0])

    def fractions_at(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn uniform draws u in [0, 1) into epochs needed: the right edge of the last bin with S > u.

        Args:
            uniform: The draws, shape (n,).

        Returns:
            Fractions of the maximum epochs in (0, 1], shape (n,).
        """
        survived = np.searchsorted(-self.survival, -uniform, side="left")
        fractions: NDArray[np.float64] = self.edges[np.maximum(survived, 1)]
        return fractions

    def __repr__(self) -> str:
        mean = float(np.sum(-np.diff(np.append(self.survival, 0.0)) * self.edges[1:]))
        return f"EpochDistribution({self.family!r}, {len(self.survival)} bins, mean {mean:.3g} of the maximum epochs)"

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return checks.rebuilt(self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EpochDistribution):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[bytes, bytes, str]:
        return self.edges.tobytes(), self.survival.tobytes(), self.family
