"""What sharing a GPU costs, by the built-in tables that `docs/applications.md` explains."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpusched_env.workload.tables.reading import number, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping


@cache
def builtin_slowdowns() -> Mapping[tuple[str, str, str], float]:
    """Return the factor on an application's time beside another, by (GPU type, application, other), ≥ 1; read-only.

    Raises:
        InputError: The table of the package was damaged.
    """
    return MappingProxyType(
        {
            (row["gpu_type"], row["application"], row["other"]): number("colocation.csv.slowdown", row["slowdown"])
            for row in read_table("colocation.csv")
        }
    )


@cache
def builtin_duties() -> Mapping[tuple[str, str], float]:
    """Return the part of the time for which an application keeps a GPU busy alone, by (GPU type, application).

    Raises:
        InputError: The table of the package was damaged.
    """
    rows = read_table("duty.csv")
    return MappingProxyType(
        {(row["gpu_type"], row["application"]): number("duty.csv.duty", row["duty"]) for row in rows}
    )


@cache
def builtin_max_inflation() -> Mapping[tuple[str, float], float]:
    """Return the greatest inflation of a job's time by (GPU type, fraction of the GPU), > 1; read-only.

    Raises:
        InputError: The table of the package was damaged.
    """
    where = "inflation.csv"
    return MappingProxyType(
        {
            (row["gpu_type"], number(f"{where}.fraction", row["fraction"])): number(
                f"{where}.max_inflation", row["max_inflation"]
            )
            for row in read_table(where)
        }
    )
