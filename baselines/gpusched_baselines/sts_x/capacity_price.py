"""The price of GPU-seconds: what a GPU-second for one job costs the other jobs."""

from __future__ import annotations

import numpy as np

from gpusched_baselines.planning.capacity import usable
from gpusched_baselines.planning.plan import Scratch
from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.job_plan import WAITING, Parts, Plans, plan_at_price
from gpusched_baselines.sts_x.plan import Adaptation, epochs_expected
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel

FULL = 0.5  # load of due work at which a cluster counts as full; above twice that the price rises no further
LEAST_PRICE = 0.01  # a price below this part of the price of power counts as 0
FILLED = 0.85  # the part of the GPUs that jobs may want at the clearing price; the others are for jobs to come
TRIALS = 4  # prices that are tried


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
    total, (gpus, power) = values.sum(), usable(board)
    if total <= 0.0 or gpus == 0.0:
        return 0.0
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


@kernel
def clearing_price(
    board: Board, adaptation: Adaptation, plans: Plans, price: float, wait: float, parts: Parts, scratch: Scratch
) -> float:
    """Return the least price, up to `price`, at which the jobs together want at most `FILLED` of the GPUs.

    No job gives GPUs up for others at a price at which they stay idle. It is found by bisection of its logarithm. With
    shared GPUs, quotas or configurations of several nodes free GPUs need not be free for every job, and the price
    stays.

    Args:
        plans: The plans; those of critical jobs are made at the prices that are tried.
        price: The price that is too high, perhaps, as a multiple of the price of power.
    """
    if sim.slots(board) > 0 or sim.tenants_with_quotas(board) > 0 or board.facts.configs[:, at.CONFIG_NODES].max() > 1:
        return price
    gpus = FILLED * usable(board)[0]
    if _wanted(board, plans, of.BARE_FIRST) <= gpus:
        return 0.0
    low, high, total = 0.0, price, max(plans.value.sum(), 1e-300)
    for trial in range(TRIALS):
        tried = high if trial == 0 else np.sqrt((1.0 + low) * (1.0 + high)) - 1.0
        for i in range(plans.jobs.shape[0]):
            if plans.critical[i]:
                others = tried * (1.0 - plans.value[i] / total)
                plan_at_price(board, adaptation, plans, i, others, wait, parts, scratch)
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
