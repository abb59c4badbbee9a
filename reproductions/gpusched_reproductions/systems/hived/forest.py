"""Cells of a cluster as trees, from a configuration: physical ones, and the virtual ones of tenants."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpusched_reproductions.systems.hived.packing import Pod


@dataclass(eq=False)
class Cell:
    """A cell: physical, or virtual.

    Attributes:
        kind: Name of its kind, one for every level of a chain.
        chain: Kind of the largest cell of its tree: hardware and topology.
        parent: The cell above it, if any.
        children: The equal cells that it consists of; none for a GPU.
        address: Name of a node, number of a GPU, else nothing.
        is_node: Whether it is a node.
        bound: The physical cell on which a virtual one lies, or the virtual one that lies on a physical one.
        pod: For a GPU: the pod that holds it.
    """

    kind: str
    chain: str
    parent: Cell | None = None
    children: list[Cell] = field(default_factory=list)
    address: str = ""
    is_node: bool = False
    bound: Cell | None = None
    pod: Pod | None = None

    def walk(self) -> Iterator[Cell]:
        """Give the cell and all below it, from left to right, those above first."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def gpus(self) -> list[Cell]:
        """List its GPUs."""
        return [cell for cell in self.walk() if not cell.children]

    @property
    def node(self) -> Cell:
        """Give the node in which it lies; itself, or the largest cell above it, if there is none."""
        cell = self
        while not cell.is_node and cell.parent is not None:
            cell = cell.parent
        return cell

    @property
    def top(self) -> Cell:
        """Give the largest cell above it: of virtual cells the one that the tenant was promised."""
        cell = self
        while cell.parent is not None:
            cell = cell.parent
        return cell

    def level(self, kind: str) -> list[Cell]:
        """List the cells of a kind in it."""
        return [cell for cell in self.walk() if cell.kind == kind]


class Forest:
    """The physical cells of a configuration.

    Args:
        told: `cellTypes` and `physicalCells` of the configuration.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self.kinds: Mapping[str, Any] = told["cellTypes"]
        self.tops: dict[str, list[Cell]] = defaultdict(list)
        self.pinned: dict[str, Cell] = {}
        numbers: dict[str, int] = defaultdict(int)
        for entry in told["physicalCells"]:
            kind = entry["cellType"]
            cell = self.grow(kind, kind)
            self._name(cell, entry, numbers[kind])
            numbers[kind] += 1
            self.tops[kind].append(cell)

    def grow(self, kind: str, chain: str, parent: Cell | None = None) -> Cell:
        """Make a cell of a kind, with all below it."""
        told = self.kinds.get(kind, {})
        cell = Cell(kind, chain, parent, is_node=bool(told.get("isNodeLevel")))
        if told:
            cell.children = [self.grow(told["childCellType"], chain, cell) for _ in range(told["childCellNumber"])]
        return cell

    def levels(self, chain: str) -> list[str]:
        """List the kinds of a chain from its largest cells down to the GPU."""
        kinds = [chain]
        while kinds[-1] in self.kinds:
            kinds.append(self.kinds[kinds[-1]]["childCellType"])
        return kinds

    def _name(self, cell: Cell, entry: Mapping[str, Any] | None, number: int) -> None:
        """Give a cell and those below it their addresses: as told, else GPUs are numbered within their node."""
        told = entry or {}
        cell.address = str(told.get("cellAddress", number))
        if "pinnedCellId" in told:
            self.pinned[told["pinnedCellId"]] = cell
        below = told.get("cellChildren") or [None] * len(cell.children)
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

    promised: dict[str, list[Cell]]
    pinned: dict[str, Cell]
    views: dict[str, list[Cell]]

    @classmethod
    def of(cls, told: Mapping[str, Any], forest: Forest) -> VirtualCluster:
        """Make the virtual cells of a tenant, and lay the pinned ones on theirs.

        Raises:
            InputError: It names cells that are not there.
        """
        promised: dict[str, list[Cell]] = defaultdict(list)
        for entry in told.get("virtualCells", ()):
            path = str(entry["cellType"]).split(".")
            chain, kind = path[0], path[-1]
            if chain not in forest.tops:
                raise InputError("virtualCells.cellType", entry["cellType"], "a chain of the cluster")
            promised[chain] += [forest.grow(kind, chain) for _ in range(entry["cellNumber"])]
        pinned = {}
        for entry in told.get("pinnedCells", ()):
            name = entry["pinnedCellId"]
            cell = forest.pinned[name]
            pinned[name] = forest.grow(cell.kind, cell.chain)
            for virtual, physical in zip(pinned[name].walk(), cell.walk(), strict=True):
                virtual.bound, physical.bound = physical, virtual
        views = {chain: nodes_of(cells) for chain, cells in promised.items()}
        views |= {name: nodes_of([cell]) for name, cell in pinned.items()}
        return cls(dict(promised), pinned, views)


def nodes_of(cells: list[Cell]) -> list[Cell]:
    """List the nodes of some cells, then those cells that are less than a node."""
    nodes = [cell for top in cells for cell in top.walk() if cell.is_node]
    return nodes + [top for top in cells if not any(cell.is_node for cell in top.walk())]
