"""HiveD's configuration files, read as clusters of cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError, MissingExtraError
from gpusched_reproductions.systems.hived.cells import CellCluster, Chain, Piece, VirtualCluster


def read_cluster(path: Path) -> Any:
    try:
        import yaml  # type: ignore[import-untyped] # noqa: PLC0415 - only this part needs it
    except ModuleNotFoundError as error:
        raise MissingExtraError("pyyaml", "cli", "HiveD's configurations") from error
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def cluster_of(config: Mapping[str, Any]) -> CellCluster:
    """Return the cluster of a configuration: its `physicalCluster` and `virtualClusters`.

    The chains of a GPU type are tried by falling name, as in HiveD's tests.
    """
    types, pieces = config["physicalCluster"]["cellTypes"], config["physicalCluster"]["physicalCells"]
    for i, entry in enumerate(pieces):
        if entry["cellType"] not in types:
            raise InputError(f"physicalCells[{i}].cellType", entry["cellType"], f"one of {', '.join(types)}")
    names = sorted({entry["cellType"] for entry in pieces}, reverse=True)
    return CellCluster(
        tuple(_chain(types, name) for name in names),
        tuple(_piece(types, entry) for entry in pieces),
        {name: _virtual(types, entry) for name, entry in config["virtualClusters"].items()},
    )


def _size(types: Mapping[str, Any], name: str) -> int:
    return _size(types, types[name]["childCellType"]) * types[name]["childCellNumber"] if name in types else 1


def _chain(types: Mapping[str, Any], name: str) -> Chain:
    levels = [name]
    while levels[-1] in types:
        levels.append(types[levels[-1]]["childCellType"])
    node = next(level for level in levels if types.get(level, {}).get("isNodeLevel"))
    return Chain(name, levels[-1], tuple(_size(types, level) for level in reversed(levels)), _size(types, node))


@dataclass(slots=True)
class _Reading:
    """The GPUs and pinned cells of a piece, as far as it is read."""

    types: Mapping[str, Any]
    gpus: list[tuple[str, int]] = field(default_factory=list)
    pinned: dict[str, tuple[int, int]] = field(default_factory=dict)

    def read(self, kind: str, entry: Mapping[str, Any], node: str, number: int) -> None:
        """Read a cell; what has no address of its own is numbered among all of its level in its node."""
        spec = self.types.get(kind, {})
        address = str(entry.get("cellAddress", number))
        if "pinnedCellId" in entry:
            self.pinned[entry["pinnedCellId"]] = (len(self.gpus), _size(self.types, kind))
        if not spec:
            self.gpus.append((node, int(address)))
            return
        if spec.get("isNodeLevel"):
            node, number = address, 0
        below = entry.get("cellChildren") or [{}] * spec["childCellNumber"]
        for i, child in enumerate(below):
            self.read(spec["childCellType"], child, node, number * spec["childCellNumber"] + i)


def _piece(types: Mapping[str, Any], entry: Mapping[str, Any]) -> Piece:
    reading = _Reading(types)
    reading.read(entry["cellType"], entry, "", 0)
    return Piece(entry["cellType"], tuple(reading.gpus), reading.pinned)


def _virtual(types: Mapping[str, Any], entry: Mapping[str, Any]) -> VirtualCluster:
    promised: list[tuple[str, int]] = []
    for cells in entry.get("virtualCells", ()):
        path = str(cells["cellType"]).split(".")
        promised += [(path[0], _size(types, path[-1]))] * cells["cellNumber"]
    return VirtualCluster(tuple(promised), tuple(cell["pinnedCellId"] for cell in entry.get("pinnedCells", ())))
