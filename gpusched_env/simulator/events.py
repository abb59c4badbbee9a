"""Events: how time advances, jobs progress and costs accrue."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import hooks
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import next_node
from gpusched_env.simulator.placement.whole_gpus import release
from gpusched_env.simulator.run import Board, Hidden

SAME_TIME_S, SAME_TIME = 1e-9, 1e-15  # absolute [s] and relative to the present time


@kernel
def next_event(board: Board, hidden: Hidden) -> float:
    """Find the time of the next event: submission, completion, timer, milestone, review, or another; inf: none."""
    jobs, clock, count, active = board.jobs, board.clock, board.count, board.active
    now = clock[at.NOW]
    time = np.inf
    if count[at.SUBMITTED] < jobs.shape[0]:
        time = hidden.jobs[count[at.SUBMITTED], at.SUBMISSION]
    for i in range(count[at.ACTIVE]):
        job = active[i]
        time = min(time, hidden.outcome[job, at.FINISH_S])
        timer = jobs[job, at.TIMER_S]
        if timer > now:
            time = min(time, timer)
        if count[at.MILESTONES] > 0 and jobs[job, at.CONFIG] >= 0:
            time = min(time, max(now, milestone_s(board, job)))
    if clock[at.REVIEW] < np.inf and count[at.ACTIVE] > 0:
        later = now + SAME_TIME_S + SAME_TIME * now  # however short the interval
        time = min(time, max(later, next_multiple(now, clock[at.REVIEW])))
    return hooks.next_event(board, hidden, time)


@kernel
def next_multiple(time: float, interval: float) -> float:
    """Return the first multiple of an interval after a time [s]: where the interval in which the time is ends."""
    number = np.floor(time / interval)
    for _ in range(2):  # by rounding the quotient may be one too small or too large
        number += 1.0 if number * interval <= time else 0.0
    return number * interval


@kernel
def milestone_s(board: Board, job: int) -> float:
    jobs, milestones = board.jobs, board.count[at.MILESTONES]
    number = jobs[job, at.MILESTONE]
    if number >= milestones:
        return np.inf
    to_do = number / milestones * jobs[job, at.MAX_EPOCHS] - jobs[job, at.ANCHOR_EPOCHS]
    return jobs[job, at.ANCHOR_S] + to_do * seconds_per_epoch(board, job)


@kernel
def seconds_per_epoch(board: Board, job: int) -> float:
    jobs, tau = board.jobs, board.tau
    return tau[job, int(jobs[job, at.CONFIG])] * jobs[job, at.SLOWDOWN]


@kernel
def progress(board: Board, job: int, time: float) -> float:
    """Return the epochs that a running job has done at `time`: no rounding builds up between events."""
    jobs = board.jobs
    working = max(0.0, time - jobs[job, at.ANCHOR_S])
    return jobs[job, at.ANCHOR_EPOCHS] + working / seconds_per_epoch(board, job)


@kernel
def log_interval(board: Board, hidden: Hidden, job: int, old: bool, end: float) -> None:
    """Write the interval that ends now to the log, a row per node, if intervals are logged and it has a length.

    With `old`, the interval is that of the holding when the round began, else of the present one.
    """
    jobs, count, log = board.jobs, board.count, hidden.log
    if count[at.LOGGING] == 0 or end <= jobs[job, at.BASE_S]:
        return
    node, config = int(jobs[job, at.OLD_NODE if old else at.NODE]), int(jobs[job, at.OLD_CONFIG if old else at.CONFIG])
    while node >= 0:
        row = log[count[at.LOGGED]]
        row[at.LOG_JOB] = job
        row[at.LOG_NODE] = node
        row[at.LOG_CONFIG] = config
        row[at.LOG_START] = jobs[job, at.BASE_S]
        row[at.LOG_READY] = min(end, jobs[job, at.READY_S])
        row[at.LOG_END] = end
        row[at.LOG_EPOCHS] = jobs[job, at.EPOCHS] - jobs[job, at.BASE_EPOCHS]
        row[at.LOG_SLOT] = jobs[job, at.OLD_SLOT if old else at.SLOT]
        hooks.write_interval(board, job, config, node, old, row)
        count[at.LOGGED] += 1
        node = next_node(board, job, config, node, old)


@kernel
def accrue(board: Board, hidden: Hidden, time: float) -> None:
    """Move the clock to `time`: progress of running jobs, energy cost of nodes and jobs, tardiness cost.

    Energy is billed over the length of the time at the reference price. Penalties are split among the jobs by what they
    are charged.
    """
    jobs, clock, count, active = board.jobs, board.clock, board.count, board.active
    before = clock[at.NOW]
    seconds = time - before
    penalty, rent = hooks.penalty_rate(board, 0.0), hooks.rent_rate(board, 0.0)
    energy_rate = clock[at.BILL_RATE] - penalty - rent
    clock[at.NOW] = time
    length = hooks.billed_s(board, hidden, before, energy_rate, seconds)
    clock[at.BILL] += energy_rate * length + (penalty + rent) * seconds
    clock[at.PENALTY_EUR] += penalty * seconds
    clock[at.RENT_EUR] += rent * seconds
    part = penalty / (energy_rate + rent) if penalty > 0.0 else 0.0
    for i in range(count[at.ACTIVE]):
        job = active[i]
        late = max(0.0, time - jobs[job, at.DUE]) - max(0.0, before - jobs[job, at.DUE])
        if late > 0.0:
            jobs[job, at.TARDINESS] += jobs[job, at.WEIGHT] * late
            clock[at.TARDINESS_COST] += jobs[job, at.WEIGHT] * late
        config = int(jobs[job, at.CONFIG])
        if config < 0:
            continue
        jobs[job, at.EPOCHS] = progress(board, job, time)
        rate, own = charge(board, job, config), hooks.rent_of(board, job, config, 0.0)
        jobs[job, at.ENERGY] += (rate - own) * length + (own + rate * part) * seconds
    hooks.account(board, seconds, length)


@kernel
def charge(board: Board, job: int, config: int) -> float:
    """Return a job's part of the cost rate of its nodes [€/s].

    A node with u busy GPUs costs r_v(u), each of them 1/u of it. What its GPUs draw less than full busy ones is its
    own: where GPUs draw power by their utilisation, each job pays for its own work.
    """
    rate = hooks.held_charge(board, job, config, np.nan)
    if np.isnan(rate):
        rate = charge_on(board, int(board.jobs[job, at.NODE]), board.facts.configs[config, at.CONFIG_GPUS])
    return hooks.own_charge(board, job, config, rate)


@lean_kernel
def charge_on(board: Board, node: int, gpus: int) -> float:
    """Return the part of so many GPUs of a node in its cost rate [€/s]."""
    rate = hooks.node_charge(board, node, gpus, np.nan)
    if np.isnan(rate):
        nodes = board.nodes
        busy = nodes[node, at.USABLE] - nodes[node, at.FREE]
        rate = board.node_rate[nodes[node, at.NODE_TYPE], busy] * gpus / busy
    return rate


@kernel
def bill_rate(board: Board) -> float:
    """Sum r_v(u) over the nodes, less what held GPUs save, with penalties and what else draws power [€/s]."""
    nodes = board.nodes
    total, of_nodes = hooks.penalty_rate(board, 0.0), hooks.nodes_rate(board, np.nan)
    if np.isnan(of_nodes):
        for n in range(nodes.shape[0]):
            total += board.node_rate[nodes[n, at.NODE_TYPE], nodes[n, at.USABLE] - nodes[n, at.FREE]]
    else:
        total += of_nodes
    return hooks.total_rate(board, total)


@kernel
def complete(board: Board, hidden: Hidden) -> int:
    """Complete the running jobs whose time has come, in the order of their index; return how many.

    Completions so close that rounding cannot tell them from the present event are part of it: a timer that a policy
    set for the end of a job must not reconfigure it with nothing left to do.
    """
    jobs, clock, count, active = board.jobs, board.clock, board.count, board.active
    now = clock[at.NOW]
    same = now + SAME_TIME_S + SAME_TIME * now
    kept = 0
    for i in range(count[at.ACTIVE]):
        job = active[i]
        if hidden.outcome[job, at.FINISH_S] > same:
            active[kept] = job
            kept += 1
            continue
        jobs[job, at.EPOCHS] = hidden.outcome[job, at.NEEDED]
        log_interval(board, hidden, job, False, now)
        release(board, job)
        jobs[job, at.END_S] = now
        hidden.outcome[job, at.FINISH_S] = np.inf
    ended = count[at.ACTIVE] - kept
    count[at.ACTIVE] = kept
    count[at.DONE] += ended
    return ended


@kernel
def anything_runs(board: Board) -> bool:
    jobs, count, active = board.jobs, board.count, board.active
    for i in range(count[at.ACTIVE]):
        if jobs[active[i], at.CONFIG] >= 0:
            return True
    return False


@kernel
def advance(board: Board, hidden: Hidden) -> bool:
    """Run to the next event and apply every event of that time: completions, submissions, then milestones.

    With an interval of decisions it goes on to the next multiple of that, or to an earlier decision of a mechanism, and
    applies the events until then, too.

    Returns:
        False when every job is done, else True: a decision round may begin.
    """
    jobs, clock, count = board.jobs, board.clock, board.count
    if count[at.DONE] == jobs.shape[0]:
        return False
    time = next_event(board, hidden)
    if time == np.inf:
        time = clock[at.NOW] + clock[at.IDLE_REVIEW]
    count[at.IDLE] += 1
    if count[at.SUBMITTED] < jobs.shape[0] or anything_runs(board):
        clock[at.LAST_BUSY] = time
        count[at.IDLE] = 0
    if clock[at.DECISION] > 0.0:
        decision = hooks.next_decision(board, hidden, time, next_decision(time, clock[at.DECISION]))
        while time < decision:
            _apply_events(board, hidden, time)
            if count[at.DONE] == jobs.shape[0]:
                return False
            time = min(next_event(board, hidden), decision)
    _apply_events(board, hidden, time)
    return count[at.DONE] < jobs.shape[0]


@kernel
def next_decision(time: float, interval: float) -> float:
    number = np.ceil(time / interval)
    if number * interval < time:  # by rounding
        number += 1.0
    return max(number * interval, time)


@kernel
def _apply_events(board: Board, hidden: Hidden, time: float) -> None:
    """Move the clock to `time`, and apply its events."""
    clock, count = board.clock, board.count
    accrue(board, hidden, time)
    hooks.at_event(board, hidden)
    if complete(board, hidden) > 0:
        if clock[at.DECISION] > 0.0:
            take_speeds(board, hidden)
        clock[at.BILL_RATE] = bill_rate(board)
    submit(board, hidden, time)
    hooks.after_event(board, hidden)
    if count[at.MILESTONES] > 0:
        pass_milestones(board, time)


@kernel
def take_speeds(board: Board, hidden: Hidden) -> None:
    jobs, count, active = board.jobs, board.count, board.active
    slowdowns = np.ones(count[at.ACTIVE])
    hooks.slow_down(board, slowdowns)
    for i in range(count[at.ACTIVE]):
        if jobs[active[i], at.CONFIG] >= 0 and slowdowns[i] != jobs[active[i], at.SLOWDOWN]:
            take_speed(board, hidden, active[i], slowdowns[i], 0.0)


@kernel
def take_speed(board: Board, hidden: Hidden, job: int, slowdown: float, stands_s: float) -> None:
    """Let a running job go on with another speed from now on, or from when it is ready, after standing so long."""
    jobs = board.jobs
    jobs[job, at.SLOWDOWN] = slowdown
    jobs[job, at.ANCHOR_EPOCHS] = jobs[job, at.EPOCHS]
    jobs[job, at.ANCHOR_S] = max(board.clock[at.NOW], jobs[job, at.READY_S]) + stands_s
    to_do = max(0.0, hidden.outcome[job, at.NEEDED] - jobs[job, at.EPOCHS])
    hidden.outcome[job, at.FINISH_S] = jobs[job, at.ANCHOR_S] + to_do * seconds_per_epoch(board, job)


@kernel
def submit(board: Board, hidden: Hidden, time: float) -> None:
    """Submit the jobs whose time has come: disclose their hidden values, and make them active."""
    jobs, count = board.jobs, board.count
    while count[at.SUBMITTED] < jobs.shape[0]:
        job = count[at.SUBMITTED]
        if hidden.jobs[job, at.SUBMISSION] > time:
            return
        _copy_row(hidden.jobs, jobs, job)
        disclose(board, hidden, job)
        board.active[count[at.ACTIVE]] = job
        count[at.ACTIVE] += 1
        count[at.SUBMITTED] += 1


@kernel
def disclose(board: Board, hidden: Hidden, job: int) -> None:
    """Disclose times of a job that is submitted, and its distribution and bins if no job before it has done so."""
    row, bins = int(board.jobs[job, at.DISTRIBUTION]), int(board.jobs[job, at.EDGES])
    _copy_row(hidden.tau, board.tau, job)
    hooks.disclose(board, hidden, job)
    if np.isnan(board.tail[row, 0]):
        _copy_row(hidden.survival, board.survival, row)
        _copy_row(hidden.tail, board.tail, row)
    if np.isnan(board.edges[bins, 0]):
        _copy_row(hidden.edges, board.edges, bins)


@kernel
def _copy_row(source: Floats, target: Floats, row: int) -> None:
    for column in range(source.shape[1]):
        target[row, column] = source[row, column]


@kernel
def pass_milestones(board: Board, time: float) -> None:
    jobs, count, active = board.jobs, board.count, board.active
    for i in range(count[at.ACTIVE]):
        job = active[i]
        while jobs[job, at.CONFIG] >= 0 and milestone_s(board, job) <= time:
            jobs[job, at.MILESTONE] += 1.0
