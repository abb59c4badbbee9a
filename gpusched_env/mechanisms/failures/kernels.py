"""Failures at the hooks: nodes go down and come back, jobs lose what is not saved, and stand while they save."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.mechanisms.failures import state as of
from gpusched_env.mechanisms.failures.features import write_group
from gpusched_env.mechanisms.failures.model import NAME
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S, bill_rate, log_interval, progress, take_speeds
from gpusched_env.simulator.placement.held_nodes import next_node
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.rounds import keeps_gpus
from gpusched_env.simulator.run import Board, Hidden


@kernel
def next_event(board: Board, hidden: Hidden, time: float) -> float:
    passed = board.passed[0]
    return min(time, hidden.timeline[passed, of.TIME]) if passed < hidden.timeline.shape[0] else time


@kernel
def at_event(board: Board, hidden: Hidden) -> None:  # noqa: ARG001 - of the hook
    """Store the last checkpoint of every running job, while its speed is still that since the last event."""
    if board.outages.shape[0] > 0:
        for i in range(board.count[at.ACTIVE]):
            if board.jobs[board.active[i], at.CONFIG] >= 0.0:
                store_checkpoint(board, board.active[i])


@kernel
def store_checkpoint(board: Board, job: int) -> None:
    jobs, saved, now = board.jobs, board.saved, board.clock[at.NOW]
    config = int(jobs[job, at.CONFIG])
    interval = board.facts.checkpointing[config, of.INTERVAL_S]
    cycle = interval + board.facts.checkpointing[config, of.WRITING_S]
    if interval == np.inf or now < saved[job, of.SAVED_S]:
        return
    last = now
    if cycle > 0.0:
        passed = np.floor((now - saved[job, of.SAVED_S]) / cycle * (1.0 + SAME_TIME) + SAME_TIME_S / cycle)
        last = saved[job, of.SAVED_S] + passed * cycle
        if passed == 0.0:
            return
    saved[job, of.SAVED_EPOCHS] = min(jobs[job, at.EPOCHS], progress(board, job, min(now, last)))
    saved[job, of.SAVED_S] = last


@kernel
def after_event(board: Board, hidden: Hidden) -> None:
    """Let nodes go down and come back whose time has come."""
    timeline, now, changed = hidden.timeline, board.clock[at.NOW], False
    while board.passed[0] < timeline.shape[0] and timeline[board.passed[0], of.TIME] <= now:
        row = timeline[board.passed[0]]
        board.passed[0] += 1
        node, event = int(row[of.NODE]), int(row[of.EVENT])
        if event == of.NOTICE:
            board.outages[node, of.ANNOUNCED_S], board.outages[node, of.NOTICED_S] = row[of.DOWN_S], now
            board.outages[node, of.STOPS] = row[of.ROW_STOPS]
        elif event == of.DOWN:
            board.outages[node, of.ANNOUNCED_S] = np.inf
            board.outages[node, of.NOTICED_S] = row[of.DOWN_S] if row[of.DOWN_S] < now else np.inf
            if row[of.ROW_STOPS] > 0.0:
                board.outages[node, of.FAILED] += 1.0 if row[of.DOWN_S] == now else 0.0
                board.outages[node, of.IS_DOWN] = 1.0
                _stop_jobs(board, hidden, node, now - row[of.DOWN_S])
        else:
            board.outages[node, of.IS_DOWN] = 0.0
            more = board.nodes[node, at.NODE_GPUS] - board.nodes[node, at.USABLE]
            board.nodes[node, at.USABLE] += more
            board.nodes[node, at.FREE] += more
        changed = True
    if changed:
        _close_nodes(board)
        if board.clock[at.DECISION] > 0.0:
            take_speeds(board, hidden)
        board.clock[at.BILL_RATE] = bill_rate(board)


@kernel
def _stop_jobs(board: Board, hidden: Hidden, node: int, notice_s: float) -> None:
    """Stop the jobs that hold GPUs of a node; they lose what is not saved, with too little notice."""
    jobs, saved, now = board.jobs, board.saved, board.clock[at.NOW]
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        if not _holds(board, job, node):
            continue
        if notice_s < board.facts.checkpointing[int(jobs[job, at.CONFIG]), of.WRITING_S] or notice_s == 0.0:
            saved[job, of.LOST_EPOCHS] += jobs[job, at.EPOCHS] - saved[job, of.SAVED_EPOCHS]
            jobs[job, at.EPOCHS] = saved[job, of.SAVED_EPOCHS]
        log_interval(board, hidden, job, False, now)
        if jobs[job, at.READY_S] <= now:  # it has been ready once: next it restarts
            jobs[job, at.LAST_NODE], jobs[job, at.LAST_NODES] = jobs[job, at.NODE], at.NO_MARK
        release(board, job)
        hidden.outcome[job, at.FINISH_S] = np.inf
        jobs[job, at.BASE_S], jobs[job, at.BASE_EPOCHS] = now, jobs[job, at.EPOCHS]
        saved[job, of.STOPPED_S] = now


@lean_kernel
def _holds(board: Board, job: int, node: int) -> bool:
    held, config = int(board.jobs[job, at.NODE]), int(board.jobs[job, at.CONFIG])
    while config >= 0 and held >= 0:
        if held == node:
            return True
        held = next_node(board, job, config, held, False)
    return False


@kernel
def _close_nodes(board: Board) -> None:
    """Take the free GPUs from nodes that are down, or that are announced to go down."""
    for n in range(board.outages.shape[0]):
        if board.outages[n, of.IS_DOWN] > 0.0 or board.outages[n, of.ANNOUNCED_S] < np.inf:
            board.nodes[n, at.USABLE] -= board.nodes[n, at.FREE]
            board.nodes[n, at.FREE] = 0


@kernel
def slow_down(board: Board, slowdowns: Floats) -> None:
    """Multiply the true times of running jobs over the planned ones: they write checkpoints, and do not fail."""
    if board.facts.working.shape[0] > 0:
        for i in range(board.count[at.ACTIVE]):
            job, config = board.active[i], int(board.jobs[board.active[i], at.CONFIG])
            if config >= 0:
                slowdowns[i] *= board.facts.working[int(board.jobs[job, at.APPLICATION]), config]


@kernel
def commit(board: Board) -> None:
    """Begin the first interval between checkpoints of jobs whose GPUs changed; count the pauses of those stopped."""
    if board.outages.shape[0] == 0:
        return
    jobs, saved, now = board.jobs, board.saved, board.clock[at.NOW]
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        if saved[job, of.STOPPED_S] >= 0.0:
            jobs[job, at.SWITCHES] += 1.0 if jobs[job, at.CONFIG] < 0.0 or now > saved[job, of.STOPPED_S] else 0.0
            saved[job, of.STOPPED_S] = -1.0
        if jobs[job, at.CONFIG] >= 0.0 and jobs[job, at.BASE_S] == now and not keeps_gpus(board, job):
            saved[job, of.SAVED_EPOCHS], saved[job, of.SAVED_S] = jobs[job, at.EPOCHS], jobs[job, at.READY_S]


@kernel
def copy_arrays(board: Board, source: Board) -> None:
    board.outages[:, :] = source.outages
    board.saved[:, :] = source.saved
    board.passed[:] = source.passed


register(
    NAME,
    {
        hooks.open_round: _close_nodes,
        hooks.next_event: next_event,
        hooks.at_event: at_event,
        hooks.after_event: after_event,
        hooks.slow_down: slow_down,
        hooks.commit: commit,
        hooks.copy_arrays: copy_arrays,
        hooks.write_group: write_group,
    },
    (of.FailureFacts, of.FailureBoard, of.FailureHidden),
    of.arrays,
    constants=of.constants,
)
