"""The policy of `examples/compiled_policy.py`, and the same rule as plain Python over the view."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bursts import burst
from benchmarks.figure import Figure, interleaved, ratios
from benchmarks.rounds import Round
from examples.compiled_policy import ExpectedCost
from gpusched_env import ActiveJobs, load_scenario, make_instance, simulate
from gpusched_env.simulator import ask_order
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusched_env import Instance, Policy, View


class InPython:
    """The rule of the example, in Python."""

    name, preemption, job_order = "expected-cost in Python", True, "pressure"

    def decide(self, view: View, _: object) -> None:
        """Place every job, in order, on the configuration with least expected cost of those that fit now."""
        order = ask_order(view, self.job_order, waiting_only=not self.preemption)
        for job, left in zip(order, ActiveJobs(view, order).expected_epochs_left, strict=True):
            seconds = left * view.tau[job]
            time_left_s = view.jobs[job, at.DUE] - view.now_s
            late_eur = view.jobs[job, at.WEIGHT] * np.maximum(0.0, seconds - time_left_s)
            cost_eur = seconds * view.planning_rate[int(view.jobs[job, at.APPLICATION])] + late_eur
            for config in np.argsort(cost_eur, kind="stable"):
                if not np.isfinite(cost_eur[config]) or view.place(job, config):
                    break


POLICIES: tuple[Policy, Policy] = (ExpectedCost(), InPython())


def measure(
    nodes: Sequence[int] = (10, 100), repetitions: int = 7, scenario: str = "default", seeds: int = 5
) -> list[Figure]:
    """Time first rounds, four jobs a node at t = 0 on five GPU types, and the rounds of whole runs.

    Args:
        nodes: Numbers of nodes of the first rounds.
        repetitions: Repetitions of everything, the two in turn.
        scenario: Name of the scenario of the whole runs.
        seeds: Number of its workloads on which both must have the same schedule.

    Raises:
        RuntimeError: The schedules differ.
    """
    figures: list[Figure] = []
    for count in nodes:
        title = f"first round, {count} nodes, {4 * count} jobs"
        figures += _compared(title, partial(Round, burst(count, 4)), repetitions)
    instances = [make_instance(load_scenario(scenario), seed) for seed in range(seeds)]
    intervals = sum(_same_intervals(instance) for instance in instances)
    first = instances[0]
    title = f"a run of {scenario}, {len(first.nodes)} nodes, {len(first.jobs)} jobs: mean round"
    figures += _compared(title, partial(MeanRound, first), repetitions)
    note = f"the schedule of the compiled one, to the last bit, in {seeds} runs with {intervals:,} intervals"
    return [*figures[:-2], replace(figures[-2], note=note), figures[-1]]


@dataclass
class MeanRound:
    """A whole run that can be timed several times."""

    instance: Instance
    policy: Policy

    def __call__(self) -> float:
        """Run the policy; return its mean time for a round [ms]."""
        result = simulate(self.instance, self.policy, record=False)
        return 1000.0 * result.decision_s / result.rounds


def _compared(title: str, timed: Callable[[Policy], Callable[[], float]], repetitions: int) -> list[Figure]:
    compiled, in_python = interleaved({policy.name: timed(policy) for policy in POLICIES}, repetitions).values()
    return [
        Figure(f"{title}, compiled", compiled, "ms"),
        Figure(f"{title}, in Python", in_python, "ms"),
        Figure("  in Python / compiled", ratios(in_python, compiled), "times"),
    ]


def _same_intervals(instance: Instance) -> int:
    """Run both policies, and return the number of intervals.

    Raises:
        RuntimeError: The schedules differ.
    """
    compiled, in_python = (simulate(instance, policy) for policy in POLICIES)
    if not np.array_equal(compiled.log, in_python.log):
        raise RuntimeError(f"{instance.name}: the compiled policy and the same in Python have different schedules")
    return len(compiled.log)
