"""Networks that set the knobs, as plain arrays: what algorithms of Stable-Baselines3 learn, run without torch."""

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

    @property
    def state_size(self) -> int:
        """How many numbers it carries from one step to the next."""

    def act(self, observation: NDArray[np.float32], state: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the knobs, (outputs,), from -1 to 1.

        Args:
            observation: What it observes, (inputs,).
            state: What it carries on, (state_size,), 0 at the beginning of a run; written. None: the beginning.
        """


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

    @property
    def state_size(self) -> int:
        """It carries nothing on."""
        return 0

    def act(
        self,
        observation: NDArray[np.float32],
        state: NDArray[np.float64] | None = None,  # noqa: ARG002 - it has none
    ) -> NDArray[np.float64]:
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


@dataclass(frozen=True, slots=True, eq=False)
class LstmActor:
    """An LSTM of one layer (Hochreiter and Schmidhuber, 1997), and a perceptron on what it gives.

    Args:
        inner: Weights on the observation, of the four gates in PyTorch's order, (4 H, inputs).
        outer: Weights on what it gave in the step before, (4 H, H).
        bias: The sum of both biases, (4 H,).
        head: The perceptron, on H numbers.

    Raises:
        InputError: The arrays do not fit one another.
    """

    inner: NDArray[np.float32]
    outer: NDArray[np.float32]
    bias: NDArray[np.float32]
    head: MlpActor

    def __post_init__(self) -> None:
        width = self.head.inputs
        shapes = [np.shape(array) for array in (self.inner, self.outer, self.bias)]
        if shapes != [(4 * width, *shapes[0][1:2]), (4 * width, width), (4 * width,)]:
            raise InputError("lstm", shapes, f"arrays of an LSTM of {width} numbers, on which the head is")

    @property
    def inputs(self) -> int:
        """How many numbers it observes."""
        return int(self.inner.shape[1])

    @property
    def outputs(self) -> int:
        """How many knobs it sets."""
        return self.head.outputs

    @property
    def state_size(self) -> int:
        """How many numbers it carries on: what it gave, and its cells."""
        return 2 * self.head.inputs

    def act(self, observation: NDArray[np.float32], state: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the knobs, (outputs,), from -1 to 1; see `Actor`."""
        width = self.head.inputs
        carried = np.zeros(2 * width) if state is None else state
        given, cells = carried.astype(np.float32).reshape(2, width)
        into, keep, new, out = (self.inner @ observation + self.outer @ given + self.bias).reshape(4, width)
        cells = _sigmoid(keep) * cells + _sigmoid(into) * np.tanh(new)
        given = _sigmoid(out) * np.tanh(cells)
        carried[:] = np.concatenate([given, cells])
        return self.head.act(given)


def _sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    half = np.float32(0.5)
    return half + half * np.tanh(half * x)  # which no number is too large for
