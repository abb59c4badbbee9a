"""Distributions of epochs from CSV files: histograms as columns, or finished runs as rows (docs/own-cluster.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution
from gpusched_env.workload.tables.own_applications import read_csv
from gpusched_env.workload.tables.reading import number, read_table

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_env.workload.tables.reading import Row

PUBLISHED = "published"
"""The library of the package with the published histograms."""
RUN_COLUMNS = ("epochs", "max_epochs", "application", "source")


def read_histograms(path: str | Path) -> dict[str, EpochDistribution]:
    """Read histograms by name: every column is one, its rows are the weights of equal bins of (0, E].

    Args:
        path: A CSV file, or `published`.

    Raises:
        InputError: The file cannot be read, or a weight is not allowed.
    """
    where = "published_epochs.csv" if path == PUBLISHED else str(path)
    table = list(enumerate(read_table(where), start=2)) if path == PUBLISHED else []
    rows = table or read_csv(path, "epochs.library", (PUBLISHED,))
    found = {}
    for name in rows[0][1]:
        weights = [number(f"{where} line {line}: {name}", row[name]) for line, row in rows]
        try:
            found[name] = EpochDistribution.from_masses(weights)
        except InputError as error:
            raise InputError(f"{where}: {name}", error.value, error.allowed) from None
    return found


def read_runs(path: str | Path, bins: int) -> dict[str, EpochDistribution]:
    """Make histograms of finished runs, one for each application, or one of all.

    Args:
        path: A CSV file with a row for each run: the epochs that it needed (`epochs`), the most that it was allowed
            (`max_epochs`), and, if there is such a column, what it trained (`application`).
        bins: Equal bins of (0, E].

    Raises:
        InputError: The file cannot be read, or a value is not allowed.
    """
    rows = read_csv(path, "epochs.runs")
    heading = rows[0][1]
    for column in heading:
        if column not in RUN_COLUMNS:
            raise InputError(f"{path}: column", column, f"one of {', '.join(RUN_COLUMNS)}")
    for column in ("epochs", "max_epochs"):
        if column not in heading:
            raise InputError(f"{path}: column {column}", None, "a column of this name")
    shares: dict[str, list[float]] = {}
    for line, row in rows:
        shares.setdefault(row.get("application", ""), []).append(_share(f"{path} line {line}", row))
    return {name: EpochDistribution.from_runs(np.array(each), bins) for name, each in shares.items()}


def _share(where: str, row: Row) -> float:
    epochs, most = (number(f"{where}: {name}", row[name]) for name in ("epochs", "max_epochs"))
    if not 0.0 < most < float("inf"):
        raise InputError(f"{where}: max_epochs", most, "a finite number > 0")
    if not 0.0 < epochs <= most:
        raise InputError(f"{where}: epochs", epochs, f"a number > 0 and <= max_epochs ({most:g})")
    return epochs / most
