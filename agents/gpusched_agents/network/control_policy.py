"""Networks that set the controls, as plain arrays: trained by Stable-Baselines3, used without torch."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Protocol, Self

import numpy as np

from gpusched_baselines.adaptation_env.controls import (
    SETS,
    Controls,
    adaptation_of,
    control_count,
    controls_of,
    forget_cheapest,
)
from gpusched_baselines.adaptation_env.features import feature_count, observe
from gpusched_baselines.sts_x import StsX
from gpusched_baselines.sts_x.type_prices import MOST_RECENT
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import FREE_COLUMNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_agents.spec import AgentSpec
    from gpusched_baselines.sts_x.plan import Adaptation
    from gpusched_env.arrays import Floats
    from gpusched_env.simulator.run import Board

ACTIVATIONS = ("tanh", "relu")
PARTS = ("weight", "bias")
SQUASHED = ("sac", "td3", "tqc")
"""Algorithms with tanh on their actions, and ReLU between their layers; the others have tanh between layers."""


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
        """Make the perceptron from the weights and biases of `arrays`.

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
        """How many controls it sets."""
        return int(self.layers[-1][0].shape[0])

    @property
    def state_size(self) -> int:
        """Return 0: there is no recurrent state."""
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
        """How many numbers it observes."""
        return int(self.inner.shape[1])

    @property
    def outputs(self) -> int:
        """How many controls it sets."""
        return self.head.outputs

    @property
    def state_size(self) -> int:
        """Return the size of its state: its output and its cells."""
        return 2 * self.head.inputs

    def act(self, observation: NDArray[np.float32], state: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the controls, (outputs,), from -1 to 1; see `Actor`."""
        width = self.head.inputs
        session = np.zeros(2 * width) if state is None else state
        given, cells = session.astype(np.float32).reshape(2, width)
        into, keep, new, out = (self.inner @ observation + self.outer @ given + self.bias).reshape(4, width)
        cells = _sigmoid(keep) * cells + _sigmoid(into) * np.tanh(new)
        given = _sigmoid(out) * np.tanh(cells)
        session[:] = np.concatenate([given, cells])
        return self.head.act(given)


def _sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    half = np.float32(0.5)
    return half + half * np.tanh(half * x)  # does not overflow


def control_set(inputs: int, outputs: int) -> str | None:
    """Return the set of controls of an actor of these sizes, `round` or `jobs`; None for other sizes."""
    types = (inputs - feature_count(0)) // (feature_count(1) - feature_count(0))
    fits = types > 0 and feature_count(types) == inputs
    return next((name for name in SETS if fits and control_count(types, name) == outputs), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControlPolicy(StsX):
    """STS-X with controls that an actor sets; it decides as in an episode of the adaptation environment.

    The controls are kept in the first row of the policy's memory and in those of active jobs, after STS-X's columns:
    the number of the round in which they were set, then the controls, then the state of the actor.

    Args:
        actor: The network that sets the controls.
        rounds: Number of rounds after which it sets them again, ≥ 1, as in its training.
        controls: The set of controls, `round` or `jobs`, as in its training.
        spec: What it was trained for, if that is known.

    Raises:
        InputError: A value is not allowed.
    """

    actor: Actor
    rounds: int = 16
    controls: str = "round"
    spec: AgentSpec | None = None
    jobs_over: ClassVar[int] = MOST_RECENT

    def __post_init__(self) -> None:
        StsX.__post_init__(self)
        checks.whole("rounds", self.rounds)
        control_count(1, self.controls)

    def check(self, instance: Instance) -> None:
        """Check that the actor fits an instance.

        Raises:
            InputError: It was trained for another number of GPU types, or, where that is known, for other kinds of
                configurations.
        """
        if self.spec is not None:
            self.spec.check(instance.configurations, instance.gpu_types)
        types = len(instance.gpu_types)
        needed = feature_count(types), control_count(types, self.controls)
        if (self.actor.inputs, self.actor.outputs) != needed:
            allowed = f"as many as the agent was trained with: it has {self.actor.outputs} controls, not {needed[1]}"
            raise InputError("instance.gpu_types", f"{types} of them", allowed)

    def memory_columns(self, instance: Instance) -> int:
        """Return the columns of memory that it needs."""
        types = len(instance.gpu_types)
        return FREE_COLUMNS + 3 * types + 1 + control_count(types, self.controls) + self.actor.state_size

    def _plan(self, view: View) -> None:
        super(ControlPolicy, self)._plan(view)  # a class with slots has no plain super()
        board = view.board
        if self._present(board).priced:  # as in the environment: the cheapest configuration may differ next time
            forget_cheapest(board)

    def _adaptation(self, board: Board, rate: Floats) -> Adaptation:
        stored = self._stored(board)
        round_ = int(board.count[at.ROUND])
        if not self._holds(stored[0, 0], round_):
            stored[0] = stored[stored[:, 0].argmax()]  # another row, in a run that goes on with other jobs (service)
        if not self._holds(stored[0, 0], round_):
            seen = np.zeros(feature_count(board.capacity.shape[0]))
            observe(board, rate, seen)
            last = 1 + self.actor.outputs
            stored[0, 0], stored[0, 1:last] = round_, self.actor.act(seen.astype(np.float32), stored[0, last:])
        stored[board.active[: board.count[at.ACTIVE]]] = stored[0]
        return adaptation_of(self._present(board), board, rate)

    def _holds(self, since: float, round_: int) -> bool:
        """Return whether controls set in one round, 0 for none, hold in another."""
        return since > 0.0 and (since - 1) // self.rounds == (round_ - 1) // self.rounds

    def _stored(self, board: Board) -> Floats:
        """Return the columns of the controls, (J, 1 + K + S): their round, the controls, the actor's state."""
        return board.memory[:, FREE_COLUMNS + 3 * board.capacity.shape[0] :]

    def _present(self, board: Board) -> Controls:
        return controls_of(
            self._stored(board)[0, 1 : 1 + self.actor.outputs], board.facts.configs, board.capacity.shape[0]
        )
