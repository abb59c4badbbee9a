"""Profiling: an application runs alone on whole GPUs for a time before its jobs may share GPUs (FIKIT's two stages)."""

from __future__ import annotations

import numpy as np

from gpusched_env.hooks import register
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Hidden


@lean_kernel
def profile_end_s(board: Board, job: int) -> float:
    """Return when a job on whole GPUs will have run for `profile_s` there; inf if its application is profiled."""
    jobs, config = board.jobs, int(board.jobs[job, at.CONFIG])
    if jobs[job, at.PROFILED] > 0.0 or config < 0 or board.facts.configs[config, at.CONFIG_UNITS] > 0:
        return np.inf
    return jobs[job, at.READY_S] + board.facts.sharing[at.PROFILE_S]


@kernel
def end_profiles(board: Board, hidden: Hidden) -> None:
    """Open shares to the applications that have been profiled by now."""
    for i in range(board.count[at.ACTIVE]):
        if profile_end_s(board, board.active[i]) > board.clock[at.NOW]:
            continue
        own = board.jobs[board.active[i], at.APPLICATION]
        for k in range(board.count[at.ACTIVE]):
            if board.jobs[board.active[k], at.APPLICATION] == own:
                board.jobs[board.active[k], at.PROFILED] = 1.0
                write_times(board, hidden, board.active[k])


@kernel
def begin_profile(board: Board, hidden: Hidden, job: int) -> None:
    """Close shares to a job that is submitted, unless a job of its application has been profiled."""
    jobs = board.jobs
    for other in range(board.count[at.SUBMITTED]):
        if jobs[other, at.APPLICATION] == jobs[job, at.APPLICATION] and jobs[other, at.PROFILED] > 0.0:
            jobs[job, at.PROFILED] = 1.0
    write_times(board, hidden, job)


@kernel
def write_times(board: Board, hidden: Hidden, job: int) -> None:
    """Write a job's seconds per epoch, inf on shares that are closed to it, and the columns that follow from them."""
    jobs, configs, least = board.jobs, board.facts.configs, np.inf
    least_rate = board.least_rate[int(jobs[job, at.APPLICATION])]
    jobs[job, at.MIN_TAU], jobs[job, at.MAX_TAU] = np.inf, 0.0
    jobs[job, at.CHEAPEST], jobs[job, at.CHEAPEST_TAU] = -1.0, np.inf
    for c in range(configs.shape[0]):
        closed = configs[c, at.CONFIG_UNITS] > 0 and jobs[job, at.PROFILED] == 0.0
        seconds = np.inf if closed else hidden.tau[job, c]
        board.tau[job, c] = seconds
        if seconds == np.inf:
            continue
        jobs[job, at.MIN_TAU] = min(jobs[job, at.MIN_TAU], seconds)
        jobs[job, at.MAX_TAU] = max(jobs[job, at.MAX_TAU], seconds)
        price = seconds * max(least_rate[c], 1e-300)
        if price < least:
            least, jobs[job, at.CHEAPEST], jobs[job, at.CHEAPEST_TAU] = price, c, seconds


@kernel
def next_event(board: Board, hidden: Hidden, time: float) -> float:  # noqa: ARG001 - of the hook
    if board.facts.sharing[at.PROFILE_S] > 0.0:
        for i in range(board.count[at.ACTIVE]):
            time = min(time, profile_end_s(board, board.active[i]))
    return time


@kernel
def at_event(board: Board, hidden: Hidden) -> None:
    if board.facts.sharing[at.PROFILE_S] > 0.0:
        end_profiles(board, hidden)


@kernel
def disclose(board: Board, hidden: Hidden, job: int) -> None:
    if board.facts.sharing[at.PROFILE_S] > 0.0:
        begin_profile(board, hidden, job)


register("profiling", {hooks.next_event: next_event, hooks.at_event: at_event, hooks.disclose: disclose})
