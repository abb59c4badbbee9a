"""Networks that set controls, as one vector of weights, which evolution strategies change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_agents.files.storage import weight_shapes
from gpusched_agents.policy import control_policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_agents.network.control_policy import ControlPolicy
    from gpusched_agents.spec import AgentSpec, NetworkConfig

INITIAL = 1  # stream of random numbers
FIXED = {"known", "radius"}  # arrays that are not weights


@dataclass(frozen=True, slots=True)
class EvolvedNetwork:
    """A network of the kind `controls` or `control-set`, as one vector of weights."""

    spec: AgentSpec
    network: NetworkConfig

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return weight_shapes(self.spec, self.network)

    def policy(self, weights: NDArray[np.floating]) -> ControlPolicy:
        return control_policy("agent", self.spec, self.network, self.arrays(weights), "es")

    def arrays(self, weights: NDArray[np.floating]) -> dict[str, NDArray[np.float32]]:
        arrays, begin = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            arrays[name] = weights[begin : begin + size].reshape(shape).astype(np.float32)
            begin += size
        return arrays

    def vector(self, arrays: Mapping[str, NDArray[np.floating]]) -> NDArray[np.floating]:
        """Concatenate the arrays of a network; the inverse of `arrays`."""
        return np.concatenate([arrays[name].ravel() for name in self.shapes])

    def first(self, seed: int) -> NDArray[np.float64]:
        """Return the weights of a network that changes nothing, (W,): only hidden layers are random, the rest 0."""
        rng, last = np.random.default_rng([seed, INITIAL]), f"{self.network.layers}.weight"
        arrays = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        for name, array in arrays.items():
            if name.endswith(".weight") and not name.endswith(last):
                arrays[name] = rng.normal(0.0, 1.0 / np.sqrt(array.shape[1]), array.shape)
        if "radius" in arrays:  # until contexts are known
            arrays["radius"][:] = 1.0
        return self.vector(arrays).astype(np.float64)

    def changes(self, only: str) -> NDArray[np.float64]:
        """Return 1 for every weight that may change, 0 for others, (W,); `only`: beginnings of names, with commas."""
        begins = tuple(only.split(","))
        free = {name: float(name.startswith(begins) and name not in FIXED) for name in self.shapes}
        changes = self.vector({name: np.full(shape, free[name]) for name, shape in self.shapes.items()})
        return changes.astype(np.float64)
