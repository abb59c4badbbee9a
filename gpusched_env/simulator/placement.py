"""Placement: from configurations to nodes, never more GPUs than there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints

WIDE = 65536  # more GPUs than a node can have


@kernel
def fit_key(nodes: Ints, n: int, gpu_type: int, gpus: int, home: int) -> int:
    """Rank node `n` for `gpus` GPUs of type `gpu_type`: the smaller the better, unique, -1 if they do not fit.

    First the job's previous node `home`, if they still fit there: no needless migration. Then by fewest free GPUs.
    Among equals, nodes on which they fitted before the round began, again the fullest first, so that a job that came
    later does not drive out one that will want its node back. Then by index.
    """
    free = nodes[n, at.FREE]
    if nodes[n, at.NODE_TYPE] != gpu_type or free < gpus:
        return -1
    if n == home:
        return 0
    before = nodes[n, at.OLD_FREE]
    return (free * WIDE + (before if before >= gpus else WIDE - 1)) * nodes.shape[0] + n


@kernel
def best_fit(nodes: Ints, gpu_type: int, gpus: int, home: int, after: int) -> int:
    """Find the best node by `fit_key` among those whose key is above `after` (-1: all).

    Returns:
        The node's index, or -1 if the GPUs fit nowhere.
    """
    if home >= 0 and after < 0 and fit_key(nodes, home, gpu_type, gpus, home) == 0:
        return home
    best, best_key = -1, 0
    for n in range(nodes.shape[0]):
        key = fit_key(nodes, n, gpu_type, gpus, home)
        if key > after and (best < 0 or key < best_key):
            best, best_key = n, key
    return best


@kernel
def largest_gap(nodes: Ints, gpu_type: int) -> int:
    """Count the most GPUs of type `gpu_type` that are free on one node."""
    most = 0
    for n in range(nodes.shape[0]):
        if nodes[n, at.NODE_TYPE] == gpu_type and nodes[n, at.FREE] > most:
            most = nodes[n, at.FREE]
    return most


@kernel
def take(jobs: Floats, nodes: Ints, configs: Ints, gaps: Ints, job: int, config: int, node: int) -> None:
    """Give `job` the configuration `config` on `node`, where it must fit."""
    gpu_type = configs[config, at.CONFIG_TYPE]
    before = nodes[node, at.FREE]
    nodes[node, at.FREE] = before - configs[config, at.CONFIG_GPUS]
    if before == gaps[gpu_type]:
        gaps[gpu_type] = largest_gap(nodes, gpu_type)
    jobs[job, at.CONFIG] = config
    jobs[job, at.NODE] = node


@kernel
def release(jobs: Floats, nodes: Ints, configs: Ints, gaps: Ints, job: int) -> None:
    """Take from `job` what it holds in this round, if anything."""
    config = int(jobs[job, at.CONFIG])
    if config < 0:
        return
    node = int(jobs[job, at.NODE])
    gpu_type = configs[config, at.CONFIG_TYPE]
    nodes[node, at.FREE] += configs[config, at.CONFIG_GPUS]
    gaps[gpu_type] = max(gaps[gpu_type], nodes[node, at.FREE])
    jobs[job, at.CONFIG] = -1.0
    jobs[job, at.NODE] = -1.0


@kernel
def place(jobs: Floats, nodes: Ints, configs: Ints, gaps: Ints, job: int, config: int) -> bool:
    """Give `job` the configuration `config` on its best-fit node, in place of what it holds in this round.

    Args:
        jobs: State of the jobs, (J, JOB_COLUMNS); changed.
        nodes: State of the nodes, (N, NODE_COLUMNS); changed.
        configs: The configurations, (C, CONFIG_COLUMNS).
        gaps: Most free GPUs on one node of each type, (V,); kept up to date.
        job: The job's index.
        config: The configuration's index.

    Returns:
        True if it was placed; False leaves everything as it was.
    """
    held, held_node = int(jobs[job, at.CONFIG]), int(jobs[job, at.NODE])
    if held == config:
        return True
    release(jobs, nodes, configs, gaps, job)
    node = -1
    if gaps[configs[config, at.CONFIG_TYPE]] >= configs[config, at.CONFIG_GPUS]:
        home = int(jobs[job, at.OLD_NODE])
        node = best_fit(nodes, configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_GPUS], home, -1)
    if node < 0:
        if held >= 0:
            take(jobs, nodes, configs, gaps, job, held, held_node)
        return False
    take(jobs, nodes, configs, gaps, job, config, node)
    return True
