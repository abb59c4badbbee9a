"""Features of the cap on the power of a site."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.mechanisms import GROUPS
from gpusched_env.mechanisms.cap.names import ABOVE, CAP, LEFT, NEXT_CAP, NEXT_IN, POWER
from gpusched_env.mechanisms.cap.power import full_kilowatts
from gpusched_env.observation.ratios import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

DAY_S = 24.0 * 3600.0
GROUP = tuple(GROUPS).index("cap")


@lean_kernel
def write_cap(board: Board, out: Singles | Floats) -> None:
    """Write the features of the cap, (CAPS,)."""
    out[:] = 0.0
    out[CAP] = out[LEFT] = out[NEXT_CAP] = out[NEXT_IN] = 1.0
    if not board.has_cap:
        return
    clock, site = board.clock, board.site
    if site.shape[0] == 0:
        return
    full, price = full_kilowatts(board), clock[at.PRICE] * clock[at.PUE]
    out[CAP], out[NEXT_CAP] = min(1.0, clock[at.CAP_KW] / full), min(1.0, clock[at.NEXT_CAP_KW] / full)
    out[POWER] = min(1.0, clock[at.KW] / full)
    out[LEFT] = max(-1.0, min(1.0, (clock[at.CAP_KW] - clock[at.KW]) / full))
    out[NEXT_IN] = min(1.0, (clock[at.NEXT_CAP_S] - clock[at.NOW]) / DAY_S)
    soft = site[at.SOFT_EUR]
    out[ABOVE] = 1.0 if soft == np.inf or price == 0.0 else squash(soft / price)


@lean_kernel
def write_group(board: Board, group: int, rows: Singles) -> None:
    if group == GROUP:
        write_cap(board, rows[0])
