"""Cost rates: what a node costs while some of its GPUs are busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


def cost_rate_eur_per_h(instance: Instance) -> NDArray[np.float64]:
    """Give r_v(u) [€/h]: what a node of type v costs while u of its GPUs are busy.

    r_v(u) = (base power + u · GPU power) / 1000 · price · PUE for u ≥ 1, and 0 for u = 0: an idle node is off.

    Returns:
        Rates of shape (V, G + 1), where G is the most GPUs that any node has.
    """
    most = max(node.gpus for node in instance.nodes)
    busy = np.arange(most + 1)
    base_w = np.array([v.node_base_power_w for v in instance.gpu_types])
    gpu_w = np.array([v.gpu_power_w for v in instance.gpu_types])
    kilowatts = (base_w[:, None] + gpu_w[:, None] * busy[None, :]) / 1000.0
    kilowatts[:, 0] = 0.0
    return kilowatts * instance.energy_price_eur_per_kwh * instance.pue


def planning_rate_eur_per_s(instance: Instance) -> NDArray[np.float64]:
    """Give the rate at which policies plan, as if a job were alone on its node: r_v(g) · f [€/s], shape (C,)."""
    rates = cost_rate_eur_per_h(instance) / 3600.0
    largest = rates.shape[1] - 1
    types = instance.type_of_configuration
    return np.array(
        [
            rates[v, min(c.gpus_per_node, largest)] * c.nodes * c.share
            for v, c in zip(types, instance.configurations, strict=True)
        ]
    )


def least_rate_eur_per_s(instance: Instance) -> NDArray[np.float64]:
    """Give the least that a configuration can cost in a full node: min over u ≥ g of r_v(u) · g/u · f [€/s], (C,).

    u runs up to the most GPUs that a node of the type has in this cluster; the bounds must use these rates.
    """
    rates = cost_rate_eur_per_h(instance) / 3600.0
    types, configurations = instance.type_of_configuration, instance.configurations
    has, busy = instance.largest_node, np.arange(1, rates.shape[1])
    largest = np.array([has.get(c.gpu_type, 0) for c in configurations])[:, None]
    gpus = np.array([c.gpus_per_node for c in configurations])[:, None]
    shares = np.where((busy >= gpus) & (busy <= largest), rates[types, 1:] * gpus / busy, np.inf)
    parts = np.array([c.nodes for c in configurations]), np.array([c.share for c in configurations])
    least: NDArray[np.float64] = shares.min(axis=1) * parts[0] * parts[1]
    return least
