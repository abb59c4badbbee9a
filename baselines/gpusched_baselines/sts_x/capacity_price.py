"""The price of GPU-seconds: what a GPU-second for one job costs the other jobs."""

from __future__ import annotations

import numpy as np

from gpusched_baselines.planning.capacity import gpus_of_types, usable
from gpusched_baselines.planning.plan import Scratch
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.job_plan import WAITING, PlanOptions, Plans, plan_at_price
from gpusched_baselines.sts_x.plan import Adaptation, epochs_expected, needs_on_all_gpus
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

LEAST_PRICE = 0.01  # a price below this part of the price of power counts as 0
FILLED = 0.85  # the part of the GPUs that jobs may want at the clearing price; the others are for jobs to come
TRIALS = 4  # prices that are tried
RECENT = 256  # submissions that count for the load of arrivals
MOST_LOAD = 3.0  # load of arrivals by which the price is multiplied at most


@kernel
def capacity_price(board: Board, values: Floats, free_rate: float) -> float:
    """Return the price of a GPU-second, Σ values / GPUs · load, as a multiple of what its power costs in the mean.

    One GPU-second more for a job delays all others by 1 / GPUs seconds, and a second costs each of them its value. As a
    multiple it keeps GPU types in the proportion of their power; with one price for every GPU all jobs would take the
    fastest type. A load of arrivals above 1 multiplies it: the jobs to come wait, too.

    Args:
        values: Value of a second of time of each active job [€/s], (A,).
        free_rate: Cost rate of a GPU where energy is free [€/s].
    """
    gpus, power = usable(board)
    if gpus == 0.0:
        return 0.0
    price = values.sum() / (power if power > 0.0 else gpus * free_rate)
    price *= min(max(1.0, load_of_arrivals(board, gpus)), MOST_LOAD)
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


@kernel
def load_of_arrivals(board: Board, gpus: float) -> float:
    """Return the GPU-seconds that the latest submissions need in the mean, over the time in which they came and GPUs.

    Jobs that came together with the first of them are a stock, and not counted.
    """
    last, of_types = board.count[at.SUBMITTED], gpus_of_types(board)
    first, total = max(0, last - RECENT), 0.0
    elapsed = board.clock[at.NOW] - board.jobs[first, at.SUBMISSION]
    for job in range(first, last):
        if board.jobs[job, at.SUBMISSION] > board.jobs[first, at.SUBMISSION]:
            total += needs_on_all_gpus(board, job, of_types)
    return total / (elapsed * gpus) if elapsed > 0.0 and gpus > 0.0 else 0.0


@kernel
def clearing_price(
    board: Board,
    adaptation: Adaptation,
    plans: Plans,
    price: float,
    wait: float,
    options: PlanOptions,
    scratch: Scratch,
) -> float:
    """Return the least price, up to `price`, at which the jobs together want at most `FILLED` of the GPUs.

    No job gives GPUs up for others at a price at which they stay idle. It is found by bisection of log(1 + price). With
    quotas or configurations of several nodes free GPUs need not be free for every job, and the price stays; with shared
    GPUs it is 0 if GPUs stay idle without a price, else it stays.

    Args:
        plans: The plans; those of critical jobs are made at the prices that are tried.
        price: The price that is too high, perhaps, as a multiple of the price of power.
    """
    if sim.tenants_with_quotas(board) > 0 or board.facts.configs[:, at.CONFIG_NODES].max() > 1:
        return price
    gpus = FILLED * usable(board)[0]
    if _wanted(board, plans, of.BARE_FIRST) <= gpus:
        return 0.0
    if sim.slots(board) > 0:
        return price
    low, high, total = 0.0, price, max(plans.value.sum(), 1e-300)
    for trial in range(TRIALS):
        tried = high if trial == 0 else np.sqrt((1.0 + low) * (1.0 + high)) - 1.0
        for i in range(plans.jobs.shape[0]):
            if plans.critical[i]:
                others = tried * (1.0 - plans.value[i] / total)
                plan_at_price(board, adaptation, plans, i, others, wait, options, scratch)
        if _wanted(board, plans, of.FIRST) <= gpus:
            high = tried
        elif trial == 0:
            break
        else:
            low = tried
    return high


@kernel
def _wanted(board: Board, plans: Plans, column: int) -> float:
    """Return the GPUs with which the jobs begin; for critical ones by a column of their memory."""
    configs, wanted = board.facts.configs, 0.0
    for i in range(plans.jobs.shape[0]):
        if plans.group[i] == WAITING:
            continue
        first = int(board.memory[plans.jobs[i], column]) if plans.critical[i] else plans.first[i]
        wanted += configs[first, at.CONFIG_SIZE] / at.UNITS if first >= 0 else 0.0
    return wanted
