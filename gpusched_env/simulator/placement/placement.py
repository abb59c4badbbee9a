"""Placement: from configurations to nodes, never more GPUs than there are."""

from __future__ import annotations

from gpusched_env.arrays import Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import chain_of, same_gpus
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.whole_gpus import hold, release
from gpusched_env.simulator.run import Board


@lean_kernel
def can_place(board: Board, job: int, config: int) -> bool:
    """Whether a job can get a configuration now: it fits somewhere, and no mechanism forbids it."""
    return fits(board, config) and hooks.may_place(board, job, config, True)


@lean_kernel
def fits(board: Board, config: int) -> bool:
    """Whether a configuration fits somewhere now."""
    of_kind = hooks.fits_kind(board, config, -1)
    if of_kind >= 0:
        return of_kind > 0
    configs = board.facts.configs
    return board.capacity[configs[config, at.CONFIG_TYPE], at.FREE_BLOCK] >= configs[config, at.CONFIG_GPUS]


@lean_kernel
def can_resize(board: Board, job: int, config: int) -> bool:
    """Whether a job may get a configuration in place of the one that it holds, on the same nodes."""
    return hooks.may_resize(board, job, config, True)


@lean_kernel
def resize(board: Board, job: int, config: int) -> None:
    """Set the configuration of a job to `config`; the caller updates the counts of its node."""
    hooks.count_in(board, job, int(board.jobs[job, at.CONFIG]), -1)
    hooks.count_in(board, job, config, 1)
    board.jobs[job, at.CONFIG] = config


@kernel
def take(board: Board, job: int, config: int, node: int, slot: int) -> None:
    """Place `job` on `node`, where it must fit: its GPUs, or parts of them from `slot` on."""
    jobs, configs = board.jobs, board.facts.configs
    hooks.use_node(board, node)
    if not hooks.take_kind(board, config, node, slot, False):
        hold(board, node, configs[config, at.CONFIG_GPUS])
    hooks.count_in(board, job, config, 1)
    jobs[job, at.CONFIG] = config
    jobs[job, at.NODE] = node
    jobs[job, at.SLOT] = slot


@kernel
def place(board: Board, job: int, config: int) -> bool:
    """Place `job` with the configuration `config` in its best place, instead of what it holds in this round.

    Whole GPUs go to the best-fit node, other kinds of configurations where their mechanism puts them; the job's
    previous place comes first wherever it fits, unless a policy cleared it (`View.clear_preferred_node`).

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
    if config >= 0 and not hooks.put_back(board, job, config, node, chain, False):
        take(board, job, config, node, slot)


@kernel
def exchange(board: Board, job: int, other: int) -> None:
    """Exchange what two jobs hold in this round; one may hold nothing. No counts of mechanisms are updated."""
    jobs = board.jobs
    for column in (at.CONFIG, at.NODE, at.SLOT):
        jobs[job, column], jobs[other, column] = jobs[other, column], jobs[job, column]
    hooks.exchange_held(board, job, other)


@kernel
def clear_preferred_node(board: Board, job: int) -> None:
    """Clear the preferred node of a job: it is placed in this round as a new one."""
    board.jobs[job, at.PREFERRED_NODE], board.jobs[job, at.PREFERRED_SLOT] = -1.0, -1.0


@kernel
def set_preferred_node(board: Board, job: int, node: int, gpu: int) -> None:
    """Set the node, and its GPU, on which a job is placed first in this round; else it is placed as new."""
    board.jobs[job, at.PREFERRED_NODE], board.jobs[job, at.PREFERRED_SLOT] = node, gpu


@kernel
def _put(board: Board, job: int, config: int) -> None:
    """Place `job`, which holds nothing, with `config`, which fits."""
    if not hooks.put(board, job, config, False):
        configs, preferred = board.facts.configs, int(board.jobs[job, at.PREFERRED_NODE])
        node = find_node(board, configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS], preferred)
        take(board, job, config, node, -1)


@kernel
def powers_on_node(board: Board, job: int, config: int) -> bool:
    """Whether placing the job, on one node, would switch a node on."""
    jobs, nodes, configs = board.jobs, board.nodes, board.facts.configs
    v, preferred = configs[config, at.CONFIG_TYPE], int(jobs[job, at.PREFERRED_NODE])
    opens = hooks.opens_node(board, job, config, -1)
    if opens >= 0:
        return opens > 0
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
