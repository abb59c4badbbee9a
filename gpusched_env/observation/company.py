"""Further features of every configuration, for clusters whose jobs share GPUs and lose time when they change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel
from gpusched_env.observation.notation import Names
from gpusched_env.observation.options import OPTION_FEATURES
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.pace_now import pace_now
from gpusched_env.simulator.switching import switch_s

if TYPE_CHECKING:
    from gpusched_env.arrays import Mask, Singles
    from gpusched_env.simulator.run import Board

feature = Names()
PACE = feature("pace that it would have now, 1 as alone; 0 if it cannot be placed")
PRIORITY = feature("priority of its share / 9")
SWITCH = feature("squash(seconds without progress that it would cost now / T)")
GUEST = feature("1 if the job is opportunistic")
COMPANY_FEATURES = tuple(feature)
"""What `shared_features` adds to each row of `OPTION_FEATURES`, at its end."""


@lean_kernel
def write_company(board: Board, job: int, mask: Mask, out: Singles) -> None:
    """Write the features behind the others of every row; a configuration that is not allowed has only zeros."""
    jobs, tau, first = board.jobs, board.tau, len(OPTION_FEATURES)
    left = max(jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS], 1e-12 * jobs[job, at.MAX_EPOCHS])
    fastest = left * jobs[job, at.MIN_TAU]
    for c in range(tau.shape[1]):
        out[c, first:] = 0.0
        if tau[job, c] == float("inf"):
            continue
        change = switch_s(board, job, c)
        out[c, first + PACE] = pace_now(board, job, c) if mask[c + 1] else 0.0
        out[c, first + PRIORITY] = board.facts.configs[c, at.CONFIG_PRIORITY] / (at.PRIORITIES - 1)
        out[c, first + SWITCH] = change / (fastest + change)
        out[c, first + GUEST] = jobs[job, at.OPPORTUNISTIC]
