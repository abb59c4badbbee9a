"""Lanes: which of a node's GPUs an interval is drawn on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Run = tuple[int, int]
"""Neighbouring GPUs of a node: the first one's number, and how many."""


def pick_lanes(free: list[bool], gpus: int, before: Iterable[int] = ()) -> list[int]:
    """Pick `gpus` free GPUs of a node and mark them as taken.

    First those that the job held before, then the first gap that holds the rest together, then the first free ones.

    Args:
        free: Whether each GPU of the node is free; changed.
        gpus: Number of GPUs to pick; at least so many are free.
        before: GPUs that the job held until now on this node.

    Returns:
        The numbers of the GPUs, ascending.
    """
    kept = [lane for lane in before if free[lane]][:gpus]
    rest = gpus - len(kept)
    open_lanes = [lane for lane, is_free in enumerate(free) if is_free and lane not in kept]
    chosen = kept + (_first_gap(open_lanes, rest) or open_lanes[:rest])
    for lane in chosen:
        free[lane] = False
    return sorted(chosen)


def runs_of(lanes: list[int]) -> tuple[Run, ...]:
    """Join neighbouring lanes (ascending) to runs."""
    runs: list[Run] = []
    for lane in lanes:
        if runs and lane == runs[-1][0] + runs[-1][1]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((lane, 1))
    return tuple(runs)


def _first_gap(open_lanes: list[int], size: int) -> list[int]:
    for start in range(len(open_lanes) - size + 1):
        gap = open_lanes[start : start + size]
        if not gap or gap[-1] - gap[0] == size - 1:
            return gap
    return []
