"""What stands above a Gantt chart: title, facts and legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.duration import duration_text
from gpusched_env.rendering.gantt_marks import MOST_MARKS, TIES
from gpusched_env.rendering.palette import INK, JOB_COLOURS, LATE, PAPER, SUBTLE
from gpusched_env.rendering.plotting import Line2D, Patch

if TYPE_CHECKING:
    from gpusched_env.rendering.plotting import Figure
    from gpusched_env.rendering.timeline import Timeline

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
