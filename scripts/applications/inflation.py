"""How much longer a job may take on a fraction of a GPU: the rows of the random model of sharing."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.colocation import MeasuredPairs, nearest_measured
from applications.measurements import GAVEL

if TYPE_CHECKING:
    from pathlib import Path

LEAST = 1.01
"""Least inflation that the random model draws."""
FRACTIONS = (0.5, 0.25, 0.125)


@dataclass(frozen=True, slots=True)
class InflationRow:
    """One line of `inflation.csv`."""

    gpu_type: str
    fraction: float
    max_inflation: float
    method: str
    source: str


def inflation_rows(factors: dict[str, float], data: Path) -> list[InflationRow]:
    """Return a line for every GPU type and fraction.

    On half a GPU the greatest inflation is the one with which a uniform draw has the measured median: twice the median
    less the least inflation. On 1/n of a GPU the excess is n - 1 times that of a half: the others' effects add up.

    Args:
        factors: Single-GPU speed against a V100, by GPU type.
        data: Folder of the public measurements.
    """
    rows = []
    for gpu in factors:
        donor = nearest_measured(gpu, factors)
        measured = MeasuredPairs(data, donor).all()
        median = statistics.median(measured)
        source = f"2 x {median:.4f} - {LEAST} for a half: {GAVEL} {donor.lower()}, median of {len(measured)} slow-downs"
        source += "" if donor == gpu else f" (nearest type with pairs to {gpu})"
        for fraction in FRACTIONS:
            others = round(1.0 / fraction) - 1
            greatest = 1.0 + others * (2.0 * median - LEAST - 1.0)
            note = source if others == 1 else f"{source}; excess x {others} others"
            rows.append(InflationRow(gpu, fraction, greatest, "assumed", note))
    return rows
