"""A run as a Gantt chart: GPUs over time, grouped by node, above the busy GPUs and the waiting jobs."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.duration import duration_text
from gpusched_env.rendering.gantt_marks import (
    MOST_MARKS,
    TIES,
    draw_bars,
    draw_due_dates,
    draw_labels,
    draw_nodes,
    draw_places,
    draw_switches,
)
from gpusched_env.rendering.gantt_panel import NODE_GAP, make_chart
from gpusched_env.rendering.palette import GRID, INK, JOB_COLOURS, LATE, PAPER, SUBTLE, WAITING
from gpusched_env.rendering.plotting import Figure, FigureCanvasAgg, FuncFormatter, Line2D, MaxNLocator, Patch
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import Result
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.rendering.gantt_panel import Chart
    from gpusched_env.rendering.plotting import Axes
    from gpusched_env.simulator import State

STUB = 0.012  # how far beyond the present what is held now is drawn, as a share of the axis
FRAME_INCHES, FRAME_DPI = (12.8, 7.2), 100


def gantt_figure(
    run: State | Result, *, size_inches: tuple[float, float] | None = None, dpi: int = 150, title: str | None = None
) -> Figure:
    """Draw a run, finished or going on, as a Gantt chart.

    A bar is an interval in which a job held GPUs; its height is their number, its colour and label the job. A shared
    GPU is shaded, and split by share among its jobs. A job on several nodes has a bar on each of them, tied by a dashed
    line. Bars of late jobs have a red edge and are hatched red after the due date. Triangles mark due dates, diamonds
    and dotted lines changes of configuration or place and pauses.

    Args:
        run: A result with its intervals, or a state in or just after a decision round.
        size_inches: Width and height [inches]; by default the height grows with the number of GPUs.
        dpi: Pixels per inch.
        title: Title; by default it names the policy and the size of the cluster.

    Returns:
        A figure with an Agg canvas, which belongs to no global state.
    """
    end_s = _axis_end(run)
    timeline = Timeline.of(run, ahead_s=STUB * end_s)
    lanes = sum(node.gpus for node in timeline.instance.nodes) + NODE_GAP * len(timeline.instance.nodes)
    size = size_inches or (13.0, float(np.clip(2.8 + 0.13 * lanes, 6.5, 26.0)))
    figure = Figure(figsize=size, dpi=dpi, facecolor=PAPER)
    FigureCanvasAgg(figure)
    width, height = size
    left, right, below, strip = 1.0 / width, 1 - 0.55 / width, 0.5 / height, 0.85 / height
    bottom, top = below + strip + 0.12 / height, 1 - 0.98 / height
    axes = figure.add_axes((left, bottom, right - left, top - bottom))
    usage = figure.add_axes((left, below, right - left, strip), sharex=axes)
    chart = make_chart(axes, timeline, end_s, ((right - left) * width * dpi, (top - bottom) * height * dpi), dpi)
    draw_nodes(chart)
    draw_places(chart)
    draw_bars(chart)
    draw_switches(chart)
    draw_due_dates(chart)
    draw_labels(chart)
    _draw_usage(usage, chart)
    _draw_now(chart, usage)
    _draw_heading(figure, chart, title)
    return figure


def gantt_rgb(
    run: State | Result, *, size_inches: tuple[float, float] = FRAME_INCHES, dpi: int = FRAME_DPI
) -> NDArray[np.uint8]:
    """Draw a run as `gantt_figure` does, into an image of constant size.

    Returns:
        Red, green and blue, shape (H, W, 3), uint8; 720 by 1280 pixels by default.
    """
    figure = gantt_figure(run, size_inches=size_inches, dpi=dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    pixels = np.asarray(canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[no-untyped-call]
    return pixels[:, :, :3].copy()


def render_gantt_rgb(state: State) -> NDArray[np.uint8]:
    """Draw the state of a run as a frame of a video: shape (720, 1280, 3), uint8.

    It shows nothing of jobs that are not submitted, not even how many there are.
    """
    return gantt_rgb(state)


def _axis_end(run: State | Result) -> float:
    """Choose the end of the time axis [s]: of a run that goes on, one that grows in steps from frame to frame."""
    due_s = run.instance.jobs.due_s
    if isinstance(run, Result):
        last_s = float(run.completion_s.max())
        # Due dates far beyond the end would squeeze the bars.
        near = due_s[due_s <= 1.15 * last_s]
        return 1.01 * max(last_s, float(near.max(initial=0.0)))
    end_s, least_s = 1.0, max(1.03 * run.view.now_s, _usual_due_s(due_s[: run.board.count[at.SUBMITTED]].tolist()))
    while end_s < least_s:
        end_s *= 1.25
    return end_s


def _usual_due_s(due_s: list[float]) -> float:
    """Give the greatest median that the due dates of the jobs submitted so far have had [s]: it never falls."""
    usual, ordered = 0.0, list[float]()
    for value in due_s:
        insort(ordered, value)
        usual = max(usual, ordered[(len(ordered) - 1) // 2])
    return usual


def _draw_usage(axes: Axes, chart: Chart) -> None:
    """Draw busy GPUs as an area and waiting jobs as a line, each with its own scale."""
    times, busy, waiting = chart.timeline.usage()
    until = np.append(times, max(chart.timeline.now_s, times[-1]) if chart.timeline.running else chart.end_s)
    until = until / chart.unit_s
    total = sum(node.gpus for node in chart.timeline.instance.nodes)
    axes.fill_between(until, np.append(busy, busy[-1]), step="post", color=JOB_COLOURS[0], alpha=0.45, linewidth=0)
    axes.set_ylim(0, total * 1.08)
    axes.set_ylabel("busy GPUs", fontsize=7.5, color=JOB_COLOURS[0])
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    other = axes.twinx()
    other.step(until, np.append(waiting, waiting[-1]), where="post", color=WAITING, linewidth=1.1)
    other.set_ylim(0, max(2.0, float(waiting.max())) * 1.08)
    other.set_ylabel("waiting jobs", fontsize=7.5, color=WAITING)
    other.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    other.tick_params(axis="y", length=0, labelsize=7, labelcolor=WAITING)
    axes.tick_params(axis="both", length=0, labelsize=7, labelcolor=INK)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_xlabel(f"time [{chart.unit}]", fontsize=8, color=INK)
    for panel in (axes, other):
        for side in panel.spines.values():
            side.set_visible(False)


def _draw_now(chart: Chart, usage: Axes) -> None:
    if not chart.timeline.running:
        return
    for axes in (chart.axes, usage):
        axes.axvline(chart.timeline.now_s / chart.unit_s, color=INK, linewidth=1.1, zorder=5)


def _draw_heading(figure: Figure, chart: Chart, title: str | None) -> None:
    timeline = chart.timeline
    width, height = figure.get_size_inches()
    nodes, jobs = timeline.instance.nodes, int(timeline.submitted.sum())
    done = int(np.sum(~np.isnan(timeline.completion_s)))
    size = f"{len(nodes)} nodes, {sum(node.gpus for node in nodes)} GPUs, {jobs} jobs"
    size += " so far" if timeline.running else ""
    name = title or (f"{timeline.policy} on {size}" if timeline.policy else size)
    total = timeline.energy_eur + timeline.tardiness_eur
    cost = f"energy {timeline.energy_eur:.2f} € + tardiness {timeline.tardiness_eur:.2f} € = {total:.2f} €"
    state = f"{done} done, {jobs - done} active, " if timeline.running else ""
    late = f"{int(timeline.late.sum())} of {jobs} jobs late"
    facts = "   |   ".join([duration_text(timeline.now_s), cost, state + late])
    left = 0.18 / width
    figure.text(left, 1 - 0.16 / height, name, fontsize=12.5, fontweight="bold", color=INK, va="top")
    figure.text(left, 1 - 0.45 / height, facts, fontsize=8.5, color=SUBTLE, va="top")
    figure.legend(
        handles=_legend(timeline), loc="upper left", bbox_to_anchor=(left - 0.08 / width, 1 - 0.64 / height), ncols=10,
        fontsize=7.5, frameon=False, handlelength=1.6, columnspacing=1.5, handletextpad=0.5, labelcolor=INK,
        borderpad=0.2,
    )  # fmt: skip


def _change_handles(timeline: Timeline) -> list[Patch | Line2D]:
    changes = sum(len(bars) - 1 for bars in timeline.bars_of_jobs().values())
    if changes > MOST_MARKS:
        return [Line2D([], [], linestyle="none", label=f"{changes:,} changes, moves and pauses, not marked")]
    joins = Line2D([], [], color=SUBTLE, linewidth=1, linestyle=(0, (1.5, 1.5)), label="move or pause")
    return [_marker("D", PAPER, 3.6, "change of GPUs or node"), joins]


def _legend(timeline: Timeline) -> list[Patch | Line2D]:
    handles: list[Patch | Line2D] = [
        Patch(facecolor=JOB_COLOURS[0], edgecolor=PAPER, label="GPUs held by job (number)"),
        Patch(facecolor=JOB_COLOURS[1], edgecolor=LATE, linewidth=1.2, label="late job"),
        Patch(facecolor=JOB_COLOURS[1], edgecolor=LATE, hatch="//////", label="after its due date"),
        _marker("v", JOB_COLOURS[0], 5.0, "due date"),
        *_change_handles(timeline),
        *_kind_handles(timeline),
    ]
    if _any_waits(timeline):
        handles.append(Patch(facecolor=INK, alpha=0.45, label="restart, no progress"))
    if timeline.running:
        handles.append(Line2D([], [], color=INK, linewidth=1.1, label="now"))
    return handles


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
