"""Release of what jobs hold, and the use of quotas."""

from __future__ import annotations

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.shared_gpus import leave_all
from gpusched_env.simulator.placement.spread_gpus import let_spread_go
from gpusched_env.simulator.placement.under_cap import grown_kw
from gpusched_env.simulator.placement.whole_gpus import let_go, let_nodes_go
from gpusched_env.simulator.run import Board
from gpusched_env.simulator.site_power import count_saved, has_hard_cap, is_above_cap


@lean_kernel
def within_quota(board: Board, job: int, config: int) -> bool:
    """Whether the quota of the job's tenant covers a configuration in addition to what its other jobs hold."""
    quota = board.quota
    if quota.shape[0] == 0:
        return True
    types, tenant = quota.shape[1] // 2, int(board.jobs[job, at.TENANT])
    v, units = board.facts.configs[config, at.CONFIG_TYPE], board.facts.configs[config, at.CONFIG_SIZE]
    return quota[tenant, types + v] + units <= quota[tenant, v]


@lean_kernel
def count_in(board: Board, job: int, config: int, times: int) -> None:
    """Add what a job gets (`times` 1), or subtract what it returns (-1), in quotas and in the power of the site."""
    quota = board.quota
    if board.has_site:
        count_saved(board, job, config, times)
    if board.has_quotas and quota.shape[0] > 0:
        v, units = board.facts.configs[config, at.CONFIG_TYPE], board.facts.configs[config, at.CONFIG_SIZE]
        quota[int(board.jobs[job, at.TENANT]), quota.shape[1] // 2 + v] += times * units


@kernel
def recount(board: Board) -> None:
    quota, jobs, active = board.quota, board.jobs, board.active
    if quota.shape[0] == 0:
        return
    quota[:, quota.shape[1] // 2 :] = 0
    for i in range(board.count[at.ACTIVE]):
        config = int(jobs[active[i], at.CONFIG])
        if config >= 0:
            count_in(board, active[i], config, 1)


@lean_kernel
def can_resize(board: Board, job: int, config: int) -> bool:
    """Whether quota and cap allow a configuration in place of the one that the job holds, on the same nodes."""
    if has_hard_cap(board) and is_above_cap(board, grown_kw(board, job, config)):
        return False
    count_in(board, job, int(board.jobs[job, at.CONFIG]), -1)
    covered = within_quota(board, job, config)
    count_in(board, job, int(board.jobs[job, at.CONFIG]), 1)
    return covered


@lean_kernel
def resize(board: Board, job: int, config: int) -> None:
    """Set the configuration of a job to `config`, and update the quota; the caller updates the counts of its node."""
    count_in(board, job, int(board.jobs[job, at.CONFIG]), -1)
    count_in(board, job, config, 1)
    board.jobs[job, at.CONFIG] = config


@kernel
def release(board: Board, job: int) -> None:
    """Release what `job` holds in this round, if anything."""
    jobs, configs = board.jobs, board.facts.configs
    config = int(jobs[job, at.CONFIG])
    if config < 0:
        return
    node = int(jobs[job, at.NODE])
    if board.has_shares and configs[config, at.CONFIG_UNITS] > 0:
        leave_all(board, config, node, int(jobs[job, at.SLOT]))
    elif board.has_spread and configs[config, at.CONFIG_SPREAD] > 0:
        let_spread_go(board, job, config)
    elif board.has_nodes and configs[config, at.CONFIG_NODES] > 1:
        let_nodes_go(board, node)
    else:
        let_go(board, node, configs[config, at.CONFIG_GPUS])
    count_in(board, job, config, -1)
    jobs[job, at.CONFIG] = -1.0
    jobs[job, at.NODE] = -1.0
    jobs[job, at.SLOT] = -1.0
