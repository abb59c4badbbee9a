"""The network between nodes now: spare machines that help, how busy its core is, CPU machines that draw power."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.arrays import Floats
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.network.constants import NetworkFacts, constants
from gpusched_env.model.synchronisation import ALL_REDUCE, BYTEPS, iteration_s, network_load
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import can_place
from gpusched_env.simulator.run import Board, Facts


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
    if not facts.has_network:
        return False
    return facts.network.shape[0] > 0 and facts.network[at.CPU_KILOWATTS] > 0.0


def least_slowdowns(facts: Facts) -> NDArray[np.float64]:
    """Return the least slowdown that each application can have on every configuration, with any co-runners, (A, C)."""
    least = 1.0 / facts.planned
    if facts.has_network and facts.iteration.shape[0] > 0:
        for config in np.flatnonzero(facts.configs[:, at.CONFIG_NODES] > 1):
            busy = float(facts.network[at.BUSY_PER_NODE] * facts.configs[config, at.CONFIG_NODES])
            for application in range(len(least)):
                least[application, config] *= interconnect_slowdown(facts, int(config), application, 1.0, busy)
    return least


@kernel
def slow_down(board: Board, slowdowns: Floats) -> None:
    if board.facts.iteration.shape[0] > 0:
        write_interconnect_slowdowns(board, slowdowns)


@kernel
def account(board: Board, seconds: float, length: float) -> None:  # noqa: ARG001 - of the hook
    """Charge jobs for the CPU machines that help them."""
    if draws_cpu_power(board.facts):
        part, cpu_part, busy = help_now(board)
        for i in range(board.count[at.ACTIVE]):
            job = board.active[i]
            board.jobs[job, at.ENERGY] += cpu_machines_rate(board, job, part, cpu_part, busy) * length


@kernel
def total_rate(board: Board, rate: float) -> float:
    if draws_cpu_power(board.facts):
        part, cpu_part, busy = help_now(board)
        for i in range(board.count[at.ACTIVE]):
            rate += cpu_machines_rate(board, board.active[i], part, cpu_part, busy)
    return rate


@lean_kernel
def speed_if_placed(board: Board, job: int, config: int, speed: float) -> float:
    """Return the speed of a job on several whole nodes, with the machines that are on now; 1 without help."""
    configs = board.facts.configs
    several = configs[config, at.CONFIG_NODES] > 1 and configs[config, at.CONFIG_UNITS] == 0
    if not several or configs[config, at.CONFIG_SPREAD] > 0 or board.facts.iteration.shape[0] == 0:
        return speed
    if int(board.jobs[job, at.CONFIG]) != config and not can_place(board, job, config):
        return 0.0
    return 1.0 / slowdown_if_placed(board, job, config)


register(
    "network",
    {
        hooks.slow_down: slow_down,
        hooks.account: account,
        hooks.total_rate: total_rate,
        hooks.speed_if_placed: speed_if_placed,
    },
    (NetworkFacts,),
    constants=constants,
)
