"""How many epochs jobs are taken to have left: all of them, or as many as are expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.survival import expected_left

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import ActiveJobs, View
    from gpusched_env.simulator.run import Board

Epochs = Literal["worst-case", "mean"]
"""Which number of epochs a policy reckons with."""


def check_epochs(epochs: str) -> None:
    """Check a parameter `epochs`.

    Raises:
        InputError: It is neither "worst-case" nor "mean".
    """
    if epochs not in {"worst-case", "mean"}:
        raise InputError("epochs", epochs, "worst-case or mean")


def epochs_left(view: View, jobs: Ints, epochs: Epochs) -> Floats:
    """Give the epochs that the active jobs with the indices `jobs`, (A,), are taken to have left, (A,).

    With "worst-case" all up to the maximum; with "mean" as many as are expected, given the epochs done:
    ∫ S(x)/S(w) dx over x > w.
    """
    return left_of_all(view.board, jobs, epochs == "mean")


def expected_slack(active: ActiveJobs) -> Floats:
    """Give minus the pressure [s], in expectation: due date - least expected execution time left - present time."""
    rows = active.view.jobs[active.index]
    left = epochs_left(active.view, active.index, "mean")
    return rows[:, at.DUE] - left * rows[:, at.MIN_TAU] - active.now_s


@kernel
def left_of_all(board: Board, chosen: Ints, mean: bool) -> Floats:
    """Give the epochs that the active jobs `chosen`, (A,), are taken to have left, (A,)."""
    left = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        left[i] = left_of(board, chosen[i], mean)
    return left


@lean_kernel
def left_of(board: Board, job: int, mean: bool) -> float:
    """Give the epochs that an active job is taken to have left: as many as are expected with `mean`, else all."""
    jobs = board.jobs
    return expected_left(board, job) if mean else jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
