"""Limits under a cap by simple rules: one for all, by tiers of slack, or by two thresholds.

Every rule writes limits to the plan of the round, none above those that it has, and returns whether they keep the site
under its cap. `Offers` and `level` are those of `sts_x.power_price`.
"""

from __future__ import annotations

from gpusched_baselines.sts_x.power_price import PAUSED, Offers, fits, lowest, offers_of, raise_levels, write_levels
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Ints, kernel

LOSSES = (0.0, 0.10, 0.25, 0.50)  # part of its speed that a job of a tier may lose (Emerald's Flex 0 to 3)
LOW, HIGH, RELEASE = 0.80, 0.89, 0.05  # POLCA's thresholds as parts of the cap, and how far below them it releases


@kernel
def uniform(board: Board) -> bool:
    """Give all jobs the highest limit with which they stay under the cap together."""
    offers = offers_of(board)
    level = offers.planned.copy()
    for k in range(offers.configs.shape[1]):
        for i in range(level.shape[0]):
            level[i] = max(offers.planned[i], min(k, lowest(offers, i)))
        if fits(board, offers, level, 1.0):
            break
    return write_levels(board, offers, level)


@kernel
def by_tiers(board: Board) -> bool:
    """Lower the jobs of the last tier first, as far as their tier allows; then pause, those with most slack first.

    What is left of the cap then goes to those with most slack, which lost most. A job is in the last tier that
    its slack allows: with a part l of its speed lost, it takes 1 / (1 - l) as long.
    """
    offers = offers_of(board)
    level = offers.planned.copy()
    for tier in range(len(LOSSES) - 1, 0, -1):
        for i in range(level.shape[0]):
            if _tier_of(offers.slack[i]) == tier and not fits(board, offers, level, 1.0):
                level[i] = max(level[i], _lowest_within(board, offers, i, LOSSES[tier]))
    for i in sim.ranked(-offers.slack, level.shape[0]):
        if not fits(board, offers, level, 1.0):
            level[i] = PAUSED
    raise_levels(board, offers, level, offers.slack)
    return write_levels(board, offers, level)


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
def by_thresholds(board: Board) -> bool:
    """Lower jobs with slack by one limit above the first threshold; above the second to the lowest, and others by one.

    Where limits are in force already, they are released only `RELEASE` below the threshold. Above the cap all jobs get
    the lowest limit.
    """
    offers, deferrable, critical = offers_of(board), 0, 0
    for i in range(offers.jobs.shape[0]):
        deferrable += offers.limited[i] if offers.slack[i] > 0.0 else 0
        critical += offers.limited[i] if offers.slack[i] <= 0.0 else 0
    level, most = offers.planned.copy(), offers.configs.shape[1]
    if not fits(board, offers, level, LOW - (RELEASE if deferrable > 0 else 0.0)):
        _lower(offers, level, 1, 0)
        if not fits(board, offers, level, HIGH - (RELEASE if critical > 0 else 0.0)):
            _lower(offers, level, most, 1)
            if not fits(board, offers, level, 1.0):
                _lower(offers, level, most, most)
    return write_levels(board, offers, level)


@kernel
def _lower(offers: Offers, level: Ints, deferrable: int, critical: int) -> None:
    """Lower jobs with slack to one limit, and the others to another one, but none below its lowest."""
    for i in range(level.shape[0]):
        level[i] = max(level[i], min(deferrable if offers.slack[i] > 0.0 else critical, lowest(offers, i)))
