"""A run as a Gantt chart: GPUs over time, grouped by node, above the busy GPUs and the waiting jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.rendering.colours import INK, JOB_COLOURS, LATE, PAPER, SUBTLE
from gpusched_env.rendering.gantt_marks import (
    DOTS,
    DOWN,
    MOST_MARKS,
    MOST_MET,
    TIES,
    GanttChart,
    Scene,
    draw_bars,
    draw_down_times,
    draw_due_dates,
    draw_labels,
    draw_nodes,
    draw_places,
    draw_power,
    draw_switches,
    draw_usage,
    dress_usage,
    due_dates,
    waiting_top,
)
from gpusched_env.rendering.lanes import NODE_GAP
from gpusched_env.rendering.plotting import Figure, FigureCanvasAgg, Line2D, Patch
from gpusched_env.rendering.power import power_over_time
from gpusched_env.rendering.text import duration_text
from gpusched_env.rendering.timeline import Timeline, Window, window_of
from gpusched_env.simulator import Result, State

LEFT = 0.18  # inches
FRAME_INCHES, FRAME_DPI = (12.8, 7.2), 100
MOST_INCHES = 15.0
STUB = 0.012  # how far held GPUs are drawn beyond the present, as a share of the axis


def gantt_figure(
    run: State | Result,
    *,
    window_s: tuple[float, float | None] | None = None,
    nodes: Sequence[int] | None = None,
    jobs: Sequence[int] | None = None,
    size_inches: tuple[float, float] | None = None,
    dpi: int = 150,
    title: str | None = None,
) -> Figure:
    """Draw a run, finished or going on, as a Gantt chart.

    A bar is an interval in which a job held GPUs; its height is their number, its colour and label the job. A shared
    GPU is shaded, and split by share among its jobs. A job on several nodes has a bar on each of them, tied by a dashed
    line. Bars of late jobs have a red edge and are hatched red after the due date. Triangles mark due dates, diamonds
    and dotted lines changes of configuration or place and pauses. Of a run that goes on, the last stretch is shown.
    Nodes are hatched while they are down. Where prices change or GPUs have power limits, a strip has the power of all
    nodes and the price.

    Args:
        run: A result with its intervals, or a state in or just after a decision round.
        window_s: The time to show: its start [s] and its end [s] (None: the end of the run).
        nodes: Numbers of the nodes to show; all by default.
        jobs: Numbers of the jobs to show; all by default.
        size_inches: Width and height [inches]; by default the height grows with the number of GPUs, to 15 inches.
        dpi: Pixels per inch.
        title: Title; by default it names the policy and the size of the cluster.

    Returns:
        A figure with an Agg canvas, which belongs to no global state.

    Raises:
        InputError: The window is empty, or there is no such node or job.
    """
    every = run.instance.nodes
    shown = tuple(range(len(every))) if nodes is None else _numbers("nodes", nodes, len(every))
    rows = float(np.sum(np.array([every[node].gpus for node in shown]) + NODE_GAP))
    size = size_inches or (13.0, float(np.clip(2.8 + 0.13 * rows, 6.5, MOST_INCHES)))
    whole = scene_of(run, size, dpi, None if window_s is None else _window(run, *window_s))
    timeline = whole.timeline if nodes is None else whole.timeline.on_nodes(set(shown))
    if jobs is not None:
        timeline = timeline.of_jobs(set(_numbers("jobs", jobs, len(run.instance.jobs))))
    varies = run.instance.find("prices") is not None or run.instance.find("saved_power") is not None
    power = power_over_time(run, whole.whole) if varies and isinstance(run, Result) else None
    scene = Scene(timeline, whole.whole, whole.window, shown, size, dpi, title, power)
    drawing = GanttDrawing(scene)
    drawing.draw(scene)
    return drawing.figure


def gantt_rgb(
    run: State | Result, *, size_inches: tuple[float, float] = FRAME_INCHES, dpi: int = FRAME_DPI
) -> NDArray[np.uint8]:
    """Draw a run as `gantt_figure` does, into an image of constant size.

    Returns:
        Red, green and blue, shape (H, W, 3), uint8; 720 by 1280 pixels by default.
    """
    canvas = FigureCanvasAgg(gantt_figure(run, size_inches=size_inches, dpi=dpi))
    canvas.draw()  # type: ignore[no-untyped-call]
    return pixels_of(canvas)


def pixels_of(canvas: FigureCanvasAgg) -> NDArray[np.uint8]:
    """Return the pixels of the canvas: red, green and blue, (H, W, 3), uint8."""
    painted = np.asarray(canvas.buffer_rgba(), dtype=np.uint8)  # type: ignore[no-untyped-call]
    return painted[:, :, :3].copy()


def _window(run: State | Result, start_s: float, end_s: float | None) -> Window:
    usual = window_of(run).end_s
    if end_s is None and start_s >= usual:
        raise InputError("window_s", start_s, f"a beginning before {usual:g}, where the chart ends")
    return Window(start_s, usual if end_s is None else end_s)


def _numbers(name: str, given: Sequence[int], count: int) -> tuple[int, ...]:
    for number in given:
        if not 0 <= number < count:
            raise InputError(name, number, f"numbers from 0 to {count - 1}")
    if not given:
        raise InputError(name, list(given), "at least one number")
    return tuple(sorted(set(given)))


def scene_of(run: State | Result, size_inches: tuple[float, float], dpi: float, window: Window | None = None) -> Scene:
    shown = window or window_of(run)
    # Bars from before the window decide which GPUs those in it are drawn on.
    since_s = shown.start_s - shown.width_s
    timeline = Timeline.of(run, ahead_s=STUB * shown.width_s, since_s=since_s)
    return Scene(timeline, timeline, shown, tuple(range(len(run.instance.nodes))), size_inches, dpi)


class GanttDrawing:
    """A figure with the parts that stay the same from the first scene on: nodes, scales, grid and legend."""

    def __init__(self, scene: Scene) -> None:
        width, height = scene.size_inches
        self.figure = Figure(figsize=scene.size_inches, dpi=scene.dpi, facecolor=PAPER)
        self.canvas = FigureCanvasAgg(self.figure)
        left, right, below, strip = 1.2 / width, 1 - 0.55 / width, 0.5 / height, 0.85 / height
        strips = 2 if scene.power is not None else 1
        bottom, top = below + strips * (strip + 0.12 / height), 1 - 0.98 / height
        self._axes = self.figure.add_axes((left, bottom, right - left, top - bottom))
        self._usage = self.figure.add_axes((left, below, right - left, strip), sharex=self._axes)
        self._waiting = self._usage.twinx()
        self._panel_px = (right - left) * width * scene.dpi, (top - bottom) * height * scene.dpi
        chart = self._chart(scene)
        draw_nodes(chart)
        dress_usage(self._usage, self._waiting, chart)
        if scene.power is not None:
            place = left, below + strip + 0.12 / height, right - left, strip
            axes = self.figure.add_axes(place, sharex=self._axes)
            draw_power(axes, axes.twinx(), chart, scene.power)
        self._add_legend(legend_of(scene.timeline, scene.window))

    def _add_legend(self, handles: list[Patch | Line2D]) -> None:
        """Add the legend under the heading: one row, or two if one is wider than the figure."""
        width, height = self.figure.get_size_inches()
        for rows in (1, 2):
            legend = self.figure.legend(
                handles=handles, loc="upper left", bbox_to_anchor=((LEFT - 0.08) / width, 1 - 0.64 / height),
                ncols=-(-len(handles) // rows), fontsize=7.5, frameon=False, handlelength=1.6, columnspacing=1.5,
                handletextpad=0.5, labelcolor=INK, borderpad=0.2, labelspacing=0.2,
            )  # fmt: skip
            box = legend.get_window_extent(self.canvas.get_renderer())  # type: ignore[no-untyped-call]
            if rows == 2 or box.x1 <= self.figure.bbox.x1:
                return
            legend.remove()

    def draw(self, scene: Scene) -> None:
        chart = self._chart(scene)
        for draw in (draw_down_times, draw_places, draw_bars, draw_switches, draw_due_dates, draw_labels):
            draw(chart)
        draw_usage(self._usage, self._waiting, chart)
        for axes in (self._axes, self._usage) if scene.timeline.running else ():
            axes.axvline(scene.timeline.now_s / chart.unit_s, color=INK, linewidth=1.1, zorder=5)
        width, height = scene.size_inches
        name, facts = _heading(scene.whole, scene.title)
        self.figure.text(LEFT / width, 1 - 0.16 / height, name, fontsize=12.5, fontweight="bold", color=INK, va="top")
        self.figure.text(LEFT / width, 1 - 0.45 / height, facts, fontsize=8.5, color=SUBTLE, va="top")
        look: dict[str, Any] = {"fontsize": 8.0, "color": INK, "va": "top", "ha": "right"}
        self.figure.text(1 - LEFT / width, 1 - 0.18 / height, scene.note, **look)

    def _chart(self, scene: Scene) -> GanttChart:
        return GanttChart(self._axes, scene, self._panel_px)


def _heading(timeline: Timeline, title: str | None) -> tuple[str, str]:
    """Return the title, by default policy and size, and time, costs and jobs so far."""
    nodes, jobs = timeline.instance.nodes, int(timeline.submitted.sum())
    done = int(np.sum(~np.isnan(timeline.completion_s)))
    size = f"{len(nodes)} nodes, {sum(node.gpus for node in nodes)} GPUs, {jobs} jobs"
    size += " so far" if timeline.running else ""
    name = title or (f"{timeline.policy} on {size}" if timeline.policy else size)
    total = timeline.energy_eur + timeline.tardiness_eur
    cost = f"energy {timeline.energy_eur:,.2f} € + tardiness {timeline.tardiness_eur:,.2f} € = {total:,.2f} €"
    state = f"{done} done, {jobs - done} active, " if timeline.running else ""
    late = f"{int(timeline.late.sum())} of {jobs} jobs late"
    return name, "   |   ".join([duration_text(timeline.now_s), cost, state + late])


def legend_of(timeline: Timeline, window: Window) -> list[Patch | Line2D]:
    """Return the legend of the chart: of what it may have, what is drawn."""
    jobs, bars = timeline.instance.jobs, timeline.bars
    late, due = [bar for bar in bars if timeline.late[bar.job]], jobs.due_s
    handles: list[Patch | Line2D] = [
        Patch(facecolor=JOB_COLOURS[0], edgecolor=PAPER, label="GPUs held by job (number)")
    ]
    if late:
        handles.append(Patch(facecolor=JOB_COLOURS[1], edgecolor=LATE, linewidth=1.2, label="late job"))
    if any(bar.end_s > due[bar.job] for bar in late):
        handles.append(Patch(facecolor=JOB_COLOURS[1], edgecolor=LATE, hatch="//////", label="after its due date"))
    handles += [*_due_handles(timeline, window), *_change_handles(timeline)]
    if any(bar.gpu >= 0 for bar in bars):
        handles.append(Line2D([], [], color=JOB_COLOURS[0], linewidth=2.2, label="share of a GPU"))
    if any(len(bar.nodes) > 1 for bar in bars):
        handles.append(_marker("s", JOB_COLOURS[2], 5.0, "job on several nodes"))
        handles[-1].set(linestyle=TIES, linewidth=1.8)
    if any(bar.ready_s > bar.start_s for bar in bars):
        handles.append(Patch(facecolor=INK, alpha=0.45, label="restart, no progress"))
    if timeline.down_times():
        handles.append(Patch(label="node down", **DOWN))
    if timeline.running:
        handles.append(Line2D([], [], color=INK, linewidth=1.1, label="now"))
    return handles


def _due_handles(timeline: Timeline, window: Window) -> Iterator[Line2D]:
    beyond = {one[2] for one in due_dates(timeline, window)}
    if False in beyond:
        missed = not timeline.running and int(timeline.submitted.sum()) > MOST_MET
        colour, label = (LATE, "due date that was missed") if missed else (JOB_COLOURS[0], "due date")
        yield _marker("v", colour, 5.0, label)
    if True in beyond:
        yield _marker(">", JOB_COLOURS[0], 5.0, "due later")


def _change_handles(timeline: Timeline) -> Iterator[Line2D]:
    changes = sum(len(held) - 1 for held in timeline.bars_of_jobs().values())
    if changes > MOST_MARKS:
        count = "" if timeline.running else f"{changes:,} "
        yield Line2D([], [], linestyle="none", label=f"{count}changes, moves and pauses, not marked")
    elif changes:
        yield _marker("D", PAPER, 3.4, "change of GPUs or node")
        if any(True for _ in timeline.moves()):
            yield Line2D([], [], color=SUBTLE, linewidth=1, linestyle=DOTS, label="move or pause")


def _marker(shape: str, colour: str, size: float, label: str) -> Line2D:
    look: dict[str, Any] = {"marker": shape, "markersize": size, "color": colour}
    return Line2D([], [], linestyle="none", markeredgecolor=INK, markeredgewidth=0.6, label=label, **look)


def resting_parts(scene: Scene) -> tuple[object, ...]:
    """Return the key that two scenes must share to be drawn on one `GanttDrawing`; parts with equal keys look equal."""
    legend = tuple(str(handle.get_label()) for handle in legend_of(scene.timeline, scene.window))
    nodes = tuple((node.gpus, node.gpu_type) for node in scene.whole.instance.nodes)
    return scene.window, nodes, waiting_top(scene), legend
