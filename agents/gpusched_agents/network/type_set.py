"""The network that sets controls for any GPU types: the same weights for each of them; far from its training, none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpusched_agents.network.actors import MlpActor, fit_layer
from gpusched_baselines.adaptation_env.features import TYPES
from gpusched_baselines.adaptation_env.observation import WHOLE
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

CONTEXT = WHOLE + 2 * TYPES
"""Numbers of the context: those of an observation that belong to no GPU type, and mean and largest of the others."""
WHOLE_TO = 0.9  # of the largest distance in a training: from there on controls fade
PRICES = 2  # that are set for each GPU type: for critical and for deferrable jobs


@dataclass(frozen=True, slots=True, eq=False)
class TypeSetActor:
    """A network with the same weights for every GPU type (Deep Sets: Zaheer et al., 2017), so it fits any number.

    The context is the part of an observation that belongs to no GPU type, with the mean and the largest of each feature
    of GPU types. One perceptron sets the prices of a GPU type from its features, the context, and 1 at its name;
    another one sets the other controls from the context.

    Controls fade where the context is far from those of the training: they are multiplied by (1 - d / r) / 0.1, between
    0 and 1. d is the root mean square difference to the nearest of the known contexts, r is the largest d in the
    training.

    Args:
        price: The perceptron of a GPU type: `TYPES` features, the context and a number for each of `names`; 2 outputs.
        common: The perceptron of the other controls.
        names: GPU types of the training.
        known: Known contexts, (M, CONTEXT); M = 0: controls do not fade.
        radius: r, > 0.
        gpu_types: GPU types of the present cluster, in their order.

    Raises:
        InputError: The arrays do not fit one another.
    """

    price: MlpActor
    common: MlpActor
    names: tuple[str, ...]
    known: NDArray[np.float32]
    radius: float = 1.0
    gpu_types: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = (self.price.inputs, self.price.outputs, self.common.inputs, np.shape(self.known)[1:])
        needed = (TYPES + CONTEXT + len(self.names), PRICES, CONTEXT, (CONTEXT,))
        if sizes != needed or not self.radius > 0.0:
            raise InputError("price", sizes, f"arrays for {CONTEXT} numbers of context and {len(self.names)} GPU types")

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[np.float32]], names: Sequence[str]) -> TypeSetActor:
        price, common = (MlpActor.of(_part(arrays, head), "tanh", squash=False) for head in ("price.", "common."))
        known = arrays.get("known", np.zeros((0, CONTEXT), np.float32))
        return cls(price, common, tuple(names), known, float(arrays.get("radius", np.ones(1))[0]))

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return the arrays by name: those of both perceptrons after `price.` and `common.`, `known` and `radius`."""
        heads = (("price.", self.price), ("common.", self.common))
        arrays = {head + name: array for head, actor in heads for name, array in actor.arrays().items()}
        fade = {"known": self.known, "radius": np.array([self.radius], np.float32)}
        return arrays | (fade if len(self.known) else {})

    def for_types(self, gpu_types: Sequence[str]) -> TypeSetActor:
        return self if self.gpu_types == tuple(gpu_types) else replace(self, gpu_types=tuple(gpu_types))

    @property
    def inputs(self) -> int:
        return WHOLE + TYPES * len(self.gpu_types)

    @property
    def outputs(self) -> int:
        return PRICES * len(self.gpu_types) + self.common.outputs

    @property
    def state_size(self) -> int:
        return 0

    def act(
        self,
        observation: NDArray[np.float32],
        state: NDArray[np.float64] | None = None,  # noqa: ARG002 - it has none
    ) -> NDArray[np.float64]:
        context, types = self._inputs(observation[None])
        prices = np.clip(np.stack([self.price.score(row) for row in types[0]], axis=1), -1.0, 1.0)
        said = np.concatenate([prices.ravel().astype(np.float64), self.common.act(context[0])])
        return said * self.fade(context[0])

    def fade(self, context: NDArray[np.float32]) -> float:
        """Return the factor on all controls in a context, (CONTEXT,), from 0 to 1."""
        if not len(self.known):
            return 1.0
        away = float(_distance(context, self.known).min()) / self.radius
        return float(np.clip((1.0 - away) / (1.0 - WHOLE_TO), 0.0, 1.0))

    def fitted(
        self,
        seen: Sequence[NDArray[np.float32]],
        wanted: Sequence[NDArray[np.float64]],
        gpu_types: Sequence[Sequence[str]],
    ) -> TypeSetActor:
        """Return it with the last layers that fit best (`fit_layer`), and the contexts of these observations as known.

        Args:
            seen: The observations of each run, (steps, inputs).
            wanted: What it should return in each run, (outputs,), from -1 to 1.
        """
        contexts, types, prices, others = [], [], [], []
        for rows, said, names in zip(seen, wanted, gpu_types, strict=True):
            context, of_types = self.for_types(names)._inputs(rows)  # noqa: SLF001 - its own
            contexts.append(context)
            types.append(self.price.hidden(of_types.reshape(-1, of_types.shape[-1])))
            prices.append(np.tile(said[: PRICES * len(names)].reshape(PRICES, -1).T, (len(rows), 1)))
            others.append(said[PRICES * len(names) :])
        price = replace(self.price, layers=(*self.price.layers[:-1], fit_layer(types, prices)))
        known, radius = choose_known(np.concatenate(contexts), len(self.known))
        return replace(self, price=price, common=self.common.fitted(contexts, others), known=known, radius=radius)

    def _inputs(self, observations: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the contexts, (B, CONTEXT), and the inputs of all GPU types, (B, V, inputs), of observations."""
        count, size = len(observations), len(self.gpu_types)
        types = observations[:, WHOLE : WHOLE + TYPES * size].reshape(count, size, TYPES)
        context = np.concatenate([observations[:, :WHOLE], types.mean(axis=1), types.max(axis=1)], axis=1)
        named = np.array([[name == each for each in self.names] for name in self.gpu_types], np.float32)
        alike = np.broadcast_to(context[:, None], (count, size, CONTEXT))
        return context, np.concatenate([types, alike, np.broadcast_to(named, (count, *named.shape))], axis=2)


def choose_known(contexts: NDArray[np.float32], count: int) -> tuple[NDArray[np.float32], float]:
    """Return contexts that cover all others, each far from those before it (Gonzalez, 1985), and the largest distance.

    Args:
        contexts: All contexts, (N, CONTEXT).
        count: How many are chosen, M ≥ 0; 0: none.

    Returns:
        (M, CONTEXT), some several times if N is less; and the largest distance of a context to the nearest of them, at
        least 1e-3.
    """
    if not count:
        return contexts[:0], 1.0
    chosen, away = [0], _distance(contexts[0], contexts)
    while len(chosen) < count:
        chosen.append(int(away.argmax()))
        away = np.minimum(away, _distance(contexts[chosen[-1]], contexts))
    return contexts[chosen], max(1e-3, float(away.max()))


def _distance(context: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the root mean square difference of a context to others, (M,)."""
    away: NDArray[np.float64] = np.sqrt(((others - context).astype(np.float64) ** 2).mean(axis=1))
    return away


def _part(arrays: Mapping[str, NDArray[np.float32]], head: str) -> dict[str, NDArray[np.float32]]:
    return {name.removeprefix(head): array for name, array in arrays.items() if name.startswith(head)}
