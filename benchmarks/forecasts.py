"""Forecasts: 200 rollouts of a policy from a state with 400 jobs on 100 nodes, to the end of all."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.bursts import burst
from benchmarks.figure import Figure, at_most
from gpusched_agents.any_policy import make_any_policy
from gpusched_env.child_processes import usable_cores
from gpusched_env.simulator import State
from gpusched_env.simulator.policy import memory_columns
from gpusched_operations.forecast import Draws, RollOuts
from gpusched_operations.forecast.draws import stratified

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env import Instance

SAMPLES = 200
TARGET_S = 2.0
POLICIES = ("edf", "atc", "sts", "sts-x", "agent:default")


def measure(
    nodes: int = 100, jobs_per_node: int = 4, timed: int = 20, repetitions: int = 3, policies: Sequence[str] = POLICIES
) -> list[Figure]:
    """Time rollouts from the state in which all jobs wait.

    Args:
        nodes: Nodes of the cluster.
        jobs_per_node: Jobs, for each node.
        timed: Rollouts that are timed at once; the figures are those of `SAMPLES`.
        repetitions: How often.
        policies: The policies.
    """
    instance = burst(nodes, jobs_per_node)
    return [figure for name in policies for figure in _figures(instance, name, timed, repetitions)]


def _figures(instance: Instance, name: str, timed: int, repetitions: int) -> list[Figure]:
    policy = make_any_policy(name)
    state = State(instance, record=False, memory_columns=memory_columns(policy, instance))
    state.advance()
    runs = RollOuts(state, policy, np.random.default_rng(0), 0)
    runs.run_all(Draws.of(state, stratified(0, 1, len(instance.jobs))))  # compiles
    draws = Draws.of(state, stratified(0, timed, len(instance.jobs)))
    walls, used = [], []
    for _ in range(repetitions):
        begin, before = time.perf_counter(), time.process_time()
        runs.run_all(draws, threads=usable_cores())
        walls.append(SAMPLES / timed * (time.perf_counter() - begin))
        used.append(SAMPLES / timed * (time.process_time() - before))
    note = f"{SAMPLES} rollouts, from {timed} timed at once; {usable_cores()} cores"
    return [
        Figure(f"{name}, {SAMPLES} rollouts", tuple(walls), "s", at_most(TARGET_S), note),
        Figure(f"  {name}, processor time", tuple(used), "s"),
    ]
