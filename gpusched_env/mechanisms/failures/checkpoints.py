"""Checkpoint intervals: how long a job works between checkpoints, and what failures then cost it on average.

With checkpoints of C seconds, a mean time M between the failures of what a job holds, and R seconds for a restart, work
of w seconds that is saved every δ seconds takes on average w · M · exp(R / M) · (exp((δ + C) / M) - 1) / δ seconds
(Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation Computer
Systems 22, 2006).
"""

from __future__ import annotations

import math
from typing import Literal

Rule = Literal["daly", "young"]
MOST = 30.0  # longest interval or restart over the mean time between failures: planned times stay finite
RULES: tuple[Rule, ...] = ("daly", "young")


def young_interval_s(checkpoint_s: float, between_failures_s: float) -> float:
    """Return Young's interval √(2 C M) [s] ("A first order approximation to the optimum checkpoint interval", 1974).

    Args:
        checkpoint_s: Time C of a checkpoint [s], ≥ 0.
        between_failures_s: Mean time M between failures [s], > 0; inf: there are none, and no checkpoints.
    """
    return math.sqrt(2.0 * checkpoint_s * between_failures_s) if between_failures_s < math.inf else math.inf


def daly_interval_s(checkpoint_s: float, between_failures_s: float) -> float:
    """Return Daly's interval [s], of higher order; M where a checkpoint takes 2 M or longer.

    Args:
        checkpoint_s: Time C of a checkpoint [s], ≥ 0.
        between_failures_s: Mean time M between failures [s], > 0; inf: there are none, and no checkpoints.
    """
    if between_failures_s == math.inf or checkpoint_s >= 2.0 * between_failures_s:
        return between_failures_s
    part = checkpoint_s / (2.0 * between_failures_s)
    return (
        young_interval_s(checkpoint_s, between_failures_s) * (1.0 + math.sqrt(part) / 3.0 + part / 9.0) - checkpoint_s
    )


def expected_factor(interval_s: float, checkpoint_s: float, between_failures_s: float, restart_s: float) -> float:
    """Return how many times as long work takes on average with checkpoints, failures and restarts, ≥ 1.

    Args:
        interval_s: Seconds of work δ between checkpoints, ≥ 0; inf: none are written. δ + C is at most `MOST` times M.
        checkpoint_s: Time C of a checkpoint [s], ≥ 0.
        between_failures_s: Mean time M between failures [s], > 0; inf: there are none.
        restart_s: Time R of a restart [s], ≥ 0; it counts for `MOST` times M at most.

    Returns:
        The factor; where jobs write no checkpoints, that of the checkpoints alone, 1: what a failure then costs depends
        on how long a job has run.
    """
    if interval_s == math.inf:
        return 1.0
    if between_failures_s == math.inf:
        return 1.0 + (checkpoint_s / interval_s if interval_s > 0.0 else 0.0)
    growth = math.exp(min(MOST, restart_s / between_failures_s))
    if interval_s == 0.0:  # without costs, work is always saved
        return growth
    return growth * between_failures_s * math.expm1((interval_s + checkpoint_s) / between_failures_s) / interval_s
