"""The features of prices and of a cap for adaptation agents: those of the environment, hours to come by six."""

from __future__ import annotations

import numpy as np

from gpusched_env.observation.prices import HOUR, HOURS, PRICE_FEATURES, write_prices
from gpusched_env.observation.site import CAP_FEATURES, write_cap
from gpusched_env.simulator.kernels import Board, Floats, kernel

TOGETHER = 6  # hours whose features are averaged
PARTS = HOURS // TOGETHER
FIRST = HOUR + HOURS  # the first feature of prices after those of single hours
ENERGY_FEATURES = (
    *PRICE_FEATURES[:HOUR],
    *(f"mean of the same from {TOGETHER * k} h to {TOGETHER * (k + 1)} h from now" for k in range(PARTS)),
    *PRICE_FEATURES[FIRST:],
    *CAP_FEATURES,
)
"""Features that the set of controls `energy` adds to an observation."""


@kernel
def write_energy(board: Board, seen: Floats) -> None:
    """Write the features of prices and of the cap, (ENERGY,)."""
    prices, caps = np.empty(len(PRICE_FEATURES)), np.empty(len(CAP_FEATURES))
    write_prices(board, prices)
    write_cap(board, caps)
    seen[:HOUR] = prices[:HOUR]
    for k in range(PARTS):
        seen[HOUR + k] = prices[HOUR + TOGETHER * k : HOUR + TOGETHER * (k + 1)].mean()
    rest = len(PRICE_FEATURES) - FIRST
    seen[HOUR + PARTS : HOUR + PARTS + rest] = prices[FIRST:]
    seen[HOUR + PARTS + rest :] = caps
