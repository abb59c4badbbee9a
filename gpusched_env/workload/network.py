"""Other networks than the measured one, and spare machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model.machine import Machine
from gpusched_env.model.mechanism import Mechanism, model_of
from gpusched_env.model.synchronisation import BACKENDS, iteration_s, network_load, traffic
from gpusched_env.workload.tables.applications import Application, Communication, builtin_communication

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.scenario.sharing import Interconnect
    from gpusched_env.workload.site import Site


def over_network(
    scenario: Scenario, applications: tuple[Application, ...], site: Site, seconds: NDArray[np.float64]
) -> tuple[NDArray[np.float64], tuple[Mechanism, ...]]:
    """Put a scenario's network in place of the measured one.

    Args:
        seconds: Times over the measured network [s], (A, C).

    Returns:
        Time of an epoch of every application on every configuration over this network [s], (A, C), and the model
        of the network for instances; none where it is the same at all times.

    Raises:
        InputError: The scenario asks for a network, but GPUs are spread, or no application has known times of
            synchronising.
    """
    asked = scenario.interconnect
    if asked.measured:
        return seconds, ()
    if scenario.jobs.spread_counts:
        raise InputError(
            "jobs.spread_counts", list(scenario.jobs.spread_counts), "nothing, unless the network is the measured one"
        )
    own = {v.name for v in scenario.gpu_types}  # which the table does not know
    index = {application.name: a for a, application in enumerate(applications)}
    rows = builtin_communication().items()
    known = {(index[name], v): row for (name, v), row in rows if name in index and v not in own}
    several = [c for c in site.configurations if c.nodes > 1]
    if not any((a, c.gpu_type) in known for a in range(len(applications)) for c in several):
        field = "backend" if asked.nic_gb_per_s is None else "nic_gb_per_s"
        allowed = "nothing, unless jobs.node_counts offers several nodes to applications in communication.csv"
        raise InputError(f"interconnect.{field}", getattr(asked, field), allowed)
    network = _network(asked, known, site, len(applications))
    rescaled = _rescaled(seconds, site, known, network)
    return rescaled, () if asked.backend == "all-reduce" and asked.core_gb_per_s is None else (network,)


def _network(asked: Interconnect, known: Mapping[tuple[int, str], Communication], site: Site, applications: int) -> Any:
    """Return the model of the network that was asked for."""
    types = {gpu_type.name: v for v, gpu_type in enumerate(site.gpu_types)}
    shape = len(types), applications
    compute, sync, inside = np.ones(shape), np.zeros(shape), np.zeros(shape)
    for (a, name), row in known.items():
        if name in types:
            at = types[name], a
            compute[at], sync[at], inside[at] = row.compute_s, _sync_s(asked, row), _inside_s(asked, row)
    nodes = None
    if asked.core_gb_per_s is not None and asked.nic_gb_per_s is not None:
        nodes = asked.core_gb_per_s / asked.nic_gb_per_s
    kind: Any = model_of("network")
    return kind(
        compute,
        sync,
        asked.cpu_machines,
        asked.backend,
        asked.cpu_machine_w,
        nodes,
        inside if np.any(inside) else None,
    )


def _sync_s(asked: Interconnect, row: Communication) -> float:
    """Return the time of synchronising over the network that was asked for, per size of the model sent [s].

    A ring of all GPUs crosses the links inside the nodes too, and the slowest one decides.
    """
    nic = asked.nic_gb_per_s
    if nic is None:
        return row.sync_s
    if asked.machine is not None and asked.backend == "all-reduce":
        machine = Machine.of(asked.machine)
        nic = min(nic, machine.ring_gb_per_s)
    return row.sync_on(nic, asked.exposed)


def _inside_s(asked: Interconnect, row: Communication) -> float:
    """Return the time of synchronising inside a node [s]; with all-reduce it is part of the ring.

    For parameter servers the GPUs sum in a ring of the node, and copy to the CPU.
    """
    if asked.machine is None or asked.backend == "all-reduce":
        return 0.0
    machine = Machine.of(asked.machine)
    ring_s = max(machine.all_reduce_s(1, 1.0), 1.0 / machine.pcie_gb_per_s)
    return asked.exposed * row.model_gb * (machine.inside_s if asked.backend == "byteps" else ring_s)


def _rescaled(
    seconds: NDArray[np.float64], site: Site, known: Mapping[tuple[int, str], Communication], own: Any
) -> NDArray[np.float64]:
    """Return times over another network: the measured ones times the model's factor.

    They hold without help, and while all nodes of the cluster send over the core of the network.
    """
    table, types = seconds.copy(), [gpu_type.name for gpu_type in site.gpu_types]
    for column, configuration in enumerate(site.configurations):
        n = float(configuration.nodes)
        for a in range(len(table)) if n > 1.0 else ():
            row = known.get((a, configuration.gpu_type))
            if row is None:
                continue
            v = types.index(configuration.gpu_type)
            sync_s, inside_s = own.sync_s[v, a], own.known_inside_s[v, a]
            worst = network_load(BACKENDS.index(own.backend), n, 0.0, own.busy(len(site.nodes)))
            if sync_s != row.sync_s or inside_s > 0.0 or worst > traffic(n, 0.0):
                now_s = iteration_s(row.compute_s, sync_s, inside_s, n, worst)
                table[a, column] *= now_s / iteration_s(row.compute_s, row.sync_s, 0.0, n, traffic(n, 0.0))
    return table
