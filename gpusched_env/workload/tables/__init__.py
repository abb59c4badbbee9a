"""The built-in measurements: applications, GPU types, and pairs of jobs on one GPU."""

from __future__ import annotations

import csv
from importlib.resources import files

Row = dict[str, str]


def read_table(name: str) -> list[Row]:
    text = files("gpusched_env").joinpath("workload", "tables", "data", name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
