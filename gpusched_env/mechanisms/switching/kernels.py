"""Costs of switching: seconds without progress when a job begins or changes what it holds, by distance.

A job needs `STARTING_S` until it has been ready once. After that its state is on the nodes where it was last ready: to
continue there takes `RESUMING_S`, elsewhere `RESTART_S`. A change of share on one GPU takes no time, nor does a change
of the power limit of the same GPUs (`rounds`). An instance whose costs do not depend on the distance
(`JobTable.resume_s` is None) has `RESTART_S` for every other change, on one GPU too.

With a `HostMemory` the states of paused jobs take room in the host memory of their nodes, and GPUs share links.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.shares.placement import has_room, of_several
from gpusched_env.mechanisms.switching.model import HostMemory
from gpusched_env.model.job import BYTES_PER_GIB, moving_s
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import mark_of
from gpusched_env.simulator.run import Board, Hidden
from gpusched_env.simulator.switching import longest_switch_s, place_of_state

if TYPE_CHECKING:
    from gpusched_env.model import Instance


@lean_kernel
def remember(board: Board, job: int) -> None:
    """Prefer the node where the state of a paused job is, if continuing there costs it less than a restart."""
    jobs = board.jobs
    cheaper = jobs[job, at.RESUMING_S] < jobs[job, at.RESTART_S]
    if jobs[job, at.NODE] < 0.0 and cheaper and state_is_known(board, job):
        jobs[job, at.PREFERRED_NODE] = jobs[job, at.LAST_NODE]


@kernel
def end_interval(board: Board, job: int, now: float) -> None:  # noqa: ARG001 - of the hook
    """Store all nodes of an interval that ends now: the state of the job is on them."""
    if board.has_nodes or board.has_spread or board.has_shares:
        board.jobs[job, at.LAST_NODES] = mark_of(board, job, True)


@kernel
def ready_at(board: Board, job: int, now: float, ready: float) -> float:
    jobs = board.jobs
    if board.count[at.DISTANCES] == 0:
        return ready
    if board.has_shares and _changes_share(board, job):
        return max(now, jobs[job, at.READY_S])
    there = jobs[job, at.LAST_NODE] >= 0.0 and jobs[job, at.NODE] == jobs[job, at.LAST_NODE]
    if there and mark_of(board, job, False) == jobs[job, at.LAST_NODES]:
        return now + resume_s(board, job, int(jobs[job, at.CONFIG]))
    return ready


@lean_kernel
def resume_s(board: Board, job: int, config: int) -> float:
    """Return the seconds without progress of a job that continues on `config` where its state is.

    All its GPUs move the state, those of one PCIe link one after the other; it restarts if that is sooner.
    """
    jobs = board.jobs
    on_link = min(board.facts.configs[config, at.CONFIG_GPUS], board.count[at.LINK_GPUS])
    moved_s = jobs[job, at.RESUMING_S] + (on_link - 1) * jobs[job, at.MOVING_S]
    return min(moved_s, longest_switch_s(board, job))


@lean_kernel
def state_is_known(board: Board, job: int) -> bool:
    """Whether the state of a job is on the GPUs where it runs, or where it was last ready; else it was dropped."""
    jobs = board.jobs
    if jobs[job, at.OLD_CONFIG] >= 0.0 and jobs[job, at.READY_S] <= board.clock[at.NOW]:
        return True
    return jobs[job, at.LAST_NODES] != at.NO_MARK


@lean_kernel
def leave_pool(board: Board, job: int) -> None:
    node = int(board.jobs[job, at.POOL_NODE])
    if node >= 0:
        board.nodes[node, at.POOL_FREE] += int(board.jobs[job, at.STATE_BYTES])
        board.jobs[job, at.POOL_NODE] = -1.0


@kernel
def commit(board: Board) -> None:
    if board.count[at.LIMITED_POOL] > 0:
        keep_states(board)


@kernel
def keep_states(board: Board) -> None:
    """Put the states of jobs that this round paused into the host memory of their nodes, by index of the job.

    A state for which there is no room, or that is on several nodes, is dropped.
    """
    jobs, nodes, active = board.jobs, board.nodes, board.active
    for i in range(board.count[at.ACTIVE]):
        job = active[i]
        if jobs[job, at.CONFIG] >= 0.0 or jobs[job, at.OLD_CONFIG] < 0.0 or jobs[job, at.LAST_NODE] < 0.0:
            continue
        node, size = int(jobs[job, at.LAST_NODE]), int(jobs[job, at.STATE_BYTES])
        one = jobs[job, at.LAST_NODES] == node + 1  # the mark of one node
        if one and nodes[node, at.POOL_FREE] >= size:
            nodes[node, at.POOL_FREE] -= size
            jobs[job, at.POOL_NODE] = node
        else:
            jobs[job, at.LAST_NODES] = at.NO_MARK


@lean_kernel
def pause_cost_s(board: Board, job: int, seconds: float) -> float:
    if board.count[at.DISTANCES] == 0:
        return seconds
    jobs, node = board.jobs, place_of_state(board, job)
    held = int(jobs[job, at.OLD_CONFIG])
    one = held < 0 or board.facts.configs[held, at.CONFIG_NODES] == 1
    limited = board.count[at.LIMITED_POOL] > 0
    if limited and not (one and board.nodes[node, at.POOL_FREE] >= int(jobs[job, at.STATE_BYTES])):
        return seconds
    return jobs[job, at.RESUMING_S] if held < 0 else resume_s(board, job, held)


@lean_kernel
def _changes_share(board: Board, job: int) -> bool:
    jobs, configs = board.jobs, board.facts.configs
    before, config = int(jobs[job, at.OLD_CONFIG]), int(jobs[job, at.CONFIG])
    if before < 0 or configs[before, at.CONFIG_UNITS] == 0 or configs[config, at.CONFIG_UNITS] == 0:
        return False
    for column in (at.CONFIG_GPUS, at.CONFIG_NODES):
        if configs[before, column] != configs[config, column]:
            return False
    return jobs[job, at.NODE] == jobs[job, at.OLD_NODE] and jobs[job, at.SLOT] == jobs[job, at.OLD_SLOT]


@lean_kernel
def switch_cost_s(board: Board, job: int, config: int, seconds: float) -> float:
    jobs, held = board.jobs, int(board.jobs[job, at.OLD_CONFIG])
    if board.count[at.DISTANCES] == 0:
        return seconds
    if board.has_shares and held >= 0 and _share_fits(board, job, config):
        return max(0.0, jobs[job, at.READY_S] - board.clock[at.NOW])
    there = state_is_known(board, job) and _fits_now(board, job, config, place_of_state(board, job))
    return resume_s(board, job, config) if there else seconds


@lean_kernel
def _share_fits(board: Board, job: int, config: int) -> bool:
    """Whether `config` is a share that fits on the GPUs of which the job had a share when the round began.

    Of several GPUs only the share that the job holds now is known to fit there.
    """
    jobs, nodes, configs, held = board.jobs, board.nodes, board.facts.configs, int(board.jobs[job, at.CONFIG])
    node, slot, units = int(jobs[job, at.OLD_NODE]), int(jobs[job, at.OLD_SLOT]), configs[config, at.CONFIG_UNITS]
    if units == 0 or slot < 0 or nodes[node, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
        return False
    if of_several(board, config) or of_several(board, int(jobs[job, at.OLD_CONFIG])):
        same = configs[config, at.CONFIG_GPUS] == configs[int(jobs[job, at.OLD_CONFIG]), at.CONFIG_GPUS]
        same = same and configs[config, at.CONFIG_NODES] == configs[int(jobs[job, at.OLD_CONFIG]), at.CONFIG_NODES]
        return same and has_room(board, config, node, slot, False)
    own = held >= 0 and int(jobs[job, at.NODE]) == node and int(jobs[job, at.SLOT]) == slot
    used = nodes[node, at.NODE_COLUMNS + slot] - (configs[held, at.CONFIG_UNITS] if own else 0)
    return used + units <= at.UNITS and (own or used > 0 or nodes[node, at.FREE] > 0)


@lean_kernel
def _fits_now(board: Board, job: int, config: int, node: int) -> bool:
    """Whether a configuration of one node fits on `node` after the job itself is released."""
    jobs, nodes, configs, held = board.jobs, board.nodes, board.facts.configs, int(board.jobs[job, at.CONFIG])
    if configs[config, at.CONFIG_NODES] > 1 or nodes[node, at.NODE_TYPE] != configs[config, at.CONFIG_TYPE]:
        return False
    own = held >= 0 and int(jobs[job, at.NODE]) == node
    free = nodes[node, at.FREE] + (configs[held, at.CONFIG_GPUS] if own else 0)
    return free >= configs[config, at.CONFIG_GPUS]


def begin(instance: Instance, board: Board, hidden: Hidden) -> None:
    """Write what the costs of an instance depend on at the beginning of a run."""
    host, state_gib = instance.of(HostMemory), instance.jobs.state_gib
    board.count[at.DISTANCES] = int(instance.jobs.resume_s is not None)
    board.count[at.LINK_GPUS] = 1 if host is None else host.gpus_per_link
    if host is None:
        return
    hidden.jobs[:, at.STATE_BYTES] = np.ceil(state_gib * BYTES_PER_GIB)
    hidden.jobs[:, at.MOVING_S] = moving_s(1.0, host.bandwidth_gb_per_s) * state_gib
    if host.pool_gib < np.inf:
        board.count[at.LIMITED_POOL] = 1
        board.nodes[:, at.POOL_FREE] = int(host.pool_gib * BYTES_PER_GIB)


register(
    "switching",
    {
        hooks.remember: remember,
        hooks.end_interval: end_interval,
        hooks.begin_interval: leave_pool,
        hooks.ready_at: ready_at,
        hooks.commit: commit,
        hooks.pause_s: pause_cost_s,
        hooks.switch_s: switch_cost_s,
    },
    begin=begin,
)
