"""Evaluate one policy: its costs on the instance of each seed, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpusched_agents.any_policy import make_any_policy
from gpusched_agents.files.own_code import check_policy, failure_of
from gpusched_env.envs.source import AnyScenario, Replay, Source, source_of
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import Policy, Result, check_fit, simulate
from gpusched_experiments.report.cell import each_once

Workload: TypeAlias = "AnyScenario | Instance | Callable[[int], Instance]"


@dataclass(frozen=True, slots=True, eq=False)
class PolicyEvaluation:
    """What a policy cost, and how its runs went: an array for each figure, shape (S,), in the order of the seeds.

    Attributes:
        policy: Name of the policy.
        seeds: The seeds, int64.
        energy_eur: Energy cost [€], float64, ≥ 0.
        tardiness_eur: Tardiness cost [€], float64, ≥ 0.
        late_jobs: Jobs that ended after their due date, int64, ≥ 0.
        mean_completion_s: Mean time from submission to completion [s], float64, > 0.
        switches: Changes of configuration or node after a job's first start, over all jobs, int64, ≥ 0.
        rounds: Decision rounds, int64, ≥ 1.
        decision_s: Seconds of wall clock that the policy took, float64, ≥ 0.
    """

    policy: str
    seeds: NDArray[np.int64]
    energy_eur: NDArray[np.float64]
    tardiness_eur: NDArray[np.float64]
    late_jobs: NDArray[np.int64]
    mean_completion_s: NDArray[np.float64]
    switches: NDArray[np.int64]
    rounds: NDArray[np.int64]
    decision_s: NDArray[np.float64]

    @property
    def total_eur(self) -> NDArray[np.float64]:
        """Return the total cost: energy + tardiness [€], float64 (S,)."""
        return self.energy_eur + self.tardiness_eur


def evaluate(
    policy: str | Policy,
    workload: Workload,
    seeds: int | Iterable[int] = 10,
    *,
    on_result: Callable[[Result], None] | None = None,
) -> PolicyEvaluation:
    """Run a policy on the instance of every seed, in this process; `compare` does the same with several policies.

    `evaluate("sts", "published-high", 10).total_eur.mean()` is the mean total cost [€]. The first run of a process
    compiles what is not on the disk; `decision_s` does not contain it if the policy ran before.

    Args:
        policy: A name (`edf`, `agent:default`) or a policy.
        workload: The name of a scenario or track, the path of a scenario file, a `Scenario`, an `Instance` for all
            seeds, or what returns the instance of a seed.
        seeds: The seeds, all different, ≥ 0, or n for 0 to n - 1; a seed decides the instance and the policy's own
            randomness.
        on_result: Called after every run with the whole result.

    Returns:
        The figures of every run, as arrays of shape (S,).

    Raises:
        InputError: There is no such policy or workload, no seed, one stands twice, or the policy cannot decide on an
            instance.
    """
    chosen, numbers = policy_of(policy), seeds_of(seeds)
    make = workload if callable(workload) else replayed_or_made(workload).make
    figures = [_run(chosen, make(seed), seed, on_result) for seed in numbers]
    columns = {name: np.array([each[name] for each in figures]) for name in figures[0]}
    return PolicyEvaluation(chosen.name, np.array(numbers, dtype=np.int64), **columns)


def policy_of(given: Any, field: str = "policy") -> Policy:
    """Return the policy of a name, or one that was given; raise InputError if it is neither."""
    return make_any_policy(given) if isinstance(given, str) else check_policy(field, given)


def seeds_of(given: int | Iterable[int]) -> tuple[int, ...]:
    """Return the seeds: those given, or 0 to n - 1; raise InputError if there is none, or one stands twice."""
    seeds = tuple(given) if isinstance(given, Iterable) else tuple(range(checks.whole("seeds", given)))
    each_once("seeds", [checks.whole(f"seeds[{i}]", seed, 0) for i, seed in enumerate(seeds)])
    return seeds


def replayed_or_made(workload: AnyScenario | Instance) -> Source:
    """Return what makes the instance of a seed; of an instance, itself."""
    return Replay(workload) if isinstance(workload, Instance) else source_of(workload, alike=lambda _: None)


def _run(
    policy: Policy, instance: Instance, seed: int, on_result: Callable[[Result], None] | None
) -> dict[str, float | int]:
    check_fit([policy], instance)
    try:
        result = simulate(instance, policy, seed=seed)
    except (Exception, SystemExit) as error:  # here: another process passes on no frames
        own = failure_of(error)
        if own is None:
            raise
        raise own from error
    if on_result is not None:
        on_result(result)
    return {
        "energy_eur": result.energy_eur,
        "tardiness_eur": result.tardiness_eur,
        "late_jobs": result.late_jobs,
        "mean_completion_s": result.mean_completion_s,
        "switches": int(result.switches.sum()),
        "rounds": result.rounds,
        "decision_s": result.decision_s,
    }
