"""The links inside a machine with several GPUs, and how long they take to synchronise a model (BytePS, section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from gpusched_env.model.configuration import Topology


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine whose GPUs hang under PCIe switches, each with an uplink to a CPU, and may have NVLink between them.

    Bandwidths are of one direction; a link carries both directions at once. The slowest link decides, since parts of
    the model follow each other through all of them. The defaults are the machines of BytePS's authors (Jiang et al.,
    OSDI 2020): 8 GPUs, 105 Gb/s between GPUs under one PCIe switch, 80 Gb/s across two of them, 300 Gb/s of memory,
    and, where there is NVLink, 1.2 Tb/s.

    Args:
        gpus: GPUs of the machine, ≥ 1, a multiple of `switches`.
        switches: PCIe switches, ≥ 1.
        pcie_gb_per_s: Link of a GPU to its switch [GB/s], > 0.
        uplink_gb_per_s: Link of a switch to the CPU, as copies between GPUs of two switches use it [GB/s], > 0.
        memory_gb_per_s: Memory of the CPUs [GB/s], > 0.
        nvlink_gb_per_s: NVLink of a GPU [GB/s], > 0; None: PCIe alone.

    Raises:
        InputError: A value is out of its range.
    """

    gpus: int = 8
    switches: int = 2
    pcie_gb_per_s: float = 13.125
    uplink_gb_per_s: float = 10.0
    memory_gb_per_s: float = 37.5
    nvlink_gb_per_s: float | None = None

    def __post_init__(self) -> None:
        checks.whole("machine.switches", self.switches, lowest=1)
        checks.whole("machine.gpus", self.gpus, lowest=1)
        if self.gpus % self.switches:
            raise InputError("machine.gpus", self.gpus, f"a multiple of machine.switches ({self.switches})")
        for name in ("pcie_gb_per_s", "uplink_gb_per_s", "memory_gb_per_s"):
            checks.positive(f"machine.{name}", getattr(self, name))
        if self.nvlink_gb_per_s is not None:
            checks.positive("machine.nvlink_gb_per_s", self.nvlink_gb_per_s)

    @classmethod
    def of(cls, topology: Topology) -> Machine:
        """Return the machine of BytePS's authors with PCIe alone, or with NVLink, whose 4 switches have 2 GPUs each."""
        return cls() if topology == "pcie" else cls(switches=4, nvlink_gb_per_s=150.0)

    @property
    def ring_gb_per_s(self) -> float:
        """Return the slowest link of a ring through all GPUs [GB/s]: NVLink, or the uplinks, if there are several.

        A ring enters each switch once and leaves it once, so each uplink carries what each GPU sends.
        """
        if self.nvlink_gb_per_s is not None:
            return self.nvlink_gb_per_s
        return self.pcie_gb_per_s if self.switches == 1 else min(self.pcie_gb_per_s, self.uplink_gb_per_s)

    def all_reduce_s(self, nodes: int, nic_gb_per_s: float) -> float:
        """Return the time of a ring through all GPUs of all machines, per size of the model [s/GB].

        Each of N GPUs sends 2(N - 1)/N, over the slowest link; between machines over the network and, with PCIe alone,
        the uplink to it.

        Args:
            nodes: The machines n, ≥ 1.
            nic_gb_per_s: Network of a machine [GB/s], > 0.
        """
        ranks = self.gpus * nodes
        slowest = self.ring_gb_per_s
        if nodes > 1:
            uplink = self.uplink_gb_per_s if self.nvlink_gb_per_s is None else slowest
            slowest = min(slowest, uplink, nic_gb_per_s)
        return 2.0 * (ranks - 1) / ranks / slowest

    @property
    def inside_s(self) -> float:
        """Return the time of BytePS's strategy inside the machine, per size of the model [s/GB].

        PCIe alone: the l GPUs under a switch each sum a part of 1/l, copy it to the CPU, which sums those of all
        switches, copy the result back, and tell each other. A GPU's link carries (l - 1)/l + 1/l + (l - 1)/l, an uplink
        1, the memory 2 for each switch. NVLink: all reduce to one GPU, which is not under the network's switch, and
        that one copies to the CPU and back: 1 on each link, and nothing on the network's uplink.
        """
        per_switch = self.gpus // self.switches
        if self.nvlink_gb_per_s is not None:
            return max(1.0 / self.pcie_gb_per_s, 1.0 / self.nvlink_gb_per_s, 2.0 / self.memory_gb_per_s)
        own = (2.0 * per_switch - 1.0) / per_switch
        return max(own / self.pcie_gb_per_s, 1.0 / self.uplink_gb_per_s, 2.0 * self.switches / self.memory_gb_per_s)

    def beside_network_s(self, load: float, nic_gb_per_s: float) -> float:
        """Return the time with NVLink if every GPU copies its own part to the CPU, per size of the model [s/GB].

        The network's switch then carries the parts of its own GPUs beside what the network sends.

        Args:
            load: Sizes of the model that the network of the machine carries.
            nic_gb_per_s: Network of a machine [GB/s], > 0.
        """
        part = 1.0 / self.switches
        return max(load / nic_gb_per_s, (load + part) / self.pcie_gb_per_s)
