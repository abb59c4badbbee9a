"""Features of the other active jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.observation.squash import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints, Singles


@kernel
def write_queue(jobs: Floats, count: Ints, active: Ints, now: float, job: int, free: int, out: Singles) -> None:
    """Write statistics of the other active jobs."""
    others, waiting, late, slack, tightest, weight = 0, 0, 0, 0.0, 1.0, 0.0
    for i in range(count[at.ACTIVE]):
        other = active[i]
        if other == job:
            continue
        others += 1
        waiting += 1 if jobs[other, at.CONFIG] < 0 else 0
        time_left = jobs[other, at.DUE] - now
        late += 1 if time_left < 0.0 else 0
        fastest = (jobs[other, at.MAX_EPOCHS] - jobs[other, at.EPOCHS]) * jobs[other, at.MIN_TAU]
        ratio = squash(time_left / max(fastest, 1e-9))
        slack += ratio
        tightest = min(tightest, ratio)
        weight += jobs[other, at.WEIGHT]
    own = jobs[job, at.WEIGHT]
    out[:] = 0.0
    out[0] = min(1.0, np.log10(1.0 + others) / 5.0)
    out[1] = min(1.0, np.log10(1.0 + waiting) / 5.0)
    out[5] = tightest
    out[6] = 1.0
    out[7] = squash((count[at.TO_ASK] - count[at.ASKED]) / max(1, free))
    if others > 0:
        out[2] = waiting / others
        out[3] = late / others
        out[4] = slack / others
        mean = weight / others
        out[6] = own / (own + mean) if own + mean > 0.0 else 0.5
