"""Dispatch policies: running jobs keep what they have; waiting jobs, in order, take the cheapest that will do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpusched_baselines.cheapest import any_gap, cheapest_fitting
from gpusched_env.simulator.kernel import kernel
from gpusched_env.simulator.ordering import Order, ask_order, check_order
from gpusched_env.simulator.placement import place

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpusched_env.simulator import View
    from gpusched_env.simulator.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """A dispatch rule as a policy.

    Args:
        name: Name, as tables show it.
        job_order: A named order (`submission`, `due`, `weight`, `pressure`), or a function that takes the active jobs
            (`gpusched_env.ActiveJobs`) and gives each a number: the smallest goes first.

    Raises:
        InputError: There is no such order.
    """

    name: str
    job_order: Order
    preemption: bool = False

    def __post_init__(self) -> None:
        check_order(self.job_order)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the waiting jobs in order."""
        if not any_gap(view.gaps):
            return
        order = ask_order(view, self.job_order, waiting_only=not self.preemption)
        dispatch(view.jobs, view.nodes, view.configs, view.gaps, view.tau, view.planning_rate, order, view.now_s)

    def choose(self, view: View, job: int) -> int:
        """Choose the cheapest configuration that fits and meets the due date, else the fastest that fits."""
        return cheapest_fitting(view.jobs, view.configs, view.gaps, view.tau, view.planning_rate, view.now_s, job)


@kernel
def dispatch(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    gaps: Ints,
    tau: Floats,
    rate: Floats,
    order: Ints,
    now: float,
) -> None:
    """Give every job of `order`, in turn, the cheapest configuration that fits and meets the due date, if any fits."""
    for job in order:
        if not any_gap(gaps):
            return
        config = cheapest_fitting(jobs, configs, gaps, tau, rate, now, job)
        if config >= 0:
            place(jobs, nodes, configs, gaps, job, config)


def fifo() -> DispatchPolicy:
    """Make FIFO: first submitted, first served."""
    return DispatchPolicy("fifo", "submission")


def edf() -> DispatchPolicy:
    """Make EDF: earliest due date first."""
    return DispatchPolicy("edf", "due")


def priority() -> DispatchPolicy:
    """Make Priority: largest tardiness weight first."""
    return DispatchPolicy("priority", "weight")
