"""Features of the current job."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Singles
from gpusched_env.kernel import lean_kernel
from gpusched_env.observation.ratios import ONE_PERCENT, Names, squash
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.survival import likely_bin

SURVIVAL_POINTS = 8
feature = Names()
DONE = feature("epochs done / maximum epochs")
TIME_LEFT = feature("squash(D / T)")
SLACK = feature("squash((D - T) / T): slack of the fastest configuration")
LATE = feature("1 if late already")
HELD = feature("1 if it held GPUs before this round")
TARDINESS_COST = feature("squash(tardiness cost of T seconds / least worst-case energy cost)")
FASTEST = feature("log10(1 + T) / 8")
EXPECTED = feature("expected epochs left / epochs left in the worst case")
AGE = feature("squash(time since submission / T)")
ASKED = feature("jobs of this round already asked / jobs of this round")
SURVIVAL = feature(
    *(
        f"probability to survive {k + 0.5:g}/{SURVIVAL_POINTS} of the epochs left, given those done"
        for k in range(SURVIVAL_POINTS)
    )
)
CHEAPEST_SLACK = feature("squash((D - W) / W), W = worst-case execution time of its cheapest configuration")
NEAR_SLACK = feature("the same, / 1 %")
JOB_FEATURES = tuple(feature)


@lean_kernel
def write_job(board: Board, job: int, out: Singles) -> tuple[float, float]:
    """Write the job's features; return its expected epochs left and its least worst-case energy cost [€].

    squash(x / y) is x / (y + |x|) here: one division, not two.
    """
    jobs, count, tau, now = board.jobs, board.count, board.tau, board.clock[at.NOW]
    rate = board.planning_rate[int(jobs[job, at.APPLICATION])]
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    left = max(largest - done, 1e-12 * largest)
    fastest = left * jobs[job, at.MIN_TAU]
    time_left, since = jobs[job, at.DUE] - now, now - jobs[job, at.SUBMISSION]
    slack, cheapest_s = time_left - fastest, left * jobs[job, at.CHEAPEST_TAU]
    least = np.inf
    for c in range(tau.shape[1]):
        if tau[job, c] < np.inf:
            least = min(least, tau[job, c] * rate[c])
    least *= left
    edges, row = board.edges[int(jobs[job, at.EDGES])], int(jobs[job, at.DISTRIBUTION])
    survival, now_in = board.survival[row], likely_bin(edges, done / largest)
    alive = survival[now_in]
    rest = 1.0 - done / largest
    if alive > 0.0:  # as `expected_rest`
        in_bin = edges[now_in + 1] - min(done / largest, 1.0)
        rest = (board.tail[row, now_in + 1] + alive * in_bin) / alive
    expected = rest * largest
    tardiness = jobs[job, at.WEIGHT] * fastest
    out[DONE] = done / largest
    out[TIME_LEFT] = time_left / (fastest + abs(time_left))
    out[SLACK] = slack / (fastest + abs(slack))
    out[LATE] = 1.0 if time_left < 0.0 else 0.0
    out[HELD] = 1.0 if jobs[job, at.OLD_CONFIG] >= 0 else 0.0
    out[TARDINESS_COST] = tardiness / (tardiness + least) if tardiness > 0.0 else 0.0
    out[FASTEST] = min(1.0, np.log10(1.0 + fastest) / 8.0)
    out[EXPECTED] = min(1.0, expected / left)
    out[AGE] = since / (fastest + abs(since))
    out[ASKED] = count[at.ASKED] / count[at.TO_ASK]
    for k in range(SURVIVAL_POINTS):
        later = (done + left * (k + 0.5) / SURVIVAL_POINTS) / largest
        out[SURVIVAL + k] = survival[likely_bin(edges, later)] / alive if alive > 0.0 else 1.0
    slack = time_left / cheapest_s - 1.0
    out[CHEAPEST_SLACK] = squash(slack)
    out[NEAR_SLACK] = squash(slack / ONE_PERCENT)
    return expected, least
