"""Placement: from configurations to nodes, never more GPUs than there are."""

from __future__ import annotations

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cell_binding import bind
from gpusched_env.simulator.placement.held_nodes import chain_of, most_spread, same_gpus
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.release import count_in, release, within_quota
from gpusched_env.simulator.placement.shared_gpus import best_slot, block_fits, join_all, of_several
from gpusched_env.simulator.placement.spread_gpus import can_return, exchange_spread
from gpusched_env.simulator.placement.under_cap import within_cap
from gpusched_env.simulator.placement.whole_gpus import choose_nodes, hold, hold_nodes
from gpusched_env.simulator.run import Board


@lean_kernel
def can_place(board: Board, job: int, config: int) -> bool:
    """Whether a job can get a configuration now: it fits somewhere, within its tenant's quota and the site's cap."""
    if not fits(board, config) or (board.has_quotas and not within_quota(board, job, config)):
        return False
    if board.has_site:
        return within_cap(board, job, config)
    return True


@lean_kernel
def fits(board: Board, config: int) -> bool:
    """Whether a configuration fits somewhere now."""
    configs, capacity = board.facts.configs, board.capacity
    v, gpus = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS]
    if board.has_several_shares and of_several(board, config):
        return block_fits(board, config)
    if board.has_shares and configs[config, at.CONFIG_UNITS] > 0:
        return (capacity[v, at.FREE_BLOCK] > 0) | (capacity[v, at.FREE_SHARE] >= configs[config, at.CONFIG_UNITS])
    if board.has_spread and configs[config, at.CONFIG_SPREAD] > 0:
        return capacity[v, at.FREE_GPUS] >= configs[config, at.CONFIG_NODES]
    if configs[config, at.CONFIG_NODES] > 1:
        return (capacity[v, at.LARGEST] == gpus) & (capacity[v, at.EMPTY] >= configs[config, at.CONFIG_NODES])
    return capacity[v, at.FREE_BLOCK] >= gpus


@kernel
def take(board: Board, job: int, config: int, node: int, slot: int) -> None:
    """Place `job` on `node`, where it must fit: whole GPUs of the node, or a share of its GPUs from `slot` on."""
    jobs, configs = board.jobs, board.facts.configs
    if board.has_cells and board.cells.shape[0] > 0:
        bind(board, node)
    if board.has_shares and configs[config, at.CONFIG_UNITS] > 0:
        join_all(board, config, node, slot)
    else:
        hold(board, node, configs[config, at.CONFIG_GPUS])
    count_in(board, job, config, 1)
    jobs[job, at.CONFIG] = config
    jobs[job, at.NODE] = node
    jobs[job, at.SLOT] = slot


@kernel
def place(board: Board, job: int, config: int) -> bool:
    """Place `job` with the configuration `config` in its best place, instead of what it holds in this round.

    Whole GPUs go to the best-fit node, a share to the fullest shared GPU on which it fits, several nodes to empty
    ones, spread GPUs to as few as can be; the job's previous place comes first wherever it fits, unless a policy
    cleared it
    (`View.clear_preferred_node`).

    Returns:
        True if it was placed; False leaves everything as it was.
    """
    jobs = board.jobs
    held = int(jobs[job, at.CONFIG])
    if held == config:
        return True
    if held < 0 and not can_place(board, job, config):
        return False
    if held >= 0:
        return _replace(board, job, config)
    _put(board, job, config)
    return True


@kernel
def _replace(board: Board, job: int, config: int) -> bool:
    jobs = board.jobs
    held, node, slot = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    chain = chain_of(board, job)
    release(board, job)
    if can_place(board, job, config):
        _put(board, job, config)
        return True
    put_back(board, job, held, node, slot, chain)
    return False


@kernel
def put_back(board: Board, job: int, config: int, node: int, slot: int, chain: Ints) -> None:
    """Restore what `job` held before its release, if anything; `chain` is the `chain_of` then."""
    if board.has_spread and config >= 0 and board.facts.configs[config, at.CONFIG_SPREAD] > 0:
        for i in range(chain.shape[0]):
            _hold_one(board, job, i, chain[i])
        _enter_spread(board, job, config)
    elif board.has_nodes and config >= 0 and board.facts.configs[config, at.CONFIG_NODES] > 1 and slot < 0:
        for n in range(chain.shape[0]):
            board.nodes[n, at.NEXT] = chain[n]
        _hold_all(board, node)
        count_in(board, job, config, 1)
        board.jobs[job, at.CONFIG], board.jobs[job, at.NODE] = config, node
    elif config >= 0:
        take(board, job, config, node, slot)


@kernel
def _hold_all(board: Board, first: int) -> None:
    n = first
    if board.has_cells and board.cells.shape[0] > 0:
        while n >= 0:
            bind(board, n)
            n = board.nodes[n, at.NEXT]
    hold_nodes(board, first)


@kernel
def exchange(board: Board, job: int, other: int) -> None:
    """Exchange what two jobs hold in this round; one may hold nothing. Quotas and cells are not updated."""
    jobs = board.jobs
    for column in (at.CONFIG, at.NODE, at.SLOT):
        jobs[job, column], jobs[other, column] = jobs[other, column], jobs[job, column]
    if board.has_spread:
        exchange_spread(board, job, other)


@kernel
def clear_preferred_node(board: Board, job: int) -> None:
    """Clear the preferred node of a job: it is placed in this round as a new one."""
    board.jobs[job, at.PREFERRED_NODE], board.jobs[job, at.PREFERRED_SLOT] = -1.0, -1.0


@kernel
def set_preferred_node(board: Board, job: int, node: int, gpu: int) -> None:
    """Set the node on which a job is placed first in this round, a share on its GPU `gpu`; else it is placed as new."""
    board.jobs[job, at.PREFERRED_NODE], board.jobs[job, at.PREFERRED_SLOT] = node, gpu


@kernel
def _put(board: Board, job: int, config: int) -> None:
    """Place `job`, which holds nothing, with `config`, which fits."""
    jobs, configs = board.jobs, board.facts.configs
    gpu_type, preferred = configs[config, at.CONFIG_TYPE], int(jobs[job, at.PREFERRED_NODE])
    if board.has_shares and configs[config, at.CONFIG_UNITS] > 0:
        node, slot = best_slot(board, job, config)
        take(board, job, config, node, slot)
    elif board.has_spread and configs[config, at.CONFIG_SPREAD] > 0:
        _put_spread(board, job, config)
    elif board.has_nodes and configs[config, at.CONFIG_NODES] > 1:
        node = choose_nodes(board, gpu_type, configs[config, at.CONFIG_NODES], preferred)
        _hold_all(board, node)
        count_in(board, job, config, 1)
        jobs[job, at.CONFIG] = config
        jobs[job, at.NODE] = node
    else:
        node = find_node(board, gpu_type, configs[config, at.CONFIG_GPUS], preferred)
        take(board, job, config, node, -1)


@kernel
def _put_spread(board: Board, job: int, config: int) -> None:
    """Place `job`, which holds nothing, with a spread configuration, which fits.

    It returns to its place if that is free. Else it takes, again and again, the node with fewest free GPUs that has all
    that are still wanted, or, if none has, all of the node with most: so it is on as few nodes as can be.
    """
    jobs, configs, capacity = board.jobs, board.facts.configs, board.capacity
    v, wanted, taken = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_NODES], 0
    back = can_return(board, job, config)
    while taken < wanted:
        size = 1 if back else min(wanted - taken, capacity[v, at.FREE_BLOCK])
        if back:
            n = int(jobs[job, at.JOB_COLUMNS + most_spread(board) + taken])
        else:
            n = find_node(board, v, size, int(jobs[job, at.PREFERRED_NODE]) if taken == 0 else -1)
        for _ in range(size):
            _hold_one(board, job, taken, n)
            taken += 1
    _enter_spread(board, job, config)


@kernel
def _hold_one(board: Board, job: int, i: int, node: int) -> None:
    if board.has_cells and board.cells.shape[0] > 0:
        bind(board, node)
    hold(board, node, 1)
    at_i = at.JOB_COLUMNS + i
    while at_i > at.JOB_COLUMNS and board.jobs[job, at_i - 1] > node:
        board.jobs[job, at_i] = board.jobs[job, at_i - 1]
        at_i -= 1
    board.jobs[job, at_i] = node


@kernel
def _enter_spread(board: Board, job: int, config: int) -> None:
    count_in(board, job, config, 1)
    board.jobs[job, at.CONFIG], board.jobs[job, at.NODE] = config, board.jobs[job, at.JOB_COLUMNS]


@kernel
def powers_on_node(board: Board, job: int, config: int) -> bool:
    """Whether placing the job, on one node, would switch a node on."""
    jobs, nodes, configs, capacity = board.jobs, board.nodes, board.facts.configs, board.capacity
    v, preferred = configs[config, at.CONFIG_TYPE], int(jobs[job, at.PREFERRED_NODE])
    units = configs[config, at.CONFIG_UNITS]
    if board.has_several_shares and of_several(board, config):
        if not block_fits(board, config):
            return False
        n, _ = best_slot(board, job, config)
        return nodes[n, at.FREE] == nodes[n, at.USABLE]
    if units > 0 and (preferred < 0 or jobs[job, at.PREFERRED_SLOT] < 0) and capacity[v, at.FREE_SHARE] >= units:
        return False
    n = find_node(board, v, configs[config, at.CONFIG_GPUS], preferred)
    return n >= 0 and nodes[n, at.FREE] == nodes[n, at.USABLE]


@kernel
def would_restart(board: Board, job: int) -> bool:
    """Whether a change would cost the job, which runs, a restart."""
    jobs = board.jobs
    return jobs[job, at.OLD_CONFIG] >= 0 and max(jobs[job, at.RESTART_S], jobs[job, at.RESUMING_S]) > 0.0


@kernel
def keeps_config(board: Board, job: int, config: int) -> bool:
    """Whether the job has the GPUs of `config` already, and a change of place would cost it a restart."""
    return would_restart(board, job) and same_gpus(board, int(board.jobs[job, at.OLD_CONFIG]), config)


@kernel
def should_consolidate(board: Board, job: int, config: int) -> tuple[bool, bool]:
    """Whether placing the job would switch a node on wherever it goes, and whether it should leave its node.

    It should if only its previous place would have to be switched on for it. A job for which only the move would cost a
    restart stays on its node.
    """
    possible = board.facts.configs[config, at.CONFIG_NODES] == 1 and can_place(board, job, config)
    if not possible or keeps_config(board, job, config) or not powers_on_node(board, job, config):
        return False, False
    jobs = board.jobs
    preferred, slot = jobs[job, at.PREFERRED_NODE], jobs[job, at.PREFERRED_SLOT]
    if preferred < 0:
        return True, False
    clear_preferred_node(board, job)
    opening = powers_on_node(board, job, config)
    jobs[job, at.PREFERRED_NODE], jobs[job, at.PREFERRED_SLOT] = preferred, slot
    return opening, not opening
