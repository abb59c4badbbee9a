"""The constants of the network between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.mechanisms.network.model import Synchronisation
from gpusched_env.model.synchronisation import BACKENDS
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


class NetworkFacts(Facts):
    """Adds the constants of the network.

    Attributes:
        iteration: How long iterations compute, synchronise, and do so inside a machine [s], (3, V, A); (0, 0, 0)
            without a model of the network.
        network: Numbers of the network between nodes, (NETWORK_COLUMNS,); (0,) without a model of it.
    """

    iteration: Annotated[Floats, 3]
    network: Annotated[Floats, 1]


def constants(instance: Instance) -> dict[str, NDArray[np.float64]]:
    """Return the constants of the runs of an instance."""
    return {"iteration": iteration_table(instance), "network": network_numbers(instance)}


def iteration_table(instance: Instance) -> NDArray[np.float64]:
    """Return how long iterations compute, synchronise, and do so inside a machine [s], (3, V, A); else (0, 0, 0)."""
    own = instance.of(Synchronisation)
    return np.zeros((0, 0, 0)) if own is None else np.stack([own.compute_s, own.sync_s, own.known_inside_s])


def network_numbers(instance: Instance) -> NDArray[np.float64]:
    own = instance.of(Synchronisation)
    if own is None:
        return np.zeros(0)
    numbers = np.zeros(at.NETWORK_COLUMNS)
    numbers[at.BACKEND], numbers[at.CPU_MACHINES] = BACKENDS.index(own.backend), own.cpu_machines
    numbers[at.CPU_KILOWATTS] = own.cpu_machine_w / 1000.0
    numbers[at.BUSY_PER_NODE], numbers[at.MOST_BUSY] = own.busy(1.0), own.busy(len(instance.nodes))
    return numbers
