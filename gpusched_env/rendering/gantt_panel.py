"""A Gantt chart's panel: where things are on it, due dates, and the share of GPUs in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.lanes import Rows
from gpusched_env.rendering.palette import GRID, INK, JOB_COLOURS, LATE, PAPER, WAITING, colour_of
from gpusched_env.rendering.plotting import FuncFormatter, LineCollection, MaxNLocator, withStroke
from gpusched_env.rendering.text import axis_unit

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from numpy.typing import NDArray

    from gpusched_env.rendering.lanes import Bar
    from gpusched_env.rendering.plotting import Axes
    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.rendering.window import Window


@dataclass(frozen=True, slots=True)
class Chart:
    """Where things are.

    Attributes:
        axes: The panel.
        timeline: What is drawn.
        nodes: The nodes that are shown, ascending.
        rows: Where nodes and bars are, in rows of one GPU.
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
    rows: Rows
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
    rows = Rows.of(timeline.instance.nodes, shown)
    unit_s, unit = axis_unit(window.width_s)
    axes.set_xlim(window.start_s / unit_s, window.end_s / unit_s)
    axes.set_ylim(rows.count + 0.3, -0.6)
    row_px, second_px = size_px[1] / (rows.count + 0.9), size_px[0] / window.width_s
    return Chart(axes, timeline, shown, rows, unit_s, unit, window, row_px, second_px, dpi)


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


MOST_NUMBERED = 30  # due dates up to which they carry the job's number
MOST_MET = 60  # due dates of a finished run from which on those that were met are left out


@dataclass(frozen=True, slots=True)
class _DueDate:
    """A due date: the job, its place on the panel, the end of the bar it belongs to, and whether it lies beyond."""

    job: int
    place: tuple[float, float]
    bar: Bar
    beyond: bool


def draw_due_dates(chart: Chart) -> None:
    """Put a triangle at each due date, on the row of the job's last bar, joined to it by a thin line.

    While the run goes on, due dates that were met are left out, for they say nothing about what is to come, and those
    after the end of the panel stand at its edge. Of a finished run with very many, only those that were missed stay.
    """
    shown = list(_shown(chart))
    _join(chart, shown)
    size = float(np.clip(7 * chart.row_points, 8, 36))
    for beyond, marker in ((False, "v"), (True, ">")):
        alike = [due for due in shown if due.beyond == beyond]
        if alike:
            x, y = zip(*(due.place for due in alike), strict=True)
            colours = [LATE if chart.timeline.late[due.job] else colour_of(due.job) for due in alike]
            chart.axes.scatter(
                x, y, s=size, c=colours, marker=marker, edgecolors=INK, linewidths=0.6, zorder=3.5, clip_on=not beyond
            )
    if len(shown) <= MOST_NUMBERED and chart.row_points >= 7:
        _number(chart, shown)


def _shown(chart: Chart) -> Iterator[_DueDate]:
    timeline, window = chart.timeline, chart.window
    due, done, late = timeline.instance.jobs.due_s, ~np.isnan(timeline.completion_s), timeline.late
    few = int(timeline.submitted.sum()) <= MOST_MET
    for job, bars in timeline.bars_of_jobs().items():
        bar, met = bars[-1], done[job] and not late[job]
        if (met and (timeline.running or not few)) or due[job] < window.start_s:
            continue
        beyond = bool(due[job] > window.end_s)
        # At the edge there is one place in a row: it belongs to the job that is there now.
        if beyond and not (timeline.running and bar.end_s >= timeline.now_s):
            continue
        place = (min(due[job], window.end_s) / chart.unit_s, chart.rows.first_middle(bar))
        yield _DueDate(job, place, bar, beyond)


def _join(chart: Chart, shown: list[_DueDate]) -> None:
    """Join each due date to its bar: behind the bars, or in front of them and red if it was missed."""
    for is_late in (False, True):
        alike = [due for due in shown if bool(chart.timeline.late[due.job]) == is_late]
        lines = LineCollection(
            [[(due.bar.end_s / chart.unit_s, due.place[1]), due.place] for due in alike],
            colors=LATE if is_late else [colour_of(due.job) for due in alike],
            # Not to be taken for the bar of a small share.
            linewidths=1.0 if is_late else [0.8 if due.bar.gpu < 0 else 0.4 for due in alike],
            alpha=None if is_late else 0.8,
            zorder=3.4 if is_late else 1,
        )
        chart.axes.add_collection(lines, autolim=False)


def _number(chart: Chart, shown: list[_DueDate]) -> None:
    for due in shown:
        offset, side = ((-5.0, 0), "right") if due.beyond else ((4.5, 0), "left")
        label = chart.axes.annotate(
            str(due.job), due.place, offset, textcoords="offset points", fontsize=6.5, va="center", ha=side, color=INK,
            zorder=4,
        )  # fmt: skip
        label.set_path_effects([withStroke(linewidth=1.6, foreground=PAPER)])
