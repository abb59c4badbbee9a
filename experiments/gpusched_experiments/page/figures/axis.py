"""The time axis that the figures of several runs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.rendering.duration import axis_unit, duration_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_env.rendering.timeline import Timeline

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
