"""What a schedule is expected to cost if it is kept: a documented formula, not what a policy thinks.

A job that runs and keeps what it has until it is done costs its part of what its nodes draw now, for as long as it is
expected to take, and its weight for the time by which it is expected to end late, counted from now on. With e epochs
done, τ seconds an epoch at its present pace, r when it is ready to make progress, D its due date or now if that has
passed, S the survival function of the epochs that it needs and ρ its part of the nodes' cost rate:

    energy    = ρ (r - now + τ E[X - e | X > e])
    tardiness = ω E[max(0, r + τ (X - e) - D) | X > e] = ω (max(0, r - D) + τ ∫ S(x) / S(e) dx)

where the integral is over the epochs x ≥ e that are done after D. A job that waits has no such figures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import charge, pace
from gpusched_env.simulator.survival import bin_of, curve_of, expected_left, survival_after

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

ENERGY, TARDINESS, END_S, COLUMNS = 0, 1, 2, 3


@kernel
def expected_costs(board: Board) -> Floats:
    """Give energy [€], tardiness [€] and the expected end [s] of every active job, (A, COLUMNS); NaN where it waits."""
    jobs, active = board.jobs, board.active
    found = np.full((board.count[at.ACTIVE], COLUMNS), np.nan)
    for i in range(found.shape[0]):
        job = active[i]
        config = int(jobs[job, at.CONFIG])
        if config < 0:
            continue
        now = board.clock[at.NOW]
        ready, each_s, left = max(now, jobs[job, at.READY_S]), pace(board, job), expected_left(board, job)
        found[i, END_S] = ready + each_s * left
        found[i, ENERGY] = charge(board, job, config) * (found[i, END_S] - now)
        due = max(now, jobs[job, at.DUE])
        late_s = max(0.0, ready - due) + each_s * _epochs_after(board, job, max(0.0, due - ready) / each_s)
        found[i, TARDINESS] = jobs[job, at.WEIGHT] * late_s
    return found


@kernel
def _epochs_after(board: Board, job: int, epochs: float) -> float:
    """Give the epochs that a job is expected to do after the next `epochs` ones."""
    largest, done, curve = board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS], curve_of(board, job)
    then = min(1.0, (done + epochs) / largest)
    alive = curve.survival[bin_of(curve.edges, done / largest)]
    if alive <= 0.0:
        return (1.0 - then) * largest
    return survival_after(curve, then) / alive * largest
