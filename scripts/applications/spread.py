"""How unequal the workers of one job are on shared GPUs: a check of the order of magnitude, used for no table."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from applications.measurements import number, read_csv

if TYPE_CHECKING:
    from pathlib import Path

FILE = "alibaba_pai_minibatch/coefficient_variation.csv"


def worker_spread(data: Path) -> str:
    """Return a line with quantiles, over jobs, of the coefficient of variation of step times between a job's workers.

    Args:
        data: Folder of the public measurements.
    """
    medians = []
    for row in read_csv(data / FILE):
        values = [number(cell) for name, cell in row.items() if name and cell]
        medians.append(statistics.median(values))
    quarters = statistics.quantiles(medians, n=4)
    shown = ", ".join(f"{value:.2f}" for value in quarters)
    return f"workers of one job on shared GPUs: coefficient of variation, quartiles over {len(medians)} jobs: {shown}"
