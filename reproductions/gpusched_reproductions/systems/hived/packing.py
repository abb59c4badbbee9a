"""Where the pods of a gang go: the fullest nodes first, and within a node GPUs that are close together."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpusched_reproductions.systems.hived.forest import Cell


def pack(nodes: list[Cell], sizes: list[int], threshold: int, *, across: bool) -> list[Cell] | None:
    """Choose a node for each pod, smallest pods first; None if they do not all fit.

    Args:
        nodes: The nodes; they are put into the order in which they are tried, equal ones as before.
        sizes: GPUs of the pods, rising.
        threshold: GPUs held at this priority or above are not free.
        across: Whether nodes that anybody uses come first; else those used at this priority, and among these those
            that higher ones use least.
    """

    def rank(node: Cell) -> tuple[int, int]:
        held = [gpu.pod.gang.priority for gpu in node.gpus if gpu.pod is not None]
        if across:
            return -len(held), 0
        return -sum(priority == threshold for priority in held), sum(priority > threshold for priority in held)

    nodes.sort(key=rank)
    chosen: list[Cell] = []
    taken = 0
    for node in nodes:
        free = sum(is_free(gpu, threshold) for gpu in node.gpus)
        taken = 0
        while len(chosen) < len(sizes) and free - taken >= sizes[len(chosen)]:
            taken += sizes[len(chosen)]
            chosen.append(node)
    return chosen if len(chosen) == len(sizes) else None


def is_free(gpu: Cell, threshold: int) -> bool:
    """Say whether a GPU is held by nobody, or at a priority below `threshold`."""
    return gpu.pod is None or gpu.pod.gang.priority < threshold


def choose_gpus(nodes: list[Cell], sizes: list[int], threshold: int) -> list[list[Cell]]:
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


def _available(cell: Cell, threshold: int, taken: set[int]) -> list[Cell]:
    """List the GPUs of a cell that are free, those that nobody holds first."""
    free = [gpu for gpu in cell.gpus if is_free(gpu, threshold) and id(gpu) not in taken]
    return sorted(free, key=lambda gpu: gpu.pod is not None)
