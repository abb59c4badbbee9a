"""Configurations: sets of GPUs that a job can get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpusched_env.errors import InputError
from gpusched_env.model import checks

MOST_GPUS = 2**22
"""GPUs that a configuration may have in all: more than any cluster, and few enough to be counted in 64 bits."""

MOST_PRIORITIES = 10
"""Priorities that shares may have, from 0 on."""

_MARKS = ("", "!", *(f"!{priority}" for priority in range(2, MOST_PRIORITIES)))

OVERHEAD, FILLED, LEAST_SPEED = 0.03, 0.85, 0.02
"""Defaults of how jobs divide the time of a GPU (`UtilisationModel`)."""

Kind = Literal["single-node", "multi-node", "spread", "shared"]

Backend = Literal["all-reduce", "parameter-server", "byteps"]
"""How jobs on several nodes synchronise."""
Topology = Literal["pcie", "nvlink"]
"""How the GPUs of a machine are linked: PCIe switches alone, or NVLink beside them."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration c ∈ C: GPU type, GPUs per node, nodes, share of a GPU, priority there, and power limit.

    Four kinds: *single-node* (`nodes` = 1, `share` = 1), *multi-node* (`nodes` ≥ 2 whole nodes, exclusive), *spread*
    (`nodes` ≥ 2 GPUs, one by one on any nodes, several may be on the same one) and *shared* (`share` < 1: a fraction of
    one GPU, or of each of several, with other jobs as co-runners). Several are a block of one node (g GPUs of which the
    first one's number is a multiple of g), or all GPUs of consecutive nodes.

    Args:
        gpu_type: Name of the GPU type.
        gpus_per_node: GPUs held on each node, ≥ 1.
        nodes: Number of nodes, ≥ 1; with `spread` the number of GPUs, which may be on as many nodes.
        share: Share of each GPU, in (0, 1]; 1 with `spread`.
        priority: Priority on a shared GPU, from 0 to 9: a job with a share of higher priority gets its time first, the
            others use what it leaves (`UtilisationModel`). 0 unless it is a share.
        spread: Whether the GPUs may be on any nodes. They are put on as few as can be found; on as few as the same
            number of GPUs needs, a job is as fast as with those (`Instance.consolidated`).
        power_limit: Most power of each GPU over that of a full busy one, in (0, 1]; any of the four kinds may have one.

    Raises:
        InputError: A value is out of its range, or the combination is none of the four kinds.
    """

    gpu_type: str
    gpus_per_node: int
    nodes: int = 1
    share: float = 1.0
    priority: int = 0
    spread: bool = False
    power_limit: float = 1.0

    def __post_init__(self) -> None:
        checks.whole("configuration.gpus_per_node", self.gpus_per_node)
        checks.whole("configuration.nodes", self.nodes)
        if self.gpus_per_node * self.nodes > MOST_GPUS:
            raise InputError("configuration.nodes", self.nodes, f"at most {MOST_GPUS:,} GPUs in all")
        if not 0.0 < self.share <= 1.0:
            raise InputError("configuration.share", self.share, "a number in (0, 1]")
        if not 0.0 < self.power_limit <= 1.0:
            raise InputError("configuration.power_limit", self.power_limit, "a number in (0, 1]")
        if self.spread and (self.gpus_per_node != 1 or self.nodes == 1 or self.share < 1.0):
            allowed = "false, unless it is one whole GPU each on 2 nodes or more"
            raise InputError("configuration.spread", self.spread, allowed)
        most = MOST_PRIORITIES - 1 if self.share < 1.0 else 0
        if checks.whole("configuration.priority", self.priority, 0) > most:
            raise InputError("configuration.priority", self.priority, f"at most {most}; 0 unless it is a share")

    @property
    def kind(self) -> Kind:
        """Return the kind: one of the four."""
        if self.spread:
            return "spread"
        if self.share < 1.0:
            return "shared"
        return "multi-node" if self.nodes > 1 else "single-node"

    @property
    def gpus(self) -> float:
        """Count the GPUs held in all: GPUs per node · nodes · share."""
        return self.gpus_per_node * self.nodes * self.share

    @property
    def name(self) -> str:
        """Return the name: `V100x4`, `2*V100x8`, `V100~4`, `V100x0.25`, `V100x4x0.25`, with priority `!`, `!2`.

        With a power limit of 0.7 it ends with `@0.7`.
        """
        limit = f"@{self.power_limit:g}" if self.power_limit < 1.0 else ""
        if self.spread:
            return f"{self.gpu_type}~{self.nodes}{limit}"
        prefix = f"{self.nodes}*" if self.nodes > 1 else ""
        if self.kind == "shared":
            gpus = f"{self.gpus_per_node}x" if self.gpus_per_node * self.nodes > 1 else ""
            return f"{prefix}{self.gpu_type}x{gpus}{self.share:g}{_MARKS[self.priority]}{limit}"
        return f"{prefix}{self.gpu_type}x{self.gpus_per_node}{limit}"

    @property
    def unlimited(self) -> Configuration:
        """Return the same GPUs without a power limit."""
        return self if self.power_limit == 1.0 else replace(self, power_limit=1.0)


MOST_ON_A_NODE = 1024


@dataclass(frozen=True, slots=True)
class GpuType:
    """A GPU type v ∈ V; all nodes with this type draw the same power.

    A node with G = `max_gpus_per_node` GPUs, u ≥ 1 of them busy, draws base + u · busy + (G - u) · idle; or the
    power in `node_power_w`, where there is such a table. A node with no busy GPU is switched off.

    Args:
        name: Unique name, such as "V100".
        gpu_power_w: Power of one busy GPU [W], > 0.
        node_base_power_w: Power of a switched-on node without its GPUs [W], ≥ 0.
        memory_gib: Memory of one GPU [GiB], > 0.
        max_gpus_per_node: Most GPUs that a node of this type may have, 1 to 1024.
        idle_gpu_power_w: Power of an idle GPU of a switched-on node [W], ≥ 0; if above 0, nodes of this type have
            `max_gpus_per_node` GPUs.
        node_power_w: Power of a node with 1, 2, ... busy GPUs [W], `max_gpus_per_node` numbers > 0; in place of the
            other powers. Of these `gpu_power_w` still counts where GPUs draw power by their utilisation
            (`UtilisationModel`): a held, idle GPU draws `gpu_power_w` - `idle_power_w` less than in the table.
        owner: Name of the tenant that alone has the nodes of this type; empty: nobody.
        hardware: Name of the hardware, which types of several owners have in common; empty: `name`.

    Raises:
        InputError: A value is out of its range.
    """

    name: str
    gpu_power_w: float
    node_base_power_w: float
    memory_gib: float
    max_gpus_per_node: int = 8
    idle_gpu_power_w: float = 0.0
    node_power_w: tuple[float, ...] | None = None
    owner: str = ""
    hardware: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            raise InputError("gpu_type.name", self.name, "a text that is not empty")
        where = f"gpu_types.{self.name}"
        checks.positive(f"{where}.gpu_power_w", self.gpu_power_w)
        checks.not_negative(f"{where}.node_base_power_w", self.node_base_power_w)
        checks.positive(f"{where}.memory_gib", self.memory_gib)
        if checks.whole(f"{where}.max_gpus_per_node", self.max_gpus_per_node) > MOST_ON_A_NODE:
            raise InputError(
                f"{where}.max_gpus_per_node", self.max_gpus_per_node, f"a whole number <= {MOST_ON_A_NODE}"
            )
        checks.not_negative(f"{where}.idle_gpu_power_w", self.idle_gpu_power_w)
        if self.node_power_w is not None:
            object.__setattr__(self, "node_power_w", self._checked_table(f"{where}.node_power_w"))

    @classmethod
    def of_table(cls, name: str, node_power_w: Sequence[float], memory_gib: float) -> GpuType:
        """Make a type from the power of its node with 1, 2, ... busy GPUs [W].

        Raises:
            InputError: There is no number, or a value is out of its range.
        """
        table = tuple(node_power_w)
        if not table:
            raise InputError(f"gpu_types.{name}.node_power_w", [], "one number > 0 for each number of busy GPUs")
        each = checks.positive(f"gpu_types.{name}.node_power_w[{len(table) - 1}]", table[-1]) / len(table)
        return cls(name, each, 0.0, memory_gib, len(table), node_power_w=table)

    def power_w(self, busy: int) -> float:
        """Return the power of a node while `busy` ≥ 1 of its GPUs are busy [W]."""
        if self.node_power_w is not None:
            return self.node_power_w[busy - 1]
        idle = max(self.max_gpus_per_node - busy, 0) * self.idle_gpu_power_w
        return self.node_base_power_w + idle + self.gpu_power_w * busy

    def saved_w(self, configuration: Configuration, drawn: float = 1.0) -> float:
        """Return what the GPUs of a configuration of this type draw less than full busy ones [W].

        It is (1 - r) of the power of each, r the least of its power limit and of the part `drawn` without one. With a
        table of `node_power_w` the power of a GPU is what a further busy one adds in the mean.
        """
        each, table = self.gpu_power_w, self.node_power_w
        if table is not None and len(table) > 1:
            each = min(each, max(0.0, table[-1] - table[0]) / (len(table) - 1))
        part = min(configuration.power_limit, drawn)
        return (1.0 - part) * each * configuration.gpus_per_node * configuration.nodes

    def _checked_table(self, field: str) -> tuple[float, ...]:
        table = tuple(self.node_power_w or ())
        if len(table) != self.max_gpus_per_node:
            raise InputError(field, list(table), f"{self.max_gpus_per_node} numbers, one for each number of busy GPUs")
        return tuple(checks.positive(f"{field}[{i}]", watts) for i, watts in enumerate(table))


def hardware_of(gpu_types: Sequence[GpuType]) -> dict[str, str]:
    """Return the name of the hardware of each GPU type by the name of the type, in their order."""
    return {v.name: v.hardware or v.name for v in gpu_types}


@dataclass(frozen=True, slots=True)
class Node:
    """A node n ∈ N: some GPUs of one type.

    Args:
        gpu_type: Name of the node's GPU type.
        gpus: Number of GPUs in the node, ≥ 1.

    Raises:
        InputError: `gpus` is not a whole number ≥ 1.
    """

    gpu_type: str
    gpus: int

    def __post_init__(self) -> None:
        checks.whole("node.gpus", self.gpus)


def single_node_configurations(gpu_types: Sequence[GpuType], nodes: Sequence[Node]) -> tuple[Configuration, ...]:
    """List every number of GPUs of every type that the largest node of that type can hold."""
    largest = {v.name: max((n.gpus for n in nodes if n.gpu_type == v.name), default=0) for v in gpu_types}
    return tuple(Configuration(v.name, g) for v in gpu_types for g in range(1, largest[v.name] + 1))
