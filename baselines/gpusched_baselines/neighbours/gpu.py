"""The jobs on one GPU: how fast each of them is, and how long all of them take."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.pace.by_duty import pace_by_duty

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints
    from gpusched_env.simulator.run import Board


class Company(NamedTuple):
    """Jobs that are on one GPU together, or would be.

    Attributes:
        jobs: The jobs, (K,).
        configs: Their shares, (K,).
        alone_s: What each has left, in seconds alone on the GPU, (K,).
        pace: Its pace now, 1 as alone, (K,); written by `set_paces`.
    """

    jobs: Ints
    configs: Ints
    alone_s: Floats
    pace: Floats


@kernel
def company_of(board: Board, last: int, before: Ints, left: Floats, more: int) -> Company:
    """List the jobs on a GPU, with room for `more` behind them.

    Args:
        board: The run.
        last: The last of the jobs there, a place in `active`; -1: none.
        before: The one before each job on its GPU, (A,) (`neighbours`).
        left: The epochs that every active job is taken to have left, (A,).
        more: How many rows stay free.
    """
    count, i = 0, last
    while i >= 0:
        count, i = count + 1, before[i]
    company = Company(
        np.empty(count + more, np.int64),
        np.empty(count + more, np.int64),
        np.empty(count + more),
        np.empty(count + more),
    )
    k, i = 0, last
    while i >= 0:
        job = board.active[i]
        join(board, company, k, job, int(board.jobs[job, at.CONFIG]), left[i])
        k, i = k + 1, before[i]
    return company


@kernel
def join(board: Board, company: Company, k: int, job: int, config: int, left: float) -> None:
    """Write a job with a share to row `k`; `left` are the epochs that it is taken to have left."""
    own = int(board.jobs[job, at.APPLICATION])
    company.jobs[k], company.configs[k] = job, config
    company.alone_s[k] = left * board.tau[job, config] / board.facts.planned[own, config]


@kernel
def set_paces(board: Board, company: Company) -> None:
    """Write at which pace each of the jobs runs that have something left, beside the others that have."""
    facts, alone_s = board.facts, company.alone_s
    size = company.jobs.shape[0]
    v = facts.configs[company.configs[0], at.CONFIG_TYPE]
    demand = np.zeros(at.PRIORITIES)
    by_duty = facts.duty.shape[0] > 0
    for k in range(size if by_duty else 0):
        if alone_s[k] > 0.0:
            own = int(board.jobs[company.jobs[k], at.APPLICATION])
            demand[facts.configs[company.configs[k], at.CONFIG_PRIORITY]] += facts.duty[v, own]
    for k in range(size):
        if by_duty:
            company.pace[k] = pace_by_duty(demand, facts.configs[company.configs[k], at.CONFIG_PRIORITY], facts.sharing)
            continue
        own, factor = int(board.jobs[company.jobs[k], at.APPLICATION]), 1.0
        for other in range(size if facts.slowdown.shape[0] > 0 else 0):
            if other != k and alone_s[other] > 0.0:
                factor += facts.slowdown[v, own, int(board.jobs[company.jobs[other], at.APPLICATION])] - 1.0
        company.pace[k] = 1.0 / factor


@kernel
def together_s(board: Board, company: Company) -> float:
    """Give how long the GPU is busy until all of the jobs are done [s]; `alone_s` is used up, `pace` overwritten."""
    total = 0.0
    while True:
        set_paces(board, company)
        step = np.inf
        for k in range(company.jobs.shape[0]):
            if company.alone_s[k] > 0.0:
                step = min(step, company.alone_s[k] / company.pace[k])
        if step == np.inf:
            return total
        total += step
        for k in range(company.jobs.shape[0]):
            rest = company.alone_s[k] - step * company.pace[k]
            company.alone_s[k] = rest if rest > 1e-9 * step else 0.0
