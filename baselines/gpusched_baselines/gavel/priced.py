"""Gavel's cost with due dates, over all configurations and with lateness at its price: our problem as a fluid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, hstack  # type: ignore[import-untyped]

from gpusched_baselines.gavel.program import Program, ProgramError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand


LEAST = 0.01  # of its fastest speed that every job needs, however late it is due: else it might never run
EAGER = 1e-3  # how much more an epoch that is left for later costs, relative to its energy


def priced(demand: Demand, guard_s: float) -> NDArray[np.float64]:
    """Minimise Σ_j Σ_c r_c x[j, c] + Σ_j (ω_j / fastest_j + e_j) u_j [€/s], (A, C).

    thr_j(x) + u_j ≥ need_j. A job needs left_j / (due_j - t - guard), or its fastest speed where that is not enough.
    Each epoch that it falls short makes it late by the seconds that one takes at its fastest, and must be done later,
    for e_j, its least energy. So energy and tardiness are in the same euros per second, and due dates give way one by
    one where there are not GPUs enough.

    Args:
        demand: The jobs and their options.
        guard_s: How much sooner than due jobs are planned to end [s]: rounds are not a fluid.

    Raises:
        ProgramError: The solver gave up.
    """
    jobs = len(demand.job)
    fastest = np.maximum(demand.speed.max(axis=1), 1e-300)
    time_s = np.maximum(demand.due_in_s - guard_s, 1e-9)
    need = np.clip(demand.left / time_s / fastest, LEAST, 1.0)  # as a fraction of the fastest speed
    epoch = np.where(demand.speed > 0.0, demand.rate / np.maximum(demand.speed, 1e-300), np.inf).min(axis=1)
    unit = max(float(demand.rate.max()), float(demand.tardiness.max()), 1e-300)
    later = (demand.tardiness + (1.0 + EAGER) * epoch * fastest) / unit + EAGER
    program = Program(demand, extra=jobs)
    short = csr_array((-np.ones(jobs), (np.arange(jobs), np.arange(jobs))), (jobs, jobs))
    rows = hstack([-program.per_job(demand.speed / fastest[:, None]), short])
    found = program.least(demand.rate / unit, later, rows, -need)
    if found is None:
        raise ProgramError("jobs may be late, and yet there is no solution")
    return found.x
