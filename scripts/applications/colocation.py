"""What two applications on one GPU do to one another's time."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.measurements import GAVEL, GavelRow, read_json

if TYPE_CHECKING:
    from pathlib import Path

    from applications.recipes import Recipe

MEASURED_TYPES = ("K80", "P100", "V100")
"""GPU types on which Gavel ran pairs."""


@dataclass(frozen=True, slots=True)
class ColocationRow:
    """One line of `colocation.csv`: how much longer `application` takes beside `other` than alone on the GPU."""

    gpu_type: str
    application: str
    other: str
    slowdown: float
    method: str
    source: str


class MeasuredPairs:
    """Gavel's pairs of single-GPU jobs on one GPU of a type.

    A pair counts only where both jobs made progress: 0 says that they did not fit, or were not run. A slow-down is the
    speed alone over the speed beside the other, both of the same file; two of Gavel's are below 1, and count as 1.

    Args:
        data: Folder of the public measurements.
        gpu: GPU type, one of `MEASURED_TYPES`.
    """

    def __init__(self, data: Path, gpu: str) -> None:
        table = read_json(data / GAVEL)[gpu.lower()]
        single = [key for key in table if key.endswith(", 1)")]
        self.gpu = gpu
        self._slowdowns = {
            (key, other): max(1.0, float(table[key]["null"]) / float(table[key][other][0]))
            for key in single
            for other in single
            if min(table[key].get(other, (0.0,))) > 0.0
        }

    def all(self) -> list[float]:
        """List the slow-downs of all pairs, both jobs of each."""
        return list(self._slowdowns.values())

    def beside_itself(self) -> dict[str, float]:
        """Return the slow-down of every model beside a copy of itself."""
        return {one: slowdown for (one, other), slowdown in self._slowdowns.items() if one == other}

    def between(self, one: str | None, other: str | None) -> tuple[float, str, str]:
        """Return slow-down, method and source of one model beside another; None is a model that Gavel did not run."""
        table = f"{GAVEL} {self.gpu.lower()}"
        if one is not None and other is not None and (one, other) in self._slowdowns:
            return self._slowdowns[one, other], "measured", f"{table} {one}: null / beside {other}"
        suffered = [s for (key, _), s in self._slowdowns.items() if key == one]
        if suffered:
            return statistics.median(suffered), "assumed", f"{table} {one}: median beside {len(suffered)} others"
        inflicted = [s for (_, key), s in self._slowdowns.items() if key == other]
        if inflicted:
            return statistics.median(inflicted), "assumed", f"{table}: median of {len(inflicted)} beside {other}"
        return statistics.median(self.all()), "assumed", f"{table}: median of all {len(self.all())}"


def colocation_rows(recipes: tuple[Recipe, ...], factors: dict[str, float], data: Path) -> list[ColocationRow]:
    """Return a line for every GPU type and ordered pair of applications.

    Args:
        recipes: The applications.
        factors: Single-GPU speed against a V100, by GPU type.
        data: Folder of the public measurements.
    """
    pairs = {gpu: MeasuredPairs(data, gpu) for gpu in MEASURED_TYPES}
    keys = {recipe.name: gavel_key(recipe) for recipe in recipes}
    rows = []
    for gpu in factors:
        donor = nearest_measured(gpu, factors)
        for one, key in keys.items():
            for other, other_key in keys.items():
                slowdown, method, source = pairs[donor].between(key, other_key)
                if donor != gpu:
                    method, source = "assumed", f"as on {donor}: {source}"
                rows.append(ColocationRow(gpu, one, other, slowdown, method, source))
    return rows


def nearest_measured(gpu: str, factors: dict[str, float]) -> str:
    """Return the GPU type with pairs whose speed factor is nearest: itself, where it has pairs."""
    return min(MEASURED_TYPES, key=lambda other: (abs(math.log(factors[other] / factors[gpu])), other))


def gavel_key(recipe: Recipe) -> str | None:
    """Return the key of the model that Gavel ran with one GPU, None where the application is not Gavel's."""
    row = next((row for row in recipe.rows.values() if isinstance(row, GavelRow)), None)
    return None if row is None else f"('{row.model}', 1)"
