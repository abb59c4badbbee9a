"""A training speed as a function of the number of GPUs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from applications.point import Point


def speed_at(points: Sequence[Point], gpus: int) -> float:
    """Return the speed at a number of GPUs: straight lines between the logarithms, falls included.

    Beyond the last measured number the last line goes on, but never steeper than linear.

    Args:
        points: Usable speeds by number of GPUs, at least two.
        gpus: Number of GPUs, not below the first of `points`.

    Returns:
        Speed [samples/s].
    """
    high = next((i for i, p in enumerate(points) if p.gpus >= gpus), len(points) - 1)
    if points[high].gpus == gpus:
        return points[high].samples_per_s
    left, right = points[high - 1], points[high]
    slope = math.log(right.samples_per_s / left.samples_per_s) / math.log(right.gpus / left.gpus)
    if gpus > right.gpus:
        return right.samples_per_s * (gpus / right.gpus) ** min(slope, 1.0)
    return left.samples_per_s * (gpus / left.gpus) ** slope
