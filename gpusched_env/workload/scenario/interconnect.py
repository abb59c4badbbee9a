"""The `interconnect` section of a scenario: the network between nodes, and how jobs synchronise over it."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from gpusched_env.errors import InputError
from gpusched_env.workload.scenario.settings import CountFromZero, Positive, Settings
from gpusched_env.workload.tables.communication import RDMA


class Interconnect(Settings):
    """The network between nodes, for jobs on several of them (modelled, not measured)."""

    nic_gb_per_s: Positive | None = Field(
        default=None,
        description="Modelled: network of a node in one direction [GB/s]. By default the one that was measured.",
    )
    exposed: Positive = Field(
        default=RDMA,
        description="Share of synchronising that no computing hides / efficiency of the link: 0.6 RDMA, 1.9 TCP.",
    )
    backend: Literal["all-reduce", "byteps"] = Field(
        default="all-reduce", description="How jobs synchronise: all-reduce, or byteps (spare machines help)."
    )
    cpu_machines: CountFromZero = Field(default=0, description="CPU machines that help to synchronise, with byteps.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.cpu_machines and self.backend != "byteps":
            raise InputError("cpu_machines", self.cpu_machines, f"0 with backend = {self.backend!r}")
        if self.exposed != RDMA and self.nic_gb_per_s is None:
            raise InputError("exposed", self.exposed, f"{RDMA} unless nic_gb_per_s is set")
        return self

    @property
    def measured(self) -> bool:
        """Say whether jobs on several nodes take the times that were measured."""
        return self.nic_gb_per_s is None and self.backend == "all-reduce"
