"""Factors on the time of an application whose GPUs are on different servers: as Gavel measured them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.colocation import MEASURED_TYPES, gavel_key
from applications.measurements import GAVEL, GAVEL_COUNTS, read_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from applications.recipes import Recipe


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """One line of `spread.csv`: how much longer an epoch takes on GPUs of different servers than of one."""

    application: str
    gpu_type: str
    gpus: int
    factor: float
    method: str
    source: str


def spread_rows(recipe: Recipe, data: Path) -> Iterator[SpreadRow]:
    """Yield a line for every type and number of GPUs of which both throughputs were measured; nothing is borrowed."""
    table, model = read_json(data / GAVEL), gavel_key(recipe)
    for gpu in MEASURED_TYPES if model is not None else ():
        for gpus in GAVEL_COUNTS[1:]:
            key = model.replace(", 1)", f", {gpus})")  # type: ignore[union-attr]
            together, spread = (table[name].get(key, {}).get("null", 0.0) for name in _tables(gpu))
            if together > 0.0 and spread > 0.0:
                source = f"{GAVEL} {' / '.join(_tables(gpu))} {key}: null"
                yield SpreadRow(recipe.name, gpu, gpus, together / spread, "measured", source)


def _tables(gpu: str) -> tuple[str, str]:
    return gpu.lower(), f"{gpu.lower()}_unconsolidated"
