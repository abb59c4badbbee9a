"""Windows: which stretch of time a chart shows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from math import ceil, log2
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.simulator import Result
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.simulator import State

HOUR_S = 3600.0
SPAN_IN_DUE_TIMES = 1.5  # widest window, in times that a job usually has until it is due
SMALLEST = 256  # how many times wider the widest window is than the first one
STEPS = 4  # parts of its width by which a window moves
PRESENT = 0.88  # where on the window the present is at most
FEW_JOBS = 10  # whose due dates do not say yet what is usual
MOST_JOBS = 100  # whose due dates say what is usual: the first ones, so that the answer settles


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of time.

    Attributes:
        start_s: Its beginning [s], ≥ 0.
        end_s: Its end [s], > start_s.
    """

    start_s: float
    end_s: float

    def __post_init__(self) -> None:
        """Check the ends."""
        if not (np.isfinite(self.start_s) and self.start_s >= 0.0):
            raise InputError("start_s", self.start_s, "a number of seconds, at least 0")
        if not (np.isfinite(self.end_s) and self.end_s > self.start_s):
            raise InputError(
                "end_s", self.end_s, f"a number of seconds above {self.start_s:g}, where the window begins"
            )

    @property
    def width_s(self) -> float:
        """Give its width [s]."""
        return self.end_s - self.start_s


def window_of(run: State | Result) -> Window:
    """Choose what to show: all of a finished run; of one that goes on, the last stretch up to the present and a bit.

    The window of a run that goes on grows by a half or a third, and moves by quarters of its width, so that pictures
    of one round after the other rest. Its greatest width follows from the due dates of the jobs submitted so far.
    """
    if isinstance(run, Result):
        return _of_result(run)
    jobs = run.instance.jobs
    first = min(int(run.board.count[at.SUBMITTED]), MOST_JOBS)
    return moving_window(run.view.now_s, widest_s(jobs.due_s[:first] - jobs.submission_s[:first]))


def moving_window(now_s: float, span_s: float) -> Window:
    """Give the window at `now_s` of a run whose widest window is `span_s` wide; all in seconds."""
    width_s, larger = span_s / SMALLEST, cycle((1.5, 4.0 / 3.0))
    while width_s < 0.99 * span_s and now_s > PRESENT * width_s:
        width_s *= next(larger)
    step_s = width_s / STEPS
    start_s = step_s * max(0, ceil((now_s - PRESENT * width_s) / step_s))
    return Window(start_s, start_s + width_s)


def widest_s(until_due_s: NDArray[np.float64]) -> float:
    """Choose the widest window [s]: a power of two of an hour.

    Args:
        until_due_s: Times from submission to due date of the jobs known so far [s], in their order.

    Returns:
        What the median asks for, from `FEW_JOBS` jobs on the greatest so far: then it never falls as jobs come.
    """
    known = len(until_due_s)
    counts = range(min(known, FEW_JOBS), known + 1) if known else ()
    usual_s = max((float(np.median(until_due_s[:count])) for count in counts), default=0.0)
    hours = max(SPAN_IN_DUE_TIMES * usual_s / HOUR_S, 2.0**-6)
    return HOUR_S * 2.0 ** ceil(log2(hours))


def _of_result(result: Result) -> Window:
    due_s, last_s = result.instance.jobs.due_s, float(result.completion_s.max())
    # Due dates far beyond the end would squeeze the bars.
    near = due_s[due_s <= 1.15 * last_s]
    return Window(0.0, 1.01 * max(last_s, float(near.max(initial=0.0)), 1.0))
