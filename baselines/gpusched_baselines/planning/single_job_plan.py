"""The plan of one job: which configuration runs at which epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Status = Literal["slack", "tight", "late"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of epochs run in one configuration.

    Attributes:
        configuration: Index into the configurations given to the solver.
        start_epoch: First epoch.
        end_epoch: Last epoch.
    """

    configuration: int
    start_epoch: float
    end_epoch: float


@dataclass(frozen=True, slots=True)
class Plan:
    """An optimal plan: which configuration runs at which epoch.

    Attributes:
        status: If the due date must be met, "slack" (the cheapest configuration meets it), "tight" (the plan ends at
            the due date if all epochs are needed) or "late" (even the fastest misses it; the plan is the fastest). If
            tardiness is priced, "slack" as before, "late" if no time is left until the due date, and else "tight": if
            all epochs are needed, the plan uses up that time, and may go on after it.
        expected_cost_eur: Expected cost of the epochs left, and of the tardiness from now on if that is priced [€].
        worst_case_s: Time if all epochs left are needed [s].
        segments: The plan, slow to fast, without empty segments. Epochs after the due date are part of the last one.
        expected_tardiness_eur: The part of `expected_cost_eur` that is tardiness; 0 unless that is priced.
    """

    status: Status
    expected_cost_eur: float
    worst_case_s: float
    segments: tuple[Segment, ...]
    expected_tardiness_eur: float = 0.0


def segments_of(configurations: NDArray[np.int64], starts: NDArray[np.float64]) -> tuple[Segment, ...]:
    """List the segments in which `configurations[k]` runs from `starts[k]` to `starts[k + 1]`, but for empty ones.

    Args:
        configurations: Indices of configurations, (K,).
        starts: Epochs, never falling, (K + 1,).
    """
    return tuple(
        Segment(int(c), float(start), float(end))
        for c, start, end in zip(configurations, starts[:-1], starts[1:], strict=True)
        if end > start
    )
