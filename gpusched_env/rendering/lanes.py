"""Lanes and bars: which of a node's GPUs an interval is drawn on, and which part of a shared one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from gpusched_env.model import Instance, Node
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.builds import share_units
from gpusched_env.simulator.result import gpus_on_nodes

Run = tuple[float, float]
"""Neighbouring GPUs of a node, or a part of a shared one: where it begins, and its height, in GPUs."""


class NodeLanes:
    """The lanes of a node, one for each GPU; a shared GPU's lane is split among its jobs.

    Shares are whole numbers of a power of two, so that their sums are exact.
    """

    def __init__(self, gpus: int) -> None:
        self._free = [True] * gpus
        self._lane_of: dict[int, int] = {}
        self._parts: dict[int, list[Run]] = {}

    def hold(self, gpus: int, before: Iterable[int] = ()) -> tuple[Run, ...]:
        return runs_of(pick_lanes(self._free, gpus, before))

    def share(self, gpu: int, size: float) -> tuple[Run, ...]:
        """Occupy a part of the lane of shared GPU number `gpu`, `size` high; the first share opens a lane.

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
        """Release the lanes that `hold` returned (`gpu` = -1), or `share`, for shared GPUs from number `gpu` on."""
        if gpu < 0:
            for lane in lanes_of(runs):
                self._free[lane] = True
            return
        number = {self._lane_of[each]: each for each in self._parts}
        for low, height in runs:
            lane = int(low)
            parts = self._parts[number[lane]]
            parts.remove((low - lane, height))
            if not parts:
                del self._parts[number[lane]]
                self._free[lane] = True


def pick_lanes(free: list[bool], gpus: int, before: Iterable[int] = ()) -> list[int]:
    """Pick `gpus` free GPUs of a node and mark them as taken.

    First those that the job held before, then the first free block that holds the rest, then the first free ones.

    Args:
        free: Whether each GPU of the node is free; changed.

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

    The first free block that holds the whole of it, or else pieces of the first free blocks; it must fit.
    """
    edges = [(0.0, 0.0), *sorted(taken), (1.0, 0.0)]
    blocks = [(low + height, after - low - height) for (low, height), (after, _) in pairwise(edges)]
    fitting = [low for low, height in blocks if height >= size]
    chosen = [(fitting[0], size)] if fitting else []
    for low, height in blocks if not fitting else []:
        piece = min(height, size - sum(height for _, height in chosen))
        if piece > 0.0:
            chosen.append((low, piece))
    taken += chosen
    return chosen


def lanes_of(runs: Iterable[Run]) -> list[int]:
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
        block = open_lanes[start : start + size]
        if not block or block[-1] - block[0] == size - 1:
            return block
    return []


@dataclass(frozen=True, slots=True)
class GanttBar:
    """An interval in which a job held GPUs of one node, or a share of one.

    Attributes:
        job: The job's index.
        node: The node's index.
        runs: The GPUs, as runs of neighbours, or the part of the shared GPU.
        start_s: When it began [s].
        ready_s: From when on it made progress [s]: later than `start_s` after a restart.
        end_s: When it ended, or the present time [s].
        gpu: Number of the shared GPU on the node; -1 for whole GPUs.
        nodes: All nodes that the job held at once, ascending.
    """

    job: int
    node: int
    runs: tuple[Run, ...]
    start_s: float
    ready_s: float
    end_s: float
    gpu: int
    nodes: tuple[int, ...]

    @property
    def is_first(self) -> bool:
        return self.node == self.nodes[0]

    def in_the_place_of(self, other: GanttBar) -> bool:
        shares = self.gpu >= 0 and other.gpu >= 0
        return self.nodes == other.nodes and (self.gpu == other.gpu or not shares)


def bars_of(instance: Instance, log: NDArray[np.float64]) -> tuple[GanttBar, ...]:
    """Return every row of the log its lanes, in order of time: first those free again, then first fit.

    Args:
        log: Rows of the log's form, (L, `log_columns`), in any order.
    """
    gpus = gpus_on_nodes(instance, log)[:, None]
    by_start = sorted(
        np.hstack([log, gpus]).tolist(), key=lambda row: (row[at.LOG_START], row[at.LOG_JOB], row[at.LOG_NODE])
    )
    together: dict[tuple[float, float], tuple[int, ...]] = defaultdict(tuple)
    for row in by_start:
        together[row[at.LOG_JOB], row[at.LOG_START]] += (int(row[at.LOG_NODE]),)
    lanes = [NodeLanes(node.gpus) for node in instance.nodes]
    open_bars: list[tuple[float, int, GanttBar]] = []
    last: dict[int, GanttBar] = {}
    bars: list[GanttBar] = []

    def has_moved(row: list[float]) -> bool:
        before = last.get(int(row[at.LOG_JOB]))
        return before is None or before.node != row[at.LOG_NODE]

    for start, rows in groupby(by_start, key=lambda row: row[at.LOG_START]):
        while open_bars and open_bars[0][0] <= start:
            bar = heappop(open_bars)[2]
            lanes[bar.node].let_go(bar.runs, bar.gpu)
        # Jobs that stay on their node choose first, so that they keep their GPUs.
        for row in sorted(rows, key=has_moved):
            job, node, config, gpu = (int(row[i]) for i in (at.LOG_JOB, at.LOG_NODE, at.LOG_CONFIG, at.LOG_SLOT))
            configuration = instance.configurations[config]
            if configuration.kind == "shared":
                size, numbers = (
                    share_units(configuration.share) / at.UNITS,
                    range(gpu, gpu + configuration.gpus_per_node),
                )
                runs = tuple(run for each in numbers for run in lanes[node].share(each, size))
            else:
                kept = [] if has_moved(row) else lanes_of(last[job].runs)
                runs = lanes[node].hold(int(row[-1]), kept)
            bar = GanttBar(job, node, runs, start, row[at.LOG_READY], row[at.LOG_END], gpu, together[job, start])
            last[job] = bar
            heappush(open_bars, (bar.end_s, len(bars), bar))
            bars.append(bar)
    return tuple(bars)


NODE_GAP = 0.7  # space between two nodes, in GPUs
GPU_GAP, SHARE_GAP = 0.06, 0.01  # space at the edges of bars on whole GPUs, and of those that share one, in GPUs


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Where nodes and bars are on a chart: a row for each GPU, grouped by node, the first on top.

    Attributes:
        first: Upper edge of each node's first GPU, in rows of one GPU, (N,); NaN for nodes that are not shown.
        count: Rows in all, with the gaps between nodes.
    """

    first: NDArray[np.float64]
    count: float

    @classmethod
    def of(cls, nodes: Sequence[Node], shown: Iterable[int] | None = None) -> Rows:
        first, edge = np.full(len(nodes), np.nan), 0.0
        for node in range(len(nodes)) if shown is None else shown:
            first[node] = edge
            edge += nodes[node].gpus + NODE_GAP
        return cls(first, edge - NODE_GAP)

    def boxes(self, bar: GanttBar) -> Iterator[tuple[float, float]]:
        """Yield the upper and lower edge of each run of the bar's GPUs, or of each part of its shared GPU."""
        for first, height in bar.runs:
            if bar.gpu < 0:
                top = float(self.first[bar.node]) + first
                yield top + GPU_GAP, top + height - GPU_GAP
            else:
                top, bottom = self.lane(bar)
                low = top + (first - int(first)) * (bottom - top)
                yield low + SHARE_GAP, low + height * (bottom - top) - SHARE_GAP

    def lane(self, bar: GanttBar) -> tuple[float, float]:
        """Return the upper and lower edge of the shared GPU that the bar has a part of."""
        top = float(self.first[bar.node]) + int(bar.runs[0][0])
        return top + GPU_GAP, top + 1 - GPU_GAP

    def largest(self, bar: GanttBar) -> tuple[float, float]:
        return max(self.boxes(bar), key=lambda box: box[1] - box[0])

    def middle(self, bar: GanttBar) -> float:
        return sum(self.largest(bar)) / 2

    def first_middle(self, bar: GanttBar) -> float:
        low, high = min(self.boxes(bar))
        return min(low - GPU_GAP + 0.5, (low + high) / 2)
