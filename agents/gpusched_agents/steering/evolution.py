"""Evolution strategies: weights that follow the differences of what they cost, changed at random both ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from gpusched_agents.steering.network import own_shapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_agents.training.algorithm_config import EsConfig

FIRST, SECOND, TINY = 0.9, 0.99, 1e-12  # decay of Adam's moments, and what keeps its step finite
CHANGES, INITIAL = 0, 1  # streams of random numbers


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
        """Begin at the weights of an agent, (W,)."""
        begin = weights.astype(np.float64)
        return cls(begin, begin.copy(), np.zeros_like(begin), np.zeros_like(begin))

    def candidates(self, config: EsConfig, seed: int, free: NDArray[np.float64]) -> NDArray[np.float32]:
        """Give the weights that this update tries, (2 pairs, W): changed one way and the other, in turn.

        Args:
            config: The settings.
            seed: Seed of the run.
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
            config: The settings.
            seed: Seed of the run.
            free: As of the candidates, (W,).
            differences: By how much the logarithm of the cost was larger with the change than with its opposite, for
                every pair on every one of its workloads, (pairs, workloads).
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


def first_weights(hidden: int, seed: int) -> NDArray[np.float64]:
    """Give the weights of a network that says nothing, (W,): only its hidden layer is drawn."""
    rng = np.random.default_rng([seed, INITIAL])
    arrays = {name: np.zeros(shape) for name, shape in own_shapes(hidden).items()}
    arrays["code.weight"] = rng.normal(0.0, 1.0 / np.sqrt(8.0), arrays["code.weight"].shape)
    return np.concatenate([array.ravel() for array in arrays.values()])
