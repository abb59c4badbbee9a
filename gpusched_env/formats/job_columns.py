"""The table of jobs in an instance file: columns, some of them only where a value is not the default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_fields, check_lengths, json_list, values_of
from gpusched_env.model import JobTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpusched_env.model import EpochDistribution

_JOBS = {
    "submission_s": float,
    "due_s": float,
    "tardiness_weight_eur_per_s": float,
    "max_epochs": float,
    "epochs_needed": float,
    "memory_gib": float,
    "restart_s": float,
    "application": int,
    "distribution": int,
}
_OPTIONAL_JOBS: dict[str, tuple[type, object]] = {
    "start_s": (float, 0.0),
    "resume_s": (float, None),
    "opportunistic": (bool, False),
    "tenant": (int, 0),
    "traced_start_s": (float, None),
    "traced_config": (int, None),
    "traced_type_known": (bool, False),
}
"""Columns that may be missing: their kind, and the value of all jobs where they are. None: the table has no column."""


def job_columns(jobs: JobTable) -> dict[str, Any]:
    """Give the columns of the file."""
    columns = {name: getattr(jobs, name).tolist() for name in _JOBS} | _optional_columns(jobs)
    return columns | {"seconds_per_epoch": _without_inf(jobs.seconds_per_epoch)}


def job_table(table: Any, refers_to: Callable[[], tuple[tuple[str, ...], tuple[EpochDistribution, ...]]]) -> JobTable:
    """Make the jobs from the columns of the file.

    Args:
        table: What the file has.
        refers_to: Gives the names of applications, and the distributions.

    Raises:
        InputError: A column is missing, unknown, of the wrong kind or length, or a value is out of its range.
    """
    given = _OPTIONAL_JOBS.keys() & table.keys() if isinstance(table, dict) else set()
    check_fields("jobs", table, {*_JOBS, *given, "seconds_per_epoch"})
    kinds = _JOBS | {name: kind for name, (kind, _) in _OPTIONAL_JOBS.items() if name in given}
    columns = {name: values_of(f"jobs.{name}", table[name], kind) for name, kind in kinds.items()}
    check_lengths(
        "jobs", {**columns, "seconds_per_epoch": json_list("jobs.seconds_per_epoch", table["seconds_per_epoch"])}
    )
    seconds = _seconds_per_epoch(table["seconds_per_epoch"])
    applications, distributions = refers_to()
    return JobTable(
        **{name: np.array(column) for name, column in columns.items()},
        seconds_per_epoch=seconds,
        applications=applications,
        distributions=distributions,
    )


def _optional_columns(jobs: JobTable) -> dict[str, list[Any]]:
    """Give the columns of which some value is not the default."""
    columns = {}
    for name, (_, default) in _OPTIONAL_JOBS.items():
        column = getattr(jobs, name)
        if column is not None and (default is None or not np.all(column == default)):
            columns[name] = column.tolist()
    return columns


def _without_inf(seconds: NDArray[np.float64]) -> list[list[float | None]]:
    rows: list[list[float | None]] = seconds.tolist()
    for row, column in np.argwhere(np.isinf(seconds)).tolist():
        rows[row][column] = None
    return rows


def _seconds_per_epoch(rows: list[Any]) -> NDArray[np.float64]:
    width = len(json_list("jobs.seconds_per_epoch[0]", rows[0])) if rows else 0
    seconds = np.empty((len(rows), width))
    for index, row in enumerate(rows):
        where = f"jobs.seconds_per_epoch[{index}]"
        if len(json_list(where, row)) != width:
            raise InputError(where, f"{len(row)} numbers", f"{width} numbers, as in row 0")
        finite = [value for value in row if value is not None]
        values_of(where, finite, float)
        seconds[index] = [np.inf if value is None else value for value in row]
    return seconds
