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
    from gpusched_env.rendering.window import Window

NODE_GAP = 0.7  # space between two nodes, in GPUs
GPU_GAP, SHARE_GAP = 0.06, 0.01  # space at the edges of bars on whole GPUs, and of those that share one, in GPUs


@dataclass(frozen=True, slots=True)
class Chart:
    """Where things are.

    Attributes:
        axes: The panel.
        timeline: What is drawn.
        nodes: The nodes that are shown, ascending.
        first_row: Upper edge of each node's first GPU, in rows of one GPU, (N,); NaN for nodes that are not shown.
        unit_s: Unit of the time axis [s].
        unit: Its name.
        window: The stretch of time that is shown.
        row_px: Height of a row [pixels].
        second_px: Width of a second [pixels].
        dpi: Pixels per inch.
    """

    axes: Axes
    timeline: Timeline
    nodes: tuple[int, ...]
    first_row: NDArray[np.float64]
    unit_s: float
    unit: str
    window: Window
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

    def visible(self, bar: Bar) -> tuple[float, float]:
        """Give the start and end of the part of the bar that is shown [s]; the end is before the start if none is."""
        return max(bar.start_s, self.window.start_s), min(bar.end_s, self.window.end_s)

    def box(self, start_s: float, end_s: float, low: float, high: float) -> list[tuple[float, float]]:
        """Give the corners of a rectangle."""
        x, right = start_s / self.unit_s, end_s / self.unit_s
        return [(x, low), (right, low), (right, high), (x, high)]


def make_chart(
    axes: Axes,
    timeline: Timeline,
    window: Window,
    size_px: tuple[float, float],
    dpi: float,
    nodes: tuple[int, ...] | None = None,
) -> Chart:
    """Lay out the panel and set its limits.

    Args:
        axes: The panel, empty.
        timeline: What will be drawn; it has no bars on other nodes than those shown.
        window: The stretch of time that is shown.
        size_px: Width and height of the panel [pixels].
        dpi: Pixels per inch.
        nodes: The nodes that are shown, ascending; None: all.
    """
    shown = tuple(range(len(timeline.instance.nodes))) if nodes is None else nodes
    first_row, edge = np.full(len(timeline.instance.nodes), np.nan), 0.0
    for node in shown:
        first_row[node] = edge
        edge += timeline.instance.nodes[node].gpus + NODE_GAP
    rows = edge - NODE_GAP
    unit_s, unit = axis_unit(window.width_s)
    axes.set_xlim(window.start_s / unit_s, window.end_s / unit_s)
    axes.set_ylim(rows + 0.3, -0.6)
    row_px, second_px = size_px[1] / (rows + 0.9), size_px[0] / window.width_s
    return Chart(axes, timeline, shown, first_row, unit_s, unit, window, row_px, second_px, dpi)
