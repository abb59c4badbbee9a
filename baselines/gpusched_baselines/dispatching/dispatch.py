"""Dispatch policies: running jobs keep what they have; waiting jobs, in order, take the cheapest that will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.planning.cheapest import (
    RECKONED,
    Epochs,
    any_room,
    cheapest_with,
    check_epochs,
    left_of,
    left_of_all,
)
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import Order, ask_order, check_order
from gpusched_env.simulator.placement.placement import place
from gpusched_env.simulator.policy import Choice

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View
    from gpusched_env.simulator.run import Board


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """A dispatch rule as a policy.

    Args:
        name: Name, as tables show it.
        job_order: A named order (`submission`, `due`, `weight`, `pressure`), or a function that takes the active jobs
            (`gpusched_env.ActiveJobs`) and gives each a number: the smallest goes first.
        preemption: Whether a round begins from an empty cluster.
        epochs: The epochs that a job is taken to need when its configuration is chosen: all that are left
            ("worst-case"), as many as make up the mean need, and all that are left once that is passed ("mean", as
            published), or the mean given those done ("conditional-mean"). The named orders do not depend on it.

    Raises:
        InputError: There is no such order, or no such `epochs`.
    """

    name: str
    job_order: Order
    preemption: bool = False
    epochs: Epochs = "worst-case"

    def __post_init__(self) -> None:
        check_order(self.job_order)
        check_epochs(self.epochs)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the waiting jobs in order."""
        if not any_room(view.board):
            return
        order = ask_order(view, self.job_order, waiting_only=not self.preemption)
        _decide(view.board, order, RECKONED[self.epochs])

    def choose(self, view: View, job: int) -> Choice:
        """Choose the cheapest configuration that fits and meets the due date, else the fastest that fits."""
        return Choice(int(_choose(view.board, job, RECKONED[self.epochs])))


@kernel
def _decide(board: Board, order: Ints, reckoned: int) -> None:
    dispatch(board, order, left_of_all(board, order, reckoned))


@kernel
def _choose(board: Board, job: int, reckoned: int) -> int:
    return cheapest_with(board, board.planning_rate, job, left_of(board, job, reckoned))


@kernel
def dispatch(board: Board, order: Ints, left: Floats) -> None:
    """Give every waiting job of `order`, in turn, the cheapest configuration that fits and meets the due date, if any.

    `left`, (A,), holds the epochs that the jobs of `order`, (A,), are taken to have left.
    """
    jobs = board.jobs
    for i in range(order.shape[0]):
        if not any_room(board):
            return
        if jobs[order[i], at.CONFIG] >= 0:
            continue
        config = cheapest_with(board, board.planning_rate, order[i], left[i])
        if config >= 0:
            place(board, order[i], config)


def fifo() -> DispatchPolicy:
    """Make FIFO: first submitted, first served."""
    return DispatchPolicy("fifo", "submission")


def edf() -> DispatchPolicy:
    """Make EDF: earliest due date first."""
    return DispatchPolicy("edf", "due")


def edf_preemptive() -> DispatchPolicy:
    """Make EDF that places all jobs anew in every round."""
    return DispatchPolicy("edf-preemptive", "due", preemption=True)


def edf_mean() -> DispatchPolicy:
    """Make EDF on mean execution times, as published."""
    return DispatchPolicy("edf-mean", "due", epochs="mean")


def edf_conditional_mean() -> DispatchPolicy:
    """Make EDF on the execution times expected given the epochs done."""
    return DispatchPolicy("edf-conditional-mean", "due", epochs="conditional-mean")


def priority() -> DispatchPolicy:
    """Make Priority: largest tardiness weight first."""
    return DispatchPolicy("priority", "weight")
