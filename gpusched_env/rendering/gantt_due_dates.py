"""Due dates on a Gantt chart: triangles, joined to the job's last bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.palette import INK, LATE, PAPER, colour_of
from gpusched_env.rendering.plotting import LineCollection, withStroke

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.rendering.bars import Bar
    from gpusched_env.rendering.gantt_panel import Chart

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
        place = (min(due[job], window.end_s) / chart.unit_s, chart.first_middle(bar))
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
