"""Events: how time advances, jobs progress and costs accrue."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.cell_binding import hosts_charge, hosts_rate
from gpusched_env.simulator.interconnect import cpu_machines_rate, draws_cpu_power, help_now
from gpusched_env.simulator.placement.held_nodes import gpus_on, most_spread, next_node
from gpusched_env.simulator.placement.release import release
from gpusched_env.simulator.placement.shared_gpus import of_several
from gpusched_env.simulator.priced_time import next_multiple, priced_length, publish
from gpusched_env.simulator.profiling import begin_profile, end_profiles, profile_end_s
from gpusched_env.simulator.run import Board, Hidden
from gpusched_env.simulator.saved_power import saves_power, saving_rate
from gpusched_env.simulator.site_power import (
    gpu_rate,
    gpu_rate_of,
    measure_power,
    next_fall,
    next_site_event,
    over_cap_rate,
    see_cap,
)
from gpusched_env.simulator.slowdown import write_slowdowns

SAME_TIME_S, SAME_TIME = 1e-9, 1e-15  # absolute [s] and relative to the present time


@kernel
def next_event(board: Board, hidden: Hidden) -> float:
    """Find the time of the next event: submission, completion, timer, milestone, review, profile or cap; inf: none."""
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
        if board.has_profiling and board.facts.sharing[at.PROFILE_S] > 0.0:
            time = min(time, profile_end_s(board, job))
    if clock[at.REVIEW] < np.inf and count[at.ACTIVE] > 0:
        later = now + SAME_TIME_S + SAME_TIME * now  # however short the interval
        time = min(time, max(later, next_multiple(now, clock[at.REVIEW])))
    if board.has_site and hidden.caps.shape[0] > 0:
        time = min(time, next_site_event(board, hidden))
    return time


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
        if board.has_cells and board.cells.shape[0] > 0:
            row[at.LOG_HOST] = board.cells[node, at.CELL_OLD_HOST if old else at.CELL_HOST]
        if board.has_spread and most_spread(board) > 0:
            row[at.LOG_GPUS] = gpus_on(board, job, config, node, old)
        count[at.LOGGED] += 1
        node = next_node(board, job, config, node, old)


@kernel
def accrue(board: Board, hidden: Hidden, time: float) -> None:
    """Move the clock to `time`: progress of running jobs, energy cost of nodes and jobs, tardiness cost.

    With a series of prices, energy is billed over the priced length, and what is published by then is disclosed. What
    power above a soft cap costs is split among the jobs by what they are charged.
    """
    jobs, clock, count, active = board.jobs, board.clock, board.count, board.active
    before = clock[at.NOW]
    seconds = time - before
    over = over_cap_rate(board) if board.has_site else 0.0
    gpus = gpu_rate(board) if board.has_prices else 0.0
    energy_rate = clock[at.BILL_RATE] - over - gpus
    length = seconds
    if board.has_prices and hidden.prices.shape[0] > 0:
        length = priced_length(board, hidden, before, time, energy_rate)
    clock[at.NOW] = time
    if board.has_prices:
        publish(board, hidden)
    clock[at.BILL] += energy_rate * length + (over + gpus) * seconds
    clock[at.OVER_CAP_EUR] += over * seconds
    clock[at.GPU_EUR] += gpus * seconds
    clock[at.CAP_FORCED_S] += count[at.FORCED] * seconds
    above = over / (energy_rate + gpus) if over > 0.0 else 0.0
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
        rate, own = charge(board, job, config), gpu_rate_of(board, job, config) if board.has_prices else 0.0
        jobs[job, at.ENERGY] += (rate - own) * length + (own + rate * above) * seconds
    if board.has_network and draws_cpu_power(board.facts):
        part, cpu_part, busy = help_now(board)
        for i in range(count[at.ACTIVE]):
            jobs[active[i], at.ENERGY] += cpu_machines_rate(board, active[i], part, cpu_part, busy) * length


@kernel
def charge(board: Board, job: int, config: int) -> float:
    """Return a job's part of the cost rate of its nodes [€/s].

    A node with u busy GPUs costs r_v(u), each of them 1/u of it. A shared GPU's part is split by share among its jobs.
    What its GPUs draw less than full busy ones is its own (`saved_power`): where GPUs draw power by their utilisation,
    each job pays for its own work.
    """
    jobs, nodes, configs, rates = board.jobs, board.nodes, board.facts.configs, board.node_rate
    node = int(jobs[job, at.NODE])
    if board.has_several_shares and of_several(board, config):
        rate = _charge_of_shares(board, job, config)
        return rate - saving_rate(board, job, config) if saves_power(board.facts) else rate
    if board.has_spread and configs[config, at.CONFIG_SPREAD] > 0:
        rate = _spread_charge(board, job, config)
    elif board.has_cells and board.cells.shape[0] > 0:
        rate = hosts_charge(board, node, configs[config, at.CONFIG_GPUS])
    else:
        busy = nodes[node, at.USABLE] - nodes[node, at.FREE]
        rate = rates[nodes[node, at.NODE_TYPE], busy] * configs[config, at.CONFIG_GPUS] / busy
    if configs[config, at.CONFIG_UNITS] > 0:
        rate = rate * configs[config, at.CONFIG_UNITS] / nodes[node, at.NODE_COLUMNS + int(jobs[job, at.SLOT])]
    elif board.cells.shape[0] == 0 and configs[config, at.CONFIG_SPREAD] == 0:
        rate *= configs[config, at.CONFIG_NODES]
    if board.has_savings and saves_power(board.facts):
        rate -= saving_rate(board, job, config)
    return rate


@kernel
def _spread_charge(board: Board, job: int, config: int) -> float:
    """Return the part of a spread configuration in the cost rate of its nodes, with cells of their hosts [€/s]."""
    nodes, rate, n = board.nodes, 0.0, int(board.jobs[job, at.NODE])
    while n >= 0:
        gpus, busy = gpus_on(board, job, config, n, False), nodes[n, at.USABLE] - nodes[n, at.FREE]
        if board.cells.shape[0] > 0:
            rate += hosts_charge(board, n, gpus)
        else:
            rate += board.node_rate[nodes[n, at.NODE_TYPE], busy] * gpus / busy
        n = next_node(board, job, config, n, False)
    return rate


@kernel
def _charge_of_shares(board: Board, job: int, config: int) -> float:
    """Return the charge for a share of several GPUs [€/s]: each GPU's part of its node, split by share."""
    nodes, configs, rate, n = board.nodes, board.facts.configs, 0.0, int(board.jobs[job, at.NODE])
    slot, units = int(board.jobs[job, at.SLOT]), configs[config, at.CONFIG_UNITS]
    while n >= 0:
        busy = nodes[n, at.USABLE] - nodes[n, at.FREE]
        each = board.node_rate[nodes[n, at.NODE_TYPE], busy] / busy
        for gpu in range(slot, slot + configs[config, at.CONFIG_GPUS]):
            rate += each * units / nodes[n, at.NODE_COLUMNS + gpu]
        n = next_node(board, job, config, n, False)
    return rate


@kernel
def bill_rate(board: Board) -> float:
    """Sum r_v(u) over the nodes, with cells over their hosts, less what held GPUs save (`saved_power`) [€/s].

    The power of CPU machines that help is added, and what the power above a soft cap costs.
    """
    jobs, nodes, rates, active = board.jobs, board.nodes, board.node_rate, board.active
    total = hosts_rate(board) if board.has_cells else 0.0
    total += over_cap_rate(board) if board.has_site else 0.0
    for n in range(nodes.shape[0] if board.cells.shape[0] == 0 else 0):
        total += rates[nodes[n, at.NODE_TYPE], nodes[n, at.USABLE] - nodes[n, at.FREE]]
    if board.has_network and draws_cpu_power(board.facts):
        part, cpu_part, busy = help_now(board)
        for i in range(board.count[at.ACTIVE]):
            total += cpu_machines_rate(board, active[i], part, cpu_part, busy)
    if board.has_savings and saves_power(board.facts):
        for i in range(board.count[at.ACTIVE]):
            config = int(jobs[active[i], at.CONFIG])
            if config >= 0:
                total -= saving_rate(board, active[i], config)
    return total


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

    With an interval of decisions it goes on to the next multiple of that, or until the cap of the site falls, and
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
        decision = next_decision(time, clock[at.DECISION])
        if board.has_site and hidden.caps.shape[0] > 0:
            decision = min(decision, next_fall(hidden, time))
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
    if board.has_profiling and board.facts.sharing[at.PROFILE_S] > 0.0:
        end_profiles(board, hidden)
    if complete(board, hidden) > 0:
        if board.has_slowdowns and clock[at.DECISION] > 0.0:
            take_speeds(board, hidden)
        clock[at.BILL_RATE] = bill_rate(board)
    submit(board, hidden, time)
    if board.has_site and hidden.caps.shape[0] > 0:
        see_cap(board, hidden, time)
        measure_power(board)
        clock[at.BILL_RATE] = bill_rate(board)
    if count[at.MILESTONES] > 0:
        pass_milestones(board, time)


@kernel
def take_speeds(board: Board, hidden: Hidden) -> None:
    jobs, count, active = board.jobs, board.count, board.active
    slowdowns = np.empty(count[at.ACTIVE])
    write_slowdowns(board, slowdowns)
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
    if board.has_profiling and board.facts.sharing[at.PROFILE_S] > 0.0:
        begin_profile(board, hidden, job)
    else:
        _copy_row(hidden.tau, board.tau, job)
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
