"""Which cells of the public tables are not used, and why."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

from applications.measurements import GAVEL, WISR, ElasticFlowRow, GavelRow, read_csv, read_json
from applications.point import Point
from applications.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from applications.measurements import Measurement

SUPERLINEAR = 1.15
"""More speed per GPU than this, against fewer GPUs, is taken for a fault of the row."""

Dropped = tuple[Point, str]


def screen(points: list[Point]) -> tuple[list[Point], list[Dropped]]:
    """Split a row into what can be used and what cannot.

    Dropped are blanks, NaN and zeros; counts more than 1.15 times linear against one GPU; and a count that the next
    one beats by more than 1.15 times linear, because the slower of the two is then out of line. A row without one GPU
    keeps nothing. A fall is no fault and stays.

    Args:
        points: Speeds of one row.

    Returns:
        The usable speeds by number of GPUs, and the others with the reason.
    """
    dropped: list[Dropped] = []
    kept: list[Point] = []
    for point in sorted(points, key=lambda p: p.gpus):
        if not math.isfinite(point.samples_per_s):
            dropped.append((point, "blank or NaN"))
        elif point.samples_per_s <= 0.0:
            dropped.append((point, "zero: not run, or it does not fit"))
        else:
            kept.append(point)
    if not kept or kept[0].gpus != 1:
        return [], dropped + [(p, "no single-GPU speed to compare with") for p in kept]
    kept, more = _without_superlinear(kept)
    kept, still_more = _without_leaps(kept)
    return kept, dropped + more + still_more


def _without_superlinear(points: list[Point]) -> tuple[list[Point], list[Dropped]]:
    kept, dropped = [], []
    for point in points:
        speed_up = point.samples_per_s / points[0].samples_per_s
        if speed_up > SUPERLINEAR * point.gpus:
            dropped.append((point, f"{speed_up:.2f} times one GPU: more than {SUPERLINEAR} x {point.gpus}"))
        else:
            kept.append(point)
    return kept, dropped


def _without_leaps(points: list[Point]) -> tuple[list[Point], list[Dropped]]:
    kept, dropped = list(points), []
    for low, high in itertools.pairwise(points):
        speed_up = high.samples_per_s / low.samples_per_s
        if low.gpus > 1 and speed_up > SUPERLINEAR * high.gpus / low.gpus:
            kept.remove(low)
            dropped.append((low, f"out of line: {high.gpus} GPUs are {speed_up:.2f} times as fast"))
    return kept, dropped


def survey(data: Path) -> Iterator[str]:
    """Yield a line `dropped FILE ROW: REASON` for every unusable cell of the scaling tables.

    Args:
        data: Folder of the public measurements.
    """
    for row in _scaling_rows(data):
        for point, reason in screen(row.read(data))[1]:
            yield f"dropped {point.source}: {reason}"
    yield from _slower_than_p100(data)


def _scaling_rows(data: Path) -> Iterator[Measurement]:
    for path in sorted((data / "elasticflow").glob("throughputs_*/*.csv")):
        file = path.relative_to(data / "elasticflow").as_posix()
        for row in read_csv(path):
            yield ElasticFlowRow(file, int(row["global_batch_size"]))
    for file, workers in ((GAVEL, ("k80", "p100", "v100")), (WISR, ("v100",))):
        for worker in workers:
            for model, batch in scaling_models(data):
                yield GavelRow(worker, model, batch, file)
    for recipe in RECIPES:
        yield from recipe.whole_nodes.values()


def scaling_models(data: Path) -> list[tuple[str, int]]:
    """Return the (model key, batch per GPU) pairs that Gavel ran on several GPUs."""
    keys = [key for key in read_json(data / GAVEL)["v100"] if key.endswith(", 2)")]
    models = [key.split("'")[1] for key in keys]
    return sorted((model, int(model.split("batch size ")[1].rstrip(")"))) for model in models)


def _slower_than_p100(data: Path) -> Iterator[str]:
    for model, batch in scaling_models(data):
        ours, theirs = (
            row.read(data)[0] for row in (GavelRow("v100", model, batch, WISR), GavelRow("p100", model, batch))
        )
        if 0.0 < ours.samples_per_s < theirs.samples_per_s:
            yield (
                f"dropped {ours.source}: as a speed (slower than Gavel's P100, {ours.samples_per_s:.0f} < "
                f"{theirs.samples_per_s:.0f} samples/s: other code or data); only its speed-ups over one GPU are used"
            )
