"""Perceptrons that set the knobs, as plain arrays: what algorithms of Stable-Baselines3 learn, run without torch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

ACTIVATIONS = ("tanh", "relu")
PARTS = ("weight", "bias")
SQUASHED = ("sac", "td3", "tqc")
"""Algorithms that put tanh on their actions, and ReLU between their layers; the others have tanh there."""


class Actor(Protocol):
    """Sets the knobs by an observation of the steering environment."""

    @property
    def inputs(self) -> int:
        """How many numbers it observes."""

    @property
    def outputs(self) -> int:
        """How many knobs it sets."""

    def act(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the knobs, (outputs,), from -1 to 1, for an observation, (inputs,)."""


@dataclass(frozen=True, slots=True, eq=False)
class MlpActor:
    """A perceptron.

    Args:
        layers: Weights (outputs, inputs) and biases (outputs,) of every layer, the last one's among them.
        activation: Between layers: `tanh` or `relu`.
        squash: Whether the last layer's outputs go through tanh; else they are clipped.

    Raises:
        InputError: A layer does not fit the one before it, or the activation is another one.
    """

    layers: tuple[tuple[NDArray[np.float32], NDArray[np.float32]], ...]
    activation: str = "tanh"
    squash: bool = False

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise InputError("activation", self.activation, " or ".join(ACTIVATIONS))
        sizes = [np.shape(weight) for weight, _ in self.layers]
        fit = bool(sizes) and all(len(size) == 2 for size in sizes)
        fit = fit and all(np.shape(bias) == size[:1] for (_, bias), size in zip(self.layers, sizes, strict=True))
        if not fit or any(after[1] != before[0] for before, after in pairwise(sizes)):
            raise InputError("layers", sizes, "matrices (outputs, inputs), each with a bias, that fit one another")

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.float32]], activation: str, *, squash: bool) -> Self:
        """Make the perceptron whose weights and biases `arrays` gave.

        Raises:
            InputError: They do not fit one another.
        """
        layers = [(arrays[f"{i}.weight"], arrays[f"{i}.bias"]) for i in range(len(arrays) // 2)]
        return cls(tuple(layers), activation, squash)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return weights and biases by name, `0.weight` and `0.bias` of the first layer."""
        return {f"{i}.{name}": layer[k] for i, layer in enumerate(self.layers) for k, name in enumerate(PARTS)}

    @property
    def inputs(self) -> int:
        """How many numbers it observes."""
        return int(self.layers[0][0].shape[1])

    @property
    def outputs(self) -> int:
        """How many knobs it sets."""
        return int(self.layers[-1][0].shape[0])

    def act(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the knobs, (outputs,), from -1 to 1, for an observation, (inputs,)."""
        scores = self.score(observation)
        return (np.tanh(scores) if self.squash else np.clip(scores, -1.0, 1.0)).astype(np.float64)

    def score(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what the last layer gives, (outputs,), for an observation, (inputs,)."""
        x = observation
        for index, (weight, bias) in enumerate(self.layers):
            x = weight @ x + bias
            if index < len(self.layers) - 1:
                x = np.tanh(x) if self.activation == "tanh" else np.maximum(x, np.float32(0.0))
        return x
