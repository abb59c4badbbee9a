"""The strip below a Gantt chart: busy GPUs as an area and waiting jobs as a line, each with its own scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.palette import GRID, INK, JOB_COLOURS, WAITING
from gpusched_env.rendering.plotting import FuncFormatter, MaxNLocator

if TYPE_CHECKING:
    from collections.abc import Container

    from numpy.typing import NDArray

    from gpusched_env.rendering.gantt_panel import Chart
    from gpusched_env.rendering.plotting import Axes
    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.rendering.window import Window

Curve = tuple["NDArray[np.float64]", "NDArray[np.int64]"]
"""Times [s], and what is from each on; the last time is where the curve ends."""


def usage_in(timeline: Timeline, window: Window, nodes: Container[int]) -> tuple[Curve, Curve]:
    """Count busy GPUs of the nodes, and waiting jobs, in the window, up to the present if the run goes on."""
    end_s = min(timeline.now_s, window.end_s) if timeline.running else window.end_s
    times, _, waiting = timeline.usage()
    on_nodes, busy, _ = timeline.on_nodes(nodes).usage()
    return _part(on_nodes, busy, window.start_s, end_s), _part(times, waiting, window.start_s, end_s)


def _part(times: NDArray[np.float64], values: NDArray[np.int64], start_s: float, end_s: float) -> Curve:
    first = max(0, int(np.searchsorted(times, start_s, side="right")) - 1)
    last = max(first + 1, int(np.searchsorted(times, end_s, side="left")))
    return np.append(times[first:last], max(end_s, times[first])), np.append(values[first:last], values[last - 1])


def waiting_top(waiting: NDArray[np.int64]) -> int:
    """Choose the end of the scale of waiting jobs: 2, 5, 10, 20, 50, ..., so that it rests from frame to frame."""
    top, steps = 2, 0
    while top < waiting.max():
        steps += 1
        top = (2, 5, 10)[steps % 3] * 10 ** (steps // 3)
    return top


def dress_usage(axes: Axes, other: Axes, chart: Chart, top: int) -> None:
    """Draw scales, grid and names of the strip.

    Args:
        axes: The strip's axes, for busy GPUs.
        other: Their twin, for waiting jobs.
        chart: The panel above.
        top: End of the scale of waiting jobs.
    """
    total = sum(chart.timeline.instance.nodes[node].gpus for node in chart.nodes)
    axes.set_ylim(0, total * 1.08)
    axes.set_ylabel("busy GPUs", fontsize=7.5, color=JOB_COLOURS[0])
    other.set_ylim(0, top * 1.08)
    other.set_ylabel("waiting jobs", fontsize=7.5, color=WAITING)
    other.tick_params(axis="y", length=0, labelsize=7, labelcolor=WAITING)
    axes.tick_params(axis="both", length=0, labelsize=7, labelcolor=INK)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel(f"time [{chart.unit}]", fontsize=8, color=INK)
    for panel in (axes, other):
        panel.yaxis.set_major_locator(MaxNLocator(3, integer=True))
        for side in panel.spines.values():
            side.set_visible(False)


def draw_usage(axes: Axes, other: Axes, usage: tuple[Curve, Curve], unit_s: float) -> None:
    """Draw the area and the line."""
    (times, busy), (changes, waiting) = usage
    axes.fill_between(times / unit_s, busy, step="post", color=JOB_COLOURS[0], alpha=0.45, linewidth=0)
    other.step(changes / unit_s, waiting, where="post", color=WAITING, linewidth=1.1)
