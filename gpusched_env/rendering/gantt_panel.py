"""A Gantt chart's panel: where things are on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.duration import axis_unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpusched_env.rendering.bars import Bar
    from gpusched_env.rendering.plotting import Axes
    from gpusched_env.rendering.timeline import Timeline

NODE_GAP = 0.7  # space between two nodes, in GPUs
GPU_GAP, SHARE_GAP = 0.06, 0.01  # space at the edges of bars on whole GPUs, and of those that share one, in GPUs


@dataclass(frozen=True, slots=True)
class Chart:
    """Where things are.

    Attributes:
        axes: The panel.
        timeline: What is drawn.
        first_row: Upper edge of each node's first GPU, in rows of one GPU, (N,).
        unit_s: Unit of the time axis [s].
        unit: Its name.
        end_s: End of the time axis [s].
        row_px: Height of a row [pixels].
        second_px: Width of a second [pixels].
        dpi: Pixels per inch.
    """

    axes: Axes
    timeline: Timeline
    first_row: NDArray[np.float64]
    unit_s: float
    unit: str
    end_s: float
    row_px: float
    second_px: float
    dpi: float

    @property
    def row_points(self) -> float:
        """Give the height of a GPU's row [points]."""
        return self.row_px * 72 / self.dpi

    def boxes(self, bar: Bar) -> Iterator[tuple[float, float]]:
        """Give the upper and lower edge of each run of the bar's GPUs, or of each part of its shared GPU."""
        for first, height in bar.runs:
            if bar.gpu < 0:
                top = self.first_row[bar.node] + first
                yield top + GPU_GAP, top + height - GPU_GAP
            else:
                top, bottom = self.lane(bar)
                low = top + (first - int(first)) * (bottom - top)
                yield low + SHARE_GAP, low + height * (bottom - top) - SHARE_GAP

    def lane(self, bar: Bar) -> tuple[float, float]:
        """Give the upper and lower edge of the shared GPU that the bar has a part of."""
        top = float(self.first_row[bar.node]) + int(bar.runs[0][0])
        return top + GPU_GAP, top + 1 - GPU_GAP

    def middle(self, bar: Bar) -> float:
        """Give the middle of the bar's largest run."""
        low, high = max(self.boxes(bar), key=lambda box: box[1] - box[0])
        return (low + high) / 2

    def first_middle(self, bar: Bar) -> float:
        """Give the middle of the bar's first GPU, or of the first part of its shared GPU."""
        low, high = min(self.boxes(bar))
        return min(low - GPU_GAP + 0.5, (low + high) / 2)

    def box(self, start_s: float, end_s: float, low: float, high: float) -> list[tuple[float, float]]:
        """Give the corners of a rectangle."""
        x, right = start_s / self.unit_s, end_s / self.unit_s
        return [(x, low), (right, low), (right, high), (x, high)]


def make_chart(axes: Axes, timeline: Timeline, end_s: float, size_px: tuple[float, float], dpi: float) -> Chart:
    """Lay out the panel and set its limits.

    Args:
        axes: The panel, empty.
        timeline: What will be drawn.
        end_s: End of the time axis [s].
        size_px: Width and height of the panel [pixels].
        dpi: Pixels per inch.
    """
    gpus = np.array([node.gpus for node in timeline.instance.nodes], dtype=np.float64)
    edges = np.concatenate([[0.0], np.cumsum(gpus + NODE_GAP)])
    rows = float(edges[-1]) - NODE_GAP
    unit_s, unit = axis_unit(end_s)
    axes.set_xlim(0.0, end_s / unit_s)
    axes.set_ylim(rows + 0.3, -0.6)
    return Chart(axes, timeline, edges[:-1], unit_s, unit, end_s, size_px[1] / (rows + 0.9), size_px[0] / end_s, dpi)
