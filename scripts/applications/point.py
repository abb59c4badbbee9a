"""One training speed that a public file gives."""

from __future__ import annotations

from dataclasses import dataclass

MAX_GPUS = 8


@dataclass(frozen=True, slots=True)
class Point:
    """A speed at a number of GPUs.

    Args:
        gpus: Number of GPUs, >= 1.
        samples_per_s: Speed over all GPUs together [samples/s].
        source: File, row key and columns that the speed was read from.
    """

    gpus: int
    samples_per_s: float
    source: str
