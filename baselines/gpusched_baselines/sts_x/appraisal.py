"""The plans of all jobs of a round, their values, and the price of GPU-seconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.plan import Scratch, cost_of_waiting, expected_cost, solve_late
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.plan import (
    MARGIN,
    ORDER,
    PRICE,
    RESTART,
    WEIGHT,
    Adaptation,
    best_throughout,
    cheapest_now,
    cost_with_changes,
    epochs_at_worst,
    epochs_expected,
    factor,
    plan_ahead,
    price_out,
)
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, Mask, at, kernel, lean_kernel

FULL = 0.5  # load of due work at which a cluster counts as full; above twice that the price rises no further
LEAST_PRICE = 0.01  # a price below this part of the price of power counts as 0


@kernel
def capacity_price(board: Board, chosen: Ints, values: Floats, gpu_seconds: Floats, free_rate: float) -> float:
    """Return the price of a GPU-second, as a multiple of what its power costs in the mean; 0 where GPUs are not short.

    One GPU-second more for a job delays all that wait for it by 1 / GPUs seconds, and a second costs each of them its
    value. The number of jobs that will wait is not known; the load of due work estimates it. So the price is
    Σ values / GPUs · (load / `FULL`)², where the load counts as 2 · `FULL` at most. As a multiple it keeps GPU types in
    the proportion of their power; with one price for every GPU all jobs would take the fastest type.

    Args:
        chosen: The active jobs, (A,).
        values: Value of a second of time of each [€/s], (A,).
        gpu_seconds: GPU-seconds that each is expected to need as it is planned, (A,).
        free_rate: Cost rate of a GPU where energy is free [€/s].
    """
    total, gpus, power = values.sum(), 0, 0.0
    if total <= 0.0:
        return 0.0
    for n in range(board.nodes.shape[0]):
        most = board.nodes[n, at.NODE_GPUS]
        gpus += most
        power += board.node_rate[board.nodes[n, at.NODE_TYPE], most]
    power = power if power > 0.0 else gpus * free_rate
    full = min(2.0, load_of_due_work(board, chosen, gpu_seconds) / gpus / FULL)
    price = total / power * full * full
    return price if price >= LEAST_PRICE else 0.0


@kernel
def load_of_due_work(board: Board, chosen: Ints, gpu_seconds: Floats) -> float:
    """Return the load of due work [GPUs]: the maximum over due dates of GPU-seconds due by then / seconds until then.

    A job that is due before its earliest expected completion counts as due at that completion.
    """
    jobs, now = board.jobs, board.clock[at.NOW]
    due = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        job = chosen[i]
        due[i] = max(jobs[job, at.DUE] - now, epochs_expected(board, job) * jobs[job, at.MIN_TAU], 1.0)
    most, total = 0.0, 0.0
    for i in sim.ranked(due, chosen.shape[0]):
        total += gpu_seconds[i]
        most = max(most, total / due[i])
    return most


WAIT_LOAD = 1.4  # due work that fills 1 / so much of the cluster leaves jobs no time to wait
START_MARGIN = 0.01  # a job that waits starts when its slack has fallen to this part of its worst-case time
KEEP_MARGIN = 0.03  # a job that runs is not interrupted below this; between the two it keeps its configuration
WORTH_A_RESTART = 0.9  # a job changes to a configuration that costs at most this part of its own, restart included
A_WAIT = 0.25  # the maximum deferral, as a part of the mean time that jobs are expected to run yet
KEPT = 1.0 / 16.0  # how long a plan holds, as a part of that time, if nothing happens to its job
SAME_SCALE = 0.1  # prices that differ by less than this count as the same
FREE_RATE = 1e-12  # cost rate of a GPU in plans where energy is free [€/s]
RESTART_PENALTY = (
    3.0  # additional restarts that a change counts as where GPUs are short: the job may soon have to change again
)

# The order in which a round places its jobs: in groups, and by a key within a group.
MUST_BE_LATE, CRITICAL, DEFERRABLE_RUNNING, DEFERRABLE = range(4)


class Parts(NamedTuple):
    """Which parts of STS-X are in use; see `StsX`."""

    waits: bool
    consolidates: bool
    spreads: bool
    guarantees: bool
    priced: bool
    by_value: bool
    stays: bool
    counts_restarts: bool
    compares_placements: bool
    type_priced: bool
    cluster_slack: bool


class Plans(NamedTuple):
    """The plans of the active jobs, a row for each.

    Attributes:
        jobs: The jobs, (A,).
        first: The configuration that each begins with, (A,).
        timer: When it is decided again [s], (A,).
        critical: Whether it must run now, (A,).
        group: Its group in the order, (A,).
        key: Its key there, (A,): of deferrable jobs their slack [s].
        work: GPU-seconds that it is expected to need where its epochs are cheapest, restart included, (A,).
        needs: GPU-seconds that it is expected to need where GPUs have no price, (A,).
        value: Value of a second of its time there [€/s], (A,).
        scale: 1 + the price of GPUs to a critical job, as a multiple of that of power, (A,).
        keeps: Whether it keeps what it holds, whatever its plan, (A,).
        due_load: Part of its time left in which it may not wait, since due work needs the GPUs, 0 to 1, (A,).
    """

    jobs: Ints
    first: Ints
    timer: Floats
    critical: Mask
    group: Ints
    key: Floats
    work: Floats
    needs: Floats
    value: Floats
    scale: Floats
    keeps: Mask
    due_load: Floats


@kernel
def appraise(board: Board, chosen: Ints, parts: Parts, adaptation: Adaptation, scratch: Scratch) -> Plans:
    """Plan every active job, and rank them.

    A job whose cheapest configuration would still meet the due date later is *deferrable*, every other is *critical*.
    First come those that must be late if they need all their epochs, by the value of a second of their time over the
    GPU-seconds that they need (Smith's rule, with the value of time in place of the weight); then other critical ones,
    and then deferrable ones, both by slack.

    Args:
        chosen: The active jobs, (A,).
        parts: Which parts of the policy are in use.
        adaptation: The adaptation of the round.
        scratch: Written.
    """
    plans, memory, now = _new_plans(chosen), board.memory, board.clock[at.NOW]
    longest = 0.0
    if parts.waits and parts.cluster_slack:
        _write_due_load(board, chosen, plans.due_load)
    for i in range(chosen.shape[0]):
        longest += _look(board, adaptation, plans, i, parts.waits)
    wait = max(A_WAIT * np.exp(adaptation.max_deferral) * longest / max(1, chosen.shape[0]), 1.0)
    for i in range(chosen.shape[0]):
        job = chosen[i]
        if plans.critical[i] or plans.key[i] < wait:
            if not _holds(board, job):
                _plan(board, adaptation, i, job, 1.0, wait, parts, scratch)
                memory[job, of.UNTIL] = now + KEPT * wait
            plans.value[i] = memory[job, of.BARE_VALUE]
            plans.needs[i] = memory[job, of.BARE_NEEDS] if plans.critical[i] else plans.needs[i]
    price = capacity_price(board, chosen, plans.value, plans.needs, FREE_RATE) if parts.priced else 0.0
    total = max(plans.value.sum(), 1e-300)
    for i in range(chosen.shape[0]):
        job = chosen[i]
        if plans.critical[i]:
            scale = 1.0 + factor(adaptation, i, PRICE) * price * (
                1.0 - plans.value[i] / total
            )  # the price is what the other jobs lose
            plans.scale[i] = scale
            if abs(scale - memory[job, of.SCALE]) > SAME_SCALE * scale:
                _plan(board, adaptation, i, job, scale, wait, parts, scratch)
            plans.first[i], plans.timer[i] = int(memory[job, of.FIRST]), memory[job, of.NEXT]
            plans.key[i], sooner = _slack_at_best(board, job), factor(adaptation, i, ORDER)
            if parts.by_value and plans.key[i] < 0.0:
                plans.group[i], plans.key[i] = MUST_BE_LATE, -memory[job, of.VALUE] / plans.work[i] * sooner
            else:
                plans.key[i] /= sooner
    return plans


@lean_kernel
def restart_penalty(scale: float) -> float:
    """Return the number of restarts that a change counts as, for a job that runs."""
    return 1.0 + RESTART_PENALTY * (scale - 1.0) / scale


@lean_kernel
def _standing(board: Board, job: int) -> float:
    """Return the configuration that a job holds; -1 if it has not started, -2 if it waits and would have to restart."""
    held = board.jobs[job, at.OLD_CONFIG]
    return held if held >= 0.0 or np.isnan(board.jobs[job, at.START_S]) else -2.0


@lean_kernel
def _holds(board: Board, job: int) -> bool:
    """Return whether the job's last plan still holds."""
    memory, now = board.memory, board.clock[at.NOW]
    same = memory[job, of.HELD] == _standing(board, job) and memory[job, of.SCALE] > 0.0
    return same and now < memory[job, of.UNTIL] and now < memory[job, of.NEXT]


@kernel
def _new_plans(chosen: Ints) -> Plans:
    total = chosen.shape[0]
    whole, masks, figures = (
        np.zeros((2, total), dtype=np.int64),
        np.zeros((2, total), dtype=np.int8),
        np.zeros((7, total)),
    )
    return Plans(
        chosen, whole[0], figures[0], masks[0], whole[1], figures[1], figures[2], figures[3], figures[4], figures[5],
        masks[1], figures[6],
    )  # fmt: skip


@kernel
def _write_due_load(board: Board, chosen: Ints, due_load: Floats) -> None:
    """Write the load of the due work of other jobs times `WAIT_LOAD`, at most 1, (A,); with quotas that of the tenant.

    A job that waits while GPUs are idle leaves its work to a time in which the GPUs may be short.
    """
    jobs, configs, total, gpus = board.jobs, board.facts.configs, chosen.shape[0], 0.0
    for n in range(board.nodes.shape[0]):
        gpus += board.nodes[n, at.NODE_GPUS]
    needs, own = np.zeros(total), np.empty(total)
    for i in range(total):
        job, config = chosen[i], int(jobs[chosen[i], at.CHEAPEST])
        left = epochs_expected(board, job)
        if config >= 0:
            needs[i] = left * jobs[job, at.CHEAPEST_TAU] * configs[config, at.CONFIG_SIZE] / at.UNITS
        own[i] = needs[i] / max(jobs[job, at.DUE] - board.clock[at.NOW], left * jobs[job, at.MIN_TAU], 1.0)
    load = load_of_due_work(board, chosen, needs)
    for i in range(total):
        due_load[i] = min(1.0, WAIT_LOAD * max(0.0, load - own[i]) / gpus)
    for tenant in range(board.quota.shape[0]):
        _write_due_load_of_tenant(board, chosen, tenant, (needs, own), due_load)


@kernel
def _write_due_load_of_tenant(
    board: Board, chosen: Ints, tenant: int, work: tuple[Floats, Floats], due_load: Floats
) -> None:
    """Raise the load of due work of a tenant's jobs to that of its quota.

    Args:
        work: GPU-seconds that each job needs, and these over the time until they are due, (A,), (A,).
    """
    members, count, quota, (needs, own) = np.empty(chosen.shape[0], dtype=np.int64), 0, 0.0, work
    for i in range(chosen.shape[0]):
        if int(board.jobs[chosen[i], at.TENANT]) == tenant:
            members[count] = i
            count += 1
    for v in range(board.capacity.shape[0]):
        quota += float(board.quota[tenant, v]) / at.UNITS
    if count == 0 or quota <= 0.0:
        return
    load = load_of_due_work(board, chosen[members[:count]], needs[members[:count]])
    for k in range(count):
        i = members[k]
        due_load[i] = max(due_load[i], min(1.0, WAIT_LOAD * max(0.0, load - own[i]) / quota))


@lean_kernel
def _look(board: Board, adaptation: Adaptation, plans: Plans, i: int, waits: bool) -> float:
    """Write whether a job is deferrable, and if it is, its first configuration, its timer, and its place in the order.

    Returns:
        The time that it is expected to run yet where its epochs are cheapest [s].
    """
    jobs, configs, job, rate = board.jobs, board.facts.configs, plans.jobs[i], adaptation.deferrable_rate
    left, time_left = epochs_at_worst(board, job), jobs[job, at.DUE] - board.clock[at.NOW]
    time_left -= max(0.0, time_left) * plans.due_load[i]
    config, seconds = cheapest_now(board, rate, job, adaptation.same)
    length, gpus = epochs_expected(board, job) * seconds, configs[config, at.CONFIG_SIZE] / at.UNITS
    held, running = int(jobs[job, at.OLD_CONFIG]), sim.would_restart(board, job)
    plans.work[i] = max(length * gpus, 1e-9) + (0.0 if running else sim.switch_s(board, job, config) * gpus)
    plans.needs[i] = length * gpus
    if waits and left * seconds <= time_left:
        if running and left * board.tau[job, held] < time_left:
            now, then = rate[held] * board.tau[job, held], rate[config] * seconds
            if then > WORTH_A_RESTART * now:
                config, seconds = held, board.tau[job, held]
        worst = left * seconds
        slack, margin = time_left - worst, factor(adaptation, i, MARGIN)
        if slack > (KEEP_MARGIN if held >= 0 else START_MARGIN) * margin * worst:
            plans.first[i], plans.timer[i] = config, board.clock[at.NOW] + slack - 0.999 * START_MARGIN * margin * worst
            plans.key[i], plans.group[i] = slack, DEFERRABLE_RUNNING if running else DEFERRABLE
            return length
    plans.critical[i], plans.group[i] = 1, CRITICAL
    return length


@kernel
def _plan(
    board: Board,
    adaptation: Adaptation,
    i: int,
    job: int,
    scale: float,
    wait: float,
    parts: Parts,
    scratch: Scratch,
) -> None:
    """Plan a job that is critical, or may be after a wait, and remember the plan and its value.

    The value of a second is the additional cost of the plan if it begins after the `wait` [s], over the wait. The plan
    over the hull changes configuration without a cost; if with the restarts of its changes it costs more than the best
    configuration to the end, that one is taken. A restart to come makes the plan later, too. Plans that guarantee due
    dates change as they must.
    """
    memory, rate, size = board.memory, adaptation.rate, adaptation.rate.shape[0]
    heavier, careful = factor(adaptation, i, WEIGHT), factor(adaptation, i, RESTART)
    seconds, price = scratch.seconds[:size], scratch.price[:size]
    price_out(board, rate, job, restart_penalty(scale) * careful, seconds, price)
    config, timer, points = plan_ahead(board, job, seconds, price, scale / heavier, parts.guarantees, scratch)
    if scale == 1.0:
        memory[job, of.BARE_NEEDS] = _gpu_seconds(board, job, points, scratch)
    weight = board.jobs[job, at.WEIGHT] / (scale / heavier)
    restart = max(board.jobs[job, at.RESTART_S], board.jobs[job, at.RESUMING_S]) if parts.counts_restarts else 0.0
    total, changes = cost_with_changes(board, job, points, rate, restart, scratch)
    value = cost_of_waiting(board, job, points, wait, weight, scratch) * scale / wait
    if restart > 0.0:
        best, least = best_throughout(board, rate, job, restart_penalty(scale) * careful, weight)
        if changes and total < least:
            solve_late(board, job, points, board.jobs[job, at.DUE] - board.clock[at.NOW], scratch)
            total += cost_of_waiting(board, job, points, restart, weight, scratch)
        if changes and least <= total and not parts.guarantees:
            config, timer = best, np.inf
        total = min(least, total) if changes else least
    if scale == 1.0:
        memory[job, of.PER_EPOCH] = total / epochs_expected(board, job)
    memory[job, of.HELD], memory[job, of.SCALE] = _standing(board, job), scale
    memory[job, of.FIRST], memory[job, of.NEXT], memory[job, of.VALUE] = config, timer, value
    if scale == 1.0:
        memory[job, of.BARE_VALUE], memory[job, of.BARE_FIRST], memory[job, of.BARE_NEXT] = value, config, timer


@kernel
def _gpu_seconds(board: Board, job: int, points: int, scratch: Scratch) -> float:
    """Return the GPU-seconds that the plan in `scratch` is expected to take."""
    jobs, configs, use = board.jobs, board.facts.configs, scratch.price[:points]
    for k in range(points):
        config = scratch.hull[k]
        use[k] = board.tau[job, config] * configs[config, at.CONFIG_SIZE] / at.UNITS
    curve, largest = sim.curve_of(board, job), jobs[job, at.MAX_EPOCHS]
    first = sim.bin_of(curve.edges, jobs[job, at.EPOCHS] / largest)
    return expected_cost(use, curve, first, largest, scratch.starts[: points + 1])


@lean_kernel
def _slack_at_best(board: Board, job: int) -> float:
    """Return the time to spare if all epochs are needed, in the fastest configuration [s]."""
    jobs = board.jobs
    return jobs[job, at.DUE] - board.clock[at.NOW] - epochs_at_worst(board, job) * jobs[job, at.MIN_TAU]
