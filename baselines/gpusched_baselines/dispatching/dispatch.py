"""Dispatch policies: running jobs keep what they have; waiting jobs, in order, take the cheapest that will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.planning.cheapest import any_room, cheapest_fitting, cheapest_with
from gpusched_baselines.planning.epochs_left import Epochs, check_epochs, epochs_left
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import Order, ask_order, check_order
from gpusched_env.simulator.placement.placement import place

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator import View


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """A dispatch rule as a policy.

    Args:
        name: Name, as tables show it.
        job_order: A named order (`submission`, `due`, `weight`, `pressure`), or a function that takes the active jobs
            (`gpusched_env.ActiveJobs`) and gives each a number: the smallest goes first.
        preemption: Whether a round begins from an empty cluster.
        epochs: The epochs that a job is taken to need when its configuration is chosen: all that are left
            ("worst-case"), or as many as are expected ("mean"). The named orders do not depend on it.

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
        if not any_room(view.room):
            return
        order = ask_order(view, self.job_order, waiting_only=not self.preemption)
        left = epochs_left(view, order, self.epochs)
        dispatch(view.jobs, view.nodes, view.configs, view.room, view.tau, view.planning_rate, order, left, view.now_s)

    def choose(self, view: View, job: int) -> int:
        """Choose the cheapest configuration that fits and meets the due date, else the fastest that fits."""
        arrays = (view.jobs, view.configs, view.room, view.tau, view.planning_rate, view.now_s, job)
        if self.epochs == "worst-case":
            return cheapest_fitting(*arrays)
        return cheapest_with(*arrays, epochs_left(view, np.array([job]), self.epochs)[0])


@kernel
def dispatch(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    rate: Floats,
    order: Ints,
    left: Floats,
    now: float,
) -> None:
    """Give every waiting job of `order`, in turn, the cheapest configuration that fits and meets the due date, if any.

    `left`, (A,), holds the epochs that the jobs of `order`, (A,), are taken to have left.
    """
    for i in range(order.shape[0]):
        if not any_room(room):
            return
        if jobs[order[i], at.CONFIG] >= 0:
            continue
        config = cheapest_with(jobs, configs, room, tau, rate, now, order[i], left[i])
        if config >= 0:
            place(jobs, nodes, configs, room, order[i], config)


def fifo() -> DispatchPolicy:
    """Make FIFO: first submitted, first served."""
    return DispatchPolicy("fifo", "submission")


def edf() -> DispatchPolicy:
    """Make EDF: earliest due date first."""
    return DispatchPolicy("edf", "due")


def edf_mean() -> DispatchPolicy:
    """Make EDF on expected execution times."""
    return DispatchPolicy("edf-mean", "due", epochs="mean")


def priority() -> DispatchPolicy:
    """Make Priority: largest tardiness weight first."""
    return DispatchPolicy("priority", "weight")
