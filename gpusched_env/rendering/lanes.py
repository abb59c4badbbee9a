"""Lanes: which of a node's GPUs an interval is drawn on, and which part of a shared one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Run = tuple[float, float]
"""Neighbouring GPUs of a node, or a part of a shared one: where it begins, and its height, in GPUs."""


class NodeLanes:
    """The lanes of a node, one for each GPU; a shared GPU's lane is split among its jobs.

    Shares are whole numbers of a power of two, so that their sums are exact.

    Args:
        gpus: GPUs of the node.
    """

    def __init__(self, gpus: int) -> None:
        self._free = [True] * gpus
        self._lane_of: dict[int, int] = {}
        self._parts: dict[int, list[Run]] = {}

    def hold(self, gpus: int, before: Iterable[int] = ()) -> tuple[Run, ...]:
        """Pick and take the lanes of `gpus` whole GPUs; see `pick_lanes`."""
        return runs_of(pick_lanes(self._free, gpus, before))

    def share(self, gpu: int, size: float) -> tuple[Run, ...]:
        """Take a part of the lane of shared GPU number `gpu`, `size` high; the first to share it opens a lane.

        It is the lane that the GPU with this number had before, or else the last free one: GPUs held whole begin
        with the first.
        """
        if gpu not in self._parts:
            lane = self._lane_of.get(gpu, -1)
            if lane < 0 or not self._free[lane]:
                lane = max(index for index, is_free in enumerate(self._free) if is_free)
            self._free[lane] = False
            self._lane_of[gpu] = lane
            self._parts[gpu] = []
        parts = pick_parts(self._parts[gpu], size)
        return tuple((self._lane_of[gpu] + low, height) for low, height in parts)

    def let_go(self, runs: Iterable[Run], gpu: int) -> None:
        """Let go of what `hold` gave (`gpu` = -1), or `share` for the shared GPU number `gpu`."""
        if gpu < 0:
            for lane in lanes_of(runs):
                self._free[lane] = True
            return
        lane, parts = self._lane_of[gpu], self._parts[gpu]
        for low, height in runs:
            parts.remove((low - lane, height))
        if not parts:
            del self._parts[gpu]
            self._free[lane] = True


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


def pick_parts(taken: list[Run], size: float) -> list[Run]:
    """Pick a part of a shared GPU, `size` high, and add it to those `taken`.

    The first gap that holds the whole of it, or else pieces of the first gaps; there is room for it.
    """
    edges = [(0.0, 0.0), *sorted(taken), (1.0, 0.0)]
    gaps = [(low + height, after - low - height) for (low, height), (after, _) in pairwise(edges)]
    fitting = [low for low, height in gaps if height >= size]
    chosen = [(fitting[0], size)] if fitting else []
    for low, height in gaps if not fitting else []:
        piece = min(height, size - sum(height for _, height in chosen))
        if piece > 0.0:
            chosen.append((low, piece))
    taken += chosen
    return chosen


def lanes_of(runs: Iterable[Run]) -> list[int]:
    """List the lanes that runs lie on, in part or whole, ascending."""
    return sorted({lane for first, height in runs for lane in range(int(first), int(first) + max(1, int(height)))})


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
