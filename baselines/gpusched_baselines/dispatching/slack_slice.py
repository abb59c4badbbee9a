"""Time slicing by slack: jobs are preempted only where a due date needs it, and as often as switching is cheap."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.dispatching.time_slice import (
    SAME,
    attained_per_weight,
    cheapest_in_time,
    count_attained,
    epochs_left,
    keeps,
    place_cheapest,
    preempt_for,
)
from gpusched_env.errors import InputError
from gpusched_env.model import checks
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import View, at

if TYPE_CHECKING:
    from numpy.random import Generator


@dataclass(frozen=True, slots=True)
class SlackSlice:
    """Time slicing with the slack of due dates in place of a weight and a fixed quantum.

    1. Jobs that run keep what they have until their quanta are over: so long that pausing them takes at most a share of
       the time. Those that would miss their due date after a pause keep it longer.
    2. A waiting job preempts others at its latest start: when it would only just meet its due date on its fastest
       configuration, with a margin. First of those on the GPU type that keep their due dates in spite of it, or miss
       them anyway, go those that lose least: by weight times the seconds that the pause costs, then by those seconds;
       a state for which host memory has no room costs a restart. A job that is late preempts only those of less weight.
       Where the latest start comes within the least quantum and a pause is cheap, at most that share of what the job
       has to run, the job need not wait for it.
    3. All others, by least GPU-seconds attained per weight, take the cheapest configuration that fits and meets the due
       date, else the fastest that fits; on the node where they were, if they can.
    4. While jobs wait, a round is at the end of a quantum and at a latest start.

    Args:
        name: Name, as tables show it.
        switching_share: Most of the time of a job that pausing it after each quantum may take, in (0, 1).
        least_quantum_s: Least quantum [s], > 0.
        margin: Part of the time of a job by which its latest start is earlier, ≥ 0.

    Raises:
        InputError: One of them is out of its range.
    """

    name: str = "time-slice:slack"
    switching_share: float = 0.05
    least_quantum_s: float = 60.0
    margin: float = 0.05
    preemption: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.switching_share < 1.0:
            raise InputError("switching_share", self.switching_share, "a number > 0 and < 1")
        checks.positive("least_quantum_s", self.least_quantum_s)
        checks.not_negative("margin", self.margin)

    def decide(self, view: View, rng: Generator) -> None:  # noqa: ARG002 - the rule draws nothing
        """Place all active jobs."""
        jobs, active, now = view.jobs, view.active.tolist(), view.now_s
        count_attained(view, view.active)
        for job in active:
            held = int(jobs[job, at.OLD_CONFIG])
            if held >= 0 and (not self._is_over(view, job) or 0.0 <= _slack_s(view, job, held) < _pause_s(view, job)):
                view.place(job, held)
        latest = {job: self._latest_start_s(view, job) for job in active if jobs[job, at.OLD_CONFIG] < 0}
        soon = [job for job, start in latest.items() if start <= now + self.least_quantum_s]
        for job in sorted(soon, key=lambda job: (-jobs[job, at.WEIGHT], latest[job])):
            waits = latest[job] > now + sim.SAME_TIME_S
            _place_in_time(view, job, self.switching_share if waits else math.inf)
        rest = [job for job in active if jobs[job, at.CONFIG] < 0]
        for job in sorted(rest, key=lambda job: attained_per_weight(view, job)):
            place_cheapest(view, job)
        self._set_timers(view, active, latest)

    def _quantum_s(self, view: View, job: int) -> float:
        return max(self.least_quantum_s, _pause_s(view, job) / self.switching_share)

    def _is_over(self, view: View, job: int) -> bool:
        return bool(view.now_s - view.jobs[job, at.BASE_S] >= self._quantum_s(view, job) * SAME)

    def _latest_start_s(self, view: View, job: int) -> float:
        """Return the time at which a waiting job must start to meet its due date on its fastest configuration [s]."""
        jobs = view.jobs
        started = sim.place_of_state(view.board, job) >= 0
        switch_s = max(jobs[job, at.RESUMING_S], jobs[job, at.RESTART_S]) if started else jobs[job, at.STARTING_S]
        run_s = epochs_left(view, job) * jobs[job, at.MIN_TAU]
        return float(jobs[job, at.DUE] - switch_s - (1.0 + self.margin) * run_s)

    def _set_timers(self, view: View, active: list[int], latest: dict[int, float]) -> None:
        """Set timers at latest starts, and at the ends of quanta while a job waits."""
        jobs, now = view.jobs, view.now_s
        waits = any(jobs[job, at.CONFIG] < 0 for job in active)
        for job in active:
            if jobs[job, at.CONFIG] < 0:
                start = latest.get(job, self._latest_start_s(view, job))
                view.set_timer(job, start if start > now + sim.SAME_TIME_S else math.inf)
                continue
            end = (jobs[job, at.BASE_S] if keeps(view, job) else now) + self._quantum_s(view, job)
            view.set_timer(job, float(end if end > now else now + self._quantum_s(view, job)) if waits else math.inf)


def _pause_s(view: View, job: int) -> float:
    return float(sim.pause_s(view.board, job))


def _slack_s(view: View, job: int, config: int) -> float:
    """Return the time that a job has left before its due date if it runs to the end on `config`, which it holds [s]."""
    starts_s = max(view.now_s, float(view.jobs[job, at.READY_S]))
    return float(view.jobs[job, at.DUE] - starts_s - epochs_left(view, job) * view.tau[job, config])


def _place_in_time(view: View, job: int, most: float) -> None:
    """Place a job in time for its due date, on what is free or by preemption; else it waits.

    Only jobs are preempted whose pause takes at most the part `most` of what the job has to run.
    """
    wanted = cheapest_in_time(view, job)
    late = wanted < 0
    wanted = int(np.argmin(view.tau[job])) if late else wanted
    others = [config for config in np.argsort(view.tau[job], kind="stable").tolist() if config != wanted]
    for config in (wanted, *others):
        if not np.isfinite(view.tau[job, config]):
            continue
        if sim.can_place(view.board, job, config) or preempt_for(
            view, job, config, _victims(view, job, config, most, late=late)
        ):
            view.place(job, config)
            return


def _victims(view: View, job: int, config: int, most: float, *, late: bool) -> list[int]:
    """List the jobs that may be preempted for `job`, those that lose least first."""
    jobs, gpu_type = view.jobs, int(view.configs[config, at.CONFIG_TYPE])
    run_s = epochs_left(view, job) * float(view.tau[job, config])
    found: list[tuple[tuple[float, float], int]] = []
    for other in view.active.tolist():
        held = int(jobs[other, at.CONFIG])
        if held < 0 or view.configs[held, at.CONFIG_TYPE] != gpu_type or not keeps(view, other):
            continue
        pause_s, slack_s = _pause_s(view, other), _slack_s(view, other, held)
        if 0.0 <= slack_s < pause_s + run_s or (late and jobs[other, at.WEIGHT] >= jobs[job, at.WEIGHT]):
            continue
        if pause_s > most * run_s:
            continue
        found.append(((float(jobs[other, at.WEIGHT]) * pause_s, pause_s), other))
    return [other for _, other in sorted(found)]
