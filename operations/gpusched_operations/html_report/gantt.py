"""Who ran where and when: an interactive Gantt chart of GPUs over time, a view for each policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gpusched_env.rendering.colours import JOB_COLOURS, colour_of, ink_on
from gpusched_env.rendering.lanes import NODE_GAP, GanttBar, Rows, lanes_of
from gpusched_env.rendering.text import duration_text
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import Result
from gpusched_operations.html_report.over_time import NEAR, TimeAxis, workload_of
from gpusched_operations.html_report.report_data import HOVER, Boxes, HtmlDrawing, ReportView, Trace, plot_text, short

MOST_JOINS = 150  # moves and pauses up to which they are drawn at first
MOST_BARS = 30_000  # in all views together: a browser is slow with more, and the page grows by half a kilobyte each
MANY_JOBS, MOST_DUE_DATES = 150, 400  # from which on triangles are small, and are only drawn when asked for
CHART_PX, ROW_PX, BESIDE_PX = 700, (4.5, 16.0), 120
MOST_PX = 1600
NODE_PX = 13  # least height between two names of nodes

HOW_TO_READ = (
    "A bar is an interval in which a job held GPUs; its colour and number are the job's. Red edges: the job ended "
    "late; reddish: after its due date. Triangles mark due dates. Drag to zoom, double-click to see all again, point "
    "at a bar for its job."
)


def gantt_drawing(recorded: Sequence[Result], timelines: Sequence[Timeline]) -> HtmlDrawing | None:
    """Draw the runs, the first one at first, all on one axis; None if even the first has too many intervals."""
    counts = np.cumsum([len(timeline.bars) for timeline in timelines])
    fitting = int(np.searchsorted(counts, MOST_BARS, side="right"))
    shown, left_out = timelines[:fitting], [timeline.policy for timeline in timelines[fitting:]]
    if not shown:
        return None
    axis, workload = TimeAxis.of(shown), workload_of(recorded)
    any_shares = any(bar.gpu >= 0 for timeline in shown for bar in timeline.bars)
    shares = " A bar lower than its GPU's row has a share of it." if any_shares else ""
    without = f" Without {', '.join(left_out)}, whose intervals are too many to draw." if left_out else ""
    return HtmlDrawing(
        name="gantt",
        title="Who ran where",
        caption=f"{workload[0].upper()}{workload[1:]}. {HOW_TO_READ}{shares}{without}{axis.note}",
        alt="; ".join(
            f"{each.policy}: {len(each.bars)} intervals, {int(each.late.sum())} of {len(each.late)} jobs late"
            for each in shown
        ),
        views=tuple(gantt_view(timeline, axis) for timeline in shown),
        choice="policy",
        least_width=680,
    )


def gantt_view(timeline: Timeline, axis: TimeAxis) -> ReportView:
    """Draw one finished run: a trace for each kind of mark, whatever the number of bars."""
    rows, late, due_s = Rows.of(timeline.instance.nodes), timeline.late, timeline.instance.jobs.due_s
    of_late = [bar for bar in timeline.bars if late[bar.job]]
    restarts = [(bar, bar.start_s, min(bar.ready_s, bar.end_s)) for bar in timeline.bars if bar.ready_s > bar.start_s]
    after_due = [
        (bar, max(bar.start_s, float(due_s[bar.job])), bar.end_s) for bar in of_late if bar.end_s > due_s[bar.job]
    ]
    overlays: tuple[tuple[str, list[tuple[GanttBar, float, float]], dict[str, Any]], ...] = (
        ("restart, no progress", restarts, {"fillcolor": "var:veil"}),
        ("after the due date", after_due, {"fillcolor": "var:tardiness"}),
        ("late job", _whole(of_late), {"line": {"width": 1.4, "color": "var:late"}}),
    )
    boxes = [
        Boxes(_edges(rows, axis, pieces), {"name": name, "showlegend": True, "line": {"width": 0}} | look)
        for name, pieces, look in overlays
        if pieces
    ]
    if down := _down_edges(timeline, rows, axis):
        boxes.append(
            Boxes(down, {"name": "node down", "showlegend": True, "line": {"width": 0}, "fillcolor": "var:veil"})
        )
    row_px = float(np.clip(CHART_PX / rows.count, *ROW_PX))
    height = int(min(MOST_PX, BESIDE_PX + row_px * rows.count))
    layout, traces = _layout(timeline, rows, axis, height), _marks(timeline, rows, axis)
    return ReportView(timeline.policy, traces, layout, height, (*_bars(timeline, rows, axis), *boxes))


def job_text(timeline: Timeline, job: int) -> str:
    jobs = timeline.instance.jobs
    name = jobs.applications[int(jobs.application[job])]
    return f"job {job}: {name}" if name else f"job {job}"


def due_text(timeline: Timeline, job: int) -> str:
    due_s, end_s = float(timeline.instance.jobs.due_s[job]), float(timeline.completion_s[job])
    by = f"ended {duration_text(abs(end_s - due_s))} {'late' if timeline.late[job] else 'early'}"
    return f"due at {duration_text(due_s)}, {by}"


def bar_text(timeline: Timeline, bar: GanttBar) -> str:
    """Return which job held what, from when to when, and what became of it, a line each."""
    node = timeline.instance.nodes[bar.node]
    lanes = lanes_of(bar.runs)
    if bar.gpu >= 0:
        held = f"{sum(height for _, height in bar.runs):.3g} of a {node.gpu_type}"
    else:
        held = f"{len(lanes)} x {node.gpu_type}"
    others = f", with {len(bar.nodes) - 1} more" if len(bar.nodes) > 1 else ""
    numbers = f"GPU{'s' if len(lanes) > 1 else ''} {_numbers(lanes)}"
    lines = [
        job_text(timeline, bar.job),
        f"{held} on node {bar.node} ({numbers}){others}",
        f"from {duration_text(bar.start_s)} to {duration_text(bar.end_s)} ({duration_text(bar.end_s - bar.start_s)})",
    ]
    if bar.ready_s > bar.start_s:
        lines.append(f"no progress until {duration_text(min(bar.ready_s, bar.end_s))}: it starts")
    return "\n".join([*lines, due_text(timeline, bar.job)])


def _numbers(lanes: list[int]) -> str:
    if len(lanes) > 2 and lanes[-1] - lanes[0] == len(lanes) - 1:
        return f"{lanes[0]}-{lanes[-1]}"
    return ", ".join(map(str, lanes))


def _bars(timeline: Timeline, rows: Rows, axis: TimeAxis) -> list[Boxes]:
    """Draw the bars: those of one colour at a time, whatever their number."""
    groups: list[Boxes] = []
    for index, colour in enumerate(JOB_COLOURS):
        bars = [bar for bar in timeline.bars if timeline.colour(bar.job) % len(JOB_COLOURS) == index]
        own = [bar for bar in bars for _ in rows.boxes(bar)]
        look = {
            "fillcolor": colour, "line": {"width": 0.4, "color": "var:paper"}, "name": "jobs", "legendgroup": "jobs",
            "showlegend": not groups,
        }  # fmt: skip
        texts, labels = [bar_text(timeline, bar) for bar in own], [str(bar.job) for bar in own]
        if bars:
            groups.append(Boxes(_edges(rows, axis, _whole(bars)), look, texts, labels, ink_on(index)))
    return groups


def _whole(bars: Iterable[GanttBar]) -> list[tuple[GanttBar, float, float]]:
    return [(bar, bar.start_s, bar.end_s) for bar in bars]


def _edges(rows: Rows, axis: TimeAxis, pieces: Iterable[tuple[GanttBar, float, float]]) -> list[list[float]]:
    return _of_boxes(axis, [(start, end, *box) for bar, start, end in pieces for box in rows.boxes(bar)])


def _down_edges(timeline: Timeline, rows: Rows, axis: TimeAxis) -> list[list[float]]:
    first, nodes = rows.first, timeline.instance.nodes
    down = timeline.down_times()
    return _of_boxes(axis, [(start, end, float(first[n]), first[n] + nodes[n].gpus) for n, start, end in down])


def _of_boxes(axis: TimeAxis, pieces: Iterable[tuple[float, float, float, float]]) -> list[list[float]]:
    boxes = [(start / axis.unit_s, end / axis.unit_s, *rows) for start, end, *rows in pieces]
    return [short(edges, 5 if place < 2 else 3) for place, edges in enumerate(zip(*boxes, strict=True))]


def _marks(timeline: Timeline, rows: Rows, axis: TimeAxis) -> tuple[Trace, ...]:
    """Join the bars of a job where its place changed or it paused, and put a triangle at each due date.

    All joins are one broken line; the triangles are on the rows of the jobs' last bars.
    """
    due_s, late, held = timeline.instance.jobs.due_s, timeline.late, timeline.bars_of_jobs()
    xs: list[float | None] = []
    ys: list[float | None] = []
    for _, old, new in timeline.moves():
        xs += [*short((old.end_s / axis.unit_s, new.start_s / axis.unit_s), 5), None]
        ys += [*short((rows.middle(old), rows.middle(new)), 3), None]
    joins: Trace = {
        "type": "scatter", "mode": "lines", "name": "moves and pauses", "x": xs, "y": ys, "hoverinfo": "skip",
        "line": {"color": "var:subtle", "width": 1, "dash": "dot"},
        "visible": True if len(xs) <= 3 * MOST_JOINS else "legendonly",
    }  # fmt: skip
    last = {job: bars[-1] for job, bars in held.items() if due_s[job] <= NEAR * axis.end_s}
    due_dates: Trace = {
        "type": "scatter", "mode": "markers", "name": "due date",
        "x": short((due_s[job] / axis.unit_s for job in last), 5),
        "y": short((rows.middle(bar) for bar in last.values()), 3),
        "marker": {
            "symbol": "triangle-down", "size": 8 if len(late) <= MANY_JOBS else 6,
            "line": {"color": "var:ink", "width": 0.7},
            "color": ["var:late" if late[job] else colour_of(timeline.colour(job)) for job in last],
        },
        "visible": True if len(late) <= MOST_DUE_DATES else "legendonly",
        "hovertext": [f"{plot_text(job_text(timeline, job))}<br>{due_text(timeline, job)}" for job in last],
        "hovertemplate": HOVER,
    }  # fmt: skip
    return (*([joins] if xs else []), *([due_dates] if last else []))


def _layout(timeline: Timeline, rows: Rows, axis: TimeAxis, height: int) -> dict[str, Any]:
    nodes = timeline.instance.nodes
    least_px = (min(node.gpus for node in nodes) + NODE_GAP) * (height - BESIDE_PX) / rows.count
    every = max(1, int(np.ceil(NODE_PX / least_px)))
    named = range(0, len(nodes), every)
    bands = [
        {
            "type": "rect", "xref": "paper", "yref": "y", "layer": "below", "x0": 0, "x1": 1, "line": {"width": 0},
            "y0": round(float(low), 3), "y1": round(float(low) + node.gpus, 3), "fillcolor": "var:stripes",
        }
        for low, node in zip(rows.first, nodes, strict=True)
    ]  # fmt: skip
    return {
        "xaxis": {"title": {"text": f"time [{axis.unit}]"}, "range": [0.0, axis.end_s / axis.unit_s], "side": "top"},
        "yaxis": {
            "range": [rows.count + 0.4, -0.4], "showgrid": False, "zeroline": False,
            "tickvals": [round(float(rows.first[i]) + nodes[i].gpus / 2, 3) for i in named],
            "ticktext": [f"node {i}  {nodes[i].gpus} x {plot_text(nodes[i].gpu_type)}" for i in named],
        },
        "shapes": bands,
        "uirevision": "all",  # what is zoomed to stays when another policy is chosen
        "legend": {"y": 0, "yanchor": "top"},
        "margin": {"l": 20, "r": 10, "t": 56, "b": 36},
    }  # fmt: skip
