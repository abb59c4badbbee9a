"""The features of a round for adaptation agents: of every active job, of every GPU type, and of all together.

Every feature is a ratio in [-1, 1], so nothing depends on units, prices or the size of a cluster. Features of the last
plan of STS-X are 0 for jobs that it has not planned yet.
"""

from __future__ import annotations

import numpy as np

from gpusched_baselines.sts_x import plan as of
from gpusched_baselines.sts_x.appraisal import FREE_RATE
from gpusched_baselines.sts_x.capacity_price import load_of_due_work
from gpusched_baselines.sts_x.plan import cheapest_now, epochs_expected
from gpusched_env.observation.ratios import Names, squash
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, Ints, at, kernel, lean_kernel

RECENT, NEWEST = 64, 8  # submissions that estimate the future load, and those that detect a burst

feature = Names()
DONE = feature("epochs done / maximum epochs")
TIME_LEFT = feature("squash(D / T)")
CHEAPEST_SLACK = feature("squash((D - W) / W), W = worst-case execution time of its cheapest configuration now")
LATE = feature("1 if late already")
HELD = feature("1 if it held GPUs before this round")
TARDINESS_COST = feature(
    "squash(tardiness cost of T seconds / worst-case energy cost of its cheapest configuration now)"
)
EXPECTED = feature("expected epochs left / epochs left in the worst case")
SURVIVAL = feature("probability to survive half of the epochs left, given those done")
LENGTH = feature("tanh(log(GPU-seconds expected / their mean over the active jobs) / 2)")
AGE = feature("squash(time since submission / T)")
CHANGE = feature("squash(10 * seconds that a change costs / seconds expected)")
DENSITY = feature("tanh(log(value of its time / GPU-seconds, over the mean of active jobs) / 4), of the last plans")
OPPORTUNISTIC = feature("1 if the job is opportunistic")
OWN_QUOTA = feature("share of its tenant's quota that was held before this round; 0 without quotas")
HASTE = feature("squash(energy cost of the fastest configuration / of the cheapest - 1)")
SPEED = feature("seconds per epoch of the fastest configuration / of the cheapest")
JOBS = tuple(feature)

feature = Names()
DUE_LOAD = feature("squash(GPUs that due work needs all the time / GPUs)")
QUEUE = feature("active jobs / (active jobs + GPUs)")
WAITING = feature("share of the active jobs that hold nothing")
LATE_SHARE = feature("share of the active jobs that are late")
BUSY = feature("share of the GPUs held before this round")
LAST_PRICE = feature("squash(value of all jobs' time / power of all GPUs), of the last plans")
OFFERED = feature("squash(GPUs that the latest 64 submissions need all the time / GPUs)")
BURST = feature("squash(rate of the latest 8 submissions / of the latest 64 - 1)")
NODES = feature("log10(1 + nodes) / 4")
ROUND = tuple(feature)

feature = Names()
GPU_SHARE = feature("GPUs of the type / GPUs of the cluster")
WANTED = feature("share of the GPU-seconds expected of jobs that are cheapest there")
FREE = feature("share of its GPUs that were free before this round")
ONE_BUSY = feature("cost rate of a node with one busy GPU / with all busy")
SECONDS_PER_EPOCH = feature("mean over jobs of least seconds per epoch / least there")
COST = feature("mean over jobs of least energy cost per epoch / least there")
GPU_TYPES = tuple(feature)
TYPES = len(GPU_TYPES)


@kernel
def observe_round(board: Board, rate: Floats, free_rate: float, jobs: Floats, whole: Floats, types: Floats) -> None:
    """Write the features of a round.

    Args:
        rate: Cost rates with which STS-X plans [€/s], (A, C).
        free_rate: Cost rate of a GPU where energy is free [€/s].
        jobs: Written: of every active job, (A, len(JOBS)).
        whole: Written: of all together, (len(ROUND),).
        types: Written: of every GPU type, (V, TYPES).
    """
    active, total = board.active[: board.count[at.ACTIVE]], board.count[at.ACTIVE]
    need, density, wanted = np.empty(total), np.empty(total), np.zeros(board.capacity.shape[0])
    types[:] = 0.0
    for i in range(total):
        own = rate[int(board.jobs[active[i], at.APPLICATION])]
        need[i], density[i], type_wanted = _look_at_job(board, own, active[i], jobs[i], types)
        wanted[type_wanted] += need[i]
    _compare_jobs(need, density, jobs)
    _look_at_quotas(board, active, jobs)
    gpus = _look_at_nodes(board, wanted, max(need.sum(), 1e-300), total, types)
    _sum_up(board, active, need, jobs, gpus, free_rate, whole)


@kernel
def _look_at_job(board: Board, rate: Floats, job: int, out: Floats, types: Floats) -> tuple[float, float, int]:
    """Write the features of a job alone, and add its part to the features of GPU types.

    Returns:
        The GPU-seconds that it is expected to need where its epochs are cheapest; the value of a second of its time
        over those in its last plan, 0 without one; and the GPU type where its epochs are cheapest.
    """
    rows, tau, configs, now, memory = board.jobs, board.tau, board.facts.configs, board.clock[at.NOW], board.memory
    largest, done = rows[job, at.MAX_EPOCHS], rows[job, at.EPOCHS]
    left, expected = max(largest - done, 1e-12 * largest), epochs_expected(board, job)
    config, seconds = cheapest_now(board, rate, job, False)
    fastest, time_left = left * rows[job, at.MIN_TAU], rows[job, at.DUE] - now
    price, hasty = rate[config] * tau[job, config], np.inf
    best_tau, best_cost = np.full(types.shape[0], np.inf), np.full(types.shape[0], np.inf)
    for c in range(tau.shape[1]):
        if tau[job, c] < np.inf:
            v = configs[c, at.CONFIG_TYPE]
            best_tau[v], best_cost[v] = min(best_tau[v], tau[job, c]), min(best_cost[v], rate[c] * tau[job, c])
            if tau[job, c] <= rows[job, at.MIN_TAU]:
                hasty = min(hasty, rate[c] * tau[job, c])
    for v in range(types.shape[0]):
        types[v, SECONDS_PER_EPOCH] += min(
            1.0, rows[job, at.MIN_TAU] / best_tau[v]
        )  # a share may be faster than planned
        types[v, COST] += min(1.0, price / best_cost[v]) if best_cost[v] > 0.0 else 0.0
    gpu_seconds = max(expected * seconds * configs[config, at.CONFIG_SIZE] / at.UNITS, 1e-9)
    edges, survival = board.edges[int(rows[job, at.EDGES])], board.survival[int(rows[job, at.DISTRIBUTION])]
    alive = survival[sim.likely_bin(edges, done / largest)]
    tardiness, energy = rows[job, at.WEIGHT] * fastest, price * left
    out[DONE] = done / largest
    out[TIME_LEFT] = time_left / (fastest + abs(time_left))
    out[CHEAPEST_SLACK] = squash((time_left - left * seconds) / (left * seconds))
    out[LATE] = 1.0 if time_left < 0.0 else 0.0
    out[HELD] = 1.0 if rows[job, at.OLD_CONFIG] >= 0.0 else 0.0
    out[TARDINESS_COST] = tardiness / (tardiness + energy) if tardiness > 0.0 else 0.0
    out[EXPECTED] = min(1.0, expected / left)
    out[SURVIVAL] = survival[sim.likely_bin(edges, (done + 0.5 * left) / largest)] / alive if alive > 0.0 else 1.0
    out[AGE] = squash((now - rows[job, at.SUBMISSION]) / fastest)
    out[CHANGE] = squash(10.0 * rows[job, at.RESTART_S] / max(expected * seconds, 1e-9))
    out[OPPORTUNISTIC] = rows[job, at.OPPORTUNISTIC]
    out[HASTE] = squash(hasty / price - 1.0) if price > 0.0 else 0.0
    out[SPEED] = min(1.0, rows[job, at.MIN_TAU] / tau[job, config])
    value = memory[job, of.BARE_VALUE] if memory[job, of.SCALE] > 0.0 else 0.0
    return gpu_seconds, value / gpu_seconds, configs[config, at.CONFIG_TYPE]


@kernel
def _look_at_quotas(board: Board, active: Ints, jobs: Floats) -> None:
    """Write for every job the share of its tenant's quota that was held before this round; 1 where the quota is 0."""
    tenants, rows, configs = sim.tenants_with_quotas(board), board.jobs, board.facts.configs
    held = np.zeros(tenants)
    for i in range(active.shape[0]):
        config = int(rows[active[i], at.OLD_CONFIG])
        if tenants > 0 and config >= 0:
            held[int(rows[active[i], at.TENANT])] += configs[config, at.CONFIG_SIZE]
    for i in range(active.shape[0]):
        jobs[i, OWN_QUOTA] = 0.0
        if board.has_quotas and tenants > 0:
            tenant, most = int(rows[active[i], at.TENANT]), 0.0
            for v in range(board.quota.shape[1] // 2):
                most += board.quota[tenant, v]
            jobs[i, OWN_QUOTA] = held[tenant] / most if most > 0.0 else 1.0


@kernel
def _compare_jobs(need: Floats, density: Floats, jobs: Floats) -> None:
    total, planned = max(1, need.shape[0]), 0
    mean, value = max(need.sum() / total, 1e-300), 0.0
    for i in range(need.shape[0]):
        if density[i] > 0.0:
            planned, value = planned + 1, value + density[i]
    value /= max(1, planned)
    for i in range(need.shape[0]):
        jobs[i, LENGTH] = np.tanh(0.5 * np.log(need[i] / mean))
        jobs[i, DENSITY] = np.tanh(0.25 * np.log(density[i] / value)) if density[i] > 0.0 else 0.0


@kernel
def _look_at_nodes(board: Board, wanted: Floats, needed: float, total: int, types: Floats) -> float:
    """Write the features of GPU types; return the number of GPUs of the cluster."""
    nodes, gpus = board.nodes, 0.0
    for n in range(nodes.shape[0]):
        v = nodes[n, at.NODE_TYPE]
        gpus += nodes[n, at.NODE_GPUS]
        types[v, GPU_SHARE] += nodes[n, at.NODE_GPUS]
        types[v, FREE] += nodes[n, at.OLD_FREE]
        full = board.node_rate[v, nodes[n, at.NODE_GPUS]]
        types[v, ONE_BUSY] = board.node_rate[v, 1] / full if full > 0.0 else 0.0
    for v in range(types.shape[0]):
        types[v, FREE] /= max(1.0, types[v, GPU_SHARE])
        types[v, GPU_SHARE] /= gpus
        types[v, WANTED] = wanted[v] / needed
        types[v, SECONDS_PER_EPOCH] /= max(1, total)
        types[v, COST] /= max(1, total)
    return gpus


@kernel
def _sum_up(
    board: Board, active: Ints, need: Floats, jobs: Floats, gpus: float, free_rate: float, whole: Floats
) -> None:
    total, waiting, late, free, power, value = max(1, active.shape[0]), 0.0, 0.0, 0.0, 0.0, 0.0
    nodes, memory = board.nodes, board.memory
    for n in range(nodes.shape[0]):
        free += nodes[n, at.OLD_FREE]
        power += board.node_rate[nodes[n, at.NODE_TYPE], nodes[n, at.NODE_GPUS]]
    for i in range(active.shape[0]):
        waiting += 1.0 - jobs[i, HELD]
        late += jobs[i, LATE]
        value += memory[active[i], of.BARE_VALUE] if memory[active[i], of.SCALE] > 0.0 else 0.0
    whole[DUE_LOAD] = squash(load_of_due_work(board, active, need) / gpus)
    whole[QUEUE] = active.shape[0] / (active.shape[0] + gpus)
    whole[WAITING], whole[LATE_SHARE] = waiting / total, late / total
    whole[BUSY] = 1.0 - free / gpus
    whole[LAST_PRICE] = squash(value / (power if power > 0.0 else gpus * free_rate))
    whole[OFFERED], whole[BURST] = _arrivals(board, gpus)
    whole[NODES] = min(1.0, np.log10(1.0 + nodes.shape[0]) / 4.0)


@lean_kernel
def needs_in_all(board: Board, job: int) -> float:
    """Return the GPU-seconds that a whole job needs in the mean, where its epochs are cheapest; looked up once."""
    jobs, memory, config = board.jobs, board.memory, int(board.jobs[job, at.CHEAPEST])
    if memory[job, of.IN_ALL] == 0.0 and config >= 0:
        size = board.facts.configs[config, at.CONFIG_SIZE] / at.UNITS
        mean = jobs[job, at.MAX_EPOCHS] * board.tail[int(jobs[job, at.DISTRIBUTION]), 0]
        memory[job, of.IN_ALL] = mean * jobs[job, at.CHEAPEST_TAU] * size
    return memory[job, of.IN_ALL]


@kernel
def remember_offers(board: Board) -> None:
    """Keep in memory what the active jobs need, for later observations: jobs may be over by then."""
    for i in range(board.count[at.ACTIVE]):
        needs_in_all(board, board.active[i])


@kernel
def _arrivals(board: Board, gpus: float) -> tuple[float, float]:
    """Return the GPUs that the latest submissions need over all GPUs, and the rise of their rate, both squashed."""
    rows, last = board.jobs, board.count[at.SUBMITTED]
    first, newest, now = max(0, last - RECENT), max(0, last - NEWEST), board.clock[at.NOW]
    work = 0.0
    for job in range(first, last):  # also if there is only one, which may be over at the next one
        work += needs_in_all(board, job)
    if last - first < 2:
        return 0.0, 0.0
    span = max(now - rows[first, at.SUBMISSION], 1.0)
    rate, new_rate = (last - first) / span, (last - newest) / max(now - rows[newest, at.SUBMISSION], 1.0)
    return squash(work / span / gpus), squash(new_rate / rate - 1.0)


@kernel
def look_at_jobs(board: Board, rate: Floats, jobs: Floats, whole: Floats, types: Floats) -> None:
    """Write the features of a round without a change of the memory of STS-X; see `observe_round`."""
    total, memory = board.count[at.ACTIVE], board.memory
    cheapest = np.empty(total)
    for i in range(total):
        cheapest[i] = memory[board.active[i], of.CHEAPEST]
    observe_round(board, rate, FREE_RATE, jobs, whole, types)
    for i in range(total):
        memory[board.active[i], of.CHEAPEST] = cheapest[i]


def job_features(board: Board, rate: Floats) -> Floats:
    jobs = np.empty((board.count[at.ACTIVE], len(JOBS)))
    look_at_jobs(board, rate, jobs, np.empty(len(ROUND)), np.empty((board.capacity.shape[0], TYPES)))
    return jobs
