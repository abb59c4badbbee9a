"""The parts of a Gantt chart put together: what rests from frame to frame, and what moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.gantt_due_dates import draw_due_dates
from gpusched_env.rendering.gantt_heading import draw_facts, draw_legend, legend_of
from gpusched_env.rendering.gantt_marks import draw_bars, draw_labels, draw_nodes, draw_places, draw_switches
from gpusched_env.rendering.gantt_panel import NODE_GAP, make_chart
from gpusched_env.rendering.gantt_usage import draw_usage, dress_usage, usage_in, waiting_top
from gpusched_env.rendering.palette import INK, PAPER
from gpusched_env.rendering.plotting import Figure, FigureCanvasAgg

if TYPE_CHECKING:
    from gpusched_env.rendering.gantt_panel import Chart
    from gpusched_env.rendering.plotting import Axes, Line2D, Patch
    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.rendering.window import Window


@dataclass(frozen=True, slots=True)
class Scene:
    """What a chart shows.

    Attributes:
        timeline: The bars to draw.
        whole: The run, of which heading and strip tell.
        window: The stretch of time.
        nodes: The nodes that are shown, ascending.
        size_inches: Width and height of the figure [inches].
        dpi: Pixels per inch.
        title: The title; None: policy and size.
    """

    timeline: Timeline
    whole: Timeline
    window: Window
    nodes: tuple[int, ...]
    size_inches: tuple[float, float]
    dpi: float
    title: str | None = None


class Drawing:
    """A figure with what does not move: nodes, scales, grid and legend.

    Args:
        scene: The first thing to show on it.
    """

    def __init__(self, scene: Scene) -> None:
        width, height = scene.size_inches
        self.figure = Figure(figsize=scene.size_inches, dpi=scene.dpi, facecolor=PAPER)
        self.canvas = FigureCanvasAgg(self.figure)
        left, right, below, strip = 1.2 / width, 1 - 0.55 / width, 0.5 / height, 0.85 / height
        bottom, top = below + strip + 0.12 / height, 1 - 0.98 / height
        self._axes = self.figure.add_axes((left, bottom, right - left, top - bottom))
        self._usage = self.figure.add_axes((left, below, right - left, strip), sharex=self._axes)
        self._waiting = self._usage.twinx()
        self._panel_px = (right - left) * width * scene.dpi, (top - bottom) * height * scene.dpi
        chart, (_, (_, waiting)) = self._chart(scene), usage_in(scene.whole, scene.window, set(scene.nodes))
        draw_nodes(chart)
        dress_usage(self._usage, self._waiting, chart, waiting_top(waiting))
        draw_legend(self.figure, legend_of(scene.timeline))

    def draw(self, scene: Scene) -> None:
        """Add what moves."""
        chart = self._chart(scene)
        draw_places(chart)
        draw_bars(chart)
        draw_switches(chart)
        draw_due_dates(chart)
        draw_labels(chart)
        usage = usage_in(scene.whole, scene.window, set(scene.nodes))
        draw_usage(self._usage, self._waiting, usage, chart.unit_s)
        for axes in (self._axes, self._usage):
            _draw_now(axes, chart)
        draw_facts(self.figure, scene.whole, scene.title)

    def _chart(self, scene: Scene) -> Chart:
        return make_chart(self._axes, scene.timeline, scene.window, self._panel_px, scene.dpi, scene.nodes)


def resting_parts(scene: Scene) -> tuple[object, ...]:
    """Give what two scenes must have in common to be drawn on one `Drawing`; equal parts look equal."""
    _, (_, waiting) = usage_in(scene.whole, scene.window, set(scene.nodes))
    legend: list[Patch | Line2D] = legend_of(scene.timeline)
    nodes = tuple((node.gpus, node.gpu_type) for node in scene.whole.instance.nodes)
    return scene.window, nodes, waiting_top(waiting), tuple(str(handle.get_label()) for handle in legend)


def usual_height(gpus: np.ndarray) -> float:
    """Choose the height of a figure by the GPUs of the nodes on it [inches]."""
    return float(np.clip(2.8 + 0.13 * float(np.sum(gpus + NODE_GAP)), 6.5, MOST_INCHES))


MOST_INCHES = 15.0


def _draw_now(axes: Axes, chart: Chart) -> None:
    if chart.timeline.running:
        axes.axvline(chart.timeline.now_s / chart.unit_s, color=INK, linewidth=1.1, zorder=5)
