"""What the audit finds, and when two numbers are the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

RELATIVE = 1e-9  # of the larger of two amounts
FLOOR = 1e-300  # of two amounts: floats below have no digits left to compare
TIME_S = 1e-9  # times closer than this are the same [s]
EARLY_S, EARLY = (
    1e-9,
    1e-15,
)  # a completion may be taken so early [s], and by this part of its time, as part of an event
ULPS = 4  # and so are times that this many units in the last place part: floats of that size tell no more


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the folder records and the audit finds otherwise.

    Attributes:
        where: Where it stands: file, then line, job, node or field.
        recorded: What the folder says.
        recomputed: What the audit finds, or allows.
        what: What is compared.
    """

    where: str
    recorded: object
    recomputed: object
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}: recorded {self.recorded!r}, recomputed {self.recomputed!r}"


def same_amount(recorded: float, recomputed: float) -> bool:
    """Say whether two amounts [€, seconds of a mean] are the same, to `RELATIVE`, however small they are."""
    return math.isclose(recorded, recomputed, rel_tol=RELATIVE, abs_tol=FLOOR)


def same_time(recorded: float, recomputed: float) -> bool:
    """Say whether two times [s] are the same, to a nanosecond or what a float of that size can tell."""
    return abs(recorded - recomputed) <= max(TIME_S, ULPS * math.ulp(max(abs(recorded), abs(recomputed))))


def same_epochs(
    recorded: float, recomputed: float, *, needed: float, end_s: float, seconds_per_epoch: float, completed: bool
) -> bool:
    """Say whether two numbers of epochs of a job are the same, to `RELATIVE` of the epochs it needs.

    Epochs follow from times, so that what a float of the size of `end_s` cannot tell is no difference either. Where the
    job is `completed`, the last epochs may be recorded `EARLY_S` + `EARLY` · `end_s` seconds before they were done.
    """
    tolerance = RELATIVE * needed + ULPS * math.ulp(end_s) / seconds_per_epoch
    early = (EARLY_S + EARLY * end_s) / seconds_per_epoch if completed else 0.0
    return -tolerance <= recorded - recomputed <= tolerance + early
