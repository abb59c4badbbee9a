"""Parameters of STS-X that an agent may set, all 0 where it decides alone, and the columns of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

# Columns of what is said of every job. Each is the logarithm of a factor, so 0 changes nothing, to the last bit.
PRICE = 0  # on the price of GPUs where they are short
WEIGHT = 1  # on the tardiness weight with which it is planned
ORDER = 2  # on the value of its time, and on 1 / slack, by which urgent jobs come first
MARGIN = 3  # on the slack at which it is urgent
RESTART = 4  # on the seconds that a change costs
KNOBS = 5


class Steering(NamedTuple):
    """What somebody who knows more says of a round.

    Attributes:
        jobs: Logarithms of factors for every active job, (A, KNOBS).
        rate: Cost rates with which urgent jobs are planned [€/s], (C,).
        calm_rate: Cost rates by which calm jobs know where they are cheapest [€/s], (C,).
        same: Whether calm jobs are cheapest in every round where they were in the first.
        patience: Logarithm of a factor on how long a job may have to wait.
    """

    jobs: Floats
    rate: Floats
    calm_rate: Floats
    same: bool
    patience: float


@kernel
def unsteered(active: int, rate: Floats) -> Steering:
    """Give the steering that changes nothing.

    Args:
        active: Number of active jobs.
        rate: Cost rates to plan with [€/s], (C,).
    """
    return Steering(np.zeros((active, KNOBS)), rate, rate, True, 0.0)


@lean_kernel
def factor(steering: Steering, i: int, knob: int) -> float:
    """Give the factor that is said of an active job by one of the columns; exactly 1 where nothing is said."""
    said = steering.jobs[i, knob]
    return np.exp(said) if said != 0.0 else 1.0


# Columns of the policy's memory of a job.
ROUND = 0  # round that the next ones are of
PLANNED = 1  # configuration that it shall get in this round, -1 for none
NODE = 2  # the node, or the first of several, on which it shall get it
GPU = 3  # the shared GPU there, -1 for none
WAKE = 4  # its wake-up [s]
KNOWN_AT = 5  # 1 + the epochs done for which the next one holds
EXPECTED = 6  # epochs that it is expected to need yet
CHEAPEST = 15  # 1 + the configuration with the cheapest epochs, restarts aside; 0: not looked up yet
OFFERED = 16  # of a job told to a steering agent: GPU-seconds that it needs in the mean as a whole; 0: not looked up
# Its last plan.
UNTIL = 7  # time until which it holds [s]
HELD = 8  # what the job held when it was made: a configuration, -1 before its start, -2 waiting
BARE_VALUE = 9  # what a second is worth to it where GPUs have no price [€/s]
BARE_NEEDS = 10  # GPU-seconds that it is expected to need there
SCALE = 11  # the scale of prices for which the next ones are
FIRST = 12  # configuration with which it begins
NEXT = 13  # when another one follows [s]
VALUE = 14  # what a second is worth to it [€/s]


@lean_kernel
def epochs_expected(board: Board, job: int) -> float:
    """Give the epochs that a job is expected to need yet, > 0; looked up as long as it makes no progress."""
    jobs, memory = board.jobs, board.memory
    if memory[job, KNOWN_AT] != 1.0 + jobs[job, at.EPOCHS]:
        memory[job, KNOWN_AT] = 1.0 + jobs[job, at.EPOCHS]
        memory[job, EXPECTED] = max(expected_left(board, job), 1e-12 * jobs[job, at.MAX_EPOCHS])
    return memory[job, EXPECTED]
