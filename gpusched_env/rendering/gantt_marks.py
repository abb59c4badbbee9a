"""The marks of a Gantt chart: nodes, bars, changes and labels."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.lanes import NODE_GAP
from gpusched_env.rendering.palette import GRID, INK, LATE, PAPER, STRIPES, SUBTLE, colour_of, ink_on
from gpusched_env.rendering.plotting import LineCollection, PolyCollection, withStroke

if TYPE_CHECKING:
    from gpusched_env.rendering.gantt_panel import Chart

MOST_LABELS = 400  # labels in bars; more would only cost time
MANY_CHANGES = 500  # from which on their marks are small
MOST_MARKS = 1000  # above which they are only counted
TIES = (0, (1.6, 0.8))  # dashes, so that a tie across a node between is not taken for a bar
LEAST_LABEL_PX = 8.5  # size of the smallest writing in a bar


def draw_nodes(chart: Chart) -> None:
    """Draw a band for each node, a line between its GPUs, and its label."""
    axes, nodes, window = chart.axes, chart.timeline.instance.nodes, chart.window
    places = [(float(chart.rows.first[node]), nodes[node].gpus) for node in chart.nodes]
    bands = [chart.box(window.start_s, window.end_s, low, low + gpus) for low, gpus in places]
    axes.add_collection(PolyCollection(bands, facecolors=STRIPES, edgecolors="none", zorder=0), autolim=False)
    if chart.row_px >= 4:
        left, right = window.start_s / chart.unit_s, window.end_s / chart.unit_s
        rows = [low + gpu for low, gpus in places for gpu in range(1, gpus)]
        inner = LineCollection([[(left, y), (right, y)] for y in rows], colors=PAPER, linewidths=0.5, zorder=0.5)
        axes.add_collection(inner, autolim=False)
    _label_nodes(chart)
    axes.tick_params(axis="y", length=0, pad=4)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    axes.grid(visible=True, axis="x", color=GRID, linewidth=0.6, zorder=0.6)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)


def _label_nodes(chart: Chart) -> None:
    """Label the nodes, on one line or two as there is room, or only some of them if there are very many."""
    nodes = chart.timeline.instance.nodes
    height = chart.row_points * (float(np.mean([nodes[node].gpus for node in chart.nodes])) + NODE_GAP)
    shown = chart.nodes[:: max(1, int(np.ceil(9.0 / height)))]
    texts = []
    for index in shown:
        node = nodes[index]
        between = "\n" if chart.row_points * node.gpus >= 19.0 else ": "
        texts.append(f"node {index}{between}{node.gpus} x {node.gpu_type}")
    places = [float(chart.rows.first[index]) + nodes[index].gpus / 2 for index in shown]
    chart.axes.set_yticks(places, texts, fontsize=7.5, color=INK)


def draw_places(chart: Chart) -> None:
    """Shade the GPUs that are shared, and tie the bars of a job that is on several nodes."""
    bars = chart.timeline.bars
    lanes = [chart.box(bar.start_s, bar.end_s, *chart.rows.lane(bar)) for bar in bars if bar.gpu >= 0]
    shades = PolyCollection(lanes, facecolors=GRID, edgecolors="none", zorder=0.7)
    on_several = sorted((bar for bar in bars if len(bar.nodes) > 1), key=lambda bar: (bar.job, bar.start_s, bar.node))
    ties, colours = [], []
    for above, below in pairwise(on_several):
        if not below.is_first:
            x = (above.start_s + above.end_s) / 2 / chart.unit_s
            ties.append([(x, chart.rows.middle(above)), (x, chart.rows.middle(below))])
            colours.append(colour_of(above.job))
    lines = LineCollection(ties, colors=colours, linewidths=1.8, linestyles=TIES, zorder=1.5)
    for collection in (shades, lines):
        chart.axes.add_collection(collection, autolim=False)


def draw_bars(chart: Chart) -> None:
    """Draw the bars, late jobs' last so that their edges are whole; hatch what is late, shade restarts."""
    timeline, thin = chart.timeline, min(1.0, chart.row_px / 6)
    late, due = timeline.late, timeline.instance.jobs.due_s
    boxes, colours, edges, widths = [], [], [], []
    after_due, restarts = [], []
    for bar in sorted(timeline.bars, key=lambda bar: bool(late[bar.job])):
        for low, high in chart.rows.boxes(bar):
            least_px = min((high - low) * chart.row_px, (bar.end_s - bar.start_s) * chart.second_px)
            slim = thin * min(1.0, least_px / 6)  # edges must not hide the bar
            boxes.append(chart.box(bar.start_s, bar.end_s, low, high))
            colours.append(colour_of(bar.job))
            edges.append(LATE if late[bar.job] else PAPER)
            widths.append((1.1 if late[bar.job] else 0.6) * slim)
            if late[bar.job] and bar.end_s > due[bar.job]:
                after_due.append(chart.box(max(bar.start_s, due[bar.job]), bar.end_s, low, high))
            if bar.ready_s > bar.start_s:
                restarts.append(chart.box(bar.start_s, bar.ready_s, low, high))
    for collection in (
        PolyCollection(boxes, facecolors=colours, edgecolors=edges, linewidths=widths, zorder=2),
        PolyCollection(restarts, facecolors=INK, edgecolors="none", alpha=0.45, zorder=2.1),
        PolyCollection(after_due, facecolors="none", edgecolors=LATE, linewidths=0.8 * thin, hatch="/////", zorder=2.2),
    ):
        chart.axes.add_collection(collection, autolim=False)


def draw_switches(chart: Chart) -> None:
    """Mark every change after a job's first start; join the bars where the place changed or the job paused.

    More than `MOST_MARKS` changes would hide the bars: then they are only counted, in the legend.
    """
    joins, colours, changes = [], [], []
    for job, bars in chart.timeline.bars_of_jobs().items():
        for old, new in pairwise(bars):
            x, y = new.start_s / chart.unit_s, chart.rows.middle(new)
            changes.append((x, y))
            if new.start_s > old.end_s or not new.in_the_place_of(old):
                joins.append([(old.end_s / chart.unit_s, chart.rows.middle(old)), (x, y)])
                colours.append(LATE if chart.timeline.late[job] else SUBTLE)
    if len(changes) > MOST_MARKS:
        return
    # Many moves would hide the bars behind their lines.
    alpha = float(np.clip(20 / max(1, len(joins)), 0.05, 0.8))
    lines = LineCollection(joins, colors=colours, linewidths=0.7, linestyles=(0, (1.5, 1.5)), alpha=alpha, zorder=3)
    chart.axes.add_collection(lines, autolim=False)
    size = float(np.clip(0.5 * chart.row_points, 1.6, 3.4)) * (1.0 if len(changes) < MANY_CHANGES else 0.6)
    if changes:
        places = np.array(changes)
        chart.axes.plot(
            places[:, 0],
            places[:, 1],
            linestyle="none",
            marker="D",
            markersize=size,
            color=PAPER,
            markeredgecolor=INK,
            markeredgewidth=0.15 * size,
            zorder=3.2,
        )


def draw_labels(chart: Chart) -> None:
    """Write the job's number into every bar that has room for it in legible size, the widest first."""
    scale = chart.dpi / 72
    least = LEAST_LABEL_PX / scale
    shown = [(bar, *chart.visible(bar)) for bar in chart.timeline.bars if bar.is_first]
    shown.sort(key=lambda part: part[1] - part[2])
    for bar, start_s, end_s in shown[:MOST_LABELS]:
        low, high = chart.rows.largest(bar)
        size = min(8.0, 0.8 * (high - low) * chart.row_px / scale)
        width_px = 0.66 * len(str(bar.job)) * size * scale + 4
        if size < least or (end_s - start_s) * chart.second_px < width_px:
            continue
        label = chart.axes.text(
            (start_s + end_s) / 2 / chart.unit_s, (low + high) / 2, str(bar.job), fontsize=size,
            ha="center", va="center_baseline", color=ink_on(bar.job), zorder=4, clip_on=True,
        )  # fmt: skip
        if chart.timeline.late[bar.job]:
            label.set_path_effects([withStroke(linewidth=2.0, foreground=colour_of(bar.job))])
