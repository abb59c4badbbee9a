"""Features of the cap on the power of a site."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.observation.prices import HOUR_S, full_kilowatts
from gpusched_env.observation.ratios import Names, squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

DAY_S = 24.0 * HOUR_S

_cap = Names()
CAP = _cap("cap now / power of all GPUs, at most 1; 1 without a cap")
POWER = _cap("power of what is held now / power of all GPUs; 0 without a cap")
LEFT = _cap("(cap now - power of what is held now) / power of all GPUs, from -1 to 1; 1 without a cap")
NEXT_CAP = _cap("next cap of which policies have been told / power of all GPUs, at most 1; else that now")
NEXT_IN = _cap("days until it, at most 1; 1 without one")
ABOVE = _cap("squash(price of a kWh above the cap / price of energy with which policies plan); 1 where it is hard")
CAP_FEATURES = tuple(_cap)
"""Features of the cap on the site's power, which `cap_features` adds to observations."""


@lean_kernel
def write_cap(board: Board, out: Singles | Floats) -> None:
    """Write the features of the cap, (CAPS,)."""
    out[:] = 0.0
    out[CAP] = out[LEFT] = out[NEXT_CAP] = out[NEXT_IN] = 1.0
    clock, site = board.clock, board.facts.site
    if site.shape[0] == 0:
        return
    full, price = full_kilowatts(board), clock[at.PRICE] * clock[at.PUE]
    out[CAP], out[NEXT_CAP] = min(1.0, clock[at.CAP_KW] / full), min(1.0, clock[at.NEXT_CAP_KW] / full)
    out[POWER] = min(1.0, clock[at.KW] / full)
    out[LEFT] = max(-1.0, min(1.0, (clock[at.CAP_KW] - clock[at.KW]) / full))
    out[NEXT_IN] = min(1.0, (clock[at.NEXT_CAP_S] - clock[at.NOW]) / DAY_S)
    soft = site[at.SOFT_EUR]
    out[ABOVE] = 1.0 if soft == np.inf or price == 0.0 else squash(soft / price)
