"""The decision round: changes of holdings between two events, and the process that agents step through."""

from __future__ import annotations

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import due_date_timer_s
from gpusched_env.simulator.events import advance, bill_rate, log_interval, pass_milestones, take_speed
from gpusched_env.simulator.placement.free_capacity import clear, measure
from gpusched_env.simulator.placement.held_nodes import same_gpus, same_nodes
from gpusched_env.simulator.placement.placement import clear_preferred_node, place, should_consolidate
from gpusched_env.simulator.run import Board, Hidden
from gpusched_env.simulator.sorting import pressure, ranked

# Kinds of order in which a round asks its jobs.
PRESSURE, BY_SUBMISSION, BY_DUE, BY_WEIGHT = range(4)
NAMED_ORDERS = {"pressure": PRESSURE, "submission": BY_SUBMISSION, "due": BY_DUE, "weight": BY_WEIGHT}

# What a round leaves a job: other GPUs, the same that may draw another power, or all as it was.
CHANGED, SAME_GPUS, UNCHANGED = range(3)


@kernel
def begin_round(board: Board, preemption: bool) -> None:
    """Open a round: store what is held and, with `preemption`, begin from an empty cluster."""
    jobs, nodes, count, active = board.jobs, board.nodes, board.count, board.active
    hooks.open_round(board)
    for n in range(nodes.shape[0]):
        nodes[n, at.OLD_FREE] = nodes[n, at.FREE]
        nodes[n, at.OLD_NEXT] = nodes[n, at.NEXT]
    for i in range(count[at.ACTIVE]):
        job = active[i]
        jobs[job, at.OLD_CONFIG] = jobs[job, at.CONFIG]
        jobs[job, at.OLD_NODE] = jobs[job, at.NODE]
        jobs[job, at.OLD_SLOT] = jobs[job, at.SLOT]
        jobs[job, at.PREFERRED_NODE] = jobs[job, at.NODE]
        jobs[job, at.PREFERRED_SLOT] = jobs[job, at.SLOT]
        hooks.remember(board, job)
    if preemption:
        clear(board, active[: count[at.ACTIVE]])
    else:
        measure(board)
    count[at.ROUND] += 1
    count[at.ASKED] = 0
    count[at.TO_ASK] = 0


@kernel
def stays(board: Board, job: int) -> bool:
    return board.jobs[job, at.CONFIG] == board.jobs[job, at.OLD_CONFIG] and keeps_gpus(board, job)


@kernel
def keeps_gpus(board: Board, job: int) -> bool:
    """Whether a job holds the same GPUs as when the round began, whatever power they may draw; or nothing, as then."""
    jobs = board.jobs
    if jobs[job, at.NODE] != jobs[job, at.OLD_NODE] or not same_gpus(
        board, int(jobs[job, at.OLD_CONFIG]), int(jobs[job, at.CONFIG])
    ):
        return False
    if jobs[job, at.CONFIG] < 0:
        return True
    if jobs[job, at.SLOT] != jobs[job, at.OLD_SLOT] or not same_nodes(board, job):
        return False
    return hooks.keeps_place(board, job, True)


@kernel
def commit_round(board: Board, hidden: Hidden) -> None:
    """Close a round: end the intervals that changed, begin the new ones, and take the new speeds and cost rate."""
    jobs, clock, count, active = board.jobs, board.clock, board.count, board.active
    now = clock[at.NOW]
    hooks.close_round(board)
    slowdowns, same = np.ones(count[at.ACTIVE]), np.empty(count[at.ACTIVE], dtype=np.int8)
    hooks.slow_down(board, slowdowns)
    for i in range(count[at.ACTIVE]):
        same[i] = CHANGED
        if keeps_gpus(board, active[i]):
            same[i] = UNCHANGED if jobs[active[i], at.CONFIG] == jobs[active[i], at.OLD_CONFIG] else SAME_GPUS
    lost = np.zeros(count[at.ACTIVE])
    hooks.lose_time(board, slowdowns, same, lost)
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if same[i] < UNCHANGED:
            _begin_interval(board, hidden, job, now, same[i] == SAME_GPUS)
        if jobs[job, at.CONFIG] >= 0 and not (
            same[i] == UNCHANGED and slowdowns[i] == jobs[job, at.SLOWDOWN] and lost[i] == 0.0
        ):
            stands = lost[i] + max(
                0.0, jobs[job, at.ANCHOR_S] - max(now, jobs[job, at.READY_S]) if same[i] != 0 else 0.0
            )
            take_speed(board, hidden, job, slowdowns[i], stands)
    hooks.commit(board)
    clock[at.BILL_RATE] = bill_rate(board)
    if count[at.MILESTONES] > 0:
        pass_milestones(board, now)


@kernel
def _begin_interval(board: Board, hidden: Hidden, job: int, now: float, same_gpus: bool) -> None:
    """End the interval of what a job held, and begin that of what it holds now, if anything.

    With `same_gpus` only the power that they may draw changes: that takes no time, and is no switch.
    """
    jobs = board.jobs
    if jobs[job, at.OLD_CONFIG] >= 0:
        log_interval(board, hidden, job, True, now)
        if jobs[job, at.READY_S] <= now:  # its state is on that node
            jobs[job, at.LAST_NODE] = jobs[job, at.OLD_NODE]
            jobs[job, at.LAST_NODES] = jobs[job, at.OLD_NODE] + 1.0  # the mark of one node
            hooks.end_interval(board, job, now)
    started = not np.isnan(jobs[job, at.START_S])
    jobs[job, at.SWITCHES] += 1.0 if started and not same_gpus else 0.0
    jobs[job, at.BASE_EPOCHS] = jobs[job, at.EPOCHS]
    jobs[job, at.BASE_S] = now
    if jobs[job, at.CONFIG] < 0:
        hidden.outcome[job, at.FINISH_S] = np.inf
        return
    hooks.begin_interval(board, job)
    if same_gpus:
        jobs[job, at.READY_S] = max(now, jobs[job, at.READY_S])
    else:
        overhead = jobs[job, at.STARTING_S if jobs[job, at.LAST_NODE] < 0.0 else at.RESTART_S]
        jobs[job, at.READY_S] = hooks.ready_at(board, job, now, now + overhead)
    if not started:
        jobs[job, at.START_S] = now


@kernel
def order_by(board: Board, kind: int, waiting_only: bool) -> None:
    """Write the jobs that the round asks to `order`, by a named order."""
    round_keys(board, kind)
    order_round(board, waiting_only)


@kernel
def round_keys(board: Board, kind: int) -> None:
    """Write the sort key of every active job to `keys`; the smallest is asked first.

    The `pressure` is that of the worst case: all epochs left are needed.
    """
    jobs, count, active, keys = board.jobs, board.count, board.active, board.keys
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if kind == PRESSURE:
            keys[i] = -pressure(board, job, jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS])
        elif kind == BY_SUBMISSION:
            keys[i] = jobs[job, at.SUBMISSION]
        elif kind == BY_DUE:
            keys[i] = jobs[job, at.DUE]
        else:
            keys[i] = -jobs[job, at.WEIGHT]


@kernel
def order_round(board: Board, waiting_only: bool) -> None:
    """Write the jobs that the round asks to `order`, by key, equal ones by index."""
    jobs, count, active, keys, order = board.jobs, board.count, board.active, board.keys, board.order
    chosen = 0
    sort_keys = np.empty(count[at.ACTIVE])
    members = np.empty(count[at.ACTIVE], dtype=np.int64)
    for i in range(count[at.ACTIVE]):
        if not waiting_only or jobs[active[i], at.CONFIG] < 0:
            sort_keys[chosen] = keys[i]
            members[chosen] = active[i]
            chosen += 1
    ranks = ranked(sort_keys, chosen)
    for i in range(chosen):
        order[i] = members[ranks[i]]
    count[at.TO_ASK] = chosen
    count[at.ASKED] = 0


@kernel
def run_to_round(board: Board, hidden: Hidden) -> None:
    """Run to the next round that asks at least one job, and open it; with none left to ask, every job is done."""
    count = board.count
    preemption = count[at.PREEMPTION] > 0
    count[at.TO_ASK] = 0
    count[at.ASKED] = 0
    while advance(board, hidden):
        if count[at.ACTIVE] == 0:
            continue
        begin_round(board, preemption)
        order_by(board, count[at.ORDER], not preemption)
        if count[at.TO_ASK] > 0:
            return
        commit_round(board, hidden)


@lean_kernel
def decide(board: Board, hidden: Hidden, action: int) -> bool:
    """Apply `action` to the current job, after the last one run to the next round; False if it waits instead."""
    count = board.count
    placed = act(board, action)
    if count[at.ASKED] == count[at.TO_ASK]:
        commit_round(board, hidden)
        run_to_round(board, hidden)
    return placed


@kernel
def act(board: Board, action: int) -> bool:
    """Apply `action` to the current job: 0 = wait, a = configuration a - 1.

    If `count` asks for it, the job goes to a node that is on, and its timer is set in time for its due date.

    Returns:
        False if the action could not be placed: then the job waits.
    """
    count = board.count
    job = board.order[count[at.ASKED]]
    count[at.ASKED] += 1
    placed = action == 0
    if action > 0 and board.tau[job, action - 1] < np.inf:
        if count[at.CONSOLIDATES] > 0 and should_consolidate(board, job, action - 1)[1]:
            clear_preferred_node(board, job)
        placed = place(board, job, action - 1)
    if count[at.DUE_DATE_TIMERS] > 0:
        board.jobs[job, at.TIMER_S] = due_date_timer_s(board, job)
    return placed
