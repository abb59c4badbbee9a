"""A neighbourhood of Local Search: a job of a round takes another configuration, or the same one elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines import proxy_parts as its
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate
from gpusched_env.simulator.kernel import kernel
from gpusched_env.simulator.placement import fits, place, release, take
from gpusched_env.simulator.whole_nodes import hold_nodes

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints


@kernel
def sweep_moves(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    node_rate: Floats,
    order: Ints,
    left: Floats,
    now: float,
) -> None:
    """Let every job in turn take the configuration, in its best place, that makes the proxy cost of the round least.

    A waiting job may take one too, if it fits and makes the round cheaper; no running job comes to wait.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS); changed.
        nodes: State of the nodes, (N, columns of `layout`); changed.
        configs: The configurations, (C, CONFIG_COLUMNS).
        room: What fits now by GPU type, (V, columns of `layout`); kept up to date.
        tau: Seconds per epoch, (J, C).
        node_rate: r_v(u) [€/s], (V, G + 1).
        order: The jobs of the round, (A,).
        left: The epochs that they are taken to have left, (A,).
        now: Present time [s].
    """
    seen = its.see(jobs, tau, order, left, now)
    soonest, table = its.soonest_jobs(seen), its.lateness_table(seen)
    for i in range(order.shape[0]):
        job, held = order[i], int(seen[i, its.HOLDS])
        node, slot, chain = int(jobs[job, at.NODE]), int(jobs[job, at.SLOT]), nodes[:, at.NEXT].copy()
        cost = _cost_with(seen, soonest, table, i, seen[i, its.ENDS_IN], bill_rate(nodes, node_rate))
        release(jobs, nodes, configs, room, job)
        config = _best_move(jobs, nodes, configs, room, tau, node_rate, job, left[i], seen, soonest, table, i, cost)
        if config < 0:
            _put_back(jobs, nodes, configs, room, job, held, node, slot, chain)
            continue
        place(jobs, nodes, configs, room, job, config)
        seen[i, its.HOLDS], seen[i, its.ENDS_IN] = config, left[i] * tau[job, config]
        soonest = its.soonest_jobs(seen)
        if held < 0:
            table = its.lateness_table(seen)


@kernel
def _put_back(
    jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int, node: int, slot: int, chain: Ints
) -> None:
    """Give `job` what it held before it was released, if anything; `chain` is the column NEXT of then."""
    if config >= 0 and configs[config, at.CONFIG_NODES] > 1:
        nodes[:, at.NEXT] = chain
        hold_nodes(nodes, room, node)
        jobs[job, at.CONFIG], jobs[job, at.NODE] = config, node
    elif config >= 0:
        take(jobs, nodes, configs, room, job, config, node, slot)


@kernel
def _best_move(
    jobs: Floats,
    nodes: Ints,
    configs: Ints,
    room: Ints,
    tau: Floats,
    node_rate: Floats,
    job: int,
    left: float,
    seen: Floats,
    soonest: Ints,
    table: Floats,
    i: int,
    cost: float,
) -> int:
    """Find the configuration of `job`, which holds nothing, that makes the round cheapest; -1: none is below `cost`."""
    best = -1
    idle = bill_rate(nodes, node_rate)
    for c in range(configs.shape[0]):
        seconds = left * tau[job, c]
        if not its.may_take(seen, i, seconds) or not fits(configs, room, c):
            continue
        if _cost_with(seen, soonest, table, i, seconds, idle) >= cost:
            continue
        place(jobs, nodes, configs, room, job, c)
        value = _cost_with(seen, soonest, table, i, seconds, bill_rate(nodes, node_rate))
        release(jobs, nodes, configs, room, job)
        if value < cost:
            best, cost = c, value
    return best


@kernel
def _cost_with(seen: Floats, soonest: Ints, table: Floats, i: int, seconds: float, bill: float) -> float:
    """Give the proxy cost of the round [€], but what it charges for the other jobs that wait.

    Job `i` runs for `seconds`, or waits (inf); the nodes cost `bill` [€/s].
    """
    first = min(seconds, its.first_beside(seen, soonest, i, i))
    if first == np.inf:
        return seen[i, its.IF_LEFT_OUT]
    cost = bill * first + its.lateness(table, first)
    if seen[i, its.HOLDS] < 0:
        return cost + (seen[i, its.IF_LEFT_OUT] if seconds == np.inf else its.own_lateness(seen, i, first))
    return cost
