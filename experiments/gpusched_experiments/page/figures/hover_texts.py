"""What the marks of a Gantt chart say of a job, as plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.rendering.duration import duration_text
from gpusched_env.rendering.lanes import lanes_of

if TYPE_CHECKING:
    from gpusched_env.rendering.bars import Bar
    from gpusched_env.rendering.timeline import Timeline


def job_text(timeline: Timeline, job: int) -> str:
    """Name the job: its number, and its application if that has a name."""
    jobs = timeline.instance.jobs
    name = jobs.applications[int(jobs.application[job])]
    return f"job {job}: {name}" if name else f"job {job}"


def due_text(timeline: Timeline, job: int) -> str:
    """Say when the job is due and by how much it ended before or after that."""
    due_s, end_s = float(timeline.instance.jobs.due_s[job]), float(timeline.completion_s[job])
    by = f"ended {duration_text(abs(end_s - due_s))} {'late' if timeline.late[job] else 'early'}"
    return f"due at {duration_text(due_s)}, {by}"


def bar_text(timeline: Timeline, bar: Bar) -> str:
    """Say which job held what, from when to when, and what became of it, a line each."""
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
    """Write GPU numbers: `0-3`, or `0, 2`."""
    if len(lanes) > 2 and lanes[-1] - lanes[0] == len(lanes) - 1:
        return f"{lanes[0]}-{lanes[-1]}"
    return ", ".join(map(str, lanes))
