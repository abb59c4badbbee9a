"""Evolution strategies: updates by the cost differences of random changes, and the processes that measure them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.workloads import TrainingPlace, instance_at, validation_instance, validation_places
from gpusched_env import simulate
from gpusched_env.child_processes import ProcessPool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpusched_agents.training.config import TrainingConfig
    from gpusched_agents.training.evolved import EvolvedNetwork
    from gpusched_env.simulator import Policy

FIRST, SECOND, TINY = 0.9, 0.99, 1e-12  # decay of Adam's moments, and its ε
CHANGES = 0  # stream of random numbers


@dataclass(slots=True)
class Evolution:
    """The state of a run of evolution strategies.

    Args:
        weights: The weights, (W,).
        average: Their moving average, (W,).
        mean: Adam's first moment of the gradient, (W,).
        square: Its second, (W,).
        updates: Updates so far.
    """

    weights: NDArray[np.float64]
    average: NDArray[np.float64]
    mean: NDArray[np.float64]
    square: NDArray[np.float64]
    updates: int = 0

    @classmethod
    def go_on(cls, weights: NDArray[np.floating]) -> Self:
        begin = weights.astype(np.float64)
        return cls(begin, begin.copy(), np.zeros_like(begin), np.zeros_like(begin))

    def candidates(self, config: EsConfig, seed: int, free: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the weights that this update tries, (2 pairs, W): each change and its opposite, in turn.

        Args:
            free: 1 for every weight that may change, 0 for the others, (W,).
        """
        changes = config.sigma * free * self._changes(config, seed)
        both = np.stack([self.weights + changes, self.weights - changes], axis=1)
        return both.reshape(-1, len(self.weights)).astype(np.float32)

    def update(
        self,
        config: EsConfig,
        seed: int,
        free: NDArray[np.float64],
        differences: NDArray[np.float64],
        done: float,
    ) -> None:
        """Take a step.

        Args:
            free: As for `candidates`, (W,).
            differences: Logarithm of the cost with the change less that with its opposite, for every pair on every one
                of its workloads, (pairs, workloads).
            done: Part of the run that is done, 0 to 1.
        """
        changes = free * self._changes(config, seed)
        difference = np.clip(differences, -config.clip, config.clip).mean(axis=1)
        gradient = (difference[:, None] * changes).mean(axis=0) / (2.0 * config.sigma)
        self.updates += 1
        self.mean = FIRST * self.mean + (1.0 - FIRST) * gradient
        self.square = SECOND * self.square + (1.0 - SECOND) * gradient**2
        mean, square = self.mean / (1.0 - FIRST**self.updates), self.square / (1.0 - SECOND**self.updates)
        rate = config.learning_rate + min(1.0, done) * (config.final_learning_rate - config.learning_rate)
        self.weights = self.weights - rate * mean / (np.sqrt(square) + TINY)
        kept = min(config.averaging, 1.0 - 1.0 / (1.0 + self.updates))
        self.average = kept * self.average + (1.0 - kept) * self.weights

    def _changes(self, config: EsConfig, seed: int) -> NDArray[np.float64]:
        rng = np.random.default_rng([seed, CHANGES, self.updates])
        return rng.normal(size=(config.pairs, len(self.weights)))


FREE = 1e-9  # least cost of a run [€], so that the ratio of two is finite


class Workers(ProcessPool):
    """Worker processes with the settings of a run; a context manager that ends them.

    Args:
        config: The settings of the run.
        network: The network that is trained.
        processes: Number of processes, ≥ 1; by default as many as there are processors.
    """

    def __init__(self, config: TrainingConfig, network: EvolvedNetwork, processes: int | None = None) -> None:
        super().__init__(processes)
        self._config, self._network = config, network

    def differences(
        self, candidates: NDArray[np.float32], where: Sequence[TrainingPlace], most_jobs: int
    ) -> tuple[NDArray[np.float64], int]:
        """Run every pair of candidates on workloads of its own.

        Args:
            candidates: Weights, (2 P, W): one pair after the other.
            where: The workloads, those of the first pair first, equally many for each.

        Returns:
            log(cost of a pair's first / cost of its second), (P, workloads of each), and the rounds of all runs.
        """
        pairs = np.repeat(candidates.reshape(-1, 2, candidates.shape[1]), 2 * len(where) // len(candidates), axis=0)
        calls = [(self._config, self._network, *call, most_jobs) for call in zip(pairs, where, strict=True)]
        answers = self.map(_difference, calls)
        differences = np.array([difference for difference, _ in answers]).reshape(len(candidates) // 2, -1)
        return differences, sum(rounds for _, rounds in answers)

    def validate(self, weights: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return costs and tardiness costs of an agent on the validation workloads [€], both (`validation_places`,)."""
        policy = self._network.policy(weights)
        calls = [(self._config, policy, place) for place in validation_places(self._config)]
        totals, tardiness = np.array(self.map(validate, calls)).T
        return totals, tardiness


def _difference(
    config: TrainingConfig, network: EvolvedNetwork, pair: NDArray[np.float32], place: TrainingPlace, most_jobs: int
) -> tuple[float, int]:
    instance = instance_at(config, place, most_jobs)
    one, other = (simulate(instance, network.policy(weights), record=False) for weights in pair)
    return float(np.log(max(one.total_eur, FREE) / max(other.total_eur, FREE))), one.rounds + other.rounds


def validate(config: TrainingConfig, policy: Policy, place: TrainingPlace) -> tuple[float, float]:
    """Run a policy on a validation workload; return its cost and tardiness cost [€]."""
    result = simulate(validation_instance(config, place), policy, record=False)
    return result.total_eur, result.tardiness_eur


def validation_costs(config: TrainingConfig, policy: Policy, first: int | None = None) -> NDArray[np.float64]:
    """Return the costs of a policy on the validation workloads [€], all (`validation_places`,) or the `first` ones."""
    return np.array([validate(config, policy, place)[0] for place in validation_places(config)[:first]])


def relative_cost(config: TrainingConfig, costs: NDArray[np.float64], base: NDArray[np.float64]) -> float:
    """Return the cost over another policy's, both [€] on the validation workloads, (`validation_places`,).

    It is the geometric mean over scenarios, each with the mean of its seeds, and over randomised workloads, each alone;
    the latter have the weight that they have in the training.
    """
    seeds = len(config.validation_seeds)
    listed = len(config.scenarios) * seeds
    costs, base = np.maximum(costs, FREE), np.maximum(base, FREE)
    means = [each[:listed].reshape(-1, seeds).mean(axis=1) for each in (costs, base)]
    log = np.log(means[0] / means[1]).mean()
    if len(costs) > listed and isinstance(config.agent, EsConfig):
        randomised = np.log(costs[listed:] / base[listed:]).mean()
        log += config.agent.randomised * (randomised - log)
    return float(np.exp(log))
