"""Placement: from configurations to nodes, never more GPUs than there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.node_index import find_node
from gpusched_env.simulator.placement.shared_gpus import best_slot, join, leave
from gpusched_env.simulator.placement.whole_gpus import hold, let_go
from gpusched_env.simulator.placement.whole_nodes import choose_nodes, hold_nodes, let_nodes_go

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints


@lean_kernel
def fits(configs: Ints, room: Ints, config: int) -> bool:
    """Say whether a configuration fits somewhere now."""
    v, gpus = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS]
    if configs[config, at.CONFIG_UNITS] > 0:
        return (room[v, at.GAP] > 0) | (room[v, at.OPENING] >= configs[config, at.CONFIG_UNITS])
    if configs[config, at.CONFIG_NODES] > 1:
        return (room[v, at.LARGEST] == gpus) & (room[v, at.EMPTY] >= configs[config, at.CONFIG_NODES])
    return room[v, at.GAP] >= gpus


@kernel
def take(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int, node: int, slot: int) -> None:
    """Give `job` a configuration of one node on `node`, where it must fit: whole GPUs, or the shared GPU `slot`."""
    if configs[config, at.CONFIG_UNITS] > 0:
        join(nodes, room, node, slot, configs[config, at.CONFIG_UNITS])
    else:
        hold(nodes, room, node, configs[config, at.CONFIG_GPUS])
    jobs[job, at.CONFIG] = config
    jobs[job, at.NODE] = node
    jobs[job, at.SLOT] = slot


@kernel
def release(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int) -> None:
    """Take from `job` what it holds in this round, if anything."""
    config = int(jobs[job, at.CONFIG])
    if config < 0:
        return
    node = int(jobs[job, at.NODE])
    if configs[config, at.CONFIG_UNITS] > 0:
        leave(nodes, room, node, int(jobs[job, at.SLOT]), configs[config, at.CONFIG_UNITS])
    elif configs[config, at.CONFIG_NODES] > 1:
        let_nodes_go(nodes, room, node)
    else:
        let_go(nodes, room, node, configs[config, at.CONFIG_GPUS])
    jobs[job, at.CONFIG] = -1.0
    jobs[job, at.NODE] = -1.0
    jobs[job, at.SLOT] = -1.0


@kernel
def place(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int) -> bool:
    """Give `job` the configuration `config` in its best place, instead of what it holds in this round.

    Whole GPUs go to the best-fit node, a share to the fullest shared GPU that has room, several nodes to empty ones;
    the job's previous place comes first wherever it fits, unless a policy has let it go (`View.forget_place`).

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS); changed.
        nodes: State of the nodes, (N, columns of `layout`); changed.
        configs: The configurations, (C, CONFIG_COLUMNS).
        room: What fits now by GPU type, (V, ROOM_COLUMNS); kept up to date.
        job: The job's index.
        config: The configuration's index.

    Returns:
        True if it was placed; False leaves everything as it was.
    """
    held = int(jobs[job, at.CONFIG])
    if held == config:
        return True
    if held < 0 and not fits(configs, room, config):
        return False
    if held >= 0:
        return _replace(jobs, nodes, configs, room, job, config)
    _put(jobs, nodes, configs, room, job, config)
    return True


@kernel
def _replace(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int) -> bool:
    """Give `job`, which holds something in this round, `config` instead, if it fits once that is free."""
    held, node, slot = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE]), int(jobs[job, at.SLOT])
    chain = nodes[:, at.NEXT].copy()
    release(jobs, nodes, configs, room, job)
    if fits(configs, room, config):
        _put(jobs, nodes, configs, room, job, config)
        return True
    if configs[held, at.CONFIG_NODES] > 1:
        nodes[:, at.NEXT] = chain
        hold_nodes(nodes, room, node)
        jobs[job, at.CONFIG] = held
        jobs[job, at.NODE] = node
    else:
        take(jobs, nodes, configs, room, job, held, node, slot)
    return False


@kernel
def _put(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int) -> None:
    """Give `job`, which holds nothing, `config`, which fits."""
    gpu_type, home = configs[config, at.CONFIG_TYPE], int(jobs[job, at.HOME])
    if configs[config, at.CONFIG_UNITS] > 0:
        units = configs[config, at.CONFIG_UNITS]
        node, slot = best_slot(nodes, room, gpu_type, units, home, int(jobs[job, at.HOME_SLOT]))
        take(jobs, nodes, configs, room, job, config, node, slot)
    elif configs[config, at.CONFIG_NODES] > 1:
        node = choose_nodes(nodes, room, gpu_type, configs[config, at.CONFIG_NODES], home)
        hold_nodes(nodes, room, node)
        jobs[job, at.CONFIG] = config
        jobs[job, at.NODE] = node
    else:
        node = find_node(nodes, room, gpu_type, configs[config, at.CONFIG_GPUS], home)
        take(jobs, nodes, configs, room, job, config, node, -1)


@kernel
def opens(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int) -> bool:
    """Say whether placing the job, on one node, would switch a node on."""
    v, home = configs[config, at.CONFIG_TYPE], int(jobs[job, at.HOME])
    units = configs[config, at.CONFIG_UNITS]
    if units > 0 and (home < 0 or jobs[job, at.HOME_SLOT] < 0) and room[v, at.OPENING] >= units:
        return False
    n = find_node(nodes, room, v, configs[config, at.CONFIG_GPUS], home)
    return n >= 0 and nodes[n, at.FREE] == nodes[n, at.NODE_GPUS]


@kernel
def would_restart(jobs: Floats, job: int) -> bool:
    """Say whether a change would cost the job, which runs, a restart."""
    return jobs[job, at.OLD_CONFIG] >= 0 and jobs[job, at.RESTART_S] > 0.0


@kernel
def keeps_config(jobs: Floats, job: int, config: int) -> bool:
    """Say whether the job has `config` already, and a change of place would cost it a restart."""
    return would_restart(jobs, job) and int(jobs[job, at.OLD_CONFIG]) == config


@kernel
def settle(jobs: Floats, nodes: Ints, configs: Ints, room: Ints, job: int, config: int) -> None:
    """Let a job's previous place go if that would have to be switched on for it, and a node that is on has room.

    A job that would pay for nothing but the move with a restart stays where it is.
    """
    if configs[config, at.CONFIG_NODES] > 1 or not fits(configs, room, config):
        return
    if jobs[job, at.HOME] < 0 or keeps_config(jobs, job, config) or not opens(jobs, nodes, configs, room, job, config):
        return
    home, slot = jobs[job, at.HOME], jobs[job, at.HOME_SLOT]
    jobs[job, at.HOME], jobs[job, at.HOME_SLOT] = -1.0, -1.0
    if opens(jobs, nodes, configs, room, job, config):
        jobs[job, at.HOME], jobs[job, at.HOME_SLOT] = home, slot
