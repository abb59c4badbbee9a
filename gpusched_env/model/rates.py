"""Power and cost rates of a node while some of its GPUs are busy.

Watts are constant. Euros follow from them and the present price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.model.interference import UtilisationModel
from gpusched_env.model.tenant import largest_billed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.model.instance import Instance

# The first columns of an array of configurations, int64 (C, ...).
TYPE = 0  # index of the GPU type
GPUS = 1  # GPUs held on each node
NODES = 2  # nodes held
SPREAD = 6  # 1 if its GPUs, as many as `NODES`, may be on any nodes
COLUMNS = 7


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Cost rates of an instance at one price of energy.

    Attributes:
        node: r_v(u), the cost rate of a node of type v with u busy GPUs [€/s], (V, G + 1).
        planning: Planned cost rate of a configuration, alone on its node: r_v(g) · f [€/s], (C,); of a spread one alone
            on as few nodes as it can be.
        least: Its least cost rate, in a full node: min over u ≥ g of r_v(u) · g/u · f [€/s], (C,); inf where its
            type has no node. u runs up to the most GPUs that a node of the type has in this cluster; the bounds must
            use these rates.
    """

    node: NDArray[np.float64]
    planning: NDArray[np.float64]
    least: NDArray[np.float64]

    @classmethod
    def of(cls, instance: Instance) -> Rates:
        """Return the rates at the instance's own price."""
        watts, configurations = kilowatts(instance), instance.configurations
        configs = np.zeros((len(configurations), COLUMNS), dtype=np.int64)
        configs[:, TYPE] = instance.type_of_configuration
        configs[:, GPUS] = [c.gpus_per_node for c in configurations]
        configs[:, NODES] = [c.nodes for c in configurations]
        configs[:, SPREAD] = [c.spread for c in configurations]
        shares = np.array([c.share for c in configurations])
        billed = largest_billed(instance)
        largest = np.array([billed.get(v.name, 0) for v in instance.gpu_types])
        price = np.array([instance.energy_price_eur_per_kwh, instance.pue])
        rates = cls(np.empty_like(watts), np.empty(len(configs)), np.empty(len(configs)))
        write_node_rates(watts, price, rates.node)
        write_config_rates(rates.node, configs, shares, largest, rates.planning, rates.least)
        return rates


def kilowatts(instance: Instance) -> NDArray[np.float64]:
    """Return the power of a node of type v while u of its GPUs are busy [kW], (V, G + 1), G the most GPUs of any node.

    `GpuType.power_w(u)` / 1000 for u ≥ 1, and 0 for u = 0: an idle node is off. Beyond the GPUs that a node of the type
    can have, the most that it draws.
    """
    most = max(node.gpus for node in instance.nodes)
    drawn = np.zeros((len(instance.gpu_types), most + 1))
    for v, gpu_type in enumerate(instance.gpu_types):
        for busy in range(1, most + 1):
            drawn[v, busy] = gpu_type.power_w(min(busy, gpu_type.max_gpus_per_node)) / 1000.0
    return drawn


@kernel
def write_node_rates(watts: Floats, price: Floats, node: Floats) -> None:
    """Write the cost rates [€/s] of nodes that draw `watts` [kW], at a price of energy [€/kWh] and a PUE, (2,)."""
    for v in range(watts.shape[0]):
        for busy in range(watts.shape[1]):
            node[v, busy] = watts[v, busy] * price[0] * price[1] / 3600.0


@kernel
def write_config_rates(
    node: Floats, configs: Ints, shares: Floats, largest: Ints, planning: Floats, least: Floats
) -> None:
    """Write the planning rates and the least rates of configurations from the cost rates of nodes (see `Rates`)."""
    most = node.shape[1] - 1
    for c in range(configs.shape[0]):
        v, gpus = configs[c, TYPE], configs[c, GPUS]
        planning[c] = node[v, min(gpus, most)] * configs[c, NODES] * shares[c]
        if configs[c, SPREAD] > 0 and largest[v] > 0:
            whole, rest = configs[c, NODES] // largest[v], configs[c, NODES] % largest[v]
            planning[c] = whole * node[v, min(largest[v], most)] + (node[v, rest] if rest > 0 else 0.0)
        part = np.inf
        for busy in range(gpus, min(largest[v], most) + 1):
            part = min(part, node[v, busy] * gpus / busy)
        least[c] = part * configs[c, NODES] * shares[c]


def cost_rate_eur_per_h(instance: Instance) -> NDArray[np.float64]:
    """Return r_v(u) [€/h], the cost rate of a node of type v while u of its GPUs are busy, (V, G + 1).

    r_v(u) = `GpuType.power_w(u)` / 1000 · price · PUE for u ≥ 1, and 0 for u = 0.
    """
    return kilowatts(instance) * instance.energy_price_eur_per_kwh * instance.pue


def planning_rate_eur_per_s(instance: Instance) -> NDArray[np.float64]:
    """Return the rate with which policies plan, that of a job alone on its node: r_v(g) · f [€/s], shape (C,)."""
    return Rates.of(instance).planning


def least_rate_eur_per_s(instance: Instance) -> NDArray[np.float64]:
    """Return the least cost rate of a configuration in a full node: min over u ≥ g of r_v(u) · g/u · f [€/s], (C,).

    Where GPUs draw power by their utilisation, that is the rate of idle GPUs, and the power of the application with the
    least utilisation is added: the result is the least cost per epoch over the seconds that an epoch takes alone.
    """
    least, model = Rates.of(instance).least, instance.interference
    if not isinstance(model, UtilisationModel) or model.idle_power_w is None:
        return least
    types, configurations = instance.type_of_configuration, instance.configurations
    idle_saving_w = np.array([v.gpu_power_w for v in instance.gpu_types]) - model.idle_power_w
    gpus = np.array([c.gpus_per_node * c.nodes for c in configurations], dtype=np.float64)
    rests = np.array([c.gpus for c in configurations]) - model.utilisation.min(axis=1)[types] * gpus
    return least - idle_saving_w[types] * rests / 1000.0 * instance.energy_price_eur_per_kwh * instance.pue / 3600.0
