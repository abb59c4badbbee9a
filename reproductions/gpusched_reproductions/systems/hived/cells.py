"""Cells of a cluster as trees, physical and virtual ones; and where in them the pods of a gang go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpusched_env.errors import InputError


@dataclass(eq=False)
class HivedCell:
    """A cell: physical, or virtual.

    Attributes:
        kind: Name of its kind, one for every level of a chain.
        chain: Kind of the largest cell of its tree: hardware and topology.
        parent: The cell above it, if any.
        children: The equal cells that it consists of; none for a GPU.
        address: Name of a node, number of a GPU, else nothing.
        is_node: Whether it is a node.
        bound: The physical cell on which a virtual one lies, or the virtual one that lies on a physical one.
        gang: For a GPU: the gang that holds it.
    """

    kind: str
    chain: str
    parent: HivedCell | None = None
    children: list[HivedCell] = field(default_factory=list)
    address: str = ""
    is_node: bool = False
    bound: HivedCell | None = None
    gang: Gang | None = None

    def walk(self) -> Iterator[HivedCell]:
        """Yield the cell and all below it, from left to right, those above first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def gpus(self) -> list[HivedCell]:
        """List its GPUs."""
        return [cell for cell in self.walk() if not cell.children]

    @property
    def node(self) -> HivedCell:
        """Return the node in which it lies; itself, or the largest cell above it, if there is none."""
        cell = self
        while not cell.is_node and cell.parent is not None:
            cell = cell.parent
        return cell

    @property
    def top(self) -> HivedCell:
        """Return the largest cell above it: of virtual cells the one that the tenant was promised."""
        cell = self
        while cell.parent is not None:
            cell = cell.parent
        return cell

    def level(self, kind: str) -> list[HivedCell]:
        """List the cells of a kind in it."""
        return [cell for cell in self.walk() if cell.kind == kind]


class Forest:
    """The physical cells of a configuration.

    Args:
        config: `cellTypes` and `physicalCells` of the configuration.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.kinds: Mapping[str, Any] = config["cellTypes"]
        self.tops: dict[str, list[HivedCell]] = defaultdict(list)
        self.pinned: dict[str, HivedCell] = {}
        numbers: dict[str, int] = defaultdict(int)
        for entry in config["physicalCells"]:
            kind = entry["cellType"]
            cell = self.grow(kind, kind)
            self._name(cell, entry, numbers[kind])
            numbers[kind] += 1
            self.tops[kind].append(cell)

    def grow(self, kind: str, chain: str, parent: HivedCell | None = None) -> HivedCell:
        """Make a cell of a kind, with all below it."""
        config = self.kinds.get(kind, {})
        cell = HivedCell(kind, chain, parent, is_node=bool(config.get("isNodeLevel")))
        if config:
            cell.children = [self.grow(config["childCellType"], chain, cell) for _ in range(config["childCellNumber"])]
        return cell

    def levels(self, chain: str) -> list[str]:
        """List the kinds of a chain from its largest cells down to the GPU."""
        kinds = [chain]
        while kinds[-1] in self.kinds:
            kinds.append(self.kinds[kinds[-1]]["childCellType"])
        return kinds

    def _name(self, cell: HivedCell, entry: Mapping[str, Any] | None, number: int) -> None:
        """Give a cell and those below it their addresses: as told, else GPUs are numbered within their node."""
        config = entry or {}
        cell.address = str(config.get("cellAddress", number))
        if "pinnedCellId" in config:
            self.pinned[config["pinnedCellId"]] = cell
        below = config.get("cellChildren") or [None] * len(cell.children)
        for i, (child, entry_below) in enumerate(zip(cell.children, below, strict=True)):
            # What has no address of its own is numbered among all of its level in its node.
            inside = int(cell.address) * len(cell.children) if not cell.is_node and cell.address.isdigit() else 0
            self._name(child, entry_below, inside + i)


@dataclass(eq=False)
class VirtualCluster:
    """What a tenant was promised.

    Attributes:
        promised: Its virtual cells by chain, in the order of the configuration.
        pinned: Virtual cells that lie on a certain physical one for good, by name.
        views: Its nodes by chain, or by the name of a pinned cell, in the order in which they were last looked at.
    """

    promised: dict[str, list[HivedCell]]
    pinned: dict[str, HivedCell]
    views: dict[str, list[HivedCell]]

    @classmethod
    def of(cls, config: Mapping[str, Any], forest: Forest) -> VirtualCluster:
        """Make the virtual cells of a tenant, and lay the pinned ones on theirs.

        Raises:
            InputError: It names cells that are not there.
        """
        promised: dict[str, list[HivedCell]] = defaultdict(list)
        for entry in config.get("virtualCells", ()):
            path = str(entry["cellType"]).split(".")
            chain, kind = path[0], path[-1]
            if chain not in forest.tops:
                raise InputError("virtualCells.cellType", entry["cellType"], "a chain of the cluster")
            promised[chain] += [forest.grow(kind, chain) for _ in range(entry["cellNumber"])]
        pinned = {}
        for entry in config.get("pinnedCells", ()):
            name = entry["pinnedCellId"]
            cell = forest.pinned[name]
            pinned[name] = forest.grow(cell.kind, cell.chain)
            for virtual, physical in zip(pinned[name].walk(), cell.walk(), strict=True):
                virtual.bound, physical.bound = physical, virtual
        views = {chain: nodes_of(cells) for chain, cells in promised.items()}
        views |= {name: nodes_of([cell]) for name, cell in pinned.items()}
        return cls(dict(promised), pinned, views)


def nodes_of(cells: list[HivedCell]) -> list[HivedCell]:
    """List the nodes of some cells, then those cells that are less than a node."""
    nodes = [cell for top in cells for cell in top.walk() if cell.is_node]
    return nodes + [top for top in cells if not any(cell.is_node for cell in top.walk())]


def pack(nodes: list[HivedCell], sizes: list[int], threshold: int, *, across: bool) -> list[HivedCell] | None:
    """Choose a node for each pod, smallest pods first; None if they do not all fit.

    Args:
        nodes: The nodes; they are put into the order in which they are tried, equal ones as before.
        sizes: GPUs of the pods, rising.
        threshold: GPUs held at this priority or above are not free.
        across: Whether nodes that anybody uses come first; else those used at this priority, and among these those
            that higher ones use least.
    """

    def rank(node: HivedCell) -> tuple[int, int]:
        held = [gpu.gang.priority for gpu in node.gpus if gpu.gang is not None]
        if across:
            return -len(held), 0
        return -sum(priority == threshold for priority in held), sum(priority > threshold for priority in held)

    nodes.sort(key=rank)
    chosen: list[HivedCell] = []
    taken = 0
    for node in nodes:
        free = sum(is_free(gpu, threshold) for gpu in node.gpus)
        taken = 0
        while len(chosen) < len(sizes) and free - taken >= sizes[len(chosen)]:
            taken += sizes[len(chosen)]
            chosen.append(node)
    return chosen if len(chosen) == len(sizes) else None


def is_free(gpu: HivedCell, threshold: int) -> bool:
    """Return whether a GPU is held by nobody, or at a priority below `threshold`."""
    return gpu.gang is None or gpu.gang.priority < threshold


def choose_gpus(nodes: list[HivedCell], sizes: list[int], threshold: int) -> list[list[HivedCell]]:
    """Choose the GPUs of each pod on its node: all in the smallest cell that has enough, free ones first."""
    taken: set[int] = set()
    chosen = []
    for node, size in zip(nodes, sizes, strict=True):
        found = min(
            (
                (len(cell.gpus), place, free[:size])
                for place, cell in enumerate(node.walk())
                if len(free := _available(cell, threshold, taken)) >= size
            ),
            key=lambda candidate: candidate[:2],
        )[2]
        taken |= {id(gpu) for gpu in found}
        chosen.append(found)
    return chosen


def _available(cell: HivedCell, threshold: int, taken: set[int]) -> list[HivedCell]:
    """List the GPUs of a cell that are free, those that nobody holds first."""
    free = [gpu for gpu in cell.gpus if is_free(gpu, threshold) and id(gpu) not in taken]
    return sorted(free, key=lambda gpu: gpu.gang is not None)


OPPORTUNISTIC = -1
HIGHEST = 1000


@dataclass(eq=False)
class Gang:
    """Pods that are placed together or not at all.

    Attributes:
        sizes: GPUs of each of its pods, rising.
        priority: Its priority; that of opportunistic pods once it was preempted lazily.
        placed: The GPUs of each pod, in the order of `sizes`; empty until it is placed.
        cells: The virtual GPUs of each, likewise; empty for opportunistic gangs.
        pods: The pods that have come, by their place in `sizes`.
        lazy: Whether it runs on as an opportunistic one when it is preempted, if it can.
        victims: The gangs that must end before it can begin.
    """

    sizes: list[int]
    priority: int
    lazy: bool
    placed: list[list[HivedCell]] = field(default_factory=list)
    cells: list[list[HivedCell]] = field(default_factory=list)
    pods: dict[int, str] = field(default_factory=dict)
    victims: list[Gang] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer:
    """What comes of a pod.

    Attributes:
        node: Its node; nothing if it waits.
        gpus: Its GPUs there.
        victims: The pods that must end before it can begin.
    """

    node: str = ""
    gpus: tuple[int, ...] = ()
    victims: frozenset[str] = frozenset()
