"""The cheapest configuration that meets the due date, the epochs left, and times and rates with co-runners."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import ActiveJobs, Board, Floats, Ints, View, at, kernel, lean_kernel


@kernel
def worth(seconds: float, time_left: float, rate: float) -> tuple[bool, float, float]:
    """Rank a configuration that takes `seconds` and costs `rate` [€/s]: the smaller the better.

    Those that meet the due date, `time_left` seconds away, come first, by cost, then time; then those that miss it, by
    time, then cost.
    """
    cost = seconds * rate
    if sim.misses(seconds, time_left):
        return True, seconds, cost
    return False, cost, seconds


@kernel
def cheapest_fitting(board: Board, rate: Floats, job: int) -> int:
    """Choose as `cheapest_with` does, in the worst case: all epochs left are needed."""
    jobs = board.jobs
    left = jobs[job, at.MAX_EPOCHS] - jobs[job, at.EPOCHS]
    return cheapest_with(board, rate, job, left)


@kernel
def cheapest_with(board: Board, rate: Floats, job: int, left: float) -> int:
    """Choose among the configurations that fit now: the cheapest that meets the due date, else the fastest.

    Args:
        rate: Cost rates to compare by [€/s], (A, C).
        left: The estimated number of epochs left.

    Returns:
        The configuration's index, or -1 if none fits. Of equals the first.
    """
    jobs, configs, tau, now = board.jobs, board.facts.configs, board.tau, board.clock[at.NOW]
    own, best = int(jobs[job, at.APPLICATION]), -1
    least = (True, np.inf, np.inf)
    for c in range(configs.shape[0]):
        if tau[job, c] == np.inf:
            continue
        value = worth(left * tau[job, c], jobs[job, at.DUE] - now, rate[own, c])
        if (best < 0 or value < least) and sim.can_place(board, job, c):
            best, least = c, value
    return best


@kernel
def preference(board: Board, job: int, left: float, order: Ints) -> int:
    """Write the allowed configurations of `job` to `order`, best first by `worth`, (C,); return how many there are."""
    jobs, tau, now = board.jobs, board.tau, board.clock[at.NOW]
    rate, n = board.planning_rate[int(jobs[job, at.APPLICATION])], 0
    time_left = jobs[job, at.DUE] - now
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        value = worth(left * tau[job, c], time_left, rate[c])
        i = n
        while i > 0 and value < worth(left * tau[job, order[i - 1]], time_left, rate[order[i - 1]]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = c
        n += 1
    return n


@kernel
def any_capacity(board: Board) -> bool:
    capacity = board.capacity
    for v in range(capacity.shape[0]):
        if capacity[v, at.FREE_BLOCK] > 0 or capacity[v, at.FREE_SHARE] > 0:
            return True
    return False


Epochs = Literal["worst-case", "mean", "conditional-mean"]
"""Which number of epochs a policy plans with.

"worst-case": all that are left. "mean": the mean less the epochs done, and all that are left after the mean, as
published. "conditional-mean": the mean given the epochs done, ∫ S(x)/S(w) dx over x > w, computed in every round.
"""

WORST_CASE, MEAN, CONDITIONAL_MEAN = range(3)
ESTIMATE: dict[str, int] = {"worst-case": WORST_CASE, "mean": MEAN, "conditional-mean": CONDITIONAL_MEAN}


def check_epochs(epochs: str) -> None:
    if epochs not in ESTIMATE:
        raise InputError("epochs", epochs, "worst-case, mean or conditional-mean")


def epochs_left(view: View, jobs: Ints, epochs: Epochs) -> Floats:
    """Return the estimated epochs left of the active jobs with the indices `jobs`, (A,), (A,)."""
    return left_of_all(view.board, jobs, ESTIMATE[epochs])


def by_pressure(epochs: Epochs) -> Callable[[ActiveJobs], Floats]:
    def order(active: ActiveJobs) -> Floats:
        return -sim.pressures(active.view.board, active.index, epochs_left(active.view, active.index, epochs))

    return order


@kernel
def left_of_all(board: Board, chosen: Ints, estimated: int) -> Floats:
    """Return the estimated epochs left of the active jobs `chosen`, (A,), (A,)."""
    left = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        left[i] = left_of(board, chosen[i], estimated)
    return left


@lean_kernel
def left_of(board: Board, job: int, estimated: int) -> float:
    """Return the estimated epochs left of an active job; `estimated` is one of the values of `ESTIMATE`."""
    jobs = board.jobs
    largest, done = jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
    if estimated == CONDITIONAL_MEAN:
        return sim.expected_left(board, job)
    mean = board.tail[int(jobs[job, at.DISTRIBUTION]), 0] * largest
    return mean - done if estimated == MEAN and done < mean else largest - done


def with_co_runners(board: Board) -> Board:
    """Return the board with the expected times per epoch on shared GPUs; itself if no job slows others down.

    Everything else is the same, not a copy: a job that is placed on it is placed on `board`.
    """
    if not co_runners_slow(board):
        return board
    tau = board.tau.copy()
    write_times(board, tau)
    return board.replaced(tau=tau)


@lean_kernel
def co_runners_slow(board: Board) -> bool:
    """Whether the time of a job on a shared GPU depends on the other jobs there."""
    if not board.has_shares:
        return False
    return board.facts.slowdown.shape[0] + board.facts.utilisation.shape[0] > 0


@lean_kernel
def is_by_utilisation(board: Board) -> bool:
    """Whether the power of GPUs follows the utilisation of the jobs on them."""
    if not board.has_saved_power or not board.has_shares:
        return False
    return board.facts.idle_saving.shape[0] * board.facts.utilisation.shape[0] > 0


def rates_by_utilisation(board: Board, rate: Floats, part: Floats | None = None) -> Floats:
    """Return the rates of configurations [€/s], (A, C), where power follows utilisation: for the active jobs' mean.

    `rate` is that of busy GPUs, `part` what configurations pay of a GPU, (C,); None: their shares. A share counts with
    this part of the idle power of its GPU and node. The work of a job draws the same power on any GPU, so co-runners
    save idle power, and they slow the job down.
    """
    facts, clock = board.facts, board.clock
    if not is_by_utilisation(board) or not board.count[at.ACTIVE]:
        return rate
    mix = _mix(board)
    types, gpus = facts.configs[:, at.CONFIG_TYPE], facts.configs[:, at.CONFIG_GPUS] * facts.configs[:, at.CONFIG_NODES]
    work = mix @ (facts.utilisation.T[:, types] / _factors(board, mix))
    kilowatts = facts.idle_saving[types] * gpus * ((facts.shares if part is None else part) - work)
    return rate - kilowatts * clock[at.PRICE] * clock[at.PUE] / 3600.0


HOLDERS = 0.3  # jobs that are expected to hold shares of one GPU, per active job
GPU_TIME = 0.5  # price of GPU-seconds where power follows utilisation, as a part of the power of the cluster's GPUs


def rates_of_shares(board: Board, rate: Floats) -> Floats:
    """Return the rates of configurations [€/s], (A, C), by utilisation, and by the expected holders of shared GPUs.

    `rate` is that of busy GPUs. It has f of a GPU's rate for a share f, as if other jobs held the rest. So many need
    not come: a GPU is expected to have e = min(1/f, max(1, `HOLDERS` · active jobs)) holders, and a share costs 1/e of
    it. Where power follows utilisation a job that holds GPUs adds little power, but keeps them from others: so a
    GPU-second costs `GPU_TIME` of what the power of a GPU costs in the mean, too.
    """
    facts, part = board.facts, board.facts.configs[:, at.CONFIG_UNITS] / at.UNITS
    shared = part > 0.0
    if not board.has_shares or not shared.any():
        return rates_by_utilisation(board, rate)
    scale, paid = np.ones(len(part)), np.ones(len(part))
    paid[shared] = 1.0 / np.minimum(1.0 / part[shared], max(1.0, HOLDERS * board.count[at.ACTIVE]))
    scale[shared] = paid[shared] / part[shared]
    priced = rates_by_utilisation(board, rate * scale, paid)
    if is_by_utilisation(board):
        gpus = board.nodes[:, at.NODE_GPUS]
        mean = board.node_rate[board.nodes[:, at.NODE_TYPE], gpus].sum() / gpus.sum()
        priced = priced + GPU_TIME * mean * facts.configs[:, at.CONFIG_SIZE] / at.UNITS
    return priced


@kernel
def _mix(board: Board) -> Floats:
    """Return the fraction of the active jobs that are of each application, (A,)."""
    mix = np.zeros(board.facts.planned.shape[0])
    for i in range(board.count[at.ACTIVE]):
        mix[int(board.jobs[board.active[i], at.APPLICATION])] += 1.0 / board.count[at.ACTIVE]
    return mix


@kernel
def _factors(board: Board, mix: Floats) -> Floats:
    """Return the factors on times with co-runners of such a mix of applications, (A, C); 1 except on shares."""
    planned, configs = board.facts.planned, board.facts.configs
    factor = np.ones_like(planned)
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_UNITS] > 0:
            for a in range(planned.shape[0]):
                factor[a, c] = min(_factor(board, a, c, mix), planned[a, c])
    return factor


@kernel
def write_times(board: Board, tau: Floats) -> None:
    """Write the times on shares of the active jobs, each with co-runners like the average active job.

    Args:
        tau: A copy of its seconds per epoch, (J, C); those of active jobs on shares are written.
    """
    if not board.has_shares:
        return
    jobs, configs, planned = board.jobs, board.facts.configs, board.facts.planned
    factor = _factors(board, _mix(board))
    for i in range(board.count[at.ACTIVE]):
        job = board.active[i]
        own = int(jobs[job, at.APPLICATION])
        for c in range(configs.shape[0]):
            if configs[c, at.CONFIG_UNITS] > 0 and tau[job, c] < np.inf:
                tau[job, c] *= factor[own, c] / planned[own, c]


@kernel
def _factor(board: Board, own: int, config: int, mix: Floats) -> float:
    """Return the factor on the time of an application on a share of a GPU whose rest co-runners of the mix fill."""
    configs, facts = board.facts.configs, board.facts
    v, free = configs[config, at.CONFIG_TYPE], at.UNITS - configs[config, at.CONFIG_UNITS]
    least, priority = at.UNITS + 1, configs[config, at.CONFIG_PRIORITY]
    top, low = priority, priority
    for c in range(configs.shape[0]):
        if configs[c, at.CONFIG_TYPE] == v and 0 < configs[c, at.CONFIG_UNITS] <= free:
            top, low = max(top, configs[c, at.CONFIG_PRIORITY]), min(low, configs[c, at.CONFIG_PRIORITY])
            if configs[c, at.CONFIG_PRIORITY] == priority:
                least = min(least, configs[c, at.CONFIG_UNITS])
    others = free // least
    if facts.utilisation.shape[0] == 0:
        mean = 0.0
        for a in range(mix.shape[0]):
            mean += mix[a] * facts.slowdown[v, own, a]
        return 1.0 + others * (mean - 1.0)
    utilisation, filled = 0.0, facts.sharing[at.FILLED]
    for a in range(mix.shape[0]):
        utilisation += mix[a] * facts.utilisation[v, a]
        filled += mix[a] * facts.filled[a, 0] if facts.filled.shape[0] > 0 else 0.0  # with a table the number is 0
    demand = np.zeros(at.PRIORITIES)
    if top > priority:
        others = 0
    demand[top] = utilisation
    demand[low] = utilisation
    demand[priority] = facts.utilisation[v, own] + others * utilisation
    return 1.0 / sim.speed_by_utilisation(demand, priority, filled, facts.sharing)
