"""The decision round: what changes hands between two events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate, log_interval, pace, pass_milestones
from gpusched_env.simulator.interference import write_paces
from gpusched_env.simulator.placement.node_index import clear_index, enter
from gpusched_env.simulator.placement.shared_gpus import largest_opening, slots
from gpusched_env.simulator.placement.whole_nodes import same_chain

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints

# Kinds of order in which a round asks its jobs.
PRESSURE, BY_SUBMISSION, BY_DUE, BY_WEIGHT = range(4)


@kernel
def begin_round(jobs: Floats, nodes: Ints, count: Ints, active: Ints, room: Ints, preemption: bool) -> None:
    """Open a round: remember what is held and, with `preemption`, begin from an empty cluster."""
    shared = slots(nodes)
    for n in range(nodes.shape[0]):
        nodes[n, at.OLD_FREE] = nodes[n, at.FREE]
        nodes[n, at.OLD_NEXT] = nodes[n, at.NEXT]
        for gpu in range(shared):
            nodes[n, at.NODE_COLUMNS + shared + gpu] = nodes[n, at.NODE_COLUMNS + gpu]
    for i in range(count[at.ACTIVE]):
        job = active[i]
        jobs[job, at.OLD_CONFIG] = jobs[job, at.CONFIG]
        jobs[job, at.OLD_NODE] = jobs[job, at.NODE]
        jobs[job, at.OLD_SLOT] = jobs[job, at.SLOT]
        jobs[job, at.HOME] = jobs[job, at.NODE]
        jobs[job, at.HOME_SLOT] = jobs[job, at.SLOT]
    if preemption:
        clear(jobs, nodes, active[: count[at.ACTIVE]], room)
    else:
        measure(nodes, room)
    count[at.ROUND] += 1
    count[at.ASKED] = 0
    count[at.TO_ASK] = 0


@kernel
def clear(jobs: Floats, nodes: Ints, holders: Ints, room: Ints) -> None:
    """Empty the cluster; `holders` are all jobs that may hold something."""
    shared = slots(nodes)
    for n in range(nodes.shape[0]):
        nodes[n, at.FREE] = nodes[n, at.NODE_GPUS]
        nodes[n, at.NEXT] = -1
        for gpu in range(shared):
            nodes[n, at.NODE_COLUMNS + gpu] = 0
    for job in holders:
        jobs[job, at.CONFIG] = -1.0
        jobs[job, at.NODE] = -1.0
        jobs[job, at.SLOT] = -1.0
    measure(nodes, room)


@kernel
def measure(nodes: Ints, room: Ints) -> None:
    """Write what fits now on the nodes of every GPU type to `room`."""
    for v in range(room.shape[0]):
        for column in range(at.SIZES):
            room[v, column] = 0
    for n in range(nodes.shape[0]):
        v, free = nodes[n, at.NODE_TYPE], nodes[n, at.FREE]
        room[v, at.LARGEST] = max(room[v, at.LARGEST], nodes[n, at.NODE_GPUS])
        room[v, at.GAP] = max(room[v, at.GAP], free)
    for n in range(nodes.shape[0]):
        v = nodes[n, at.NODE_TYPE]
        room[v, at.EMPTY] += 1 if nodes[n, at.FREE] == room[v, at.LARGEST] else 0
    if slots(nodes) > 0:
        for v in range(room.shape[0]):
            room[v, at.OPENING] = largest_opening(nodes, v)
    if room[0, at.SIZES] > 0:
        clear_index(room)
        for n in range(nodes.shape[0]):
            enter(nodes, room, n)


@kernel
def stays(jobs: Floats, nodes: Ints, job: int) -> bool:
    """Say whether a job holds the same configuration in the same place as when the round began."""
    if jobs[job, at.CONFIG] != jobs[job, at.OLD_CONFIG] or jobs[job, at.NODE] != jobs[job, at.OLD_NODE]:
        return False
    if jobs[job, at.CONFIG] < 0:
        return True
    chained = same_chain(nodes, int(jobs[job, at.NODE]), int(jobs[job, at.OLD_NODE]))
    return chained and jobs[job, at.SLOT] == jobs[job, at.OLD_SLOT]


@kernel
def commit_round(
    jobs: Floats,
    hidden: Floats,
    nodes: Ints,
    tau: Floats,
    rates: Floats,
    slowdown: Floats,
    planned: Floats,
    clock: Floats,
    count: Ints,
    active: Ints,
    log: Floats,
) -> None:
    """Close a round: end the intervals that changed, begin the new ones, and take the new paces and cost rate."""
    now = clock[at.NOW]
    paces = np.empty(count[at.ACTIVE])
    write_paces(jobs, nodes, slowdown, planned, count, active, paces)
    for i in range(count[at.ACTIVE]):
        job = active[i]
        same = stays(jobs, nodes, job)
        if not same:
            _begin_interval(jobs, hidden, nodes, count, log, job, now)
        if jobs[job, at.CONFIG] >= 0 and not (same and paces[i] == jobs[job, at.PACE]):
            jobs[job, at.PACE] = paces[i]
            jobs[job, at.ANCHOR_EPOCHS] = jobs[job, at.EPOCHS]
            jobs[job, at.ANCHOR_S] = max(now, jobs[job, at.READY_S])
            to_do = max(0.0, hidden[job, at.NEEDED] - jobs[job, at.EPOCHS])
            hidden[job, at.FINISH_S] = jobs[job, at.ANCHOR_S] + to_do * pace(jobs, tau, job)
    clock[at.BILL_RATE] = bill_rate(nodes, rates)
    if count[at.MILESTONES] > 0:
        pass_milestones(jobs, tau, count, active, now)


@kernel
def _begin_interval(jobs: Floats, hidden: Floats, nodes: Ints, count: Ints, log: Floats, job: int, now: float) -> None:
    """End the interval of what a job held, and begin that of what it holds now, if anything."""
    if jobs[job, at.OLD_CONFIG] >= 0:
        log_interval(jobs, nodes, count, log, job, True, now)
    started = not np.isnan(jobs[job, at.START_S])
    jobs[job, at.SWITCHES] += 1.0 if started else 0.0
    jobs[job, at.BASE_EPOCHS] = jobs[job, at.EPOCHS]
    jobs[job, at.BASE_S] = now
    if jobs[job, at.CONFIG] < 0:
        hidden[job, at.FINISH_S] = np.inf
        return
    jobs[job, at.READY_S] = now
    if started:
        jobs[job, at.READY_S] += jobs[job, at.RESTART_S]
    else:
        jobs[job, at.START_S] = now


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
