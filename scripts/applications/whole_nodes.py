"""Seconds per epoch of an application on several whole nodes, where that was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.power import GPUS_PER_NODE
from applications.screening import screen

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from applications.recipes import Recipe


@dataclass(frozen=True, slots=True)
class WholeNodesRow:
    """One line of `whole_nodes.csv`."""

    application: str
    gpu_type: str
    nodes: int
    gpus_per_node: int
    seconds_per_epoch: float
    method: str
    source: str


def whole_nodes_rows(recipe: Recipe, data: Path) -> Iterator[WholeNodesRow]:
    """Yield a line for every measured number of whole nodes, two and more; nothing is interpolated or borrowed.

    Args:
        recipe: The application.
        data: Folder of the public measurements.
    """
    for gpu, row in (recipe.rows | recipe.whole_nodes).items():
        per_node = GPUS_PER_NODE[gpu]
        for point in screen(row.read(data))[0]:
            nodes, rest = divmod(point.gpus, per_node)
            if nodes > 1 and rest == 0:
                seconds = recipe.samples_per_epoch / point.samples_per_s
                yield WholeNodesRow(recipe.name, gpu, nodes, per_node, seconds, "measured", point.source)
