"""Compute the table of the share of idle time filled, by waiting jobs and gaps, and write it to standard output.

    python -m gpusched_reproductions.systems.fikit.table > gpusched_env/workload/tables/data/filled.csv

It needs the kernel times of `cases.KERNELS`. Always the same figures for the same kernels.
"""

from __future__ import annotations

import csv
import sys
from typing import TYPE_CHECKING, TextIO

import numpy as np

from gpusched_reproductions.systems.fikit.cases import GAP_EVERY
from gpusched_reproductions.systems.fikit.parts import shares_filled

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_WAITING = 9
COLUMNS = ("gap_every", "waiting", "filled", "mean", "source")
SOURCE = "simulation of Orion's kernel times (MIT)"


def rows(most: int = MOST_WAITING) -> Iterator[tuple[int, int, float, float, str]]:
    """Yield gap, number of waiting jobs up to `most`, median and mean part filled, and source."""
    for every in GAP_EVERY:
        for waiting in range(1, most + 1):
            part = shares_filled(every, waiting)[0]
            yield every, waiting, round(float(np.median(part)), 4), round(float(part.mean()), 4), SOURCE


def write(file: TextIO) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(rows())


if __name__ == "__main__":
    write(sys.stdout)
