"""Costs of starts, changes and networks: other networks than the measured one, spare machines, switching."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Machine, iteration_s, network_load, traffic
from gpusched_env.model.job import BYTES_PER_GIB, moving_s
from gpusched_env.model.mechanism import Mechanism, model_of
from gpusched_env.model.synchronisation import BACKENDS
from gpusched_env.workload.tables.applications import Application, Communication, builtin_communication

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from gpusched_env.workload.catalogue import Site
    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.scenario.sharing import Interconnect, Switching


TIMED_ON = "V100"
"""GPU type on which iterations of pipelined starts are timed."""


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


STOP_START_S = 6.4
"""Stopping a process and starting another one, until the model is ready [s]: mean of 5.6, 6.2 and 7.2 (PipeSwitch)."""
ONE_PROCESS_START_S = 0.19
"""Stopping a task and starting the next one in the same process [s], a model's transmission included (PipeSwitch)."""
ONE_PROCESS_S = 0.15
"""The same without the transmission [s]: mean of 0.17, 0.14 and 0.15."""
PIPELINED_S = 0.003
"""The same where another process is ready and layers are sent while others compute [s]."""


class SwitchingCosts(NamedTuple):
    """Seconds without progress at a start, where a job continues, and at a restart; no `resume_s`: none of its own."""

    start_s: float
    resume_s: float | None
    restart_s: float


def switching_costs(switching: Switching, application: Application, restart_s: float | None) -> SwitchingCosts:
    """Return the costs of switching of an application.

    Where it continues, its state S leaves the GPU and comes back, at a bandwidth B: 2 S / B, and the model's constant;
    or, with `start_up = "layers"` and a model whose layers are known, S / B and what the pipeline adds.

    Args:
        restart_s: Seconds of a restart that are given; None for those of the model.
    """
    stop_start_s = STOP_START_S if restart_s is None else restart_s
    moves_s = moving_s(application.state_gib, switching.bandwidth_gb_per_s)
    costs = {
        None: SwitchingCosts(0.0, None, 0.0 if restart_s is None else restart_s),
        "free": SwitchingCosts(0.0, 0.0, 0.0),
        "stop-start": SwitchingCosts(stop_start_s, stop_start_s, stop_start_s),
        "one-process": SwitchingCosts(ONE_PROCESS_START_S, ONE_PROCESS_S + moves_s, stop_start_s),
        "pipelined": SwitchingCosts(PIPELINED_S, PIPELINED_S + moves_s, stop_start_s),
    }[switching.model]
    added = added_s(application, switching.bandwidth_gb_per_s) if switching.start_up == "layers" else None
    if added is not None:
        costs = SwitchingCosts(added[0], moves_s / 2.0 + added[1], stop_start_s)
    start_s = costs.start_s if switching.start_s is None else switching.start_s
    resume_s = costs.resume_s if switching.resume_s is None else switching.resume_s
    return SwitchingCosts(start_s, resume_s, costs.restart_s)


def switching_columns(
    costs: Sequence[SwitchingCosts], application: NDArray[np.int64], *, told: bool
) -> dict[str, NDArray[Any]]:
    """Return the columns of a table of jobs, by name, for the application of every job, (J,).

    Where costs depend on the distance (`told`) but the cost of continuing is unknown, it is that of a restart: a job
    that changes its share on its GPU then loses nothing.
    """
    columns = {
        "start_s": np.array([each.start_s for each in costs])[application],
        "restart_s": np.array([each.restart_s for each in costs])[application],
    }
    if any(each.resume_s is None for each in costs):
        return columns | {"resume_s": columns["restart_s"]} if told else columns
    return columns | {"resume_s": np.array([each.resume_s for each in costs])[application]}


def added_s(application: Application, bandwidth_gb_per_s: float) -> tuple[float, float] | None:
    """Return what a pipeline adds to a first start and to a resumption [s]; None where no layers are known.

    A first start sends the weights while the forward pass computes; a resumption the whole state, that of gradients and
    optimiser while the backward pass does. Passes are those of the application's batch on one V100.
    """
    from gpusched_env.workload.start_up.architectures import layers_of  # noqa: PLC0415 - few need it
    from gpusched_env.workload.start_up.pipeline import Pass, StartUpCosts, best_groups, pipelined_s  # noqa: PLC0415

    layers, batches = layers_of(application.name), application.batches_per_epoch
    epoch_s = application.seconds_per_epoch.get((TIMED_ON, 1))
    if not layers or not batches or epoch_s is None:
        return None
    machine, seconds = StartUpCosts(bandwidth_gb_per_s), epoch_s / batches
    passes = Pass.forward(layers, seconds / 3.0), Pass.iteration(layers, application.state_gib * BYTES_PER_GIB, seconds)
    start, resume = (pipelined_s(task, best_groups(task, machine), machine) - task.total_s for task in passes)
    return start, resume
