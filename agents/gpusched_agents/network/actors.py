"""Networks that set the controls, as plain arrays: trained by Stable-Baselines3, used without torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

ACTIVATIONS = ("tanh", "relu")
PARTS = ("weight", "bias")
RIDGE = 1e-3  # penalty of `fit_layer`, beside 1 for each run


class Actor(Protocol):
    """A network that sets the controls from an observation of the adaptation environment."""

    @property
    def inputs(self) -> int:
        """How many numbers it observes."""

    @property
    def outputs(self) -> int:
        """How many controls it sets."""

    @property
    def state_size(self) -> int:
        """Return the size of its recurrent state."""

    def for_types(self, gpu_types: Sequence[str]) -> Actor:
        """Return the actor for a cluster with these GPU types, in their order."""

    def act(self, observation: NDArray[np.float32], state: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the controls, (outputs,), from -1 to 1.

        Args:
            observation: The observation, (inputs,).
            state: The recurrent state, (state_size,), 0 at the beginning of a run; written. None: the beginning.
        """


@dataclass(frozen=True, slots=True, eq=False)
class MlpActor:
    """A perceptron.

    Args:
        layers: Weights (outputs, inputs) and biases (outputs,) of every layer, also of the last one.
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
        count = sum(name.endswith(".weight") and name[0].isdigit() for name in arrays)
        layers = [(arrays[f"{i}.weight"], arrays[f"{i}.bias"]) for i in range(count)]
        return cls(tuple(layers), activation, squash)

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return weights and biases by name, `0.weight` and `0.bias` of the first layer."""
        return {f"{i}.{name}": layer[k] for i, layer in enumerate(self.layers) for k, name in enumerate(PARTS)}

    @property
    def last(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self.layers[-1]

    def for_types(self, gpu_types: Sequence[str]) -> MlpActor:  # noqa: ARG002 - its numbers are fixed
        return self

    def fitted(self, seen: Sequence[NDArray[np.float32]], wanted: Sequence[NDArray[np.float64]]) -> MlpActor:
        """Return it with the last layer that fits best; see `fit_layer`.

        Args:
            seen: The observations of each run, (steps, inputs).
            wanted: What it should return in each run, (outputs,), from -1 to 1.
        """
        targets = [np.arctanh(np.clip(each, -0.95, 0.95)) if self.squash else each for each in wanted]
        last = fit_layer([self.hidden(rows) for rows in seen], targets)
        return replace(self, layers=(*self.layers[:-1], last))

    @property
    def inputs(self) -> int:
        return int(self.layers[0][0].shape[1])

    @property
    def outputs(self) -> int:
        return int(self.layers[-1][0].shape[0])

    @property
    def state_size(self) -> int:
        return 0

    def act(
        self,
        observation: NDArray[np.float32],
        state: NDArray[np.float64] | None = None,  # noqa: ARG002 - it has none
    ) -> NDArray[np.float64]:
        """Return the controls, (outputs,), from -1 to 1, for an observation, (inputs,)."""
        scores = self.score(observation)
        return (np.tanh(scores) if self.squash else np.clip(scores, -1.0, 1.0)).astype(np.float64)

    def score(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the outputs of the last layer, (outputs,), for an observation, (inputs,)."""
        weight, bias = self.layers[-1]
        scores: NDArray[np.float32] = weight @ self.hidden(observation) + bias
        return scores

    def hidden(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inputs of the last layer, (H,), for an observation, (inputs,); or (B, H) for (B, inputs)."""
        x = observation
        for weight, bias in self.layers[:-1]:
            x = (weight @ x if x.ndim == 1 else x @ weight.T) + bias
            x = np.tanh(x) if self.activation == "tanh" else np.maximum(x, np.float32(0.0))
        return x


@dataclass(frozen=True, slots=True, eq=False)
class LstmActor:
    """An LSTM of one layer (Hochreiter and Schmidhuber, 1997), and a perceptron on its output.

    Args:
        inner: Weights on the observation, of the four gates in PyTorch's order, (4 H, inputs).
        outer: Weights on its output in the previous step, (4 H, H).
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
            raise InputError("lstm", shapes, f"arrays of an LSTM of {width} numbers, the inputs of the head")

    @property
    def inputs(self) -> int:
        return int(self.inner.shape[1])

    @property
    def outputs(self) -> int:
        return self.head.outputs

    @property
    def state_size(self) -> int:
        return 2 * self.head.inputs

    def for_types(self, gpu_types: Sequence[str]) -> LstmActor:  # noqa: ARG002 - its numbers are fixed
        return self

    def act(self, observation: NDArray[np.float32], state: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        width = self.head.inputs
        session = np.zeros(2 * width) if state is None else state
        given, cells = session.astype(np.float32).reshape(2, width)
        into, keep, new, out = (self.inner @ observation + self.outer @ given + self.bias).reshape(4, width)
        cells = _sigmoid(keep) * cells + _sigmoid(into) * np.tanh(new)
        given = _sigmoid(out) * np.tanh(cells)
        session[:] = np.concatenate([given, cells])
        return self.head.act(given)


@dataclass(frozen=True, slots=True, eq=False)
class JobSetActor:
    """A network on the rows of single jobs (`job_features`), and a perceptron on its output and the other numbers.

    Each row has a code, tanh of a linear layer; the codes are averaged with the softmax of a linear score as weights
    (attention pooling: Ilse, Tomczak and Welling, ICML 2018). Rows without a job have no weight; without any the
    average is 0. So the order of the rows does not matter.

    Args:
        code: Weights (H, R) and biases (H,) of the codes of rows of R numbers, the last of which is 1 where a job is.
        score: Weights of the scores, (H,).
        rows: Number of rows, K, the last numbers of an observation.
        head: The perceptron, on the other numbers and then the average.

    Raises:
        InputError: The arrays do not fit one another.
    """

    code: tuple[NDArray[np.float32], NDArray[np.float32]]
    score: NDArray[np.float32]
    rows: int
    head: MlpActor

    def __post_init__(self) -> None:
        shapes = [np.shape(array) for array in (*self.code, self.score)]
        width = len(self.score)
        fit = len(shapes[0]) == 2 and shapes == [(width, shapes[0][1]), (width,), (width,)]
        if not fit or self.head.inputs <= width or self.rows < 1:
            raise InputError("code", shapes, "arrays for rows of jobs, and a head on more than their codes")

    @property
    def inputs(self) -> int:
        return self.head.inputs - len(self.score) + self.rows * int(self.code[0].shape[1])

    @property
    def outputs(self) -> int:
        return self.head.outputs

    @property
    def state_size(self) -> int:
        return 0

    def act(
        self,
        observation: NDArray[np.float32],
        state: NDArray[np.float64] | None = None,  # noqa: ARG002 - it has none
    ) -> NDArray[np.float64]:
        return self.head.act(self._with_average(observation))

    def hidden(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the inputs of the last layer, (H,), for an observation, (inputs,); or (B, H) for (B, inputs)."""
        return self.head.hidden(self._with_average(observation))

    def for_types(self, gpu_types: Sequence[str]) -> JobSetActor:  # noqa: ARG002 - its numbers are fixed
        return self

    def fitted(self, seen: Sequence[NDArray[np.float32]], wanted: Sequence[NDArray[np.float64]]) -> JobSetActor:
        return replace(self, head=self.head.fitted([self._with_average(rows) for rows in seen], wanted))

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return the arrays by name: those of the perceptron, and `code.weight`, `code.bias` and `code.score`."""
        return self.head.arrays() | {"code.weight": self.code[0], "code.bias": self.code[1], "code.score": self.score}

    @property
    def last(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self.head.last

    def _with_average(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        row = self.code[0].shape[1]
        size = row * self.rows
        rows = observation[..., -size:].reshape(*observation.shape[:-1], self.rows, row)
        codes = np.tanh(rows @ self.code[0].T + self.code[1])
        scores = np.where(rows[..., -1] > 0.0, codes @ self.score, np.float32(-np.inf))
        top = np.maximum(scores.max(axis=-1, keepdims=True), np.float32(-1e30))
        weights = np.exp(scores - top)
        weights /= np.maximum(weights.sum(axis=-1, keepdims=True), np.float32(1e-30))
        return np.concatenate([observation[..., :-size], (weights[..., None] * codes).sum(axis=-2)], axis=-1)


def fit_layer(
    seen: Sequence[NDArray[np.float32]], wanted: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the weights (K, H) and biases (K,) of the linear layer that fits best, by ridge regression.

    Args:
        seen: Inputs of the layer in each run, (rows, H). Each run counts the same.
        wanted: The outputs in each run: (K,) for all its rows, or (rows, K).
    """
    rows = np.concatenate(seen).astype(np.float64)
    weight = np.concatenate([np.full(len(each), 1.0 / len(each)) for each in seen])
    pairs = zip(seen, wanted, strict=True)
    targets = np.concatenate([np.broadcast_to(said, (len(each), said.shape[-1])) for each, said in pairs])
    inputs = np.column_stack([rows, np.ones(len(rows))])
    weighted = inputs.T * weight
    solved = np.linalg.solve(weighted @ inputs + RIDGE * np.eye(inputs.shape[1]), weighted @ targets)
    return solved[:-1].T.astype(np.float32), solved[-1].astype(np.float32)


def _sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    half = np.float32(0.5)
    return half + half * np.tanh(half * x)  # does not overflow


ControlActor: TypeAlias = MlpActor | JobSetActor
"""An actor of one number of GPU types, without a recurrent state."""
