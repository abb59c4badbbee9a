"""Groups of features that are not in observations unless they are asked for: prices, the site's cap, power limits."""

from __future__ import annotations

from zlib import crc32

from gpusched_env.arrays import Singles
from gpusched_env.kernel import kernel
from gpusched_env.observation.limits import LIMIT_FEATURES, write_limits
from gpusched_env.observation.notes import Notes
from gpusched_env.observation.prices import PRICE_FEATURES, write_prices
from gpusched_env.observation.site import CAP_FEATURES, write_cap
from gpusched_env.parts import part_of
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

GROUPS = {"prices": PRICE_FEATURES, "cap": CAP_FEATURES, "limits": LIMIT_FEATURES}
"""Features of each group, by the name of its part of an observation; `limits` has a row for each configuration."""


def features_of(group: str) -> tuple[str, ...]:
    """Return the features of a group: one of `GROUPS`, or those of a mechanism of another package."""
    return GROUPS[group] if group in GROUPS else tuple(part_of(group, "features").FEATURES)


def group_number(mechanism: str) -> int:
    """Return the number by which `hooks.write_group` names the group of a mechanism of another package."""
    return crc32(mechanism.encode())


@kernel
def write_groups(board: Board, notes: Notes, prices: Singles, cap: Singles, limits: Singles) -> None:
    """Write the groups of the current job; one without numbers is not part of the observation.

    Args:
        board: The run.
        notes: State that its observations keep: prices are the same until the clock moves.
        prices: `PRICE_FEATURES`, or (0,).
        cap: `CAP_FEATURES`, or (0,).
        limits: `LIMIT_FEATURES` of every configuration, (C, features), or (0, features); zeros when the run is over.
    """
    if board.has_prices and prices.shape[0] > 0:
        kept = notes.prices
        if kept[-1] != board.clock[at.NOW]:
            write_prices(board, kept[:-1])
            kept[-1] = board.clock[at.NOW]
        for k in range(prices.shape[0]):
            prices[k] = kept[k]
    if cap.shape[0] > 0:
        write_cap(board, cap)
    if limits.shape[0] > 0:
        write_limits(board, limits)
