"""The decision round: what changes hands between two events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate, log_interval, pass_milestones
from gpusched_env.simulator.kernel import kernel
from gpusched_env.simulator.placement import largest_gap

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints

# Kinds of order in which a round asks its jobs.
PRESSURE, BY_SUBMISSION, BY_DUE, BY_WEIGHT = range(4)


@kernel
def begin_round(jobs: Floats, nodes: Ints, count: Ints, active: Ints, gaps: Ints, preemption: bool) -> None:
    """Open a round: remember what is held and, with `preemption`, begin from an empty cluster."""
    for n in range(nodes.shape[0]):
        nodes[n, at.OLD_FREE] = nodes[n, at.FREE]
        if preemption:
            nodes[n, at.FREE] = nodes[n, at.NODE_GPUS]
    for v in range(gaps.shape[0]):
        gaps[v] = largest_gap(nodes, v)
    for i in range(count[at.ACTIVE]):
        job = active[i]
        jobs[job, at.OLD_CONFIG] = jobs[job, at.CONFIG]
        jobs[job, at.OLD_NODE] = jobs[job, at.NODE]
        if preemption:
            jobs[job, at.CONFIG] = -1.0
            jobs[job, at.NODE] = -1.0
    count[at.ROUND] += 1
    count[at.ASKED] = 0
    count[at.TO_ASK] = 0


@kernel
def commit_round(
    jobs: Floats,
    hidden: Floats,
    nodes: Ints,
    tau: Floats,
    rates: Floats,
    clock: Floats,
    count: Ints,
    active: Ints,
    log: Floats,
) -> None:
    """Close a round: end the intervals that changed, begin the new ones, and take the new cost rate."""
    now = clock[at.NOW]
    for i in range(count[at.ACTIVE]):
        job = active[i]
        config = jobs[job, at.CONFIG]
        old = jobs[job, at.OLD_CONFIG]
        if config == old and jobs[job, at.NODE] == jobs[job, at.OLD_NODE]:
            continue
        if old >= 0:
            log_interval(jobs, count, log, job, old, jobs[job, at.OLD_NODE], now)
        started = not np.isnan(jobs[job, at.START_S])
        jobs[job, at.SWITCHES] += 1.0 if started else 0.0
        jobs[job, at.BASE_EPOCHS] = jobs[job, at.EPOCHS]
        jobs[job, at.BASE_S] = now
        if config < 0:
            hidden[job, at.FINISH_S] = np.inf
            continue
        jobs[job, at.READY_S] = now
        if started:
            jobs[job, at.READY_S] += clock[at.RESTART]
        else:
            jobs[job, at.START_S] = now
        to_do = max(0.0, hidden[job, at.NEEDED] - jobs[job, at.EPOCHS])
        hidden[job, at.FINISH_S] = jobs[job, at.READY_S] + to_do * tau[job, int(config)]
    clock[at.BILL_RATE] = bill_rate(nodes, rates)
    if count[at.MILESTONES] > 0:
        pass_milestones(jobs, tau, count, active, now)


@kernel
def round_keys(jobs: Floats, clock: Floats, count: Ints, active: Ints, keys: Floats, kind: int) -> None:
    """Write the sort key of every active job to `keys`; the smallest is asked first.

    The pressure of a job is t + its least remaining execution time (worst case) - its due date.
    """
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if kind == PRESSURE:
            least = (jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]) * jobs[job, at.MIN_TAU]
            keys[i] = jobs[job, at.DUE] - least - clock[at.NOW]
        elif kind == BY_SUBMISSION:
            keys[i] = jobs[job, at.SUBMISSION]
        elif kind == BY_DUE:
            keys[i] = jobs[job, at.DUE]
        else:
            keys[i] = -jobs[job, at.WEIGHT]


@kernel
def order_round(jobs: Floats, count: Ints, active: Ints, keys: Floats, order: Ints, waiting_only: bool) -> None:
    """Write the jobs that the round asks to `order`, by key, equal ones by index."""
    chosen = 0
    sort_keys = np.empty(count[at.ACTIVE])
    members = np.empty(count[at.ACTIVE], dtype=np.int64)
    for i in range(count[at.ACTIVE]):
        if not waiting_only or jobs[active[i], at.CONFIG] < 0:
            sort_keys[chosen] = keys[i]
            members[chosen] = active[i]
            chosen += 1
    ranks = np.argsort(sort_keys[:chosen], kind="mergesort")
    for i in range(chosen):
        order[i] = members[ranks[i]]
    count[at.TO_ASK] = chosen
    count[at.ASKED] = 0
