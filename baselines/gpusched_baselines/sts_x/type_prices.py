"""The prices of GPU types: the dual of an assignment of the latest submissions to types.

A type costs more than its power: who takes it pushes others onto types that suit them less. The latest submissions are
assigned to types v so that all of them fit into the time in which they came:

    min Σ_j Σ_v y_jv k_jv   s.t. Σ_v y_jv = 1 for every job,  Σ_j y_jv w_jv ≤ G_v max(ρ T, T_n) for every type,  y ≥ 0

where k_jv and w_jv are the cost and the GPU-seconds of the job's expected epochs in its cheapest configuration of the
type, tardiness included, T is the time in which they came (while these are all submissions, the mean time to their due
dates more), and T_n the time in which all GPUs can do them. The dual prices λ_v ≥ 0 of the types' GPU-seconds are
found by the subgradient method, at every submission from the prices before it. What counts is the price of a type
beside that of others: the price of all GPUs is `capacity_price`.

On shared GPUs whose power follows utilisation a node that is on costs much whether or not its GPUs are busy. There the
types to use are chosen: of all sets of types whose GPUs suffice for the latest submissions, the one that costs least,
idle power of the nodes that it needs included. The types outside it have a price.
"""

from __future__ import annotations

import numpy as np

from gpusched_baselines.planning.capacity import NEVER, least_gpus
from gpusched_baselines.planning.cheapest import is_by_utilisation
from gpusched_baselines.sts_x.plan import CHEAPEST, IN_TIME, TYPES_PRICED, WINDOW, Adaptation
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, at, kernel, lean_kernel

RECENT, MOST_RECENT = 64, 1024  # submissions that are assigned: as many as there are active jobs, within these
FILLED = 0.85  # ρ: the part of the GPU-seconds of a type that can be used
TURNS = 20  # steps of the subgradient method at a submission
STEP = 0.3  # the first step, as a multiple of the price of power; later ones are shorter
MOST_TYPES = 5  # with shared GPUs: all sets of them are compared
STAYS = 0.95  # a set is left for another one that costs less than so much of it
UNUSED = 1.0  # the price of a type that is not used, as a multiple of that of its power
MOST = 1.5  # a type costs at most so many times what it would without the other types

UNKNOWN, OPTIONS, PRICED = range(3)  # what the memory of a job has of types: nothing, its options, and the prices


@kernel
def with_type_prices(board: Board, adaptation: Adaptation) -> Adaptation:
    """Return the adaptation with rates at which every GPU type has its price.

    With quotas, one GPU type, or shared GPUs whose power does not follow utilisation, or that are of more than
    `MOST_TYPES` types, all prices stay: what a share takes from others, and what a tenant may use, does not follow from
    the GPU-seconds of a type.
    """
    configs, types = board.facts.configs, board.capacity.shape[0]
    shared, by_utilisation = sim.slots(board) > 0, is_by_utilisation(board)
    if types == 1 or sim.tenants_with_quotas(board) > 0 or (shared and (not by_utilisation or types > MOST_TYPES)):
        return adaptation
    newest = board.memory[board.count[at.SUBMITTED] - 1]
    if newest[TYPES_PRICED] != PRICED:
        _price_types(board, adaptation.rate, shared)
    least, used = np.inf, least_gpus(board)
    for v in range(types):
        if board.capacity[v, at.LARGEST] >= used[v]:
            least = min(least, 1.0 + newest[_price(v)])
    rate, deferrable = adaptation.rate.copy(), adaptation.deferrable_rate.copy()
    for c in range(rate.shape[1]):
        price = min(MOST, max(1.0, (1.0 + newest[_price(configs[c, at.CONFIG_TYPE])]) / least))
        full = configs[c, at.CONFIG_UNLIMITED]  # a power limit takes nothing from the price of GPUs
        for a in range(rate.shape[0]):
            if full == c:
                rate[a, c] *= price
                deferrable[a, c] *= price
            else:
                rate[a, c] += (price - 1.0) * adaptation.rate[a, full]
                deferrable[a, c] += (price - 1.0) * adaptation.deferrable_rate[a, full]
    same, longest = adaptation.same, adaptation.delay
    return Adaptation(adaptation.jobs, rate, deferrable, same, longest, adaptation.energy)


# Of each GPU type, the memory of a job has the price when it was the newest, and its GPU-seconds and its cost there.
@lean_kernel
def _price(gpu_type: int) -> int:
    return sim.FREE_COLUMNS + 3 * gpu_type


@lean_kernel
def _work(gpu_type: int) -> int:
    return sim.FREE_COLUMNS + 3 * gpu_type + 1


@lean_kernel
def _cost(gpu_type: int) -> int:
    return sim.FREE_COLUMNS + 3 * gpu_type + 2


@kernel
def _price_types(board: Board, rate: Floats, shared: bool) -> None:
    """Write the prices of types to the memory of the newest job, as multiples of the price of their power."""
    jobs, memory, last, types = board.jobs, board.memory, board.count[at.SUBMITTED], board.capacity.shape[0]
    recent = min(MOST_RECENT, max(RECENT, board.count[at.ACTIVE]))
    first, newest = max(0, last - recent), memory[last - 1]
    gpus, power = _gpus_and_power(board)
    _take_latest_prices(board, first)
    in_time, windows, needed = 0.0, 0.0, 0.0
    for job in range(first, last):
        if memory[job, TYPES_PRICED] == UNKNOWN:
            _write_options(board, job, rate[int(jobs[job, at.APPLICATION])])
        in_time += memory[job, IN_TIME] / (last - first)
        windows += memory[job, WINDOW] / (last - first)
        needed += _time_needed(memory[job], gpus)
    span = board.clock[at.NOW] - jobs[first, at.SUBMISSION]
    if first == 0 and not shared:
        span += max(0.0, windows)
    fits = min(1.0, FILLED * span / needed) if needed > 0.0 else 1.0
    span = max(FILLED * span, needed, 1.0)  # in overload all jobs take longer
    if shared:
        _price_unused(board, first, gpus, span)
    else:
        _price_by_dual(board, first, gpus, power, span)
    for v in range(types):  # in overload, or where no due date can be met, tardiness decides; one job has no others
        newest[_price(v)] *= fits * fits * in_time * (1.0 - 1.0 / (last - first))
    newest[TYPES_PRICED] = PRICED
    for job in board.active[: board.count[at.ACTIVE]]:  # the cheapest configurations may have changed
        memory[job, CHEAPEST] = 0.0


@kernel
def _price_by_dual(board: Board, first: int, gpus: Floats, power: Floats, span: float) -> None:
    """Take the steps of the subgradient method, for the jobs from `first` on, from the prices of the newest job."""
    memory, last, types = board.memory, board.count[at.SUBMITTED], gpus.shape[0]
    newest, used = memory[last - 1], np.empty(types)
    for turn in range(TURNS):
        used[:] = 0.0
        for job in range(first, last):
            _assign(memory[job], newest, power, used)
        for v in range(types):
            if gpus[v] > 0.0 and power[v] > 0.0:
                excess = max(-1.0, min(1.0, used[v] / (gpus[v] * span) - 1.0))
                newest[_price(v)] = max(0.0, newest[_price(v)] + STEP / (1.0 + 0.2 * turn) * excess)


@kernel
def _price_unused(board: Board, first: int, gpus: Floats, span: float) -> None:
    """Write the prices of the types that the cheapest set of types leaves out: `UNUSED`; of the others 0.

    A set costs what its jobs cost in full nodes, each on its cheapest type, and the idle power of the rest of the nodes
    that these need. Types that none of the jobs may use are in no set. If the GPUs of no set suffice, all prices are 0.
    """
    memory, last, types = board.memory, board.count[at.SUBMITTED], gpus.shape[0]
    newest, used, best, least, before, known = memory[last - 1], np.empty(types), 0, np.inf, 0, 0
    for v in range(types):
        may_use = 0
        for job in range(first, last):
            may_use = 1 if memory[job, _work(v)] < np.inf else may_use
        known += may_use << v
        before += 0 if newest[_price(v)] > 0.0 else may_use << v
    for chosen in range(1, 1 << types):
        if chosen & known != chosen:
            continue
        used[:], cost = 0.0, 0.0
        for job in range(first, last):
            v = _cheapest_type(memory[job], chosen, types)
            if v < 0:
                cost = np.inf
                break
            used[v] += memory[job, _work(v)] / span
            cost += memory[job, _cost(v)] / span
        for v in range(types):
            most = max(1, board.capacity[v, at.LARGEST])
            cost += np.inf if used[v] > gpus[v] else _idle_rate(board, v) * (np.ceil(used[v] / most) - used[v] / most)
        cost *= STAYS if chosen == before and before != known else 1.0
        if cost < least:
            best, least = chosen, cost
    for v in range(types):
        newest[_price(v)] = UNUSED if best > 0 and best >> v & 1 == 0 else 0.0


@lean_kernel
def _cheapest_type(options: Floats, chosen: int, types: int) -> int:
    """Return the type of a set on which a job costs least; -1 if it may run on none. Bit v of `chosen`: type v."""
    best, least = -1, np.inf
    for v in range(types):
        if chosen >> v & 1 == 1 and options[_cost(v)] < least:
            best, least = v, options[_cost(v)]
    return best


@lean_kernel
def _idle_rate(board: Board, gpu_type: int) -> float:
    """Return the cost rate of a node that is on and whose GPUs are idle [€/s]."""
    most, price = board.capacity[gpu_type, at.LARGEST], board.clock[at.PRICE] * board.clock[at.PUE] / 3600.0
    if not board.has_saved_power:
        return board.node_rate[gpu_type, most]
    return board.node_rate[gpu_type, most] - most * board.facts.idle_saving[gpu_type] * price


@kernel
def _take_latest_prices(board: Board, first: int) -> None:
    """Copy to the newest job the prices before it: of the latest job from `first` on that was the newest in a round.

    Jobs that are submitted together have one newest. Without prices before it they are 0.
    """
    memory, newest = board.memory, board.count[at.SUBMITTED] - 1
    before = newest - 1
    while before >= first and memory[before, TYPES_PRICED] != PRICED:
        before -= 1
    for v in range(board.capacity.shape[0]):
        memory[newest, _price(v)] = memory[before, _price(v)] if before >= first else 0.0


@kernel
def _gpus_and_power(board: Board) -> tuple[Floats, Floats]:
    """Return the GPUs of every type, and what the power of a GPU in a full node of it costs [€/s], (V,).

    Nodes that are too small for the active jobs do not count; types that none of these may use do, for those before.
    """
    types = board.capacity.shape[0]
    gpus, power = np.zeros(types), np.zeros(types)
    least = least_gpus(board)
    for n in range(board.nodes.shape[0]):
        v, most = board.nodes[n, at.NODE_TYPE], board.nodes[n, at.NODE_GPUS]
        gpus[v] += board.nodes[n, at.USABLE] if most >= least[v] or least[v] == NEVER else 0
    for v in range(types):
        power[v] = board.node_rate[v, board.capacity[v, at.LARGEST]] / max(1, board.capacity[v, at.LARGEST])
    return gpus, power


@kernel
def _write_options(board: Board, job: int, rate: Floats) -> None:
    """Write what a job costs and needs on every GPU type, inf where it may not run, and its time to the due date."""
    jobs, configs, memory, tau = board.jobs, board.facts.configs, board.memory[job], board.tau[job]
    epochs = jobs[job, at.MAX_EPOCHS] * board.tail[int(jobs[job, at.DISTRIBUTION]), 0]
    memory[WINDOW] = jobs[job, at.DUE] - jobs[job, at.SUBMISSION]
    memory[IN_TIME] = 1.0 if epochs * jobs[job, at.MIN_TAU] <= memory[WINDOW] else 0.0
    for v in range(board.capacity.shape[0]):
        memory[_work(v)], memory[_cost(v)] = np.inf, np.inf
    for c in range(configs.shape[0]):
        v = configs[c, at.CONFIG_TYPE]
        cost = epochs * rate[c] * tau[c] + jobs[job, at.WEIGHT] * max(0.0, epochs * tau[c] - memory[WINDOW])
        if tau[c] < np.inf and cost < memory[_cost(v)]:
            memory[_cost(v)] = cost
            memory[_work(v)] = epochs * tau[c] * configs[c, at.CONFIG_SIZE] / at.UNITS
    memory[TYPES_PRICED] = OPTIONS


@lean_kernel
def _time_needed(options: Floats, gpus: Floats) -> float:
    """Return the time that the whole cluster would need for a job, each type at its own speed [s]."""
    speed = 0.0
    for v in range(gpus.shape[0]):
        speed += gpus[v] / max(options[_work(v)], 1e-9)
    return 1.0 / speed if speed > 0.0 else 0.0


@lean_kernel
def _assign(options: Floats, prices: Floats, power: Floats, used: Floats) -> None:
    """Assign a job to the type that costs it least at the prices; add its GPU-seconds to those of the type, (V,)."""
    best, least = -1, np.inf
    for v in range(power.shape[0]):
        if options[_work(v)] < np.inf:
            cost = options[_cost(v)] + prices[_price(v)] * power[v] * options[_work(v)]
            if cost < least:
                best, least = v, cost
    if best >= 0:
        used[best] += options[_work(best)]
