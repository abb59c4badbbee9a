"""How long iterations compute and synchronise, by the built-in table that `docs/applications.md` explains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpusched_env.workload.tables.reading import number, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping


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
