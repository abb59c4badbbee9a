"""Built-in tables: slowdown of shared GPUs, communication, arrivals over a day (`docs/applications.md`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.workload.tables.reading import number, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


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


RDMA = 0.6
"""Share of synchronising that no computing hides, over the efficiency of the link, with RDMA, over which
all rows were measured.

Nine efficiencies that Horovod's authors measured agree with it (`docs/systems/byteps.md`).
"""


@dataclass(frozen=True, slots=True)
class Communication:
    """An iteration on n nodes takes `compute_s` / n + `sync_s` · 2(n - 1)/n, as measured with all-reduce.

    Attributes:
        compute_s: Time on one node [s].
        sync_s: Time of synchronising that no computing hides, for each size of the model sent [s].
        model_gb: Size of the model's gradients [GB].
        nic_gb_per_s: Network of a node in one direction, where it was measured [GB/s].
        worst_error: Largest relative error of the fit.
    """

    compute_s: float
    sync_s: float
    model_gb: float
    nic_gb_per_s: float
    worst_error: float

    def sync_on(self, nic_gb_per_s: float, exposed: float) -> float:
        """Give the time of synchronising on another network [s]: a model, and no measurement.

        A network alone takes exposed · size / bandwidth. Where that is half of what was measured or more, the network
        bounds it, and it changes as the networks do. Elsewhere messages and processors do: it stays as it was measured,
        unless the other network alone takes longer.

        Args:
            nic_gb_per_s: Network of a node in one direction [GB/s], > 0.
            exposed: Share of synchronising that no computing hides, over the efficiency of the link.
        """
        measured_s, other_s = RDMA * self.model_gb / self.nic_gb_per_s, exposed * self.model_gb / nic_gb_per_s
        if measured_s >= self.sync_s / 2.0:
            return self.sync_s * other_s / measured_s
        return max(self.sync_s, other_s)


@cache
def builtin_communication() -> Mapping[tuple[str, str], Communication]:
    """Return how iterations spend their time, by (application, GPU type); read-only.

    Raises:
        InputError: The table of the package was damaged.
    """
    names = ("compute_s", "sync_s", "model_gb", "nic_gb_per_s", "worst_error")
    return MappingProxyType(
        {
            (row["application"], row["gpu_type"]): Communication(
                *(number(f"communication.csv.{name}", row[name]) for name in names)
            )
            for row in read_table("communication.csv")
        }
    )


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
