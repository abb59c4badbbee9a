"""The simulation that the three policies of Muri's program have in common: when jobs advance, end and lose time.

These are the rules of github.com/pkusys/Muri 4e69a78 (Apache-2.0), simulator/run_sim.py, in our own code; times are in
seconds. An event is a submission, an end, or a change of a policy's queues. At every event each running job loses the
time that its model takes to restart, but not more than the time since the event before, and the policy decides again
which jobs run. When a job will end is estimated at each event, without the loss at later events.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass, field
from math import inf, isclose
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_reproductions.systems.muri.traces import GPUS, TraceJob, restarts

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGER = 1.015
"""By what the program multiplies the time of an iteration in the trace."""
SAME_TIME = 1e-9
"""Relative difference up to which two times count as one event."""


@dataclass(slots=True, eq=False)
class SimulatedJob:
    """A job of a trace, and how far it is.

    Attributes:
        trace: The job in the trace.
        number: Its place in the order of submission, from 0; jobs submitted together are in the trace's order.
        restart_s: What it loses at every event while it runs [s].
        alone_s: Time of an iteration alone [s].
        iteration_s: Time of an iteration now [s].
        left: Iterations that are left.
        start_s: When it first ran [s]; inf: never.
        end_s: When it ended [s]; inf: never.
    """

    trace: TraceJob
    number: int
    restart_s: float
    alone_s: float = field(init=False)
    iteration_s: float = field(init=False)
    left: float = field(init=False)
    start_s: float = inf
    end_s: float = inf

    def __post_init__(self) -> None:
        # In whole milliseconds, as the program computes: rounding decides between jobs with the same time left.
        self.iteration_s = self.alone_s = round(1000.0 * self.trace.stages.iteration_s) * LONGER / 1000.0
        self.left = self.trace.iterations

    @property
    def gpus(self) -> int:
        return self.trace.gpus


class MuriPolicy(ABC):
    """Decides at each event which jobs run.

    Attributes:
        gpus: Number of GPUs.
        waiting: Jobs that wait.
        running: Jobs that run.
        change_s: When its queues change if no job is submitted or ends before [s]; inf: never.
        same_time: Relative difference up to which ends count as one event.
    """

    change_s = inf
    same_time = SAME_TIME

    def __init__(self, nodes: int) -> None:
        self.gpus = nodes * GPUS
        self.waiting = WaitingByGpus()
        self.running: list[SimulatedJob] = []

    @abstractmethod
    def submit(self, job: SimulatedJob) -> None:
        """Add a job that waits."""

    @abstractmethod
    def place(self) -> None:
        """Decide which jobs run from now on, in the order in which their ends are looked at."""

    def end(self, job: SimulatedJob) -> None:
        """Remove a job that ran."""
        self.running.remove(job)

    def advance(self, before_s: float, now_s: float) -> None:
        """Let the jobs run from the event before until now, less the time that each loses."""
        for job in self.running:
            job.left -= max(now_s - before_s - job.restart_s, 0.0) / job.iteration_s


class WaitingByGpus:
    """Waiting jobs, in order of their keys; those with the same number of GPUs are kept together.

    Keys are tuples of numbers; no two jobs have the same one.
    """

    def __init__(self) -> None:
        self._by_gpus: dict[int, list[tuple[tuple[float, ...], SimulatedJob]]] = {}

    def add(self, job: SimulatedJob, *key: float) -> None:
        heapq.heappush(self._by_gpus.setdefault(job.gpus, []), (key, job))

    def start(self, free: int) -> list[SimulatedJob]:
        """Go through all jobs in order, and remove and return those that `free` GPUs are enough for."""
        first = [(jobs[0][0], gpus) for gpus, jobs in self._by_gpus.items() if jobs]
        heapq.heapify(first)
        started = []
        while first:
            gpus = first[0][1]
            jobs = self._by_gpus[gpus]
            if gpus <= free:
                free -= gpus
                started.append(heapq.heappop(jobs)[1])
            if gpus <= free and jobs:
                heapq.heapreplace(first, (jobs[0][0], gpus))
            else:
                heapq.heappop(first)
        return started


def simulate_trace(jobs: Sequence[TraceJob], policy: MuriPolicy) -> list[SimulatedJob]:
    """Run the jobs of a trace until all have ended, or nothing can happen any more.

    Args:
        jobs: The jobs, in any order.
        policy: A policy that has no jobs yet.

    Returns:
        The jobs, by submission. A job whose end is inf has not ended: the GPUs are too few, or jobs wait for GPUs that
        others of them hold.

    Raises:
        InputError: The restart time of a job is not known.
    """
    restart_s = restarts()
    for each in jobs:
        if (each.model, each.gpus) not in restart_s:
            known = ", ".join(sorted({f"{model} on {gpus}" for model, gpus in restart_s}))
            raise InputError("model and GPUs of a job", f"{each.model} on {each.gpus}", f"one of {known}")
    in_order = sorted(jobs, key=lambda job: job.submission_s)
    made = [SimulatedJob(each, number, restart_s[each.model, each.gpus]) for number, each in enumerate(in_order)]
    later, now_s = deque(made), 0.0
    while True:
        submission_s = later[0].trace.submission_s if later else inf
        end_s, ended = _next_end(policy, now_s)
        event_s = min(submission_s, end_s)
        if event_s == inf:
            return made
        before_s, now_s = now_s, min(event_s, policy.change_s)
        for job in ended if end_s == now_s else ():
            job.end_s = now_s
            policy.end(job)
        while submission_s == now_s and later and isclose(later[0].trace.submission_s, now_s, rel_tol=SAME_TIME):
            policy.submit(later.popleft())
        policy.advance(before_s, now_s)
        policy.place()
        for job in policy.running:
            job.start_s = min(job.start_s, now_s)


def _next_end(policy: MuriPolicy, now_s: float) -> tuple[float, list[SimulatedJob]]:
    """Return when the next jobs end if nothing happens before [s], and those jobs.

    Jobs end together, when the first of them in the policy's order does, if their ends differ hardly.
    """
    ends = [(now_s + job.left * job.iteration_s, job) for job in policy.running]
    if not ends:
        return inf, []
    least_s = min(end_s for end_s, _ in ends)
    together: list[tuple[float, list[SimulatedJob]]] = []
    for end_s, job in ends:
        if end_s > least_s and not isclose(end_s, least_s, rel_tol=4.0 * policy.same_time):
            continue
        group = next((jobs for at_s, jobs in together if isclose(at_s, end_s, rel_tol=policy.same_time)), None)
        if group is None:
            together.append((end_s, [job]))
        else:
            group.append(job)
    return min(together, key=lambda each: each[0])
