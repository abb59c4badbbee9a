"""How unevenly the jobs of public traces come, by the built-in tables that `docs/scenarios.md` explains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.workload.tables.reading import number, read_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

WEEK_H = 168


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalProfile:
    """How the rate of arrivals changes from hour to hour.

    Attributes:
        factors: Factor on the mean rate by hour of the week, (168,), > 0, mean 1.
        variation: Coefficient of variation of the hourly rate about that, ≥ 0.
        persistence: Correlation of that variation with the hour before, from 0 to below 1.
    """

    factors: NDArray[np.float64]
    variation: float
    persistence: float


@cache
def arrival_profile(name: str) -> ArrivalProfile:
    """Return the profile `name`, a column of the package's table.

    Raises:
        InputError: The table of the package was damaged.
    """
    where = "arrival_profiles.csv"
    factors = np.array([number(f"{where}.{name}", row[name]) for row in read_table(where)])
    factors /= factors.mean()
    factors.flags.writeable = False
    where = "arrival_bursts.csv"
    row = next(row for row in read_table(where) if row["profile"] == name)
    variation, persistence = (number(f"{where}.{column}", row[column]) for column in ("variation", "persistence"))
    return ArrivalProfile(factors, variation, persistence)
