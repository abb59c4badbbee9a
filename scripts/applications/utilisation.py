"""For which part of the time an application keeps a GPU busy while it is alone there."""

from __future__ import annotations

import csv
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.colocation import MEASURED_TYPES, MeasuredPairs, gavel_key
from applications.measurements import GAVEL
from applications.restarts import MURI

if TYPE_CHECKING:
    from pathlib import Path

    from applications.recipes import Recipe

REFERENCE = "V100"
"""GPU type of Muri's stage times, and the one from which others follow."""


@dataclass(frozen=True, slots=True)
class UtilisationRow:
    """One line of `utilisation.csv`."""

    gpu_type: str
    application: str
    utilisation: float
    method: str
    source: str


def utilisation_rows(recipes: tuple[Recipe, ...], factors: dict[str, float], data: Path) -> list[UtilisationRow]:
    """Return a line for every GPU type and application.

    Two copies of a job of utilisation u on one GPU need 2 u of its time, so u = min(1, slow-down beside itself / 2)
    where Gavel ran that pair. Else the utilisation on a V100 is Muri's GPU time over iteration time, or the median of
    Gavel's. On other types the host needs as long, and the GPU 1 / f of its time: u' = (u / f) / (u / f + 1 - u).

    Args:
        recipes: The applications.
        factors: Single-GPU speed f against a V100, by GPU type.
        data: Folder of the public measurements.
    """
    measured = {gpu: MeasuredPairs(data, gpu).beside_itself() for gpu in MEASURED_TYPES}
    on_reference = {recipe.name: _on_reference(recipe, measured[REFERENCE], data) for recipe in recipes}
    rows = []
    for gpu, factor in factors.items():
        for recipe in recipes:
            own = measured.get(gpu, {}).get(gavel_key(recipe) or "")
            utilisation, method, source = on_reference[recipe.name]
            if own is not None:
                utilisation, method, source = (
                    _half(own),
                    "measured",
                    f"{GAVEL} {gpu.lower()} {gavel_key(recipe)}: beside itself",
                )
            elif gpu != REFERENCE:
                utilisation, method = (utilisation / factor) / (utilisation / factor + 1.0 - utilisation), "modelled"
                source = f"on a {REFERENCE}, {factor:.3g} times as fast: {source}"
            rows.append(UtilisationRow(gpu, recipe.name, utilisation, method, source))
    return rows


def _half(slowdown: float) -> float:
    return min(1.0, slowdown / 2.0)


def _on_reference(recipe: Recipe, measured: dict[str, float], data: Path) -> tuple[float, str, str]:
    key = gavel_key(recipe)
    if key is not None and key in measured:
        return _half(measured[key]), "measured", f"{GAVEL} {REFERENCE.lower()} {key}: beside itself"
    model = recipe.name.partition("-")[0]
    stages = _stages(data).get(model)
    if stages is not None:
        return stages, "measured", f"{MURI} {model} on one GPU: GPU time / iteration time"
    middle = statistics.median(_half(slowdown) for slowdown in measured.values())
    return middle, "assumed", f"{GAVEL} {REFERENCE.lower()}: median of {len(measured)} beside themselves"


def _stages(data: Path) -> dict[str, float]:
    with (data / MURI).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {row["model"]: float(row["gpu_ms"]) / float(row["iteration_ms"]) for row in rows if row["gpus"] == "1"}
