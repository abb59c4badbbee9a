"""Seconds per epoch of an application on several whole nodes: measured, or fitted between measured numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from applications.communication import fitted
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
    """Yield a line for every number of whole nodes, two and more, that was measured, or can be fitted in between.

    Nothing is fitted beyond the largest measured number, and nothing is borrowed.

    Args:
        recipe: The application.
        data: Folder of the public measurements.
    """
    for gpu, row in (recipe.rows | recipe.whole_nodes).items():
        per_node = GPUS_PER_NODE[gpu]
        lines = {}
        for point in screen(row.read(data))[0]:
            nodes, rest = divmod(point.gpus, per_node)
            if nodes > 1 and rest == 0:
                seconds = recipe.samples_per_epoch / point.samples_per_s
                lines[nodes] = WholeNodesRow(recipe.name, gpu, nodes, per_node, seconds, "measured", point.source)
        found = fitted(recipe, gpu, data)
        for nodes in range(2, found.most if found else 0):
            if found and nodes not in lines:
                seconds = recipe.samples_per_epoch / recipe.batch_size * found.iteration_s(nodes)
                source = f"communication.csv: compute_s / {nodes} + sync_s x 2 x {nodes - 1} / {nodes}, each iteration"
                lines[nodes] = WholeNodesRow(recipe.name, gpu, nodes, per_node, seconds, "fitted", source)
        yield from (lines[nodes] for nodes in sorted(lines))
