"""The pace of jobs on several nodes that synchronise over the network of spare machines (BytePS)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.model.synchronisation import iteration_s
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.arrays import Floats
    from gpusched_env.model import Instance
    from gpusched_env.simulator.run import Board, Facts


def iteration_table(instance: Instance) -> NDArray[np.float64]:
    """Give how long iterations compute and synchronise [s], (2, V, A); (0, 0, 0) if the instance does not say."""
    own = instance.synchronisation
    return np.zeros((0, 0, 0)) if own is None else np.stack([own.compute_s, own.sync_s])


def helper_count(instance: Instance) -> NDArray[np.int64]:
    """Give the number of CPU machines that help to synchronise, (1,); (0,) if the instance does not say."""
    own = instance.synchronisation
    return np.array([] if own is None else [own.cpu_machines], dtype=np.int64)


@kernel
def write_interconnect_paces(board: Board, paces: Floats) -> None:
    """Multiply the paces of jobs on several nodes by what the spare machines leave of their time, 1 at most.

    Spare are the CPU machines, and the nodes that are on and have no job on several nodes. The jobs share them by the
    number of their nodes.
    """
    jobs, nodes, configs, active = board.jobs, board.nodes, board.facts.configs, board.active
    spread = 0
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
            spread += configs[config, at.CONFIG_NODES]
    if spread == 0:
        return
    on = 0
    for n in range(nodes.shape[0]):
        on += 1 if nodes[n, at.FREE] < nodes[n, at.NODE_GPUS] else 0
    part = min(1.0, (board.facts.helpers[0] + on - spread) / spread)
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
            paces[i] *= interconnect_pace(board.facts, config, int(jobs[active[i], at.APPLICATION]), part)


@kernel
def interconnect_pace(facts: Facts, config: int, application: int, part: float) -> float:
    """Give the part of its time that an application takes if its nodes have `part` as many spare machines beside them.

    Args:
        facts: With iterations.
        config: A configuration of several nodes.
        application: Index of the application.
        part: Spare machines for each node, from 0 to 1.
    """
    gpu_type, nodes = facts.configs[config, at.CONFIG_TYPE], float(facts.configs[config, at.CONFIG_NODES])
    compute_s, sync_s = facts.iteration[0, gpu_type, application], facts.iteration[1, gpu_type, application]
    return iteration_s(compute_s, sync_s, nodes, nodes * part) / iteration_s(compute_s, sync_s, nodes, 0.0)


def least_paces(facts: Facts) -> NDArray[np.float64]:
    """Give the least pace that each application can have on every configuration, whoever is there, (A, C)."""
    least = 1.0 / facts.planned
    if facts.iteration.shape[0] > 0:
        for config in np.flatnonzero(facts.configs[:, at.CONFIG_NODES] > 1):
            for application in range(len(least)):
                least[application, config] *= interconnect_pace(facts, int(config), application, 1.0)
    return least
