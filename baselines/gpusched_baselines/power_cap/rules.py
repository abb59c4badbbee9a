"""Limits under a cap by simple rules: one for all, by tiers of slack, or by two thresholds.

`Offers` and `level` are those of `sts_x.power_price`. Every rule brings the site under its cap.
"""

from __future__ import annotations

import numpy as np

from gpusched_baselines.sts_x.power_price import Offers, fits, lowest, pause, raise_levels
from gpusched_env.simulator.kernels import Board, Ints, kernel

LOSSES = (0.0, 0.10, 0.25, 0.50)  # part of its speed that a job of a tier may lose (Emerald's Flex 0 to 3)
LOW, HIGH, RELEASE = 0.80, 0.89, 0.05  # POLCA's thresholds as parts of the cap, and how far below them it releases


@kernel
def uniform(board: Board, offers: Offers) -> Ints:
    """Return for all jobs the highest limit with which they stay under the cap, (N,); at the lowest some pause."""
    level = np.zeros(offers.jobs.shape[0], dtype=np.int64)
    for k in range(offers.configs.shape[1]):
        for i in range(level.shape[0]):
            level[i] = min(k, lowest(offers, i))
        if fits(board, offers, level, 1.0):
            return level
    pause(board, offers, level, offers.slack)
    return level


@kernel
def by_tiers(board: Board, offers: Offers) -> Ints:
    """Lower the jobs of the last tier first, as far as their tier allows; then pause, those with most slack first.

    What is left of the cap then goes to those with most slack, which lost most. A job is in the last tier that
    its slack allows: with a part l of its speed lost, it takes 1 / (1 - l) as long. Returns the limits, (N,).
    """
    level = np.zeros(offers.jobs.shape[0], dtype=np.int64)
    for tier in range(len(LOSSES) - 1, 0, -1):
        for i in range(level.shape[0]):
            if _tier_of(offers.slack[i]) == tier and not fits(board, offers, level, 1.0):
                level[i] = _lowest_within(board, offers, i, LOSSES[tier])
    pause(board, offers, level, offers.slack)
    raise_levels(board, offers, level, np.zeros_like(level), -offers.slack)
    return level


@kernel
def _tier_of(slack: float) -> int:
    tier = 0
    for t in range(1, len(LOSSES)):
        tier = t if slack >= LOSSES[t] / (1.0 - LOSSES[t]) else tier
    return tier


@kernel
def _lowest_within(board: Board, offers: Offers, i: int, loss: float) -> int:
    tau, found = board.tau[offers.jobs[i]], 0
    for k in range(lowest(offers, i) + 1):
        found = k if tau[offers.configs[i, 0]] >= (1.0 - loss) * tau[offers.configs[i, k]] else found
    return found


@kernel
def by_thresholds(board: Board, offers: Offers) -> Ints:
    """Lower jobs with slack by one limit above the first threshold; above the second to the lowest, and others by one.

    Where limits are in force already, they are released only `RELEASE` below the threshold. Above the cap all jobs get
    the lowest limit, and then they are paused. Returns the limits, (N,).
    """
    level, deferrable, critical = np.zeros(offers.jobs.shape[0], dtype=np.int64), 0, 0
    for i in range(level.shape[0]):
        deferrable += offers.limited[i] if offers.slack[i] > 0.0 else 0
        critical += offers.limited[i] if offers.slack[i] <= 0.0 else 0
    if fits(board, offers, level, LOW - (RELEASE if deferrable > 0 else 0.0)):
        return level
    for i in range(level.shape[0]):
        level[i] = min(1, lowest(offers, i)) if offers.slack[i] > 0.0 else 0
    if fits(board, offers, level, HIGH - (RELEASE if critical > 0 else 0.0)):
        return level
    for i in range(level.shape[0]):
        level[i] = lowest(offers, i) if offers.slack[i] > 0.0 else min(1, lowest(offers, i))
    if fits(board, offers, level, 1.0):
        return level
    for i in range(level.shape[0]):
        level[i] = lowest(offers, i)
    pause(board, offers, level, offers.slack)
    return level
