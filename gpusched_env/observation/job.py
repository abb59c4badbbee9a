"""Features of the job at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation.features import ONE_PERCENT, SURVIVAL_POINTS
from gpusched_env.observation.squash import squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import bin_of, expected_left

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Singles
    from gpusched_env.simulator.run import Board


@lean_kernel
def write_job(board: Board, job: int, out: Singles) -> tuple[float, float]:
    """Write the job's features; return its expected epochs left and its least worst-case energy cost [€].

    squash(x / y) is x / (y + |x|) here: one division, not two.
    """
    jobs, count, tau, rate, now = board.jobs, board.count, board.tau, board.planning_rate, board.clock[at.NOW]
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    left = max(largest - done, 1e-12 * largest)
    fastest = left * jobs[job, at.MIN_TAU]
    time_left, since = jobs[job, at.DUE] - now, now - jobs[job, at.SUBMISSION]
    slack, cheapest_s = time_left - fastest, left * jobs[job, at.CHEAPEST_TAU]
    expected = expected_left(board, job)
    least = np.inf
    for c in range(tau.shape[1]):
        if tau[job, c] < np.inf:
            least = min(least, tau[job, c] * rate[c])
    least *= left
    lateness = jobs[job, at.WEIGHT] * fastest
    out[0] = done / largest
    out[1] = time_left / (fastest + abs(time_left))
    out[2] = slack / (fastest + abs(slack))
    out[3] = 1.0 if time_left < 0.0 else 0.0
    out[4] = 1.0 if jobs[job, at.OLD_CONFIG] >= 0 else 0.0
    out[5] = lateness / (lateness + least) if lateness > 0.0 else 0.0
    out[6] = min(1.0, np.log10(1.0 + fastest) / 8.0)
    out[7] = min(1.0, expected / left)
    out[8] = since / (fastest + abs(since))
    out[9] = count[at.ASKED] / count[at.TO_ASK]
    edges, survival = board.edges[int(jobs[job, at.EDGES])], board.survival[int(jobs[job, at.DISTRIBUTION])]
    alive = survival[likely_bin(edges, done / largest)]
    for k in range(SURVIVAL_POINTS):
        later = (done + left * (k + 0.5) / SURVIVAL_POINTS) / largest
        out[10 + k] = survival[likely_bin(edges, later)] / alive if alive > 0.0 else 1.0
    slack = time_left / cheapest_s - 1.0
    out[10 + SURVIVAL_POINTS] = squash(slack)
    out[11 + SURVIVAL_POINTS] = squash(slack / ONE_PERCENT)
    return expected, least


@lean_kernel
def likely_bin(edges: Floats, fraction: float) -> int:
    """Find the bin that `bin_of` finds; at once if bins are equal."""
    b = int(fraction * (edges.shape[0] - 1))
    if 0 <= b < edges.shape[0] - 1 and edges[b] <= fraction < edges[b + 1]:
        return b
    return bin_of(edges, fraction)
