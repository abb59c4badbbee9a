"""The network between nodes now: spare machines that help, how busy its core is, CPU machines that draw power."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel
from gpusched_env.model import Instance
from gpusched_env.model.synchronisation import ALL_REDUCE, BACKENDS, BYTEPS, iteration_s, network_load
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Facts


def iteration_table(instance: Instance) -> NDArray[np.float64]:
    """Return how long iterations compute, synchronise, and do so inside a machine [s], (3, V, A); else (0, 0, 0)."""
    own = instance.synchronisation
    return np.zeros((0, 0, 0)) if own is None else np.stack([own.compute_s, own.sync_s, own.known_inside_s])


def network_numbers(instance: Instance) -> NDArray[np.float64]:
    own = instance.synchronisation
    if own is None:
        return np.zeros(0)
    numbers = np.zeros(at.NETWORK_COLUMNS)
    numbers[at.BACKEND], numbers[at.CPU_MACHINES] = BACKENDS.index(own.backend), own.cpu_machines
    numbers[at.CPU_KILOWATTS] = own.cpu_machine_w / 1000.0
    numbers[at.BUSY_PER_NODE], numbers[at.MOST_BUSY] = own.busy(1.0), own.busy(len(instance.nodes))
    return numbers


@kernel
def nodes_by_use(board: Board) -> tuple[int, int]:
    """Count the nodes that jobs on several nodes hold, and the others that are on."""
    jobs, nodes, configs, active = board.jobs, board.nodes, board.facts.configs, board.active
    several, on = 0, 0
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
            several += configs[config, at.CONFIG_NODES]
    for n in range(nodes.shape[0]):
        on += 1 if nodes[n, at.FREE] < nodes[n, at.USABLE] else 0
    return several, on - several


@kernel
def help_of(facts: Facts, several: int, others: int) -> tuple[float, float, float]:
    """Return the spare machines for a node, the CPU machines among them, and how busy the core of the network is.

    Args:
        facts: The constants, with those of a network.
        others: Other nodes that are on: with BytePS they are spare, and count before CPU machines.
    """
    network = facts.network
    if several == 0 or int(network[at.BACKEND]) == ALL_REDUCE:
        return 0.0, 0.0, several * network[at.BUSY_PER_NODE]
    idle = float(others) if int(network[at.BACKEND]) == BYTEPS else 0.0
    part = min(1.0, (network[at.CPU_MACHINES] + idle) / several)
    return part, max(0.0, part - idle / several), several * network[at.BUSY_PER_NODE]


@kernel
def help_now(board: Board) -> tuple[float, float, float]:
    several, others = nodes_by_use(board)
    return help_of(board.facts, several, others)


@kernel
def interconnect_slowdown(facts: Facts, config: int, application: int, part: float, busy: float) -> float:
    """Return the factor on an application's time with `part` spare machines for each of its nodes; at most 1.

    Args:
        facts: The constants, with those of a network.
        config: A configuration of several nodes.
        part: Spare machines for each node, from 0 to 1.
    """
    v, n, network = facts.configs[config, at.CONFIG_TYPE], float(facts.configs[config, at.CONFIG_NODES]), facts.network
    compute_s, sync_s = facts.iteration[0, v, application], facts.iteration[1, v, application]
    inside_s, backend = facts.iteration[2, v, application], int(network[at.BACKEND])
    now = iteration_s(compute_s, sync_s, inside_s, n, network_load(backend, n, n * part, busy))
    return now / iteration_s(compute_s, sync_s, inside_s, n, network_load(backend, n, 0.0, network[at.MOST_BUSY]))


@kernel
def write_interconnect_slowdowns(board: Board, slowdowns: Floats) -> None:
    """Multiply the speeds of jobs on several nodes by the factor of the network now, at most 1."""
    jobs, configs, active = board.jobs, board.facts.configs, board.active
    part, _, busy = help_now(board)
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
            application = int(jobs[active[i], at.APPLICATION])
            slowdowns[i] *= interconnect_slowdown(board.facts, config, application, part, busy)


@kernel
def slowdown_if_placed(board: Board, job: int, config: int) -> float:
    """Return the factor on the time of `job` if it were placed now on `config`, of several nodes, and nothing else."""
    configs, held = board.facts.configs, int(board.jobs[job, at.CONFIG])
    several, others = nodes_by_use(board)
    if held >= 0 and configs[held, at.CONFIG_NODES] > 1:
        several -= configs[held, at.CONFIG_NODES]
    elif held >= 0:
        node = int(board.jobs[job, at.NODE])
        on_it = board.nodes[node, at.USABLE] - board.nodes[node, at.FREE]
        alone = on_it == configs[held, at.CONFIG_GPUS]
        if alone and configs[held, at.CONFIG_UNITS] > 0:
            slot = at.NODE_COLUMNS + int(board.jobs[job, at.SLOT])
            for gpu in range(slot, slot + configs[held, at.CONFIG_GPUS]):
                alone = alone and board.nodes[node, gpu] == configs[held, at.CONFIG_UNITS]
        others -= 1 if alone else 0
    part, _, busy = help_of(board.facts, several + configs[config, at.CONFIG_NODES], others)
    return interconnect_slowdown(board.facts, config, int(board.jobs[job, at.APPLICATION]), part, busy)


@kernel
def cpu_machines_rate(board: Board, job: int, part: float, cpu_part: float, busy: float) -> float:
    """Return the cost rate of the CPU machines that make a job faster [€/s].

    Args:
        board: The run, with a network.
        part: Spare machines for each node of a job on several nodes.
    """
    facts, clock, config = board.facts, board.clock, int(board.jobs[job, at.CONFIG])
    if config < 0 or cpu_part == 0.0 or facts.configs[config, at.CONFIG_NODES] < 2:
        return 0.0
    own = int(board.jobs[job, at.APPLICATION])
    helped = interconnect_slowdown(facts, config, own, part, busy)
    if helped >= interconnect_slowdown(facts, config, own, 0.0, busy):
        return 0.0
    machines = cpu_part * facts.configs[config, at.CONFIG_NODES]
    return machines * facts.network[at.CPU_KILOWATTS] * clock[at.PRICE] * clock[at.PUE] / 3600.0


@kernel
def draws_cpu_power(facts: Facts) -> bool:
    return facts.network.shape[0] > 0 and facts.network[at.CPU_KILOWATTS] > 0.0
