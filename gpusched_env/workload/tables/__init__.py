"""The built-in measurements: applications, GPU types, and pairs of jobs on one GPU."""

from __future__ import annotations

import csv
from importlib.resources import files

Row = dict[str, str]
PUBLISHED, MLPERF = "published", "mlperf"
"""Libraries of the package: the published histograms, and the epochs that MLPerf's runs needed, by application."""
MARKETS, YEARS = ("de-lu", "caiso", "ercot"), range(2020, 2025)
PRICE_SERIES = (*MARKETS, *(f"{market}-{year}" for market in MARKETS for year in YEARS))
"""Names of the built-in series of prices."""
PRICE_FIELDS = ("time", "eur_per_kwh", "eur_per_mwh", "g_per_kwh", "pue")
"""Fields of a file of prices."""
SLICE, SLICES = r"(?:^|[^0-9a-z])(\d+)g\.\d+gb", 7
"""The word in a GPU type's name, such as 3g.20gb, for a slice of MIG; and how many slices a GPU has."""


def read_table(name: str) -> list[Row]:
    text = files("gpusched_env").joinpath("workload", "tables", "data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
