"""The neighbourhoods of Local Search, in which two jobs exchange what they hold or one moves; and the elite of rounds.

`order`, (A,), are the jobs of the round by decreasing pressure, and `left`, (A,), their estimated epochs left.
"""

from __future__ import annotations

import numpy as np

from gpusched_baselines.search import proxy_parts as its
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel


@kernel
def best_exchange(
    board: Board, order: Ints, left: Floats, seen: its.SeenRound, bill: float, cost: float
) -> tuple[int, int, float]:
    """Find the two jobs whose exchange makes the proxy cost of the round least.

    Two running jobs swap configurations and places, or a waiting job takes those of a running one of no higher
    pressure, which then waits. The nodes do not change.

    Args:
        bill: Cost rate of all nodes [€/s].
        cost: Proxy cost of the round [€].

    Returns:
        Their positions in `order`, that of the higher pressure first, and the proxy cost then; -1, -1 and `cost` if no
        exchange is cheaper.
    """
    jobs, left_out, now_first = seen.jobs, its.left_out_sum(seen), its.first_beside(seen, -1, -1)
    best = (-1, -1, cost)
    for k in range(order.shape[0]):
        for i in range(k):
            if not _may_help(seen, now_first, i, k):
                continue
            first = _first_after(board, order, left, seen, i, k)
            waits = jobs[i, its.HOLDS] < 0
            out = left_out + (jobs[k, its.IF_LEFT_OUT] - jobs[i, its.IF_LEFT_OUT] if waits else 0.0)
            if first == np.inf or bill * first + out >= best[2]:
                continue
            value = bill * first + out + _tardiness_after(seen, first, i, k)
            if value < best[2]:
                best = (i, k, value)
    return best


@lean_kernel
def _may_help(seen: its.SeenRound, first: float, i: int, k: int) -> bool:
    """Return whether an exchange may make the round cheaper: a fast test that excludes most exchanges.

    Two running jobs leave the cost rate of the nodes as it is, so they must bring the first completion forward.
    """
    if seen.jobs[k, its.HOLDS] < 0 or seen.jobs[i, its.HOLDS] == seen.jobs[k, its.HOLDS]:
        return False
    return seen.jobs[i, its.HOLDS] < 0 or min(seen.jobs[i, its.LEAST], seen.jobs[k, its.LEAST]) < first


@lean_kernel
def _first_after(board: Board, order: Ints, left: Floats, seen: its.SeenRound, i: int, k: int) -> float:
    """Return the time until the first completion after the exchange [s]; inf if it may not be."""
    tau = board.tau
    ends = left[i] * tau[order[i], int(seen.jobs[k, its.HOLDS])]
    if not its.may_take(seen, i, ends):
        return np.inf
    if seen.jobs[i, its.HOLDS] >= 0:
        other = left[k] * tau[order[k], int(seen.jobs[i, its.HOLDS])]
        if not its.may_take(seen, k, other):
            return np.inf
        ends = min(ends, other)
    return min(ends, its.first_beside(seen, i, k))


@lean_kernel
def _tardiness_after(seen: its.SeenRound, first: float, i: int, k: int) -> float:
    """Return the tardiness cost of the running jobs up to the first completion, after the exchange [€]."""
    late = its.tardiness(seen, first)
    if seen.jobs[i, its.HOLDS] < 0:
        late += its.own_tardiness(seen, i, first) - its.own_tardiness(seen, k, first)
    return late


BETTER = 1.0 - 1e-12  # a move must reduce the cost by more than rounding


@kernel
def sweep_moves(board: Board, order: Ints, left: Floats) -> None:
    """Move every job in turn to the configuration, in its best place, that makes the proxy cost of the round least.

    A waiting job may start too, if it fits and makes the round cheaper; no running job stops.
    """
    jobs, tau = board.jobs, board.tau
    seen = its.see(board, order, left)
    bill = sim.bill_rate(board)
    for i in range(order.shape[0]):
        job, held = order[i], int(seen.jobs[i, its.HOLDS])
        node, slot, chain = int(jobs[job, at.NODE]), int(jobs[job, at.SLOT]), sim.chain_of(board, job)
        cost = _cost_with(seen, i, seen.jobs[i, its.ENDS_IN], bill)
        idle = bill - _own_rate(board, job)
        sim.release(board, job)
        config = _best_move(board, job, left[i], seen, i, idle, cost * BETTER)
        if config < 0:
            sim.put_back(board, job, held, node, slot, chain)
            continue
        sim.place(board, job, config)
        bill = idle + _own_rate(board, job)
        its.give(seen, i, config, left[i] * tau[job, config])


@kernel
def _own_rate(board: Board, job: int) -> float:
    """Return the part of the nodes' cost rate that `job` adds [€/s]."""
    jobs, nodes, configs, node_rate = board.jobs, board.nodes, board.facts.configs, board.node_rate
    config, node = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE])
    if config < 0:
        return 0.0
    units = configs[config, at.CONFIG_UNITS]
    slot = int(jobs[job, at.SLOT])
    added = 0.0
    while node >= 0:
        gpus = sim.gpus_on(board, job, config, node, False)
        for gpu in range(slot, slot + gpus if units > 0 else slot):
            gpus -= 1 if nodes[node, at.NODE_COLUMNS + gpu] > units else 0
        rates, busy = node_rate[nodes[node, at.NODE_TYPE]], nodes[node, at.USABLE] - nodes[node, at.FREE]
        added += rates[busy] - rates[busy - gpus]
        node = sim.next_node(board, job, config, node, False)
    return added - sim.planned_saving_rate(board, int(jobs[job, at.APPLICATION]), config)


@kernel
def _best_move(board: Board, job: int, left: float, seen: its.SeenRound, i: int, idle: float, cost: float) -> int:
    """Find the configuration of `job`, which holds nothing, that makes the round cheapest; -1: none is below `cost`.

    Without the job the nodes cost `idle` [€/s].
    """
    configs, tau = board.facts.configs, board.tau
    best = -1
    for c in range(configs.shape[0]):
        seconds = left * tau[job, c]
        if not its.may_take(seen, i, seconds) or not sim.can_place(board, job, c):
            continue
        if _cost_with(seen, i, seconds, idle) >= cost:
            continue
        sim.place(board, job, c)
        rate = idle + _own_rate(board, job)
        value = _cost_with(seen, i, seconds, rate)
        sim.release(board, job)
        if value < cost:
            best, cost = c, value
    return best


@lean_kernel
def _cost_with(seen: its.SeenRound, i: int, seconds: float, bill: float) -> float:
    """Return the proxy cost of the round [€] without its part for the other waiting jobs.

    Job `i` runs for `seconds`, or waits (inf); the nodes cost `bill` [€/s].
    """
    first = min(seconds, its.first_beside(seen, i, i))
    if first == np.inf:
        return seen.jobs[i, its.IF_LEFT_OUT]
    cost = bill * first + its.tardiness(seen, first)
    if seen.jobs[i, its.HOLDS] < 0:
        return cost + (seen.jobs[i, its.IF_LEFT_OUT] if seconds == np.inf else its.own_tardiness(seen, i, first))
    return cost


@kernel
def offer(board: Board, order: Ints, cost: float, costs: Floats, held: Floats, kept: Ints) -> None:
    """Keep the placement of the round in place of the costliest of the elite, if it is cheaper.

    A placement with the cost of one of the elite counts as the same, and is not kept.

    Args:
        cost: Cost of the placement [€].
        costs: Costs of the elite [€], (K,); inf where there is none yet.
        held: What the jobs of the round hold in each, (K, A, HELD).
        kept: The state of the nodes in each, (K, N, columns of `layout`).
    """
    costliest = 0
    for k in range(costs.shape[0]):
        if cost == costs[k]:
            return
        if costs[k] > costs[costliest]:
            costliest = k
    if cost < costs[costliest]:
        costs[costliest] = cost
        sim.keep(board, order, held[costliest], kept[costliest])
