"""Bars: the intervals of a run, each on its lanes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import groupby
from typing import TYPE_CHECKING

from gpusched_env.rendering.lanes import NodeLanes, Run, lanes_of
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.sharing import share_units

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


@dataclass(frozen=True, slots=True)
class Bar:
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
        """Say whether it is the bar on the first of the job's nodes."""
        return self.node == self.nodes[0]

    def in_the_place_of(self, other: Bar) -> bool:
        """Say whether both are on the same nodes and, if both are shares, on the same GPU."""
        shares = self.gpu >= 0 and other.gpu >= 0
        return self.nodes == other.nodes and (self.gpu == other.gpu or not shares)


def bars_of(instance: Instance, log: NDArray[np.float64]) -> tuple[Bar, ...]:
    """Give every row of the log its lanes, in order of time: first those free again, then first fit.

    Args:
        instance: The instance that is run.
        log: Rows of the log's form, (L, LOG_COLUMNS), in any order.

    Returns:
        The bars, by start.
    """
    by_start = sorted(log.tolist(), key=lambda row: (row[at.LOG_START], row[at.LOG_JOB], row[at.LOG_NODE]))
    together = _nodes_held_at_once(by_start)
    lanes = [NodeLanes(node.gpus) for node in instance.nodes]
    open_bars: list[tuple[float, int, Bar]] = []
    last: dict[int, Bar] = {}
    bars: list[Bar] = []
    for start, rows in groupby(by_start, key=lambda row: row[at.LOG_START]):
        while open_bars and open_bars[0][0] <= start:
            bar = heappop(open_bars)[2]
            lanes[bar.node].let_go(bar.runs, bar.gpu)
        # Jobs that stay on their node choose first, so that they keep their GPUs.
        for row in sorted(rows, key=lambda row: not _stays(row, last.get(int(row[at.LOG_JOB])))):
            job, node, gpu = int(row[at.LOG_JOB]), int(row[at.LOG_NODE]), int(row[at.LOG_SLOT])
            runs = _take(instance, lanes[node], row, last.get(job))
            bar = Bar(job, node, runs, start, row[at.LOG_READY], row[at.LOG_END], gpu, together[job, start])
            last[job] = bar
            heappush(open_bars, (bar.end_s, len(bars), bar))
            bars.append(bar)
    return tuple(bars)


def _nodes_held_at_once(rows: list[list[float]]) -> dict[tuple[int, float], tuple[int, ...]]:
    """List the nodes that each job held from each of its starts on, in the order of the rows."""
    nodes: dict[tuple[int, float], tuple[int, ...]] = defaultdict(tuple)
    for row in rows:
        nodes[int(row[at.LOG_JOB]), row[at.LOG_START]] += (int(row[at.LOG_NODE]),)
    return nodes


def _stays(row: list[float], before: Bar | None) -> bool:
    return before is not None and before.node == row[at.LOG_NODE]


def _take(instance: Instance, lanes: NodeLanes, row: list[float], before: Bar | None) -> tuple[Run, ...]:
    configuration = instance.configurations[int(row[at.LOG_CONFIG])]
    if configuration.kind == "shared":
        return lanes.share(int(row[at.LOG_SLOT]), share_units(configuration.share) / at.UNITS)
    kept = lanes_of(before.runs) if before is not None and _stays(row, before) else []
    return lanes.hold(configuration.gpus_per_node, kept)
