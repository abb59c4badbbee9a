"""The marks of a Gantt chart: nodes, bars, changes, due dates and labels, and the share of GPUs in use."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.rendering.colours import (
    ENERGY,
    GRID,
    INK,
    JOB_COLOURS,
    LATE,
    PAPER,
    STRIPES,
    SUBTLE,
    WAITING,
    colour_of,
    ink_on,
)
from gpusched_env.rendering.lanes import NODE_GAP, GanttBar, Rows
from gpusched_env.rendering.plotting import Axes, FuncFormatter, LineCollection, MaxNLocator, PolyCollection, withStroke
from gpusched_env.rendering.power import prices_over_time
from gpusched_env.rendering.text import axis_unit

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from numpy.typing import NDArray

    from gpusched_env.rendering.timeline import Timeline, Window

MOST_LABELS = 400  # labels in bars; more would only cost time
MANY_CHANGES = 500  # from which on their marks are small
MOST_MARKS = 1000  # above which they are only counted
TIES = (0, (1.6, 0.8))  # dashes, so that a tie across a node between is not taken for a bar
DOWN: dict[str, Any] = {"facecolor": GRID, "edgecolor": SUBTLE, "hatch": "xxxx", "linewidth": 0.0}
DOTS = (0, (1.5, 1.5))  # of moves and pauses
LEAST_LABEL_PX = 8.5  # size of the smallest writing in a bar
MOST_NUMBERED = 30  # due dates up to which they carry the job's number
MOST_MET = 60  # due dates of a finished run from which on those that were met are left out


@dataclass(frozen=True, slots=True)
class Scene:
    """The content of a chart.

    Attributes:
        timeline: The bars to draw, all of them on nodes that are shown.
        whole: The whole run, for the title and the strip.
        window: The period of time.
        nodes: The nodes that are shown, ascending.
        size_inches: Width and height of the figure [inches].
        dpi: Pixels per inch.
        title: The title; None: policy and size.
        note: A line on the present round; empty: none.
        power: Times [s], and from each on the power of all nodes [kW], to draw with the price; None: neither.
    """

    timeline: Timeline
    whole: Timeline
    window: Window
    nodes: tuple[int, ...]
    size_inches: tuple[float, float]
    dpi: float
    title: str | None = None
    power: Curve | None = None
    note: str = ""


class GanttChart:
    """Where things of a scene are on a panel of this size [pixels], whose limits it sets."""

    def __init__(self, axes: Axes, scene: Scene, size_px: tuple[float, float]) -> None:
        self.axes, self.scene, self.timeline, self.window = axes, scene, scene.timeline, scene.window
        self.late = self.timeline.late
        self.rows = Rows.of(self.timeline.instance.nodes, scene.nodes)
        self.unit_s, self.unit = axis_unit(self.window.width_s)
        axes.set_xlim(self.window.start_s / self.unit_s, self.window.end_s / self.unit_s)
        axes.set_ylim(self.rows.count + 0.3, -0.6)
        self.row_px = size_px[1] / (self.rows.count + 0.9)
        self.second_px = size_px[0] / self.window.width_s
        self.row_points = self.row_px * 72 / scene.dpi

    def box(self, start_s: float, end_s: float, low: float, high: float) -> list[tuple[float, float]]:
        x, right = start_s / self.unit_s, end_s / self.unit_s
        return [(x, low), (right, low), (right, high), (x, high)]

    def fill(self, boxes: list[list[tuple[float, float]]], **look: Any) -> None:
        self.axes.add_collection(PolyCollection(boxes, **look), autolim=False)

    def lines(self, lines: list[list[tuple[float, float]]], **look: Any) -> None:
        self.axes.add_collection(LineCollection(lines, **look), autolim=False)


def draw_nodes(chart: GanttChart) -> None:
    """Draw a band for each node, a line between its GPUs, and its label: on two lines if they fit.

    If there are very many nodes only some of them are labelled.
    """
    axes, nodes, window = chart.axes, chart.timeline.instance.nodes, chart.window
    places = {node: (float(chart.rows.first[node]), nodes[node].gpus) for node in chart.scene.nodes}
    bands = [chart.box(window.start_s, window.end_s, low, low + gpus) for low, gpus in places.values()]
    chart.fill(bands, facecolors=STRIPES, edgecolors="none", zorder=0)
    if chart.row_px >= 4:
        left, right = window.start_s / chart.unit_s, window.end_s / chart.unit_s
        inner = [low + gpu for low, gpus in places.values() for gpu in range(1, gpus)]
        chart.lines([[(left, y), (right, y)] for y in inner], colors=PAPER, linewidths=0.5, zorder=0.5)
    height = chart.row_points * (float(np.mean([gpus for _, gpus in places.values()])) + NODE_GAP)
    shown = chart.scene.nodes[:: max(1, int(np.ceil(9.0 / height)))]
    texts = []
    for node in shown:
        between = "\n" if chart.row_points * nodes[node].gpus >= 19.0 else ": "
        texts.append(f"node {node}{between}{nodes[node].gpus} x {nodes[node].gpu_type}")
    axes.set_yticks([places[node][0] + places[node][1] / 2 for node in shown], texts, fontsize=7.5, color=INK)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6, zorder=0.6)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def draw_down_times(chart: GanttChart) -> None:
    """Hatch nodes while they are down."""
    rows, nodes, shown = chart.rows.first, chart.timeline.instance.nodes, set(chart.scene.nodes)
    boxes = [
        chart.box(start, end, float(rows[node]), float(rows[node]) + nodes[node].gpus)
        for node, start, end in chart.timeline.down_times()
        if node in shown
    ]
    chart.fill(boxes, **DOWN, zorder=0.65)


def draw_places(chart: GanttChart) -> None:
    """Shade the GPUs that are shared, and tie the bars of a job that is on several nodes."""
    bars = chart.timeline.bars
    lanes = [chart.box(bar.start_s, bar.end_s, *chart.rows.lane(bar)) for bar in bars if bar.gpu >= 0]
    chart.fill(lanes, facecolors=GRID, edgecolors="none", zorder=0.7)
    on_several = sorted((bar for bar in bars if len(bar.nodes) > 1), key=lambda bar: (bar.job, bar.start_s, bar.node))
    ties, colours = [], []
    for above, below in pairwise(on_several):
        if not below.is_first:
            x = (above.start_s + above.end_s) / 2 / chart.unit_s
            ties.append([(x, chart.rows.middle(above)), (x, chart.rows.middle(below))])
            colours.append(colour_of(chart.timeline.colour(above.job)))
    chart.lines(ties, colors=colours, linewidths=1.8, linestyles=TIES, zorder=1.5)


def draw_bars(chart: GanttChart) -> None:
    """Draw the bars, late jobs' last so that their edges are whole; hatch bars after the due date, shade restarts."""
    late, due, thin = chart.late, chart.timeline.instance.jobs.due_s, min(1.0, chart.row_px / 6)
    boxes, colours, edges, widths = [], [], [], []
    after_due, restarts = [], []
    for bar in sorted(chart.timeline.bars, key=lambda bar: bool(late[bar.job])):
        for low, high in chart.rows.boxes(bar):
            least_px = min((high - low) * chart.row_px, (bar.end_s - bar.start_s) * chart.second_px)
            slim = thin * min(1.0, least_px / 6)  # edges must not hide the bar
            boxes.append(chart.box(bar.start_s, bar.end_s, low, high))
            colours.append(colour_of(chart.timeline.colour(bar.job)))
            edges.append(LATE if late[bar.job] else PAPER)
            widths.append((1.1 if late[bar.job] else 0.6) * slim)
            if late[bar.job] and bar.end_s > due[bar.job]:
                after_due.append(chart.box(max(bar.start_s, due[bar.job]), bar.end_s, low, high))
            if bar.ready_s > bar.start_s:
                restarts.append(chart.box(bar.start_s, bar.ready_s, low, high))
    chart.fill(boxes, facecolors=colours, edgecolors=edges, linewidths=widths, zorder=2)
    chart.fill(restarts, facecolors=INK, edgecolors="none", alpha=0.45, zorder=2.1)
    chart.fill(after_due, facecolors="none", edgecolors=LATE, linewidths=0.8 * thin, hatch="/////", zorder=2.2)


def draw_switches(chart: GanttChart) -> None:
    """Mark every change after a job's first start; join the bars where the place changed or the job paused.

    More than `MOST_MARKS` changes would hide the bars: then they are only counted, in the legend.
    """
    changes = [
        (new.start_s / chart.unit_s, chart.rows.middle(new))
        for bars in chart.timeline.bars_of_jobs().values()
        for new in bars[1:]
    ]
    if len(changes) > MOST_MARKS:
        return
    moves = list(chart.timeline.moves())
    joins = [
        [(bar_s / chart.unit_s, chart.rows.middle(bar)) for bar, bar_s in ((old, old.end_s), (new, new.start_s))]
        for _, old, new in moves
    ]
    colours = [LATE if chart.late[job] else SUBTLE for job, _, _ in moves]
    # Many moves would hide the bars behind their lines.
    alpha = float(np.clip(20 / max(1, len(joins)), 0.05, 0.8))
    chart.lines(joins, colors=colours, linewidths=0.7, linestyles=DOTS, alpha=alpha, zorder=3)
    size = float(np.clip(0.5 * chart.row_points, 1.6, 3.4)) * (1.0 if len(changes) < MANY_CHANGES else 0.6)
    if changes:
        x, y = zip(*changes, strict=True)
        look: dict[str, Any] = {"marker": "D", "markersize": size, "markeredgewidth": 0.15 * size}
        chart.axes.plot(x, y, linestyle="none", color=PAPER, markeredgecolor=INK, zorder=3.2, **look)


def draw_labels(chart: GanttChart) -> None:
    """Write the job's number into every bar that is large enough for a legible label, the widest first."""
    scale, window = chart.scene.dpi / 72, chart.window
    shown = [
        (bar, max(bar.start_s, window.start_s), min(bar.end_s, window.end_s))
        for bar in chart.timeline.bars
        if bar.is_first
    ]
    shown.sort(key=lambda part: part[1] - part[2])
    for bar, start_s, end_s in shown[:MOST_LABELS]:
        low, high = chart.rows.largest(bar)
        size = min(8.0, 0.8 * (high - low) * chart.row_px / scale)
        width_px = 0.66 * len(str(bar.job)) * size * scale + 4
        if size < LEAST_LABEL_PX / scale or (end_s - start_s) * chart.second_px < width_px:
            continue
        label = chart.axes.text(
            (start_s + end_s) / 2 / chart.unit_s, (low + high) / 2, str(bar.job), fontsize=size,
            ha="center", va="center_baseline", color=ink_on(chart.timeline.colour(bar.job)), zorder=4, clip_on=True,
        )  # fmt: skip
        if chart.late[bar.job]:
            label.set_path_effects([withStroke(linewidth=2.0, foreground=colour_of(chart.timeline.colour(bar.job)))])


Curve = tuple["NDArray[np.float64]", "NDArray[Any]"]
"""Times [s], and the value from each on; the curve ends at the last time."""


def usage_in(timeline: Timeline, window: Window, nodes: Container[int]) -> tuple[Curve, Curve]:
    """Count busy GPUs of the nodes, and waiting jobs, in the window, up to the present if the run goes on."""
    end_s = min(timeline.now_s, window.end_s) if timeline.running else window.end_s
    times, _, waiting = timeline.usage()
    on_nodes, busy, _ = timeline.on_nodes(nodes).usage()
    return _part(on_nodes, busy, window.start_s, end_s), _part(times, waiting, window.start_s, end_s)


def _part(times: NDArray[np.float64], values: NDArray[Any], start_s: float, end_s: float) -> Curve:
    first = max(0, int(np.searchsorted(times, start_s, side="right")) - 1)
    last = max(first + 1, int(np.searchsorted(times, end_s, side="left")))
    return np.append(times[first:last], max(end_s, times[first])), np.append(values[first:last], values[last - 1])


def waiting_top(scene: Scene) -> int:
    """Choose the end of the scale of waiting jobs: 2, 5, 10, 20, 50, ..., so that it seldom changes between frames."""
    _, (_, waiting) = usage_in(scene.whole, scene.window, set(scene.nodes))
    top, steps = 2, 0
    while top < waiting.max():
        steps += 1
        top = (2, 5, 10)[steps % 3] * 10 ** (steps // 3)
    return top


def dress_usage(axes: Axes, other: Axes, chart: GanttChart) -> None:
    total = sum(chart.timeline.instance.nodes[node].gpus for node in chart.scene.nodes)
    _dress_strip(axes, other, ("busy GPUs", JOB_COLOURS[0], total), ("waiting jobs", WAITING, waiting_top(chart.scene)))
    for panel in (axes, other):
        panel.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.set_xlabel(f"time [{chart.unit}]", fontsize=8, color=INK)


def _dress_strip(axes: Axes, other: Axes, left: tuple[str, str, float], right: tuple[str, str, float]) -> None:
    """Draw the grid of a strip, and for `axes` and their twin the name, colour and largest value."""
    axes.tick_params(axis="both", length=0, labelsize=7, labelcolor=INK)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(MaxNLocator(12, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    other.tick_params(axis="y", length=0, labelsize=7, labelcolor=right[1])
    for panel, (name, colour, top) in ((axes, left), (other, right)):
        panel.set_ylim(0, top * 1.08)
        panel.set_ylabel(name, fontsize=7.5, color=colour)
        panel.yaxis.set_major_locator(MaxNLocator(3))
        panel.spines[:].set_visible(False)


def draw_power(axes: Axes, other: Axes, chart: GanttChart, power: Curve) -> None:
    window = chart.window
    begin, drawn = _part(*power, window.start_s, window.end_s)
    start_s, eur_per_kwh = prices_over_time(chart.timeline.instance)
    changes, prices = _part(start_s, 100.0 * eur_per_kwh, window.start_s, window.end_s)
    left, right = ("power [kW]", ENERGY, float(drawn.max())), ("ct/kWh", WAITING, float(prices.max()) or 1.0)
    _dress_strip(axes, other, left, right)
    axes.tick_params(axis="x", labelbottom=False)
    axes.fill_between(begin / chart.unit_s, drawn, step="post", color=ENERGY, alpha=0.55, linewidth=0)
    other.step(np.maximum(changes, window.start_s) / chart.unit_s, prices, where="post", color=WAITING, linewidth=1.1)


def draw_usage(axes: Axes, other: Axes, chart: GanttChart) -> None:
    scene = chart.scene
    (times, busy), (changes, waiting) = usage_in(scene.whole, scene.window, set(scene.nodes))
    axes.fill_between(times / chart.unit_s, busy, step="post", color=JOB_COLOURS[0], alpha=0.45, linewidth=0)
    other.step(changes / chart.unit_s, waiting, where="post", color=WAITING, linewidth=1.1)


@dataclass(frozen=True, slots=True)
class _DueDate:
    """A due date: the job, its place on the panel, the end of its bar, and whether it is beyond the panel."""

    job: int
    place: tuple[float, float]
    bar: GanttBar
    beyond: bool


def draw_due_dates(chart: GanttChart) -> None:
    """Put a triangle at each due date, on the row of the job's last bar, joined to it by a thin line.

    While the run goes on, due dates that were met are left out, since they do not affect the future, and those
    after the end of the panel are drawn at its edge. Of a finished run with very many, only those that were missed
    stay.
    """
    shown = list(_shown(chart))
    for is_late in (False, True):  # behind the bars, or in front of them and red if it was missed
        alike = [due for due in shown if bool(chart.late[due.job]) == is_late]
        chart.lines(
            [[(due.bar.end_s / chart.unit_s, due.place[1]), due.place] for due in alike],
            colors=LATE if is_late else [colour_of(chart.timeline.colour(due.job)) for due in alike],
            # Not to be taken for the bar of a small share.
            linewidths=1.0 if is_late else [0.8 if due.bar.gpu < 0 else 0.4 for due in alike],
            alpha=None if is_late else 0.8,
            zorder=3.4 if is_late else 1,
        )
    size = float(np.clip(7 * chart.row_points, 8, 36))
    for beyond, marker in ((False, "v"), (True, ">")):
        alike = [due for due in shown if due.beyond == beyond]
        if alike:
            x, y = zip(*(due.place for due in alike), strict=True)
            colours = [LATE if chart.late[due.job] else colour_of(chart.timeline.colour(due.job)) for due in alike]
            chart.axes.scatter(
                x, y, s=size, c=colours, marker=marker, edgecolors=INK, linewidths=0.6, zorder=3.5, clip_on=not beyond
            )
    if len(shown) <= MOST_NUMBERED and chart.row_points >= 7:
        for due in shown:
            offset, side = ((-5.0, 0), "right") if due.beyond else ((4.5, 0), "left")
            label = chart.axes.annotate(
                str(due.job), due.place, offset, textcoords="offset points", fontsize=6.5, va="center", ha=side,
                color=INK, zorder=4,
            )  # fmt: skip
            label.set_path_effects([withStroke(linewidth=1.6, foreground=PAPER)])


def _shown(chart: GanttChart) -> Iterator[_DueDate]:
    due, end_s = chart.timeline.instance.jobs.due_s, chart.window.end_s
    for job, bar, beyond in due_dates(chart.timeline, chart.window):
        yield _DueDate(job, (min(due[job], end_s) / chart.unit_s, chart.rows.first_middle(bar)), bar, beyond)


def due_dates(timeline: Timeline, window: Window) -> Iterator[tuple[int, GanttBar, bool]]:
    """Yield each job whose due date is drawn, its last bar, and whether the date is beyond the end of the panel."""
    due, done = timeline.instance.jobs.due_s, ~np.isnan(timeline.completion_s)
    few, late = int(timeline.submitted.sum()) <= MOST_MET, timeline.late
    for job, bars in timeline.bars_of_jobs().items():
        bar, met = bars[-1], done[job] and not late[job]
        if (met and (timeline.running or not few)) or due[job] < window.start_s:
            continue
        beyond = bool(due[job] > window.end_s)
        # At the edge there is one place in a row: it is for the job that is there now.
        if beyond and not (timeline.running and bar.end_s >= timeline.now_s):
            continue
        yield job, bar, beyond
