"""How many epochs jobs are taken to have left: all of them, or as many as the mean says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pressure import pressures
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import ActiveJobs, View
    from gpusched_env.simulator.run import Board

Epochs = Literal["worst-case", "mean", "conditional-mean"]
"""Which number of epochs a policy reckons with.

All that are left; as many as make up the mean need, and all that are left once that is passed, as published; or the
mean given the epochs done, ∫ S(x)/S(w) dx over x > w, anew in every round.
"""

WORST_CASE, MEAN, CONDITIONAL_MEAN = range(3)
RECKONED: dict[str, int] = {"worst-case": WORST_CASE, "mean": MEAN, "conditional-mean": CONDITIONAL_MEAN}


def check_epochs(epochs: str) -> None:
    """Check a parameter `epochs`.

    Raises:
        InputError: It is none of `Epochs`.
    """
    if epochs not in RECKONED:
        raise InputError("epochs", epochs, "worst-case, mean or conditional-mean")


def epochs_left(view: View, jobs: Ints, epochs: Epochs) -> Floats:
    """Give the epochs that the active jobs with the indices `jobs`, (A,), are taken to have left, (A,)."""
    return left_of_all(view.board, jobs, RECKONED[epochs])


def by_pressure(epochs: Epochs) -> Callable[[ActiveJobs], Floats]:
    """Make the order of decreasing pressure of jobs that are taken to need `epochs`."""

    def order(active: ActiveJobs) -> Floats:
        return -pressures(active.view.board, active.index, epochs_left(active.view, active.index, epochs))

    return order


@kernel
def left_of_all(board: Board, chosen: Ints, reckoned: int) -> Floats:
    """Give the epochs that the active jobs `chosen`, (A,), are taken to have left, (A,)."""
    left = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        left[i] = left_of(board, chosen[i], reckoned)
    return left


@lean_kernel
def left_of(board: Board, job: int, reckoned: int) -> float:
    """Give the epochs that an active job is taken to have left; `reckoned` is one of `RECKONED`."""
    jobs = board.jobs
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    if reckoned == CONDITIONAL_MEAN:
        return expected_left(board, job)
    mean = board.tail[int(jobs[job, at.DISTRIBUTION]), 0] * largest
    return mean - done if reckoned == MEAN and done < mean else largest - done
