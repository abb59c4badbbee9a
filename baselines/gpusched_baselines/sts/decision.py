"""How STS decides from its plans, whichever solver made them, and what it remembers of a job between rounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.cheapest import any_room
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import may_have
from gpusched_env.simulator.policy import FREE_COLUMNS

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

# Columns of the policy's memory of a job.
LEAST = 0  # size of what it last held by its own choice
GIVEN = 1  # 1 + the configuration that it was given in place of its own at the end of a round; 0: none
BETTER = FREE_COLUMNS  # one for each GPU type: 1 + the configuration to begin with there, if that was cheaper; 0: none

# plans: float64 (V, PLAN_COLUMNS). How the plan of each GPU type begins.
COST = 0  # expected cost [€]; inf: it misses the due date
FIRST = 1  # configuration; -1: it misses the due date
WAKE = 2  # when its segment ends [s]; inf: it runs to the end
PLAN_COLUMNS = 3

LATE_RANK = 1e6  # cost at which the published code ranks a type that misses the due date


@kernel
def look(board: Board, job: int, restarts_small: bool) -> tuple[int, float, int, bool]:
    """Say whether a job needs plans: not where nothing has room, or if it follows one and nothing better has room.

    One that was given more than its own is planned anew from its own: it is ahead of its plan.

    Args:
        job: The job's index.
        restarts_small: Whether a job that waits may take fewer GPUs than it last held.

    Returns:
        If the last but one is 0, the configuration that it gets (-1: none) and its wake-up [s] (NaN: as it is). Else
        that is the least size of configurations to plan with; and whether larger ones are to be tried first, since its
        wake-up is due.
    """
    jobs, configs, memory = board.jobs, board.facts.configs, board.memory
    held = int(jobs[job, at.OLD_CONFIG])
    own = held >= 0 and int(memory[job, GIVEN]) != held + 1
    if own:
        memory[job, LEAST] = configs[held, at.CONFIG_SIZE]
    if not any_room(board):  # nothing to plan for: without this, a long queue is planned anew in every round
        return -1, -np.inf, 0, False
    least = max(1, int(memory[job, LEAST]))
    if held < 0:
        return -1, np.nan, 1 if restarts_small else least, False
    follows_plan = jobs[job, at.WAKE_S] > board.clock[at.NOW]
    if follows_plan and own and may_have(board, job, held) and not better_type_has_room(board, job):
        return held, np.nan, 0, False
    speeds_up = not follows_plan and jobs[job, at.WAKE_S] > -np.inf
    return -1, np.nan, least, speeds_up


@kernel
def better_type_has_room(board: Board, job: int) -> bool:
    """Say whether what `job` would have begun with on a GPU type that it ranked above its own fits now."""
    for v in range(board.room.shape[0]):
        config = int(board.memory[job, BETTER + v]) - 1
        if config >= 0 and may_have(board, job, config):
            return True
    return False


@kernel
def take_best(board: Board, job: int, plans: Floats) -> tuple[int, float]:
    """Take the cheapest plan whose first configuration fits now; remember those that would have been cheaper.

    Returns:
        The configuration, -1 if none fits, and the wake-up [s].
    """
    best = -1
    for v in range(plans.shape[0]):
        first = int(plans[v, FIRST])
        if (best < 0 or plans[v, COST] < plans[best, COST]) and first >= 0 and may_have(board, job, first):
            best = v
    if best < 0:
        return -1, np.nan
    for v in range(plans.shape[0]):
        board.memory[job, BETTER + v] = plans[v, FIRST] + 1 if plans[v, COST] < plans[best, COST] else 0.0
    return int(plans[best, FIRST]), plans[best, WAKE]
