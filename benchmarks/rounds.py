"""Decision rounds: the time of a policy for one, and its growth with the number of jobs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bursts import burst, hardest_burst, tight_share
from benchmarks.figure import Figure, at_most, interleaved, ratios
from gpusched_baselines import make_policy
from gpusched_env import simulate
from gpusched_env.simulator import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from gpusched_env import Instance, Policy, View

JOBS_PER_NODE = (1, 2, 4)
STS_TARGET_MS, RANDOM_GREEDY_TARGET_MS = 60.0, 1000.0
OTHERS = ("fifo", "edf", "priority", "greedy")


def measure(nodes: Sequence[int] = (25, 50, 100), repetitions: int = 7, constructions: int = 1000) -> list[Figure]:
    """Time rounds of all policies on bursts of jobs at t = 0, on five GPU types.

    Args:
        nodes: Numbers of nodes; each with 1, 2 and 4 jobs a node. The targets hold for the last, with 4 jobs a node.
        repetitions: Repetitions of every round, each on a fresh state.
        constructions: Constructions of Random Greedy.
    """
    figures = [figure for count in nodes for figure in _sts_rounds(count, nodes[-1], repetitions)]
    largest = burst(nodes[-1], JOBS_PER_NODE[-1])
    hardest = hardest_burst(nodes[-1], JOBS_PER_NODE[-1])
    return [
        *figures,
        *_sts_hardest_round(hardest, largest, repetitions),
        *_sts_whole_run("burst", largest),
        *_sts_whole_run("hardest", hardest),
        *_other_policies(largest, repetitions, constructions),
    ]


def _sts_rounds(nodes: int, most_nodes: int, repetitions: int) -> list[Figure]:
    instances = [burst(nodes, each) for each in JOBS_PER_NODE]
    sts = make_policy("sts")
    times = interleaved({str(len(i.jobs)): Round(i, sts) for i in instances}, repetitions)
    figures = []
    for instance, measured in zip(instances, times.values(), strict=True):
        jobs = len(instance.jobs)
        target = at_most(STS_TARGET_MS) if (nodes, jobs) == (most_nodes, JOBS_PER_NODE[-1] * most_nodes) else None
        figures.append(Figure(f"sts, {nodes} nodes, {jobs} jobs, no plan yet", measured, "ms", target))
    for fewer, more in zip(list(times)[:-1], list(times)[1:], strict=True):
        name = f"  {nodes} nodes: {more} jobs / {fewer} jobs (linear: 2)"
        figures.append(Figure(name, ratios(times[more], times[fewer]), "times"))
    return figures


def _other_policies(instance: Instance, repetitions: int, constructions: int) -> list[Figure]:
    from_name = {name: Round(instance, make_policy(name)) for name in (*OTHERS, "random-greedy")}
    times = interleaved(from_name, repetitions)
    size = f"{len(instance.nodes)} nodes, {len(instance.jobs)} jobs"
    figures = [Figure(f"{name}, {size}", times[name], "ms") for name in OTHERS]
    name = f"random-greedy, {size}, {constructions:,} constructions"
    return [*figures, Figure(name, times["random-greedy"], "ms", at_most(RANDOM_GREEDY_TARGET_MS))]


def _sts_hardest_round(instance: Instance, ordinary: Instance, repetitions: int) -> list[Figure]:
    times = interleaved({"sts": Round(instance, make_policy("sts"))}, repetitions)["sts"]
    name = f"sts, {len(instance.nodes)} nodes, {len(instance.jobs)} jobs, hardest"
    shares = (100.0 * tight_share(each) for each in (instance, ordinary))
    note = "{:.0f} % of the single-job problems are tight (in the ordinary burst {:.0f} %)".format(*shares)
    return [Figure(name, times, "ms", at_most(STS_TARGET_MS), note)]


def _sts_whole_run(title: str, instance: Instance) -> list[Figure]:
    timed = TimedPolicy(make_policy("sts"))
    simulate(instance, timed, record=False)
    later = tuple(1000.0 * seconds for seconds in timed.seconds[1:])
    return [Figure(f"sts, {title}: each of the {len(later)} rounds after the first", later, "ms")] if later else []


@dataclass
class Round:
    """The first round of an instance, which can be timed several times."""

    instance: Instance
    policy: Policy

    def __call__(self) -> float:
        """Time the first round on a fresh state [ms]."""
        state = State(self.instance, record=False)
        state.advance()
        state.begin_round(self.policy.preemption)
        rng = np.random.default_rng(0)
        begin = time.perf_counter()
        self.policy.decide(state.view, rng)
        return 1000.0 * (time.perf_counter() - begin)


@dataclass
class TimedPolicy:
    """A policy that records the time of each of its rounds.

    Args:
        policy: The policy to time.
        seconds: One entry a round [s].
    """

    policy: Policy
    seconds: list[float] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name of the policy."""
        return self.policy.name

    @property
    def preemption(self) -> bool:
        """Return whether a round begins from an empty cluster."""
        return self.policy.preemption

    def decide(self, view: View, rng: Generator) -> None:
        """Decide by the policy, and record the time."""
        begin = time.perf_counter()
        self.policy.decide(view, rng)
        self.seconds.append(time.perf_counter() - begin)
