"""Critical jobs that wait for the GPUs of their plans, although others are free."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.planning.capacity import gpus_of_types, usable
from gpusched_baselines.sts_x.capacity_price import load_of_arrivals
from gpusched_baselines.sts_x.job_plan import Plans
from gpusched_baselines.sts_x.placements import JOBS, RESTARTS, add_ending, longest_restart, time_until_free
from gpusched_baselines.sts_x.plan import WEIGHT, Adaptation, cost_throughout, epochs_expected, factor
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, at, kernel, lean_kernel

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

    It waits if that is expected to cost less than `WAITS` of any configuration that fits, which it keeps to its end, or
    until it can change to its plan (`_cost_meanwhile`); then its GPUs are added to the `queue`. The wait lasts until
    enough jobs have ended on GPUs of the type, those before it in the queue having theirs, and longer where jobs
    arrive: by 1 / (1 - load). Its GPU-seconds there cost the jobs after it 1 / GPUs of their value each. With quotas no
    job waits, since free GPUs are not free for all jobs, nor where co-runners slow jobs down by utilisation, since it
    is not known when they end.
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
    wait = time_until_free(queue.ending, v, queue.queued[v] + gpus)
    wait /= max(1.0 - queue.arrivals, 1.0 / MOST_ARRIVALS)
    own, tau = rate[config], board.tau[job]
    after = tau[config] * gpus * max(0.0, queue.behind[v]) / queue.gpus[v]
    change = longest_restart(board, job) if jobs[job, at.OLD_CONFIG] >= 0.0 else sim.switch_s(board, job, config)
    cost = cost_throughout(board, job, config, own, wait + change, weight) - own * wait
    cost += epochs_expected(board, job) * after
    for c in range(rate.shape[0]):
        if tau[c] < np.inf and sim.can_place(board, job, c):
            to_the_end = cost_throughout(board, job, c, rate[c], sim.switch_s(board, job, c), weight)
            meanwhile = _cost_meanwhile(board, job, (config, c), (own, rate[c], after), wait, weight)
            if cost >= WAITS * min(to_the_end, meanwhile):
                return False
    queue.queued[v] += gpus
    return True


@lean_kernel
def _cost_meanwhile(
    board: Board, job: int, configs: tuple[int, int], rates: tuple[float, float, float], wait: float, weight: float
) -> float:
    """Return the expected cost of a job that runs while its planned GPUs are held, and changes to them [€].

    The change counts `RESTARTS` restarts. The epochs that are done meanwhile are done no later than without the wait.

    Args:
        configs: The planned configuration, and the one in which it runs meanwhile.
        rates: Their cost rates [€/s], and what an epoch in the planned one costs the jobs after it [€].
        wait: Time until the planned GPUs are free [s].
        weight: Tardiness weight [€/s].
    """
    (planned, c), (own, rate, after), tau = configs, rates, board.tau[job]
    epochs, again = epochs_expected(board, job), RESTARTS * longest_restart(board, job)
    done = min(epochs, max(0.0, wait - sim.switch_s(board, job, c)) / tau[c])
    late = max(0.0, wait + again - done * tau[planned])
    cost = cost_throughout(board, job, planned, own, late, weight) - own * (late + done * tau[planned] - again)
    return cost + rate * wait + (epochs - done) * after
