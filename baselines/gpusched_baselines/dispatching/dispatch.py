"""Dispatch policies: each job, in some order, takes the cheapest configuration in time; Greedy; and traced schedules.

`order`, (A,), are the jobs of the round, and `left`, (A,), their estimated epochs left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.idle_gpus import give_idle_gpus, give_left_shares
from gpusched_baselines.planning.cheapest import (
    ESTIMATE,
    WORST_CASE,
    Epochs,
    any_capacity,
    cheapest_with,
    check_epochs,
    left_of,
    left_of_all,
)
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import ActiveJobs, Board, Choice, Floats, Ints, Order, View, at, kernel

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class DispatchPolicy:
    """A dispatch rule as a policy.

    Args:
        name: Name, as tables show it.
        job_order: A named order (`submission`, `due`, `weight`, `pressure`), or a function that takes the active jobs
            (`gpusched_env.ActiveJobs`) and returns a number for each: the smallest goes first.
        preemption: Whether a round begins from an empty cluster.
        epochs: The estimate of the epochs left when a configuration is chosen: all that are left ("worst-case"); the
            mean less those done, and all that are left after the mean ("mean", as published); or the mean given those
            done ("conditional-mean"). The named orders do not depend on it.

    Raises:
        InputError: There is no such order, or no such `epochs`.
    """

    name: str
    job_order: Order
    preemption: bool = False
    epochs: Epochs = "worst-case"

    def __post_init__(self) -> None:
        sim.check_order(self.job_order)
        check_epochs(self.epochs)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place the waiting jobs in order."""
        if not any_capacity(view.board):
            return
        order = sim.ask_order(view, self.job_order, waiting_only=not self.preemption)
        _decide(view.board, order, ESTIMATE[self.epochs])

    def choose(self, view: View, job: int) -> Choice:
        """Choose the cheapest configuration that fits and meets the due date, else the fastest that fits."""
        return Choice(int(_choose(view.board, job, ESTIMATE[self.epochs])))


@kernel
def _decide(board: Board, order: Ints, estimated: int) -> None:
    dispatch(board, order, left_of_all(board, order, estimated))


@kernel
def _choose(board: Board, job: int, estimated: int) -> int:
    return cheapest_with(board, board.planning_rate, job, left_of(board, job, estimated))


@kernel
def dispatch(board: Board, order: Ints, left: Floats) -> None:
    """Place the waiting jobs of `order` in turn, each on the configuration that `cheapest_with` chooses, if one fits.

    `left`, (A,), holds the estimated epochs left of the jobs of `order`, (A,).
    """
    jobs = board.jobs
    for i in range(order.shape[0]):
        if not any_capacity(board):
            return
        if jobs[order[i], at.CONFIG] >= 0:
            continue
        config = cheapest_with(board, board.planning_rate, order[i], left[i])
        if config >= 0:
            sim.place(board, order[i], config)


def fifo() -> DispatchPolicy:
    """Make FIFO: jobs by submission; one that does not fit lets later ones pass."""
    return DispatchPolicy("fifo", "submission")


def edf() -> DispatchPolicy:
    """Make EDF: earliest due date first."""
    return DispatchPolicy("edf", "due")


def edf_preemptive() -> DispatchPolicy:
    """Make EDF that places all jobs again in every round."""
    return DispatchPolicy("edf:preemptive", "due", preemption=True)


def edf_mean() -> DispatchPolicy:
    """Make EDF on mean execution times, as published."""
    return DispatchPolicy("edf:mean", "due", epochs="mean")


def edf_conditional_mean() -> DispatchPolicy:
    """Make EDF on the execution times expected given the epochs done."""
    return DispatchPolicy("edf:conditional-mean", "due", epochs="conditional-mean")


def priority() -> DispatchPolicy:
    """Make Priority: largest tardiness weight first."""
    return DispatchPolicy("priority", "weight")


@dataclass(frozen=True, slots=True)
class Greedy:
    """Greedy: all jobs by decreasing pressure, each on the cheapest configuration that fits and meets the due date.

    Afterwards jobs on shared GPUs get what is left of these, as published.

    Args:
        fill: Whether idle whole GPUs go to jobs, too: those of a node that is in use go to the job there that gains the
            most speed. That is ours; the published program does not do it.
        name: Name, as tables show it; with `fill` by default "greedy:fill".
    """

    fill: bool = False
    name: str = "greedy"
    preemption: bool = True

    def __post_init__(self) -> None:
        if self.fill and self.name == "greedy":
            object.__setattr__(self, "name", "greedy:fill")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - Greedy draws nothing
        """Place all active jobs again."""
        _decide_greedy(view.board, sim.ask_order(view, "pressure", waiting_only=False), self.fill)


@kernel
def _decide_greedy(board: Board, order: Ints, fill: bool) -> None:
    left = left_of_all(board, order, WORST_CASE)
    dispatch(board, order, left)
    finish_round(board, order, left, fill)
    sim.measure(board)


@kernel
def finish_round(board: Board, order: Ints, left: Floats, fill: bool) -> None:
    """Speed up jobs by what is left of shared GPUs and, with `fill`, by idle GPUs; `capacity` is not updated."""
    give_left_shares(board, order, left)
    if fill:
        give_idle_gpus(board, order)


@dataclass(frozen=True, slots=True)
class AsTraced:
    """A replay of the schedule of a trace: every job starts at its traced start, and keeps its configuration.

    A job starts at its traced start, on its traced configuration (`JobTable.traced_config`). Where that is not free
    then, it waits for it: earlier jobs may end slightly late, since durations are rounded to the resolution of the
    trace. Where the trace names the GPU type, it waits for GPUs of that type. Else the type is estimated, and after
    `patience_s` it takes as many GPUs of another type on which its time is closest; where no type has them free, it
    starts as soon as one has. Jobs that wait are placed in the order of their traced starts, and a job that does not
    fit does not stop the next ones. Every job needs a traced start, so the policy runs only on replays of traces with
    start times.

    Args:
        name: Name, as tables show it.
        patience_s: How long after its traced start a job whose GPU type is not known waits for its traced configuration
            before it takes another one [s], ≥ 0; several times the resolution of the trace.

    Raises:
        InputError: `patience_s` is out of its range.
    """

    name: str = "as-traced"
    preemption: bool = False
    patience_s: float = 60.0

    def __post_init__(self) -> None:
        checks.seconds("patience_s", self.patience_s)

    @property
    def replays(self) -> bool:
        """Return True: the policy may see traced starts and configurations."""
        return True

    def check(self, instance: Instance) -> None:
        """Check that the jobs of an instance have traced starts.

        Raises:
            InputError: They have none.
        """
        if instance.jobs.traced_start_s is None:
            raise InputError("jobs.traced_start_s", None, "start times, as in instances of traces that have them")

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - it draws nothing
        """Start the waiting jobs whose traced start has come, and set timers for the others."""
        _replay(view.board, sim.ask_order(view, _by_traced_start, waiting_only=True), self.patience_s)


def _by_traced_start(active: ActiveJobs) -> NDArray[np.float64]:
    starts: NDArray[np.float64] = active.view.jobs[active.index, at.TRACED_START_S]
    return starts


@kernel
def _replay(board: Board, order: Ints, patience_s: float) -> None:
    jobs, now = board.jobs, board.clock[at.NOW]
    for i in range(order.shape[0]):
        job = order[i]
        start = jobs[job, at.TRACED_START_S]
        if start > now:
            sim.set_timer_at(board, job, start)
            continue
        traced = int(jobs[job, at.TRACED_CONFIG])
        config = -2 - traced if traced < -1 else traced
        if sim.can_place(board, job, config):
            sim.place(board, job, config)
        elif now < start + patience_s:
            sim.set_timer_at(board, job, start + patience_s)
            continue
        elif traced >= 0:
            _place_elsewhere(board, job, config)
        sim.set_timer_at(board, job, np.inf)


@kernel
def _place_elsewhere(board: Board, job: int, traced: int) -> None:
    """Place a job on the configuration of the size of the traced one, if any fits, on which its time is closest.

    The closest has the least ratio of the longer to the shorter time; of equals the first.
    """
    tau, configs = board.tau, board.facts.configs
    best, least = -1, np.inf
    for c in range(tau.shape[1]):
        if configs[c, at.CONFIG_SIZE] != configs[traced, at.CONFIG_SIZE] or not tau[job, c] < np.inf:
            continue
        ratio = max(tau[job, c] / tau[job, traced], tau[job, traced] / tau[job, c])
        if ratio < least and sim.can_place(board, job, c):
            best, least = c, ratio
    if best >= 0:
        sim.place(board, job, best)
