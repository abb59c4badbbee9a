"""Rows, axes and texts of a Gantt chart on the page: a row for each GPU, grouped by node, the first on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.gantt_panel import GPU_GAP, NODE_GAP, SHARE_GAP
from gpusched_env.rendering.lanes import lanes_of
from gpusched_env.rendering.text import axis_unit, duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpusched_env.model import Node
    from gpusched_env.rendering.lanes import Bar
    from gpusched_env.rendering.timeline import Timeline


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows of a cluster.

    Attributes:
        first: Upper edge of each node's first GPU, in rows of one GPU, (N,).
        count: Rows in all, with the gaps between nodes.
    """

    first: NDArray[np.float64]
    count: float

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Rows:
        """Lay out these nodes."""
        edges = np.concatenate([[0.0], np.cumsum([node.gpus + NODE_GAP for node in nodes])])
        return cls(edges[:-1], float(edges[-1]) - NODE_GAP)

    def boxes(self, bar: Bar) -> Iterator[tuple[float, float]]:
        """Give the upper and lower edge of each run of the bar's GPUs, or of each part of its shared GPU."""
        top = float(self.first[bar.node])
        for first, height in bar.runs:
            if bar.gpu < 0:
                yield top + first + GPU_GAP, top + first + height - GPU_GAP
            else:
                lane, size = top + int(first) + GPU_GAP, 1 - 2 * GPU_GAP
                low = lane + (first - int(first)) * size
                yield low + SHARE_GAP, low + height * size - SHARE_GAP

    def middle(self, bar: Bar) -> float:
        """Give the middle of the bar's largest box."""
        low, high = max(self.boxes(bar), key=lambda box: box[1] - box[0])
        return (low + high) / 2


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


NEAR = 1.15  # due dates beyond so many times the last completion would squeeze the bars
MOST_JOBS = 0.99  # part of the jobs that are done when the axis ends, where the others would squeeze them
FAR = 1.5  # how many times as long as these jobs the others must take for that
MOST_STEPS = 2000  # of a line over time; more are averaged


@dataclass(frozen=True, slots=True)
class Axis:
    """A time axis.

    Attributes:
        end_s: Its end [s].
        unit_s: Its unit [s].
        unit: The unit's name.
        note: What lies beyond its end, a sentence; empty if nothing does.
    """

    end_s: float
    unit_s: float
    unit: str
    note: str = ""

    @classmethod
    def of(cls, timelines: Sequence[Timeline]) -> Axis:
        """Make the axis that has all of these finished runs, and the due dates that are not far beyond their ends.

        Where the last hundredth of the jobs of every run takes much longer than all others, it ends before that.
        """
        last_s = max(timeline.now_s for timeline in timelines)
        most_s = max(float(np.quantile(timeline.completion_s, MOST_JOBS)) for timeline in timelines)
        shown_s, note = last_s, ""
        if last_s > FAR * most_s:
            shown_s = 1.1 * most_s
            count = max(int(np.sum(timeline.completion_s > shown_s)) for timeline in timelines)
            note = (
                f" The axis ends at {duration_text(shown_s)}. Up to {count} of a policy's jobs end later, the last at "
                f"{duration_text(last_s)}: zoom out to see them."
            )
        due_s = timelines[0].instance.jobs.due_s
        end_s = 1.01 * max(shown_s, float(due_s[due_s <= NEAR * shown_s].max(initial=0.0)))
        return cls(end_s, *axis_unit(end_s), note)


def thinned(times: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give a line of steps, from each time on a value, with `MOST_STEPS` at most: else means over equal times.

    Args:
        times: When the value changes, rising, (T,).
        values: The value from then on; the last one is that of the end, (T,).
    """
    if len(times) <= MOST_STEPS:
        return times, values
    edges = np.linspace(times[0], times[-1], MOST_STEPS)
    whole = np.concatenate([[0.0], np.cumsum(values[:-1] * np.diff(times))])
    until = np.interp(edges, times, whole)
    return edges, np.append(np.diff(until) / np.diff(edges), values[-1])
