"""Where restarts are long: rounds in which running jobs keep what they hold, and what the jobs of a round will cost."""

from __future__ import annotations

import numpy as np

from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.job_plan import Plans
from gpusched_baselines.sts_x.plan import WEIGHT, Adaptation, best_throughout, cost_throughout, epochs_expected, factor
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

# How a round is placed. In all but the first, running jobs keep what they hold. With `KEPT` the others follow the plans
# in which GPUs have no price; with the last two a job that holds nothing takes the configuration that is cheapest to
# its end, at the rates of two situations and the price of GPU-seconds.
FRESH, KEPT, ALONE, MARGINAL = range(4)
JOBS, GPUS, FIRST = range(3)  # jobs that are expected to end, GPUs to be released, the first possible end, per second

SHORT_RESTART = 0.01  # of the time that jobs run yet; where restarts are shorter, no round is compared
RESTARTS = 2.0  # what a change counts: who gives something away may have to restart again to take it back
EMPTYING = 0.3  # part of the base power that a job pays alone after the other jobs of its node have ended


@kernel
def restarts_are_long(board: Board, active: Ints) -> bool:
    """Whether restarts are longer than `SHORT_RESTART` of the time for which the active jobs are expected to run."""
    jobs, restart, rest = board.jobs, 0.0, 0.0
    for job in active:
        config = int(jobs[job, at.OLD_CONFIG]) if jobs[job, at.OLD_CONFIG] >= 0.0 else int(jobs[job, at.CHEAPEST])
        if config >= 0:
            restart += longest_restart(board, job)
            rest += epochs_expected(board, job) * board.tau[job, config]
    return restart > SHORT_RESTART * rest


@lean_kernel
def longest_restart(board: Board, job: int) -> float:
    return max(board.jobs[job, at.RESUMING_S], board.jobs[job, at.RESTART_S])


@kernel
def cheapest_to_the_end(board: Board, plans: Plans, i: int, placement: int, adaptation: Adaptation) -> int:
    """Return the configuration with which a job that holds nothing costs least to its end; -1 if none fits.

    GPUs have the price of the round in addition, whatever the power limit.

    Args:
        i: The row of the job in `plans`.
        placement: `ALONE`: at the rates of a job alone on its node. `MARGINAL`: at the power that the job adds now.
    """
    configs, capacity, node_rate = board.facts.configs, board.capacity, board.node_rate
    job = plans.jobs[i]
    usual = adaptation.rate[int(board.jobs[job, at.APPLICATION])]
    rate = usual.copy()
    for c in range(rate.shape[0]):
        v, most = configs[c, at.CONFIG_TYPE], capacity[configs[c, at.CONFIG_TYPE], at.LARGEST]
        if placement == MARGINAL and (board.tau[job, c] == np.inf or not sim.can_place(board, job, c)):
            rate[c] = np.inf
            continue
        others = (plans.scale[i] - 1.0) * usual[configs[c, at.CONFIG_UNLIMITED]]
        if configs[c, at.CONFIG_NODES] > 1 or most == 0 or node_rate[v, most] <= 0.0:
            rate[c] += others
            continue
        gpus, full = configs[c, at.CONFIG_SIZE] / at.UNITS, node_rate[v, most] / most
        if placement == MARGINAL and not sim.should_consolidate(board, job, c)[0]:
            factor_here = (node_rate[v, most] - node_rate[v, 1]) / max(1, most - 1) / full
        else:
            factor_here = _power(board, v, max(1.0, gpus)) / gpus / full
        rate[c] = _scaled(board, job, c, rate[c], factor_here) + others
    return best_throughout(board, rate, job, 1.0, board.jobs[job, at.WEIGHT] * factor(adaptation, i, WEIGHT))[0]


@lean_kernel
def _scaled(board: Board, job: int, config: int, rate: float, part: float) -> float:
    """Return a rate where GPUs cost `part` of what they do in full nodes; what the job saves stays [€/s]."""
    less = sim.planned_saving_rate(board, int(board.jobs[job, at.APPLICATION]), config)
    return (rate + less) * part - less


@lean_kernel
def _power(board: Board, gpu_type: int, busy: float) -> float:
    """Return the cost rate of a node with so many busy GPUs, linear between whole numbers [€/s]."""
    most = board.capacity[gpu_type, at.LARGEST]
    low = min(int(busy), most)  # more than a node has is not placed
    rate = board.node_rate[gpu_type, low]
    return rate if low >= most else rate + (busy - low) * (board.node_rate[gpu_type, low + 1] - rate)


@kernel
def cost_of_placement(board: Board, plans: Plans, order: Ints, rate: Floats) -> float:
    """Return what the active jobs are expected to cost from now on with what they hold on the board [€].

    A job that runs costs the less of two: it keeps its configuration to its end, or it follows its plan, after a change
    if that begins with another configuration. It pays its part of the present power of its node; when others end, some
    of the base power is its own. Running jobs are taken to end at random, at the rate 1 / their expected rest, but
    none before one can. A job that waits begins when so many have ended that the GPUs suffice.

    Args:
        order: The order in which jobs are placed, (A,).
        rate: Cost rates in full nodes [€/s], (A, C).
    """
    configs, nodes, total = board.facts.configs, board.nodes, 0.0
    ending, queued = np.zeros((3, board.capacity.shape[0])), np.zeros(board.capacity.shape[0])
    longest, shared = np.zeros(nodes.shape[0]), np.zeros(nodes.shape[0])
    for job in plans.jobs:
        add_ending(board, job, ending)
    for i in range(plans.jobs.shape[0]):
        config, node = int(board.jobs[plans.jobs[i], at.CONFIG]), int(board.jobs[plans.jobs[i], at.NODE])
        if config < 0:
            continue
        own = rate[int(board.jobs[plans.jobs[i], at.APPLICATION])]
        change, here = _change(board, plans.jobs[i]), own[config]
        rest = epochs_expected(board, plans.jobs[i]) * board.tau[plans.jobs[i], config] + change
        v, gpus = configs[config, at.CONFIG_TYPE], configs[config, at.CONFIG_SIZE] / at.UNITS
        most = board.capacity[v, at.LARGEST]
        if configs[config, at.CONFIG_NODES] == 1 and board.node_rate[v, most] > 0.0:
            used = _used(board, node)
            busy = float(nodes[node, at.USABLE] - nodes[node, at.FREE])
            part = _power(board, v, busy) / used / (board.node_rate[v, most] / most)
            here = _scaled(board, plans.jobs[i], config, here, part)
            longest[node] = max(longest[node], rest)
            shared[node] += rest * gpus / used
        total += _cost_of_running(board, plans, i, own, here)
    for i in order:
        if board.jobs[plans.jobs[i], at.CONFIG] < 0.0:
            own = rate[int(board.jobs[plans.jobs[i], at.APPLICATION])]
            total += _cost_of_waiting(board, plans, i, own, ending, queued)
    for n in range(nodes.shape[0]):
        if longest[n] > shared[n]:
            v, most = nodes[n, at.NODE_TYPE], nodes[n, at.NODE_GPUS]
            each = (board.node_rate[v, most] - board.node_rate[v, 1]) / max(1, most - 1)
            total += EMPTYING * (board.node_rate[v, 1] - each) * (longest[n] - shared[n])
    return total


@lean_kernel
def add_ending(board: Board, job: int, ending: Floats) -> None:
    """Add a job that runs to its type's rates of ends and released GPUs, and to its first possible end, (3, V)."""
    config = int(board.jobs[job, at.CONFIG])
    if config >= 0:
        v, gpus = board.facts.configs[config, at.CONFIG_TYPE], board.facts.configs[config, at.CONFIG_SIZE] / at.UNITS
        rest = max(1.0, epochs_expected(board, job) * board.tau[job, config] + _change(board, job))
        ending[JOBS, v] += 1.0 / rest
        ending[GPUS, v] += gpus / rest
        moves = board.jobs[job, at.OLD_CONFIG] >= 0.0 and not _same(board, job)
        change = _change(board, job) / (RESTARTS if moves else 1.0)
        soonest = change + _fewest_epochs(board, job) * board.tau[job, config]
        ending[FIRST, v] = max(ending[FIRST, v], 1.0 / max(1.0, soonest))


@lean_kernel
def _fewest_epochs(board: Board, job: int) -> float:
    """Return the fewest epochs that a job can need yet, by its distribution."""
    curve, largest, done = sim.curve_of(board, job), board.jobs[job, at.MAX_EPOCHS], board.jobs[job, at.EPOCHS]
    b = sim.bin_of(curve.edges, done / largest)
    alive = curve.survival[b]
    while b < curve.survival.shape[0] - 1 and curve.survival[b] >= alive:
        b += 1
    at_least = curve.edges[b] if curve.survival[b] < alive else 1.0
    return max(0.0, at_least * largest - done)


@lean_kernel
def _change(board: Board, job: int) -> float:
    """Return the seconds without progress that what a job holds on the board costs it, a change counted more."""
    jobs = board.jobs
    if _same(board, job):
        return max(0.0, jobs[job, at.READY_S] - board.clock[at.NOW])
    if jobs[job, at.OLD_CONFIG] >= 0.0:
        return RESTARTS * longest_restart(board, job)
    return jobs[job, at.STARTING_S if jobs[job, at.LAST_NODE] < 0.0 else at.RESTART_S]


@lean_kernel
def _same(board: Board, job: int) -> bool:
    jobs = board.jobs
    same = sim.same_gpus(board, int(jobs[job, at.CONFIG]), int(jobs[job, at.OLD_CONFIG]))
    return same and jobs[job, at.NODE] == jobs[job, at.OLD_NODE] and jobs[job, at.SLOT] == jobs[job, at.OLD_SLOT]


@lean_kernel
def _used(board: Board, node: int) -> float:
    """Return the GPUs of a node that jobs hold on the board; a shared one counts with the shares that are held."""
    nodes = board.nodes
    used = float(nodes[node, at.USABLE] - nodes[node, at.FREE])
    for gpu in range(sim.slots(board)):
        if nodes[node, at.NODE_COLUMNS + gpu] > 0:
            used -= 1.0 - nodes[node, at.NODE_COLUMNS + gpu] / at.UNITS
    return used


@lean_kernel
def _cost_of_running(board: Board, plans: Plans, i: int, rate: Floats, here: float) -> float:
    """Return the expected cost of a job that runs, at the rate `here` of its node [€/s]."""
    job, config, first, value = plans.jobs[i], int(board.jobs[plans.jobs[i], at.CONFIG]), plans.first[i], plans.value[i]
    change = _change(board, job)
    cost = cost_throughout(board, job, config, here, change, board.jobs[job, at.WEIGHT])
    if not plans.critical[i]:
        return cost
    tau, epochs = board.tau[job], epochs_expected(board, job)
    planned = epochs * (board.memory[job, of.PER_EPOCH] + (here - rate[config]) * tau[config])
    if not sim.same_gpus(board, config, first):
        later = (rate[config] + value) * tau[config] - (rate[first] + value) * tau[first]
        planned += epochs * max(0.0, later) + change * (rate[config] + value)
        planned += longest_restart(board, job) * (rate[first] + value)
    elif not _same(board, job):
        planned += (1.0 - 1.0 / RESTARTS) * change * (rate[config] + value)  # the plan has one restart already
    return min(cost, planned)


@lean_kernel
def time_until_free(ending: Floats, gpu_type: int, gpus: float) -> float:
    """Return the time until so many GPUs of a type are expected to be free [s].

    It is the longest of three times: until one job has ended and until jobs have released the GPUs, both at random, and
    until the first job can end.
    """
    at_random = max(1.0 / max(ending[JOBS, gpu_type], 1e-9), gpus / max(ending[GPUS, gpu_type], 1e-9))
    return min(max(at_random, 1.0 / max(ending[FIRST, gpu_type], 1e-9)), 1e9)


@kernel
def _cost_of_waiting(board: Board, plans: Plans, i: int, rate: Floats, ending: Floats, queued: Floats) -> float:
    """Return the expected cost of a job that waits [€]; add the GPUs that it waits for to `queued`, (V,)."""
    jobs, configs, job, first = board.jobs, board.facts.configs, plans.jobs[i], plans.first[i]
    ran, wait = jobs[job, at.OLD_CONFIG] >= 0.0, 0.0
    restart = longest_restart(board, job) if ran or jobs[job, at.LAST_NODE] >= 0.0 else jobs[job, at.STARTING_S]
    if plans.critical[i]:
        v = configs[first, at.CONFIG_TYPE]
        queued[v] += configs[first, at.CONFIG_SIZE] / at.UNITS
        wait = time_until_free(ending, v, queued[v])
    least = np.inf
    for c in range(rate.shape[0]):
        if board.tau[job, c] < np.inf:
            cost = cost_throughout(board, job, c, rate[c], wait + restart, jobs[job, at.WEIGHT]) - rate[c] * wait
            least = min(least, cost)
    if not plans.critical[i]:
        return least
    planned = board.memory[job, of.PER_EPOCH] * epochs_expected(board, job) + plans.value[i] * wait
    return max(planned + (restart * (rate[first] + plans.value[i]) if ran else 0.0), least)
