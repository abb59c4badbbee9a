"""Whole simulations: jobs a second, and memory, by number of jobs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.child import run_python
from benchmarks.figure import Figure, at_least, interleaved, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

TARGETS = {"edf": 5000.0, "sts": 1000.0}
TARGET_JOBS = 10_000

Answers = tuple[dict[str, float], ...]


def one_run(policy: str, jobs: int, *, recorded: bool, fleet: tuple[int, float] | None = None) -> dict[str, float]:
    """Run a policy once in a separate process, and return the result of `one_run.run`.

    Args:
        policy: Name of the policy.
        jobs: Number of jobs.
        recorded: Whether intervals are recorded.
        fleet: Number of nodes, and interval of decision rounds [s]; None for the scenario `large`.
    """
    mode, size = "recorded" if recorded else "bare", [] if fleet is None else [str(value) for value in fleet]
    answer: dict[str, float] = json.loads(run_python(["-m", "benchmarks.one_run", str(jobs), policy, mode, *size]))
    return answer


@dataclass(frozen=True, slots=True)
class _Run:
    """A run to be measured, each time in a process of its own.

    Args:
        policy: Name of the policy.
        jobs: Number of jobs.
        recorded: Whether intervals are recorded.
    """

    policy: str
    jobs: int
    recorded: bool

    def __call__(self) -> dict[str, float]:
        """Run it once, and return the result of `one_run.run`."""
        return one_run(self.policy, self.jobs, recorded=self.recorded)

    @property
    def title(self) -> str:
        """Name the run."""
        return f"{self.policy}, {self.jobs:,} jobs{'' if self.recorded else ', intervals not recorded'}"


def measure(
    sizes: Sequence[int] = (2500, 5000, 10_000, 20_000), policies: Sequence[str] = ("edf", "sts"), repetitions: int = 3
) -> list[Figure]:
    """Simulate the scenario `large` (100 nodes), with and without its intervals recorded.

    Args:
        sizes: Numbers of jobs; the targets hold for 10,000.
        policies: Names of policies.
        repetitions: Repetitions of every run.
    """
    runs = [_Run(policy, jobs, recorded) for policy in policies for recorded in (True, False) for jobs in sizes]
    answers = interleaved({run.title: run for run in runs}, repetitions, warm_up=False)
    speed = [_speed(run, answers[run.title]) for run in runs]
    memory = [_memory(run, answers[run.title]) for run in runs]
    recording = [_recording(policy, sizes[-1], answers) for policy in policies]
    return [*speed, *recording, *memory]


def _speed(run: _Run, answers: Answers) -> Figure:
    target = at_least(TARGETS[run.policy]) if run.jobs == TARGET_JOBS and run.policy in TARGETS else None
    note = f"{answers[0]['rounds']:,} rounds, load {100.0 * answers[0]['load']:.0f} %" if run.recorded else ""
    return Figure(run.title, _column(answers, "jobs_per_s"), "jobs/s", target, note)


def _recording(policy: str, jobs: int, answers: dict[str, Answers]) -> Figure:
    bare, recorded = (_column(answers[_Run(policy, jobs, recorded).title], "jobs_per_s") for recorded in (False, True))
    return Figure(f"  {policy}, {jobs:,} jobs: not recorded / recorded", ratios(bare, recorded), "times")


def _memory(run: _Run, answers: Answers) -> Figure:
    each = tuple(kib / run.jobs for kib in _column(answers, "memory_kib"))
    return Figure(f"memory of {run.title} (linear: constant)", each, "KiB/job")


def _column(answers: Answers, name: str) -> tuple[float, ...]:
    return tuple(answer[name] for answer in answers)
