"""Power and cost rates of a node while some of its GPUs are busy.

Watts are constant. Euros follow from them and the present price.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.model.configuration import hardware_of

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
        planning: Planned cost rate of an application on a configuration, alone on its nodes: r_v(g) · k · f [€/s],
            (A, C); of a spread one alone on as few nodes as it can be. What its GPUs draw less than busy ones is
            subtracted.
        least: Its least cost rate, in full nodes: min over u ≥ g of r_v(u) · g/u · k · f, less the same [€/s], (A, C);
            inf where its type has no node. u runs up to the most GPUs that a node of the type has in this cluster; the
            bounds must use these rates.
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
        billed = _largest_billed(instance)
        largest = np.array([billed.get(v.name, 0) for v in instance.gpu_types])
        price = np.array([instance.energy_price_eur_per_kwh, instance.pue, rent_eur_per_h(instance) / 3600.0])
        shape, saved = (len(instance.jobs.applications), len(configs)), planned_saving_kilowatts(instance)
        rates = cls(np.empty_like(watts), np.empty(shape), np.empty(shape))
        write_node_rates(watts, price, rates.node)
        write_config_rates(rates.node, configs, shares, largest, saved, price, rates.planning, rates.least)
        return rates


def _largest_billed(instance: Instance) -> dict[str, int]:
    """Return the GPUs of the largest node of every GPU type, or of the largest machine that can hold one."""
    if not instance.first_machine:
        return instance.largest_node
    largest, hardware = dict[str, int](), hardware_of(instance.gpu_types)
    for machine in instance.machines:
        kind = hardware[machine.gpu_type]
        largest[kind] = max(largest.get(kind, 0), machine.gpus)
    return {name: largest[hardware[name]] for name in instance.largest_node}


def rent_eur_per_h(instance: Instance) -> float:
    """Return the price of a held GPU [€/h]."""
    return sum(own.rent_eur_per_h for own in instance.mechanisms)


def planned_saving_kilowatts(instance: Instance) -> NDArray[np.float64]:
    """Return the saving with which policies plan [kW], (A, C); (0, 0): none."""
    found = (own.planned_saving(instance) for own in instance.mechanisms)
    return next((saving for saving in found if saving is not None), np.zeros((0, 0)))


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


def peak_kw(instance: Instance) -> float:
    """Return the power of all nodes of an instance with all GPUs busy, without what the PUE adds [kW]."""
    watts = kilowatts(instance)
    pairs = zip(instance.type_of_node, instance.nodes, strict=True)
    return float(sum(watts[v, node.gpus] for v, node in pairs))


@kernel
def write_node_rates(watts: Floats, price: Floats, node: Floats) -> None:
    """Write the cost rates [€/s] of nodes that draw `watts` [kW].

    `price`, (3,), has the price of energy [€/kWh], the PUE, and the price of a held GPU [€/s].
    """
    for v in range(watts.shape[0]):
        for busy in range(watts.shape[1]):
            node[v, busy] = watts[v, busy] * price[0] * price[1] / 3600.0 + busy * price[2]


@kernel
def write_config_rates(
    node: Floats, configs: Ints, shares: Floats, largest: Ints, saved: Floats, price: Floats, planning: Floats,
    least: Floats,
) -> None:  # fmt: skip
    """Write the planning rates and the least rates of configurations from the cost rates of nodes (see `Rates`).

    `saved` is the planned saving [kW], (A, C) or (0, 0), at a `price` as `write_node_rates` has it (energy [€/kWh],
    PUE, and a number that is not used here), (3,).
    """
    most = node.shape[1] - 1
    for c in range(configs.shape[0]):
        v, gpus = configs[c, TYPE], configs[c, GPUS]
        alone = node[v, min(gpus, most)] * configs[c, NODES] * shares[c]
        if configs[c, SPREAD] > 0 and largest[v] > 0:
            whole, rest = configs[c, NODES] // largest[v], configs[c, NODES] % largest[v]
            alone = whole * node[v, min(largest[v], most)] + (node[v, rest] if rest > 0 else 0.0)
        part = np.inf
        for busy in range(gpus, min(largest[v], most) + 1):
            part = min(part, node[v, busy] * gpus / busy)
        part = part * configs[c, NODES] * shares[c]
        for a in range(planning.shape[0]):
            less = saved[a, c] * price[0] * price[1] / 3600.0 if saved.shape[0] > 0 else 0.0
            planning[a, c], least[a, c] = max(0.0, alone - less), max(0.0, part - less)


def cost_rate_eur_per_h(instance: Instance) -> NDArray[np.float64]:
    """Return r_v(u) [€/h], the cost rate of a node of type v while u of its GPUs are busy, (V, G + 1).

    r_v(u) = `GpuType.power_w(u)` / 1000 · price · PUE + u · `rent_eur_per_h` for u ≥ 1, and 0 for u = 0.
    """
    watts = kilowatts(instance)
    energy = watts * instance.energy_price_eur_per_kwh * instance.pue
    return energy + rent_eur_per_h(instance) * np.arange(watts.shape[1])


def planning_rate_eur_per_s(instance: Instance) -> NDArray[np.float64]:
    """Return the rate with which policies plan, of a job alone on its nodes: r_v(g) · k · f, less its saving [€/s].

    The shape is (A, C).
    """
    return Rates.of(instance).planning
