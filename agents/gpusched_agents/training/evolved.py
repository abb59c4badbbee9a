"""Networks of agents that adapt STS-X, as one vector of weights, which evolution strategies change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_agents.files.storage import weight_shapes
from gpusched_agents.network.adaptation import AdaptationPolicy, join_arrays, seen_weights, split_weights
from gpusched_agents.policy import control_policy
from gpusched_agents.spec import SETS_CONTROLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_agents.network.control_policy import ControlPolicy
    from gpusched_agents.spec import AgentSpec, NetworkConfig

INITIAL = 1  # stream of random numbers
FIXED = {"known", "radius"}  # arrays that are not weights


@dataclass(frozen=True, slots=True)
class EvolvedNetwork:
    """A network of the kind `adaptation` or `controls`, as one vector of weights.

    Args:
        spec: What it is trained for.
        network: Its settings.
    """

    spec: AgentSpec
    network: NetworkConfig

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of its arrays by name, in the order in which the vector has them."""
        return weight_shapes(self.spec, self.network)

    def policy(self, weights: NDArray[np.floating]) -> AdaptationPolicy | ControlPolicy:
        """Return the policy with these weights, (W,)."""
        if self.network.kind in SETS_CONTROLS:
            return control_policy("agent", self.spec, self.network, self.arrays(weights), "es")
        hidden = self.network.hidden
        return AdaptationPolicy(spec=self.spec, weights=weights.astype(np.float32), hidden=hidden)

    def arrays(self, weights: NDArray[np.floating]) -> dict[str, NDArray[np.float32]]:
        """Return the arrays of the network by name."""
        return split_weights(weights, self.shapes)

    def vector(self, arrays: Mapping[str, NDArray[np.floating]]) -> NDArray[np.floating]:
        """Concatenate the arrays of a network; the inverse of `arrays`."""
        return join_arrays(arrays, self.shapes)

    def first(self, seed: int) -> NDArray[np.float64]:
        """Return the weights of a network that changes nothing, (W,): only hidden layers are random, the rest 0."""
        rng, last = np.random.default_rng([seed, INITIAL]), f"{self.network.layers}.weight"
        arrays = {name: np.zeros(shape) for name, shape in self.shapes.items()}
        for name, array in arrays.items():
            hidden = self.network.kind in SETS_CONTROLS and name.endswith(".weight") and not name.endswith(last)
            if hidden or name == "code.weight":
                inputs = array.shape[1] if hidden else 8.0
                arrays[name] = rng.normal(0.0, 1.0 / np.sqrt(inputs), array.shape)
        if "radius" in arrays:  # until contexts are known
            arrays["radius"][:] = 1.0
        return self.vector(arrays).astype(np.float64)

    def changes(self, only: str) -> NDArray[np.float64]:
        """Return 1 for every weight that may change, 0 for the others, (W,).

        Args:
            only: The beginnings of the names of the arrays that may, separated by commas; empty for all.
        """
        begins = tuple(only.split(","))
        named = [np.full(int(np.prod(shape)), float(name.startswith(begins))) for name, shape in self.shapes.items()]
        changes: NDArray[np.float64] = np.concatenate(named) * self.present()
        for name in FIXED & self.shapes.keys():
            changes *= self.vector({each: np.full(shape, each != name) for each, shape in self.shapes.items()})
        return changes

    def present(self) -> NDArray[np.float64]:
        """Return 1 for every weight that may be other than 0, (W,)."""
        if self.network.kind in SETS_CONTROLS:
            return np.ones(sum(int(np.prod(shape)) for shape in self.shapes.values()))
        return seen_weights(self.network.hidden, distribution=self.network.distribution)
