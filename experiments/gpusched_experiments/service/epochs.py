"""The distributions of a request: masses, survival, quantiles, or what former runs needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution

if TYPE_CHECKING:
    from gpusched_experiments.service.fields import DistributionFields

WAYS = ("masses", "survival", "quantiles", "history_epochs")


def distribution_of(where: str, given: DistributionFields, most: tuple[float, str]) -> EpochDistribution:
    """Make the distribution of an entry.

    Args:
        where: The entry's path, for errors.
        given: The entry.
        most: Maximum epochs that a history is of where the entry does not say, and whose they are.

    Raises:
        InputError: Not one of the four ways is given, or what is given is not of its form.
    """
    ways = [name for name in WAYS if getattr(given, name) is not None]
    if len(ways) != 1:
        raise InputError(where, ways, f"one of {', '.join(WAYS)}")
    if given.edges is not None and ways[0] not in WAYS[:2]:
        raise InputError(f"{where}.edges", "...", "nothing beside " + ways[0])
    try:
        return _MAKE[ways[0]](given, most)
    except InputError as error:
        field = error.field.replace("distribution.fractions", ways[0]).rpartition(".")[2]
        raise InputError(f"{where}.{field}", error.value, error.allowed) from None


def _masses(given: DistributionFields, _: tuple[float, str]) -> EpochDistribution:
    masses = np.array(given.masses, dtype=np.float64)
    if given.edges is not None and len(given.edges) != len(masses) + 1:
        raise InputError("edges", len(given.edges), f"{len(masses) + 1} numbers, one more than masses")
    return EpochDistribution.from_masses(masses, given.edges)


def _survival(given: DistributionFields, _: tuple[float, str]) -> EpochDistribution:
    survival = np.array(given.survival, dtype=np.float64)
    edges = np.linspace(0.0, 1.0, len(survival) + 1) if given.edges is None else np.array(given.edges)
    return EpochDistribution(edges, survival)


def _quantiles(given: DistributionFields, _: tuple[float, str]) -> EpochDistribution:
    """Take the mass between two quantiles to lie at the end of the piece between them, as every bin's does."""
    pairs = np.array(given.quantiles, dtype=np.float64).reshape(-1, 2)
    if not len(pairs) or pairs[-1, 1] < 1.0:
        pairs = np.vstack([pairs, [1.0, 1.0]])
    probability, fraction = np.concatenate([[0.0], pairs[:, 0]]), np.concatenate([[0.0], pairs[:, 1]])
    if np.any(np.diff(fraction) <= 0.0) or np.any(np.diff(probability) < 0.0) or probability[-1] != 1.0:
        allowed = "pairs (probability, fraction): fractions rising from above 0 to 1, probabilities never falling, to 1"
        raise InputError("quantiles", given.quantiles, allowed)
    return EpochDistribution(fraction, 1.0 - probability[:-1])


def _history(given: DistributionFields, most: tuple[float, str]) -> EpochDistribution:
    largest, whose = most if given.max_epochs is None else (given.max_epochs, "the history")
    epochs = np.array(given.history_epochs)
    if np.any(epochs > largest):
        first = int(np.argmax(epochs > largest))
        allowed = f"at most {largest:g}, the max_epochs of {whose}; a history may have max_epochs of its own"
        raise InputError(f"history_epochs[{first}]", float(epochs[first]), allowed)
    return EpochDistribution.from_runs(epochs / largest, given.bins)


_MAKE = {"masses": _masses, "survival": _survival, "quantiles": _quantiles, "history_epochs": _history}
