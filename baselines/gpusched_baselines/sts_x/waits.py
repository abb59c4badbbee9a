"""Critical jobs that wait for the GPUs of their plans, although others are free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.capacity import gpus_of_types, usable
from gpusched_baselines.sts_x.capacity_price import load_of_arrivals
from gpusched_baselines.sts_x.job_plan import Plans
from gpusched_baselines.sts_x.placements import JOBS, add_ending, longest_restart, time_until_free
from gpusched_baselines.sts_x.plan import WEIGHT, Adaptation, cost_throughout, epochs_expected, factor
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, at, kernel

WAITS = 0.85  # a job waits for the GPUs of its plan where that is expected to cost less than so much of what fits
MOST_ARRIVALS = 20.0  # how many times as long it waits at most, since other jobs arrive


class Queue(NamedTuple):
    """What decides whether a job of a round waits for GPUs of a type, by type.

    Attributes:
        ending: Jobs that end, GPUs that are released, and the first possible end, as `add_ending` adds them, (3, V).
        queued: GPUs for which jobs before it wait, (V,).
        behind: Sum of the values of a second of the critical jobs that are not placed yet [€/s], (V,).
        gpus: GPUs of the type, (V,).
        arrivals: The load of arrivals.
    """

    ending: Floats
    queued: Floats
    behind: Floats
    gpus: Floats
    arrivals: float


@kernel
def new_queue(board: Board, plans: Plans) -> Queue:
    types, configs = board.capacity.shape[0], board.facts.configs
    queued, behind = np.zeros(types), np.zeros(types)
    queue = Queue(np.zeros((3, types)), queued, behind, gpus_of_types(board), load_of_arrivals(board, usable(board)[0]))
    for i in range(plans.jobs.shape[0]):
        if plans.critical[i] and not plans.keeps[i]:
            queue.behind[configs[plans.first[i], at.CONFIG_TYPE]] += plans.value[i]
        add_ending(board, plans.jobs[i], queue.ending)
    return queue


@kernel
def waits_for_plan(board: Board, plans: Plans, i: int, config: int, adaptation: Adaptation, queue: Queue) -> bool:
    """Return whether a critical job waits for its planned configuration, and takes nothing that fits.

    It waits if that is expected to cost less than `WAITS` of the cheapest configuration that fits, both to the end;
    then its GPUs are added to the `queue`. The wait lasts until enough jobs have ended on GPUs of the type, those
    before it in the queue having theirs, and longer where jobs arrive: by 1 / (1 - load). Its GPU-seconds there cost
    the jobs after it 1 / GPUs of their value each. With quotas no job waits, since free GPUs are not free for all
    jobs, nor where co-runners slow jobs down by utilisation, since it is not known when they end.
    """
    job, jobs, configs = plans.jobs[i], board.jobs, board.facts.configs
    if config < 0 or sim.tenants_with_quotas(board) > 0:
        return False
    if board.has_shares and board.facts.utilisation.shape[0] > 0:
        return False
    v, gpus = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_SIZE] / at.UNITS
    if queue.ending[JOBS, v] <= 0.0:
        return False
    rate, weight = adaptation.rate[int(jobs[job, at.APPLICATION])], jobs[job, at.WEIGHT] * factor(adaptation, i, WEIGHT)
    least = np.inf
    for c in range(rate.shape[0]):
        if board.tau[job, c] < np.inf and sim.can_place(board, job, c):
            change = sim.switch_s(board, job, c)
            least = min(least, cost_throughout(board, job, c, rate[c], change, weight))
    wait = time_until_free(queue.ending, v, queue.queued[v] + gpus)
    wait /= max(1.0 - queue.arrivals, 1.0 / MOST_ARRIVALS)
    change = longest_restart(board, job) if jobs[job, at.OLD_CONFIG] >= 0.0 else sim.switch_s(board, job, config)
    cost = cost_throughout(board, job, config, rate[config], wait + change, weight)
    cost += epochs_expected(board, job) * board.tau[job, config] * gpus * max(0.0, queue.behind[v]) / queue.gpus[v]
    if cost - rate[config] * wait >= WAITS * least:
        return False
    queue.queued[v] += gpus
    return True
