"""Processes that run candidates on workloads."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from gpusched_agents.steering.policy import SteeringPolicy
from gpusched_agents.training.worlds import instance_at
from gpusched_baselines import make_policy
from gpusched_env import make_instance, simulate
from gpusched_env.child_processes import deaf_children, end_with_parent
from gpusched_env.envs.vector.threads import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec
    from gpusched_agents.training.config import TrainingConfig
    from gpusched_agents.training.worlds import Place
    from gpusched_env.simulator import Policy

T = TypeVar("T")

FREE = 1e-9  # what a run costs at least [€], so that a ratio of two exists


class Workers:
    """Processes that know the settings of a run; a context, at whose end they are gone.

    Args:
        config: The settings of the run.
        spec: What its agent is trained for.
        processes: How many, ≥ 1; by default as many as there are processors.
    """

    def __init__(self, config: TrainingConfig, spec: AgentSpec, processes: int | None = None) -> None:
        self._config, self._spec = config, spec
        self._processes = usable_cores() if processes is None else processes

    def __enter__(self) -> Self:
        """Make the processes ready to start."""
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._processes, mp_context=context, initializer=end_with_parent)
        return self

    def __exit__(self, *error: object) -> None:
        """End them, whatever they are at."""
        children = list((self._pool._processes or {}).values())  # noqa: SLF001 - nobody waits for what they are at
        if error[0] is not None:
            for child in children:
                child.kill()
        self._pool.shutdown(cancel_futures=True)

    def costs(
        self, candidates: NDArray[np.float32], where: Sequence[Place], most_jobs: int
    ) -> tuple[NDArray[np.float64], int]:
        """Run every candidate on every workload.

        Args:
            candidates: Weights, (N, W), N even: each pair in one process, on the same instance.
            where: The workloads.
            most_jobs: Jobs of a workload at most.

        Returns:
            log(cost / STS-X's cost), (N, workloads), and the rounds of all runs together.
        """
        width = candidates.shape[1]
        pairs = candidates.reshape(-1, 2, width)
        split = np.array_split(pairs, min(len(pairs), max(2, self._processes)))
        parts = [part.reshape(-1, width) for part in split]
        calls = [(self._config, self._spec, part, place, most_jobs) for place in where for part in parts]
        answers = self._map(_log_costs, calls)
        each = [
            np.concatenate([logs for logs, _ in answers[k : k + len(parts)]]) for k in range(0, len(calls), len(parts))
        ]
        return np.stack(each, axis=1), sum(rounds for _, rounds in answers)

    def validate(self, weights: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give costs and tardiness costs of an agent on the validation workloads [€], both (scenarios, seeds)."""
        config = self._config
        policy = SteeringPolicy(spec=self._spec, weights=weights, hidden=config.network.hidden)
        answers = self._map(validate, [(config, policy, *each) for each in _validation(config)])
        both = np.array(answers).reshape(len(config.scenarios), len(config.validation_seeds), 2)
        return both[..., 0], both[..., 1]

    def _map(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
        """Make the calls of a function; give the answers in their order."""
        with deaf_children():
            futures = [self._pool.submit(function, *call) for call in calls]
        return [future.result() for future in futures]


def _log_costs(
    config: TrainingConfig, spec: AgentSpec, candidates: NDArray[np.float32], place: Place, most_jobs: int
) -> tuple[NDArray[np.float64], int]:
    instance = instance_at(config, place, most_jobs)
    base = simulate(instance, make_policy("sts-x"), record=False).total_eur
    runs = [
        simulate(instance, SteeringPolicy(spec=spec, weights=weights, hidden=config.network.hidden), record=False)
        for weights in candidates
    ]
    return np.log([max(run.total_eur, FREE) / max(base, FREE) for run in runs]), sum(run.rounds for run in runs)


def validate(config: TrainingConfig, policy: Policy, index: int, seed: int) -> tuple[float, float]:
    """Run a policy on a validation workload of one of the scenarios; give its cost and tardiness cost [€]."""
    scenario = config.loaded_scenario(index)
    result = simulate(make_instance(scenario, seed), policy, record=False)
    return result.total_eur, result.tardiness_eur


def validation_costs(config: TrainingConfig, policy: Policy) -> NDArray[np.float64]:
    """Give the costs of a policy on the validation workloads [€], (scenarios, seeds)."""
    costs = [validate(config, policy, *each)[0] for each in _validation(config)]
    return np.array(costs).reshape(len(config.scenarios), len(config.validation_seeds))


def _validation(config: TrainingConfig) -> list[tuple[int, int]]:
    return [(index, seed) for index in range(len(config.scenarios)) for seed in config.validation_seeds]
