"""Quotas: what the jobs of every tenant hold of each GPU type, and whether a configuration is covered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np

from gpusched_env.arrays import Ints
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.holdings import QUOTA
from gpusched_env.simulator.run import Board

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Instance


class QuotaBoard(Board):
    """Adds what tenants may hold.

    Attributes:
        quota: What the jobs of every tenant may hold of each GPU type, and do hold [units], (T, 2 V); (0, 2 V) without
            quotas.
    """

    together = ("quota",)

    quota: Annotated[Ints, 2]


def arrays(instance: Instance) -> dict[str, NDArray[np.int64]]:
    """Return the arrays of an instance at the beginning of a run."""
    tenants = Tenants.of(instance).quotas(instance) * at.UNITS
    return {"quota": np.hstack([tenants, np.zeros_like(tenants)])}


@lean_kernel
def tenants_with_quotas(board: Board) -> int:
    """Count the tenants, if they have quotas; else 0."""
    return board.quota.shape[0] if board.has_quotas else 0


@lean_kernel
def within_quota(board: Board, job: int, config: int) -> bool:
    """Whether the quota of the job's tenant covers a configuration in addition to what its other jobs hold."""
    if not board.has_quotas or board.quota.shape[0] == 0:
        return True
    quota = board.quota
    types, tenant = quota.shape[1] // 2, int(board.jobs[job, at.TENANT])
    v, units = board.facts.configs[config, at.CONFIG_TYPE], board.facts.configs[config, at.CONFIG_SIZE]
    return quota[tenant, types + v] + units <= quota[tenant, v]


@lean_kernel
def may_place(board: Board, job: int, config: int, allowed: bool) -> bool:
    return allowed and within_quota(board, job, config)


@lean_kernel
def may_resize(board: Board, job: int, config: int, allowed: bool) -> bool:
    if not allowed:
        return False
    hooks.count_in(board, job, int(board.jobs[job, at.CONFIG]), -1)
    covered = within_quota(board, job, config)
    hooks.count_in(board, job, int(board.jobs[job, at.CONFIG]), 1)
    return covered


@lean_kernel
def count_in(board: Board, job: int, config: int, times: int) -> None:
    quota = board.quota
    if quota.shape[0] > 0:
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
def holding_error(board: Board, job: int, config: int, node: int, slot: int, chain: Ints, wrong: int) -> int:  # noqa: ARG001
    return wrong if within_quota(board, job, config) else QUOTA


@kernel
def copy_arrays(board: Board, source: Board) -> None:
    board.quota[:, :] = source.quota


register(
    "quotas",
    {
        hooks.recount: recount,
        hooks.may_place: may_place,
        hooks.may_resize: may_resize,
        hooks.count_in: count_in,
        hooks.empty_jobs: recount,
        hooks.holding_error: holding_error,
        hooks.copy_arrays: copy_arrays,
    },
    (QuotaBoard,),
    arrays,
)
