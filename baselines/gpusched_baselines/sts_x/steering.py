"""Where STS-X can be steered: numbers that change what it does with a job, all 0 where it decides alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats

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
