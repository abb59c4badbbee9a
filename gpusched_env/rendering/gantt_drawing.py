"""The parts of a Gantt chart put together: its heading, what rests from frame to frame, and what moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.gantt_marks import (
    MOST_MARKS,
    TIES,
    draw_bars,
    draw_labels,
    draw_nodes,
    draw_places,
    draw_switches,
)
from gpusched_env.rendering.gantt_panel import (
    draw_due_dates,
    draw_usage,
    dress_usage,
    make_chart,
    usage_in,
    waiting_top,
)
from gpusched_env.rendering.lanes import NODE_GAP
from gpusched_env.rendering.palette import INK, JOB_COLOURS, LATE, PAPER, SUBTLE
from gpusched_env.rendering.plotting import Figure, FigureCanvasAgg, Line2D, Patch
from gpusched_env.rendering.text import duration_text

if TYPE_CHECKING:
    from gpusched_env.rendering.gantt_panel import Chart
    from gpusched_env.rendering.plotting import Axes
    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.rendering.window import Window

LEFT = 0.18  # inches


def draw_facts(figure: Figure, timeline: Timeline, title: str | None) -> None:
    """Write the title, by default policy and size, and below it time, costs and jobs so far."""
    nodes, jobs = timeline.instance.nodes, int(timeline.submitted.sum())
    done = int(np.sum(~np.isnan(timeline.completion_s)))
    size = f"{len(nodes)} nodes, {sum(node.gpus for node in nodes)} GPUs, {jobs} jobs"
    size += " so far" if timeline.running else ""
    name = title or (f"{timeline.policy} on {size}" if timeline.policy else size)
    total = timeline.energy_eur + timeline.tardiness_eur
    cost = f"energy {timeline.energy_eur:,.2f} € + tardiness {timeline.tardiness_eur:,.2f} € = {total:,.2f} €"
    state = f"{done} done, {jobs - done} active, " if timeline.running else ""
    late = f"{int(timeline.late.sum())} of {jobs} jobs late"
    facts = "   |   ".join([duration_text(timeline.now_s), cost, state + late])
    width, height = figure.get_size_inches()
    figure.text(LEFT / width, 1 - 0.16 / height, name, fontsize=12.5, fontweight="bold", color=INK, va="top")
    figure.text(LEFT / width, 1 - 0.45 / height, facts, fontsize=8.5, color=SUBTLE, va="top")


def draw_legend(figure: Figure, handles: list[Patch | Line2D]) -> None:
    """Draw the legend in one line."""
    width, height = figure.get_size_inches()
    figure.legend(
        handles=handles, loc="upper left", bbox_to_anchor=((LEFT - 0.08) / width, 1 - 0.64 / height), ncols=10,
        fontsize=7.5, frameon=False, handlelength=1.6, columnspacing=1.5, handletextpad=0.5, labelcolor=INK,
        borderpad=0.2,
    )  # fmt: skip


def legend_of(timeline: Timeline) -> list[Patch | Line2D]:
    """Explain what is on the chart."""
    handles: list[Patch | Line2D] = [
        Patch(facecolor=JOB_COLOURS[0], edgecolor=PAPER, label="GPUs held by job (number)"),
        Patch(facecolor=JOB_COLOURS[1], edgecolor=LATE, linewidth=1.2, label="late job"),
        Patch(facecolor=JOB_COLOURS[1], edgecolor=LATE, hatch="//////", label="after its due date"),
        _marker("v", JOB_COLOURS[0], 5.0, "due date"),
        *([_marker(">", JOB_COLOURS[0], 5.0, "due later")] if timeline.running else []),
        *_change_handles(timeline),
        *_kind_handles(timeline),
    ]
    if _any_waits(timeline):
        handles.append(Patch(facecolor=INK, alpha=0.45, label="restart, no progress"))
    if timeline.running:
        handles.append(Line2D([], [], color=INK, linewidth=1.1, label="now"))
    return handles


def _change_handles(timeline: Timeline) -> list[Patch | Line2D]:
    changes = sum(len(bars) - 1 for bars in timeline.bars_of_jobs().values())
    if changes > MOST_MARKS:
        count = "" if timeline.running else f"{changes:,} "
        return [Line2D([], [], linestyle="none", label=f"{count}changes, moves and pauses, not marked")]
    joins = Line2D([], [], color=SUBTLE, linewidth=1, linestyle=(0, (1.5, 1.5)), label="move or pause")
    return [_marker("D", PAPER, 3.4, "change of GPUs or node"), joins]


def _any_waits(timeline: Timeline) -> bool:
    """Say whether any job has a start or a change that takes time."""
    jobs = timeline.instance.jobs
    costs = [column for column in (jobs.start_s, jobs.resume_s, jobs.restart_s) if column is not None]
    return any(bool(column[timeline.submitted].any()) for column in costs)


def _kind_handles(timeline: Timeline) -> list[Patch | Line2D]:
    """Explain bars of shares and of several nodes, if there are any."""
    handles: list[Patch | Line2D] = []
    if any(bar.gpu >= 0 for bar in timeline.bars):
        handles.append(Line2D([], [], color=JOB_COLOURS[0], linewidth=2.2, label="share of a GPU"))
    if any(len(bar.nodes) > 1 for bar in timeline.bars):
        handles.append(_marker("s", JOB_COLOURS[2], 5.0, "job on several nodes"))
        handles[-1].set(linestyle=TIES, linewidth=1.8)
    return handles


def _marker(shape: str, colour: str, size: float, label: str) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="none",
        marker=shape,
        markersize=size,
        color=colour,
        markeredgecolor=INK,
        markeredgewidth=0.6,
        label=label,
    )


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
