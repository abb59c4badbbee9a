"""When a due date counts as missed."""

from __future__ import annotations

from gpusched_env.kernel import kernel

MISSED_S = 1e-6  # less than this is rounding: a plan that ends exactly at its due date is in time


@kernel
def misses(seconds: float, time_left: float) -> bool:
    """Say whether work of `seconds` misses a due date that is `time_left` seconds away, by a microsecond or more.

    A plan uses up its time to the last digit. Without the margin, half of such plans would seem late when their last
    segment begins, for no more than rounding.
    """
    return seconds > time_left + MISSED_S
