"""Which jobs of a round are critical, at which price of GPU-seconds they are planned, and their order."""

from __future__ import annotations

import numpy as np

from gpusched_baselines.planning.capacity import usable
from gpusched_baselines.planning.plan import Scratch
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.capacity_price import capacity_price, clearing_price, load_of_due_work
from gpusched_baselines.sts_x.job_plan import (
    CRITICAL,
    DEFERRABLE,
    DEFERRABLE_RUNNING,
    MUST_BE_LATE,
    WAITING,
    PlanOptions,
    Plans,
    holds,
    new_plans,
    plan_at_price,
    plan_job,
    sees_prices,
)
from gpusched_baselines.sts_x.plan import (
    MARGIN,
    ORDER,
    Adaptation,
    cheapest_at_held,
    cheapest_now,
    epochs_at_worst,
    epochs_expected,
    factor,
)
from gpusched_baselines.sts_x.price_plan import plan_over_prices
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

WAIT_LOAD = 1.4  # due work that fills 1 / so much of the cluster leaves jobs no time to wait
START_MARGIN = 0.01  # a job that waits starts when its slack has fallen to this part of its worst-case time
KEEP_MARGIN = 0.03  # a job that runs is not interrupted below this; between the two it keeps its configuration
WORTH_A_RESTART = 0.9  # a job changes to a configuration that costs at most this part of its own, restart included
DELAY = 0.25  # over which the value of a second is taken, as a part of the mean time that jobs are expected to run yet
KEPT = 1.0 / 16.0  # how long a plan holds, as a part of that time, if nothing happens to its job
FREE_RATE = 1e-12  # cost rate of a GPU in plans where energy is free [€/s]


@kernel
def appraise(board: Board, chosen: Ints, options: PlanOptions, adaptation: Adaptation, scratch: Scratch) -> Plans:
    """Plan every active job, and rank them.

    A job whose cheapest configuration would still meet the due date later is *deferrable*, every other is *critical*.
    First come those that must be late if they need all their epochs, by the value of a second of their time over the
    GPU-seconds that they need (Smith's rule, with the value of time in place of the weight); then other critical ones,
    and then deferrable ones, both by slack.

    Args:
        chosen: The active jobs, (A,).
        scratch: Written.
    """
    plans, memory, now = new_plans(chosen), board.memory, board.clock[at.NOW]
    longest = 0.0
    if options.waits:
        _write_due_load(board, chosen, plans.due_load)
    for i in range(chosen.shape[0]):
        longest += _look(board, adaptation, plans, i, options.waits)
    _take_price_plans(board, options, adaptation, plans)
    wait = max(DELAY * np.exp(adaptation.delay) * longest / max(1, chosen.shape[0]), 1.0)
    for i in range(chosen.shape[0]):
        job = chosen[i]
        if plans.critical[i] or plans.key[i] < wait:
            if not holds(board, job):
                plan_job(board, adaptation, i, job, 1.0, wait, options, scratch)
                memory[job, of.UNTIL] = now + KEPT * wait
            plans.value[i] = memory[job, of.BARE_VALUE]
    price = capacity_price(board, plans.value, FREE_RATE) if options.priced else 0.0
    if price > 0.0:
        price = clearing_price(board, adaptation, plans, price, wait, options, scratch)
    total = max(plans.value.sum(), 1e-300)
    for i in range(chosen.shape[0]):
        job = chosen[i]
        if plans.critical[i]:
            others = price * (1.0 - plans.value[i] / total)  # the price is what the other jobs lose
            plan_at_price(board, adaptation, plans, i, others, wait, options, scratch)
            plans.first[i], plans.timer[i] = int(memory[job, of.FIRST]), memory[job, of.NEXT]
            plans.key[i], sooner = _slack_at_best(board, job), factor(adaptation, i, ORDER)
            if plans.key[i] < 0.0:
                plans.group[i], plans.key[i] = MUST_BE_LATE, -memory[job, of.VALUE] / plans.work[i] * sooner
            else:
                plans.key[i] /= sooner
    return plans


@kernel
def _take_price_plans(board: Board, options: PlanOptions, adaptation: Adaptation, plans: Plans) -> None:
    """Let the jobs follow plans over the periods of prices if there are any, except those that must be late."""
    if not board.has_prices or not sees_prices(board, options):
        return
    first = plans.first.copy()
    planned = plan_over_prices(board, plans.jobs, adaptation, first, plans.timer)
    for i in range(first.shape[0]):
        if planned[i]:
            plans.critical[i], plans.key[i] = 0, _slack_at_best(board, plans.jobs[i])
            plans.group[i] = DEFERRABLE_RUNNING if sim.would_restart(board, plans.jobs[i]) else DEFERRABLE
            if first[i] < 0:
                plans.group[i] = WAITING
            else:
                plans.first[i] = first[i]


@kernel
def _write_due_load(board: Board, chosen: Ints, due_load: Floats) -> None:
    """Write the load of the due work of other jobs times `WAIT_LOAD`, at most 1, (A,).

    With quotas it is at least that of the other jobs of the tenant over its quota.

    A job that waits while GPUs are idle leaves its work to a time in which the GPUs may be short.
    """
    jobs, configs, total, gpus = board.jobs, board.facts.configs, chosen.shape[0], max(1.0, usable(board)[0])
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
    if board.has_quotas:
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
    jobs, configs, job = board.jobs, board.facts.configs, plans.jobs[i]
    rate = adaptation.deferrable_rate[int(jobs[job, at.APPLICATION])]
    left, time_left = epochs_at_worst(board, job), jobs[job, at.DUE] - board.clock[at.NOW]
    time_left -= max(0.0, time_left) * plans.due_load[i]
    config, seconds = cheapest_now(board, rate, job, adaptation.same)
    length, gpus = epochs_expected(board, job) * seconds, configs[config, at.CONFIG_SIZE] / at.UNITS
    held, running = cheapest_at_held(board, rate, job), sim.would_restart(board, job)
    plans.work[i] = max(length * gpus, 1e-9) + (0.0 if running else sim.switch_s(board, job, config) * gpus)
    if waits and left * seconds <= time_left:
        if running and left * board.tau[job, held] < time_left:
            now, then = rate[held] * board.tau[job, held], rate[config] * seconds
            if then > WORTH_A_RESTART * now:
                config, seconds = held, board.tau[job, held]
        worst = left * seconds
        slack, margin = time_left - worst, factor(adaptation, i, MARGIN)
        if slack > (KEEP_MARGIN if held >= 0 else START_MARGIN) * margin * worst:
            spare = slack - 0.999 * START_MARGIN * margin * worst  # it falls as the time left that due work leaves
            plans.first[i], plans.timer[i] = config, board.clock[at.NOW] + spare / (1.0 - plans.due_load[i])
            plans.key[i], plans.group[i] = slack, DEFERRABLE_RUNNING if running else DEFERRABLE
            return length
    plans.critical[i], plans.group[i] = 1, CRITICAL
    return length


@lean_kernel
def _slack_at_best(board: Board, job: int) -> float:
    """Return the time to spare if all epochs are needed, in the fastest configuration [s]."""
    jobs = board.jobs
    return jobs[job, at.DUE] - board.clock[at.NOW] - epochs_at_worst(board, job) * jobs[job, at.MIN_TAU]
