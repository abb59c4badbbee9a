"""Where the bars of a Gantt chart lie: a row for each GPU, grouped by node, the first on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.gantt_panel import GPU_GAP, NODE_GAP, SHARE_GAP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model import Node
    from gpusched_env.rendering.bars import Bar


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a cluster.

    Attributes:
        first: Upper edge of each node's first GPU, in rows of one GPU, (N,).
        count: Rows in all, with the gaps between nodes.
    """

    first: NDArray[np.float64]
    count: float

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Rows:
        """Lay out these nodes."""
        edges = np.concatenate([[0.0], np.cumsum([node.gpus + NODE_GAP for node in nodes])])
        return cls(edges[:-1], float(edges[-1]) - NODE_GAP)

    def boxes(self, bar: Bar) -> Iterator[tuple[float, float]]:
        """Give the upper and lower edge of each run of the bar's GPUs, or of each part of its shared GPU."""
        top = float(self.first[bar.node])
        for first, height in bar.runs:
            if bar.gpu < 0:
                yield top + first + GPU_GAP, top + first + height - GPU_GAP
            else:
                lane, size = top + int(first) + GPU_GAP, 1 - 2 * GPU_GAP
                low = lane + (first - int(first)) * size
                yield low + SHARE_GAP, low + height * size - SHARE_GAP

    def middle(self, bar: Bar) -> float:
        """Give the middle of the bar's largest box."""
        low, high = max(self.boxes(bar), key=lambda box: box[1] - box[0])
        return (low + high) / 2
