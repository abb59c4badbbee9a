"""STS-X's plan of one job: one hull over all GPU types, or one configuration to the end; what an agent may adapt.

`rate` are the cost rates to plan with [€/s]: (A, C), or (C,) those of the job's application.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_baselines.dispatching.idle_gpus import give_by_gain
from gpusched_baselines.planning.cheapest import HOLDERS
from gpusched_baselines.planning.plan import (
    LATE,
    Scratch,
    add_late_point,
    expected_cost,
    find_hull,
    first_segment,
    solve_job,
    solve_late,
)
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, Mask, at, kernel, lean_kernel


@kernel
def spread(board: Board, order: Ints, keeps: Mask) -> None:
    """Assign idle GPUs of nodes that are on to jobs there, while that makes some job's epoch cheaper.

    The cost of an epoch is that of the power of the job's GPUs and of an equal part of the node's base power. So a job
    alone on its node saves base power by being faster. The cost of a restart is spread over the epochs that the job is
    expected to need. A job may leave a share for whole GPUs, too. Jobs on several nodes keep what they have, and so do
    those that `keeps` names.

    Args:
        order: The jobs of the round, (A,).
        keeps: Whether each keeps what it has, (A,).
    """
    jobs = board.jobs
    restart = np.zeros(order.shape[0])
    for i in range(order.shape[0]):
        job = order[i]
        preferred = sim.place_of_state(board, job)
        change = jobs[job, at.RESUMING_S if int(jobs[job, at.NODE]) == preferred else at.RESTART_S]
        if change > 0.0 and preferred >= 0:
            left = max(sim.expected_left(board, job), 1e-12 * jobs[job, at.MAX_EPOCHS])
            restart[i] = change / left
        if keeps[i]:
            restart[i] = np.inf
    give_by_gain(board, order, restart, max(1.0, HOLDERS * order.shape[0]))


# Columns of the adaptation of every job. Each is the logarithm of a factor, so 0 changes nothing, to the last bit.
PRICE = 0  # on the price of GPUs where they are short
WEIGHT = 1  # on the tardiness weight with which it is planned
ORDER = 2  # on the value of its time, and on 1 / slack, by which critical jobs come first
MARGIN = 3  # on the slack at which it is critical
RESTART = 4  # on the seconds that a change costs
CONTROLS = 5

# Entries of the adaptation to prices and a cap, likewise.
DIFFERENCE = 0  # on the differences of the energy prices to come from their mean: what a wait is expected to save
GPU_TIME = 1  # on the prices of GPU time in the periods to come
ROOM = 2  # on the GPU time that plans may use in the periods to come
EARLY = 3  # on the time by which plans end before their due dates
POWER = 4  # on all cost rates
ENERGY_CONTROLS = 5


class Adaptation(NamedTuple):
    """The parameters of STS-X that an agent adapts for a round.

    Attributes:
        jobs: Logarithms of factors for every active job, (A, CONTROLS).
        rate: Cost rates with which critical jobs are planned [€/s], (A, C).
        deferrable_rate: Cost rates by which the cheapest configuration of deferrable jobs is found [€/s], (A, C).
        same: Whether the cheapest configuration of a deferrable job is the same in every round.
        delay: Logarithm of a factor on the delay over which the value of a second is taken.
        energy: Logarithms of factors where prices change or power has a cap, (ENERGY_CONTROLS,).
    """

    jobs: Floats
    rate: Floats
    deferrable_rate: Floats
    same: bool
    delay: float
    energy: Floats


@kernel
def unadapted(active: int, rate: Floats) -> Adaptation:
    return Adaptation(np.zeros((active, CONTROLS)), rate, rate, True, 0.0, np.zeros(ENERGY_CONTROLS))


@lean_kernel
def factor(adaptation: Adaptation, i: int, control: int) -> float:
    said = adaptation.jobs[i, control]
    return np.exp(said) if said != 0.0 else 1.0


@lean_kernel
def energy_factor(adaptation: Adaptation, control: int) -> float:
    said = adaptation.energy[control]
    return np.exp(said) if said != 0.0 else 1.0


# Columns of the policy's memory of a job, after those of plans.
KNOWN_AT = 5  # 1 + the epochs done for which the next one holds
EXPECTED = 6  # epochs that it is expected to need yet
CHEAPEST = 15  # 1 + the configuration with the cheapest epochs, restarts aside; 0: not looked up yet
NEEDS = 10  # GPU-seconds that the whole job needs in the mean on all GPUs that it may use; 0: not looked up
IN_ALL = 16  # GPU-seconds that it needs where its epochs are cheapest, for features; 0: not looked up
# Its last plan.
UNTIL = 7  # time until which it holds [s]
HELD = 8  # what the job held when it was made: a configuration, -1 before its start, -2 waiting
BARE_VALUE = 9  # value of a second of its time where GPUs have no price [€/s]
BARE_FIRST = 21  # configuration with which it begins there
BARE_NEXT = 22  # when another one follows there [s]
SCALE = 11  # the scale of prices for which the next columns hold
FIRST = 12  # configuration with which it begins
NEXT = 13  # when another one follows [s]
VALUE = 14  # value of a second of its time [€/s]
PER_EPOCH = 17  # its expected cost over the epochs expected, restarts of later changes included [€]
# For the prices of GPU types; so are the columns from `FREE_COLUMNS` on, three for each type.
TYPES_PRICED = 18  # what is written
WINDOW = 19  # time from submission to due date [s]
IN_TIME = 20  # whether it can be expected to meet it


@lean_kernel
def epochs_expected(board: Board, job: int) -> float:
    """Return the epochs that a job is expected to need yet, > 0; looked up as long as it makes no progress."""
    jobs, memory = board.jobs, board.memory
    if memory[job, KNOWN_AT] != 1.0 + jobs[job, at.EPOCHS]:
        memory[job, KNOWN_AT] = 1.0 + jobs[job, at.EPOCHS]
        memory[job, EXPECTED] = max(sim.expected_left(board, job), 1e-12 * jobs[job, at.MAX_EPOCHS])
    return memory[job, EXPECTED]


@kernel
def needs_on_all_gpus(board: Board, job: int, gpus: Floats) -> float:
    """Return the GPU-seconds that a whole job needs in the mean on all GPUs that it may use; looked up once.

    It is the harmonic mean, over these GPUs, of the fewest GPU-seconds that it needs on their type.

    Args:
        gpus: GPUs by type, (V,).
    """
    memory, configs = board.memory, board.facts.configs
    if memory[job, NEEDS] == 0.0 and board.jobs[job, at.CHEAPEST] >= 0.0:
        least, total, served = np.full(gpus.shape[0], np.inf), 0.0, 0.0
        for c in range(board.tau.shape[1]):
            v, size = configs[c, at.CONFIG_TYPE], configs[c, at.CONFIG_SIZE] / at.UNITS
            least[v] = min(least[v], board.tau[job, c] * size)
        for v in range(gpus.shape[0]):
            total += gpus[v] if least[v] < np.inf else 0.0
            served += gpus[v] / least[v]
        mean = board.jobs[job, at.MAX_EPOCHS] * board.tail[int(board.jobs[job, at.DISTRIBUTION]), 0]
        memory[job, NEEDS] = mean * total / served if served > 0.0 else 0.0
    return memory[job, NEEDS]


@kernel
def rate_at_price(board: Board, rate: Floats, job: int, scale: float) -> Floats:
    """Return a job's rates where GPUs cost `scale` times their power, over `scale` [€/s], (C,).

    A power limit takes nothing from the price of GPUs: r / scale + (1 - 1 / scale) times the rate without a limit.

    Args:
        rate: Cost rates [€/s], (A, C).
        scale: 1 + the price of GPUs, as a multiple of that of power, ≥ 1.
    """
    own = rate[int(board.jobs[job, at.APPLICATION])]
    if not board.has_saved_power or scale == 1.0 or board.facts.saved_kw.shape[0] == 0:
        return own
    configs, priced = board.facts.configs, own.copy()
    for c in range(own.shape[0]):
        full = configs[c, at.CONFIG_UNLIMITED]
        if full != c:
            priced[c] = own[c] / scale + (1.0 - 1.0 / scale) * own[full]
    return priced


@kernel
def price_out(board: Board, rate: Floats, job: int, restart_penalty: float, seconds: Floats, price: Floats) -> None:
    """Write seconds and cost per epoch of every configuration, with the restart that changing to it takes.

    A change takes `switch_s` seconds, during which the GPUs cost as if they ran. It is spread over the epochs left:
    the worst case for the time, the mean for the cost. So every configuration but the present one is slower and
    costlier.

    Args:
        restart_penalty: Restart penalty factor: how many times a restart counts for a job that runs, ≥ 1.
        seconds: Written, (C,); inf where not allowed.
        price: Written [€], (C,); inf where not allowed.
    """
    jobs, tau = board.jobs, board.tau
    held = int(jobs[job, at.OLD_CONFIG])
    times = restart_penalty if held >= 0 else 1.0
    left = epochs_at_worst(board, job)
    expected = epochs_expected(board, job)
    for c in range(tau.shape[1]):
        change = sim.switch_s(board, job, c) * times
        seconds[c] = tau[job, c] + change / left
        price[c] = rate[c] * (tau[job, c] + change / expected) if tau[job, c] < np.inf else np.inf


@lean_kernel
def epochs_at_worst(board: Board, job: int) -> float:
    largest = board.jobs[job, at.MAX_EPOCHS]
    return max(largest - board.jobs[job, at.EPOCHS], 1e-12 * largest)


@lean_kernel
def cheapest_now(board: Board, rate: Floats, job: int, same: bool) -> tuple[int, float]:
    """Find the configuration with the cheapest epochs, restart included; return it and its seconds per epoch.

    Where all changes cost the same, all configurations but the present one take the same restart. So the result is
    the configuration that is cheapest without restarts, or the present one.

    Args:
        rate: Cost rates [€/s], (C,).
        same: Whether rates keep their proportions from round to round, so that the cheapest one stays the same.
    """
    jobs, tau, memory = board.jobs, board.tau, board.memory
    if memory[job, CHEAPEST] == 0.0 or not same:
        memory[job, CHEAPEST] = 1.0 + _cheapest(rate, tau[job])
    best = int(memory[job, CHEAPEST]) - 1
    if jobs[job, at.RESUMING_S] != jobs[job, at.RESTART_S]:
        return _cheapest_with_switch(board, rate, job)
    held, restart = int(jobs[job, at.OLD_CONFIG]), sim.switch_s(board, job, best)
    if held == best or restart == 0.0:
        return best, tau[job, best]
    change = rate[best] * (tau[job, best] + restart / epochs_expected(board, job))
    held = cheapest_at_held(board, rate, job)
    if held >= 0 and rate[held] * tau[job, held] <= change:
        return held, tau[job, held]
    return best, tau[job, best] + restart / epochs_at_worst(board, job)


@lean_kernel
def cheapest_at_held(board: Board, rate: Floats, job: int) -> int:
    """Return the configuration with the cheapest epochs on the GPUs that a job held; -1 if it held none."""
    tau, held = board.tau, int(board.jobs[job, at.OLD_CONFIG])
    best = held
    if not board.has_saved_power or held < 0 or board.facts.saved_kw.shape[0] == 0:
        return best
    for c in range(rate.shape[0]):
        cheaper = tau[job, c] < np.inf and rate[c] * tau[job, c] < rate[best] * tau[job, best]
        if cheaper and sim.same_gpus(board, c, held):
            best = c
    return best


@kernel
def _cheapest(rate: Floats, seconds: Floats) -> int:
    """Find the configuration with the cheapest epochs, of equals the fastest; at least one must be allowed.

    It does not change with the price of energy, which is the same factor on all rates.
    """
    best = -1
    for c in range(seconds.shape[0]):
        if seconds[c] == np.inf:
            continue
        cost = rate[c] * seconds[c]
        if (
            best < 0
            or cost < rate[best] * seconds[best]
            or (cost == rate[best] * seconds[best] and seconds[c] < seconds[best])
        ):
            best = c
    return best


@lean_kernel
def _cheapest_with_switch(board: Board, rate: Floats, job: int) -> tuple[int, float]:
    """Find the configuration with the cheapest epochs where the time of a change depends on the configuration."""
    left, expected, tau = epochs_at_worst(board, job), epochs_expected(board, job), board.tau
    best, seconds, least = -1, np.inf, np.inf
    for c in range(tau.shape[1]):
        if tau[job, c] == np.inf:
            continue
        change = sim.switch_s(board, job, c)
        cost = rate[c] * (tau[job, c] + change / expected)
        if best < 0 or cost < least:
            best, seconds, least = c, tau[job, c] + change / left, cost
    return best, seconds


@kernel
def plan_ahead(
    board: Board, job: int, seconds: Floats, price: Floats, scale: float, guarantees: bool, scratch: Scratch
) -> tuple[int, float, int]:
    """Plan a job over all configurations at once.

    Args:
        seconds: Seconds per epoch, (C,); inf where the plan may not use a configuration.
        price: Cost per epoch [€], (C,).
        scale: Factor on all costs, ≥ 1.
        guarantees: Whether the plan meets the due date if all epochs are needed, where it can, at any cost; else
            tardiness has its price.
        scratch: Written: the hull, the plan that may be late, and its points.

    Returns:
        The first configuration whose segment is long enough, -1 if none is allowed; the time at which another one
        follows [s], inf if none does; and the number of points of the plan that may be late, the late one included.
    """
    jobs = board.jobs
    points = find_hull(seconds, price, scratch)
    if points == 0:
        return -1, np.inf, 0
    time_left = jobs[job, at.DUE] - board.clock[at.NOW]
    config, timer = -1, np.inf
    if guarantees:
        status, _ = solve_job(board, job, points, time_left, scratch)
        k = points - 1
        if status != LATE:
            k, timer = first_segment(board, job, points, scratch)
        config = scratch.hull[k]
    weight = jobs[job, at.WEIGHT] / scale
    late = add_late_point(scratch.points, scratch.hull, points, weight)
    solve_late(board, job, late, time_left, scratch)
    if not guarantees:
        k, timer = first_segment(board, job, late - 1, scratch)
        config = scratch.hull[k]
    return config, timer, late


@lean_kernel
def cost_throughout(board: Board, job: int, config: int, rate: float, change: float, weight: float) -> float:
    """Return the expected cost of the rest of a job that keeps a configuration to its end [€].

    After `change` seconds without progress, which cost as if it ran, it takes τ for every epoch. With the time D left
    after the change, the expected tardiness is τ ∫ S(x)/S(w) dx over the epochs x that end after D.

    Args:
        rate: Cost rate of the configuration [€/s].
        change: Seconds without progress before it begins, ≥ 0.
        weight: Tardiness weight [€/s].
    """
    jobs, tau = board.jobs, board.tau[job, config]
    expected, until = epochs_expected(board, job), jobs[job, at.DUE] - board.clock[at.NOW] - change
    late = expected * tau - until if until <= 0.0 else 0.0
    if until > 0.0:
        curve, largest, done = sim.curve_of(board, job), jobs[job, at.MAX_EPOCHS], jobs[job, at.EPOCHS]
        at_due = (done + until / tau) / largest
        alive = curve.survival[sim.bin_of(curve.edges, done / largest)]
        if at_due < 1.0 and alive > 0.0:
            late = tau * sim.survival_after(curve, at_due) * largest / alive
    return rate * (expected * tau + change) + weight * late


@kernel
def best_throughout(board: Board, rate: Floats, job: int, restart_penalty: float, weight: float) -> tuple[int, float]:
    """Return the configuration with the least expected cost if a job keeps it to its end, -1 if none, and that cost.

    Args:
        rate: Cost rates [€/s], (C,); inf where a configuration may not be used.
        restart_penalty: How many times a restart counts for a job that runs, ≥ 1.
        weight: Tardiness weight [€/s].
    """
    jobs, held = board.jobs, int(board.jobs[job, at.OLD_CONFIG])
    best, least = -1, np.inf
    for c in range(rate.shape[0]):
        if board.tau[job, c] == np.inf or rate[c] == np.inf:
            continue
        change = sim.switch_s(board, job, c) * (restart_penalty if held >= 0 else 1.0)
        if sim.same_gpus(board, c, held):
            change = max(0.0, jobs[job, at.READY_S] - board.clock[at.NOW])
        cost = cost_throughout(board, job, c, rate[c], change, weight)
        if cost < least:
            best, least = c, cost
    return best, least


@kernel
def cost_with_changes(
    board: Board, job: int, points: int, rate: Floats, restart: float, scratch: Scratch
) -> tuple[float, bool]:
    """Return the expected cost of the plan in `scratch`, the energy of the restarts of its changes included [€].

    A change of GPUs after w' epochs happens with the probability S(w')/S(w). Tardiness until now is left out.

    Args:
        rate: Cost rates [€/s], (C,).
        restart: Seconds of a restart.

    Returns:
        The cost, and whether the plan changes configuration.
    """
    curve, largest, done = sim.curve_of(board, job), board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    first, starts = sim.bin_of(curve.edges, done / largest), scratch.starts[: points + 1]
    alive, total, before, changes = curve.survival[first], 0.0, -1, False
    for k in range(points):
        config = scratch.hull[k]
        if starts[k + 1] <= starts[k] or config == before:
            continue
        if before >= 0 and not sim.same_gpus(board, before, config):
            changes = True
            b = sim.bin_of(curve.edges, min(starts[k] / largest, 1.0))
            total += restart * rate[config] * (curve.survival[b] / alive if alive > 0.0 else 1.0)
        before = config
    late = board.jobs[job, at.DUE] - board.clock[at.NOW]
    total += expected_cost(scratch.points[1, :points], curve, first, largest, starts)
    return total - scratch.points[2, points - 2] * min(0.0, late), changes
