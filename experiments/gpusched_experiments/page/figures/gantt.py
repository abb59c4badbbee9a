"""Who ran where and when: an interactive Gantt chart of GPUs over time, a view for each policy."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.rendering.duration import axis_unit
from gpusched_env.rendering.palette import LATE, colour_of, ink_on
from gpusched_experiments.page.figure import HOVER, Drawing, Trace, View, short
from gpusched_experiments.page.figures.completion import workload_of
from gpusched_experiments.page.figures.hover_texts import bar_text, due_text, job_text
from gpusched_experiments.page.figures.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.rendering.bars import Bar
    from gpusched_env.rendering.timeline import Timeline
    from gpusched_env.simulator import Result

MOST_LABELS = 1500  # bars up to which each carries its job's number where it has room
MOST_JOINS = 150  # moves and pauses up to which they are drawn at first
NEAR = 1.15  # due dates beyond so many times the end would squeeze the bars
SLIM = 0.002  # share of the axis below which a bar has no edge, which would hide it
CHART_PX, ROW_PX, BESIDE_PX = 700, (4.5, 16.0), 120
MOST_PX = 1600
NODE_PX = 13  # least height between two names of nodes

HOW_TO_READ = (
    "A bar is an interval in which a job held GPUs; its colour and number are the job's. Red edges: the job ended "
    "late; hatched: after its due date. Triangles mark due dates. Drag to zoom, double-click to see all again, point "
    "at a bar for its job."
)


def gantt_drawing(recorded: Sequence[Result], timelines: Sequence[Timeline]) -> Drawing:
    """Draw the runs, the first one at first."""
    return Drawing(
        name="gantt",
        title="Who ran where",
        caption=f"{workload_of(recorded)[0].upper()}{workload_of(recorded)[1:]}. {HOW_TO_READ}",
        alt="; ".join(
            f"{each.policy}: {len(each.bars)} intervals, {int(each.late.sum())} of {len(each.late)} jobs late"
            for each in timelines
        ),
        views=tuple(gantt_view(timeline) for timeline in timelines),
        choice="policy",
        least_width=680,
    )


def gantt_view(timeline: Timeline) -> View:
    """Draw one finished run: a trace for each kind of mark, whatever the number of bars."""
    rows, end_s = Rows.of(timeline.instance.nodes), _axis_end(timeline)
    unit_s, unit = axis_unit(end_s)
    late = timeline.late
    groups = [("jobs", [bar for bar in timeline.bars if not late[bar.job]])]
    groups.append(("late jobs", [bar for bar in timeline.bars if late[bar.job]]))
    traces = [_bars(timeline, rows, name, bars, (unit_s, end_s)) for name, bars in groups if bars]
    traces += [
        *_overlay(rows, "restart, no progress", _restarts(timeline), unit_s, {"color": "var:veil"}),
        *_overlay(
            rows, "after the due date", _after_due(timeline), unit_s,
            {
                "color": "rgba(0,0,0,0)", "line": {"width": 0},
                "pattern": {"shape": "/", "fgcolor": LATE, "bgcolor": "rgba(0,0,0,0)", "size": 6, "solidity": 0.35},
            },
        ),
        *_joins(timeline, rows, unit_s),
        *_due_dates(timeline, rows, (unit_s, NEAR * end_s)),
    ]  # fmt: skip
    row_px = float(np.clip(CHART_PX / rows.count, *ROW_PX))
    height = int(min(MOST_PX, BESIDE_PX + row_px * rows.count))
    return View(timeline.policy, tuple(traces), _layout(timeline, rows, (unit, end_s / unit_s), height), height)


def _axis_end(timeline: Timeline) -> float:
    due_s = timeline.instance.jobs.due_s
    return 1.01 * max(timeline.now_s, float(due_s[due_s <= NEAR * timeline.now_s].max(initial=0.0)))


def _bars(timeline: Timeline, rows: Rows, name: str, bars: list[Bar], axis: tuple[float, float]) -> Trace:
    """Draw bars of whole GPUs and shares, one trace for all."""
    unit_s, end_s = axis
    boxes = [(bar, *box) for bar in bars for box in rows.boxes(bar)]
    texts = {id(bar): bar_text(timeline, bar) for bar in bars}
    is_late = name == "late jobs"
    slim = [bar.end_s - bar.start_s < SLIM * end_s for bar, _, _ in boxes]
    trace = _bar_trace(rows, [(bar, bar.start_s, bar.end_s) for bar in bars], unit_s) | {
        "name": name,
        "marker": {
            "color": [colour_of(bar.job) for bar, _, _ in boxes],
            "line": {
                "color": "var:late" if is_late else "var:paper",
                "width": [(0.8 if is_late else 0.0) if thin else (1.4 if is_late else 0.7) for thin in slim],
            },
        },
        "hovertext": [texts[id(bar)] for bar, _, _ in boxes],
        "hovertemplate": HOVER,
    }
    if len(timeline.bars) <= MOST_LABELS:
        trace |= {
            "text": [str(bar.job) for bar, _, _ in boxes], "textposition": "inside", "insidetextanchor": "middle",
            "textangle": 0, "insidetextfont": {"color": [ink_on(bar.job) for bar, _, _ in boxes], "size": 10},
            "constraintext": "inside",
        }  # fmt: skip
    return trace


def _bar_trace(rows: Rows, pieces: Sequence[tuple[Bar, float, float]], unit_s: float) -> Trace:
    """Give the places of parts of bars, from one time to another."""
    boxes = [(start, end, *box) for bar, start, end in pieces for box in rows.boxes(bar)]
    return {
        "type": "bar", "orientation": "h",
        "base": short((start / unit_s for start, *_ in boxes), 5),
        "x": short(((end - start) / unit_s for start, end, *_ in boxes), 5),
        "y": short(((low + high) / 2 for *_, low, high in boxes), 3),
        "width": short((high - low for *_, low, high in boxes), 3),
    }  # fmt: skip


def _overlay(
    rows: Rows, name: str, pieces: Sequence[tuple[Bar, float, float]], unit_s: float, marker: dict[str, Any]
) -> list[Trace]:
    """Draw over parts of bars, without a word of its own; nothing where there are none."""
    if not pieces:
        return []
    return [
        _bar_trace(rows, pieces, unit_s)
        | {"name": name, "marker": {"line": {"width": 0}} | marker, "hoverinfo": "skip"}
    ]


def _restarts(timeline: Timeline) -> list[tuple[Bar, float, float]]:
    return [(bar, bar.start_s, min(bar.ready_s, bar.end_s)) for bar in timeline.bars if bar.ready_s > bar.start_s]


def _after_due(timeline: Timeline) -> list[tuple[Bar, float, float]]:
    due_s, late = timeline.instance.jobs.due_s, timeline.late
    return [
        (bar, max(bar.start_s, float(due_s[bar.job])), bar.end_s)
        for bar in timeline.bars
        if late[bar.job] and bar.end_s > due_s[bar.job]
    ]


def _joins(timeline: Timeline, rows: Rows, unit_s: float) -> list[Trace]:
    """Join the bars of a job where its place changed or it paused: one broken line for all."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for bars in timeline.bars_of_jobs().values():
        for old, new in pairwise(bars):
            if new.start_s > old.end_s or not new.in_the_place_of(old):
                xs += [round(old.end_s / unit_s, 5), round(new.start_s / unit_s, 5), None]
                ys += [round(rows.middle(old), 3), round(rows.middle(new), 3), None]
    if not xs:
        return []
    return [
        {
            "type": "scatter", "mode": "lines", "name": "moves and pauses", "x": xs, "y": ys, "hoverinfo": "skip",
            "line": {"color": "var:subtle", "width": 1, "dash": "dot"},
            "visible": True if len(xs) <= 3 * MOST_JOINS else "legendonly",
        }
    ]  # fmt: skip


def _due_dates(timeline: Timeline, rows: Rows, axis: tuple[float, float]) -> list[Trace]:
    """Put a triangle at each due date on the row of the job's last bar."""
    unit_s, most_s = axis
    due_s, late = timeline.instance.jobs.due_s, timeline.late
    last = {job: bars[-1] for job, bars in timeline.bars_of_jobs().items() if due_s[job] <= most_s}
    if not last:
        return []
    return [
        {
            "type": "scatter", "mode": "markers", "name": "due date",
            "x": short((due_s[job] / unit_s for job in last), 5),
            "y": short((rows.middle(bar) for bar in last.values()), 3),
            "marker": {
                "symbol": "triangle-down", "size": 8, "line": {"color": "var:ink", "width": 0.7},
                "color": ["var:late" if late[job] else colour_of(job) for job in last],
            },
            "hovertext": [f"{job_text(timeline, job)}<br>{due_text(timeline, job)}" for job in last],
            "hovertemplate": HOVER,
        }
    ]  # fmt: skip


def _layout(timeline: Timeline, rows: Rows, axis: tuple[str, float], height: int) -> dict[str, Any]:
    nodes = timeline.instance.nodes
    every = max(1, int(np.ceil(NODE_PX * len(nodes) / (height - BESIDE_PX))))
    named = range(0, len(nodes), every)
    bands = [
        {
            "type": "rect", "xref": "paper", "yref": "y", "layer": "below", "x0": 0, "x1": 1, "line": {"width": 0},
            "y0": round(float(low), 3), "y1": round(float(low) + node.gpus, 3), "fillcolor": "var:stripes",
        }
        for low, node in zip(rows.first, nodes, strict=True)
    ]  # fmt: skip
    return {
        "barmode": "overlay",
        "xaxis": {"title": {"text": f"time [{axis[0]}]"}, "range": [0.0, axis[1]], "side": "top"},
        "yaxis": {
            "range": [rows.count + 0.4, -0.4], "showgrid": False, "zeroline": False,
            "tickvals": [round(float(rows.first[i]) + nodes[i].gpus / 2, 3) for i in named],
            "ticktext": [f"node {i}  {nodes[i].gpus} x {nodes[i].gpu_type}" for i in named],
        },
        "shapes": bands,
        "uniformtext": {"mode": "hide", "minsize": 8},
        "legend": {"y": 0, "yanchor": "top"},
        "margin": {"l": 20, "r": 10, "t": 56, "b": 36},
    }  # fmt: skip
