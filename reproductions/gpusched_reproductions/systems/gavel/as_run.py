"""The scheduler without knowledge of speeds that comes first, as Gavel's authors ran it: with a slip that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel import Demand

FASTEST_LAST = (2, 1, 0)  # K80, P100, V100: the order in which their program looks at types


def fifo_as_run(demand: Demand, rng: Generator) -> NDArray[np.float64]:
    """Give the jobs in order all the time of a type, and keep it: what their FIFO that knows no speeds gave, (A, V).

    It draws a type that has room, but assigns the last of those that are still on its list, which is V100 if it is
    there; and when that is exactly full it takes the drawn type off the list, not that one. So V100 is given to more
    jobs than fit, which then share its time. A job that fits on no listed type ends the round of assignments.
    """
    x = (demand.before > 0.0).astype(np.float64)
    free = demand.capacity - demand.used(x)
    waiting = list(np.flatnonzero(x.sum(axis=1) == 0.0))
    listed = [v for v in FASTEST_LAST if free[v] > 0.0]
    while waiting and listed:
        j = waiting.pop(0)
        room = [v for v in listed if demand.size[j] <= free[v]]
        if not room:
            break
        drawn, given = room[int(rng.integers(len(room)))], listed[-1]
        x[j, given] = 1.0
        free[given] -= demand.size[j]
        if free[given] == 0.0:
            listed.remove(drawn)
    return x
