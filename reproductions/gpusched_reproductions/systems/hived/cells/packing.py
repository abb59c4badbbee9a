"""Where in some nodes the pods of a gang go: on few nodes, and within a node on GPUs of few cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpusched_env.cells import tree as at
from gpusched_reproductions.systems.hived.cells.binding import NOBODY, OPPORTUNISTIC, Side


def pack(
    side: Side, nodes: list[int], sizes: Sequence[int], priority: int, suggested: Callable[[int], bool]
) -> list[list[int]] | None:
    """Choose the GPUs of each pod, without preemption if that is possible; None if they do not all fit.

    Args:
        side: The virtual cells of tenants, or for opportunistic gangs the physical cells.
        nodes: Rows of the nodes; they are brought into the order in which they are tried, equal ones as before.
        priority: Priority of the gang: it may have GPUs that are held at a lower one.
    """
    for threshold in dict.fromkeys((OPPORTUNISTIC, priority)):
        rank = _use_of_own_class if priority == OPPORTUNISTIC else _use
        nodes.sort(key=lambda node: (not suggested(node), *rank(side, node)))
        chosen = _nodes_for(side, nodes, sizes, threshold)
        if chosen is not None and all(suggested(node) for node in chosen):
            return _gpus_for(side, chosen, sizes, threshold)
    return None


def _use(side: Side, node: int) -> tuple[int, int]:
    return -int((side.held(node) > NOBODY).sum()), 0


def _use_of_own_class(side: Side, node: int) -> tuple[int, int]:
    """Rank nodes for opportunistic gangs: first those with most of them, then those with fewest guaranteed ones."""
    held = side.held(node)
    return -int((held == OPPORTUNISTIC).sum()), int((held > OPPORTUNISTIC).sum())


def _nodes_for(side: Side, nodes: Sequence[int], sizes: Sequence[int], threshold: int) -> list[int] | None:
    chosen: list[int] = []
    for node in nodes:
        free = int((side.held(node) < threshold).sum())
        while len(chosen) < len(sizes) and free >= sizes[len(chosen)]:
            free -= sizes[len(chosen)]
            chosen.append(node)
    return chosen if len(chosen) == len(sizes) else None


def _gpus_for(side: Side, nodes: Sequence[int], sizes: Sequence[int], threshold: int) -> list[list[int]]:
    """Choose the GPUs of each pod on its node: all in the smallest cell that has enough, those nobody holds first."""
    taken: set[int] = set()
    chosen = []
    for node, size in zip(nodes, sizes, strict=True):
        free = [int(gpu) for gpu in side.gpus_of(node) if int(gpu) not in taken]
        free = [gpu for gpu in free if side.highest(gpu) < threshold]
        free.sort(key=lambda gpu: side.highest(gpu) > NOBODY)
        in_cell: dict[int, list[int]] = {}
        for gpu in free:
            for cell in side.path(gpu):
                in_cell.setdefault(cell, []).append(gpu)
                if cell == node:
                    break
        enough = [(cell, gpus) for cell, gpus in in_cell.items() if len(gpus) >= size]
        best = min(enough, key=lambda each: (side.tree[each[0], at.SIZE], free.index(each[1][0])))
        chosen.append(best[1][:size])
        taken |= set(chosen[-1])
    return chosen
