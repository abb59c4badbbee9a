"""Applications and epochs from CSV files of your own (docs/your-cluster.md), and reading tables."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import EpochDistribution
from gpusched_env.workload.tables import MLPERF, PUBLISHED, Row, read_table
from gpusched_env.workload.tables.applications import Application, number, whole

NEEDED = ("application", "gpu_type", "gpus", "max_epochs")
TIMES = ("seconds_per_epoch", "seconds")
ALLOWED = (*NEEDED, *TIMES, "nodes", "memory_gib", "restart_s", "state_gib", "method", "source")
FACTS = {"max_epochs": None, "memory_gib": 0.0, "restart_s": 0.0, "state_gib": 0.0}


def read_csv(path: str | Path, field: str, names: Sequence[str] = ()) -> list[tuple[int, Row]]:
    """Read a CSV file with a heading as texts: every row with its line; `names` may stand in place of a file."""
    instead = f"{', '.join(names)}, or " if names else ""
    try:
        reader = csv.DictReader(Path(path).read_text(encoding="utf-8-sig").splitlines())
        rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(field, str(path), f"{instead}a CSV file in UTF-8 that can be read ({error})") from None
    if not rows:
        raise InputError(field, str(path), "a CSV file with a heading and one row or more")
    for line, row in rows:
        if None in row or None in row.values():
            raise InputError(f"{path} line {line}", len(row) - (None in row), f"{len(reader.fieldnames or ())} values")
    return rows


def read_applications(
    path: str | Path, field: str = "applications", names: Sequence[str] = ()
) -> dict[str, Application]:
    """Read applications from a CSV file; the parameters are those of `read_csv`."""
    return applications_of(read_csv(path, field, names), str(path))


def applications_of(rows: Sequence[tuple[int, Row]], where: str) -> dict[str, Application]:
    """Make applications of rows with their lines, in the order of their first rows; `where` names the table in errors.

    An application's `max_epochs`, `memory_gib`, `restart_s` and `state_gib` stand on its first row, and may be left
    empty on others.
    """
    times_column = _check_columns(rows[0][1], where)
    grouped: dict[str, list[tuple[str, Row]]] = {}
    for line, row in rows:
        grouped.setdefault(row["application"], []).append((f"{where} line {line}", row))
    return {name: _application(name, of_name, times_column) for name, of_name in grouped.items()}


def _check_columns(row: Row, where: str) -> str:
    for column in row:
        if column not in ALLOWED:
            raise InputError(f"{where}: column", column, f"one of {', '.join(ALLOWED)}")
    for column in NEEDED:
        if column not in row:
            raise InputError(f"{where}: column {column}", None, "a column of this name")
    times = [column for column in TIMES if column in row]
    if len(times) != 1:
        raise InputError(f"{where}: columns", times, "one of seconds_per_epoch and seconds")
    return times[0]


def _application(name: str, rows: Sequence[tuple[str, Row]], times_column: str) -> Application:
    facts = {fact: _fact(rows, fact, usual) for fact, usual in FACTS.items()}
    part = 1.0 / facts["max_epochs"] if times_column == "seconds" else 1.0
    times: dict[tuple[str, int, int], float] = {}
    for where, row in rows:
        seconds = number(f"{where}: {times_column}", row[times_column], positive=True) * part
        gpus = whole(f"{where}: gpus", row["gpus"])
        key = (row["gpu_type"], whole(f"{where}: nodes", row.get("nodes") or "1"), gpus)
        if key in times:
            raise InputError(f"{where}: gpus", gpus, "each number of GPUs of a type once")
        times[key] = seconds
    return Application.of_times(name, facts, times)


def _fact(rows: Iterable[tuple[str, Row]], fact: str, usual: float | None) -> float:
    """Return the facts that all rows of an application share."""
    said = [(where, row[fact]) for where, row in rows if row.get(fact)]
    if not said:
        if usual is None:
            raise InputError(f"{next(iter(rows))[0]}: {fact}", "", "a number > 0")
        return usual
    values = [(f"{where}: {fact}", number(f"{where}: {fact}", text)) for where, text in said]
    for where, value in values:
        if not value >= 0.0 or (usual is None and value == 0.0) or value == float("inf"):
            raise InputError(where, value, "a finite number > 0" if usual is None else "a finite number >= 0")
        if value != values[0][1]:
            raise InputError(where, value, f"{values[0][1]:g}, as on the application's other rows, or nothing")
    return values[0][1]


@cache
def mlperf_quantiles() -> Mapping[str, Sequence[tuple[float, float]]]:
    """Return what part of the longest run's epochs each application needs by seed: (probability, fraction), rising."""
    found: dict[str, list[tuple[float, float]]] = {}
    for row in read_table("mlperf_epochs.csv"):
        probability, epochs = (number(f"mlperf_epochs.csv: {key}", row[key]) for key in ("probability", "epochs"))
        found.setdefault(row["application"], []).append((probability, epochs))
    return MappingProxyType({name: tuple((p, x / of[-1][1]) for p, x in of) for name, of in found.items()})


RUN_COLUMNS = ("epochs", "max_epochs", "application", "source")


def read_histograms(path: str | Path) -> dict[str, EpochDistribution]:
    """Read histograms by name: every column is one, its rows are the weights of equal bins of (0, E].

    Args:
        path: A CSV file, `published`, or `mlperf`.
    """
    if path == MLPERF:
        quantiles = {name: np.array(of) for name, of in mlperf_quantiles().items()}
        return {name: EpochDistribution.from_quantiles(of[:, 0], of[:, 1]) for name, of in quantiles.items()}
    where = "published_epochs.csv" if path == PUBLISHED else str(path)
    table = list(enumerate(read_table(where), start=2)) if path == PUBLISHED else []
    rows = table or read_csv(path, "epochs.library", (PUBLISHED, MLPERF))
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
            (`max_epochs`), and, if there is such a column, its application (`application`).
        bins: Equal bins of (0, E].
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
    epochs = number(f"{where}: epochs", row["epochs"])
    most = number(f"{where}: max_epochs", row["max_epochs"], positive=True)
    if not 0.0 < epochs <= most:
        raise InputError(f"{where}: epochs", epochs, f"a number > 0 and <= max_epochs ({most:g})")
    return epochs / most
