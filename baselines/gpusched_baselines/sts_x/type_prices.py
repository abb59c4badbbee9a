"""The prices of GPU types: the dual of an assignment of the latest submissions to types.

A type costs more than its power: who takes it pushes others onto types that suit them less. The latest submissions are
assigned to configurations c so that all of them fit into the time in which they came:

    min Σ_j Σ_c y_jc m_j (r_c τ_jc + ω_j max(0, τ_jc - D_j / m_j))
    s.t. Σ_c y_jc = 1 for every job,  Σ_j Σ_{c of v} y_jc m_j τ_jc g_c ≤ ρ G_v T for every type,  y ≥ 0

with the expected epochs m_j, the time D_j from submission to due date, the GPUs g_c, and T the time in which they came.
The dual prices λ_v ≥ 0 of the types' GPU-seconds are found by the subgradient method, at every submission from the
prices before it. What counts is the price of a type beside that of others: the price of all GPUs is `capacity_price`.
"""

from __future__ import annotations

import numpy as np

from gpusched_baselines.sts_x.plan import CHEAPEST, TYPES_PRICED, Adaptation
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator.kernels import Board, Floats, at, kernel

RECENT = 64  # submissions that are assigned
FILLED = 0.85  # ρ: the part of the GPU-seconds of a type that can be used
TURNS = 20  # steps of the subgradient method at a submission
STEP = 0.3  # the first step, as a multiple of the price of power; later ones are shorter
MOST = 1.5  # a type costs at most so many times what it would without the other types


@kernel
def with_type_prices(board: Board, adaptation: Adaptation) -> Adaptation:
    """Return the adaptation with rates at which every GPU type has its price.

    With shared GPUs, quotas or one GPU type all prices stay: what a share takes from others, and what a tenant may use,
    does not follow from the GPU-seconds of a type.
    """
    configs, types = board.facts.configs, board.capacity.shape[0]
    if types == 1 or sim.slots(board) > 0 or board.quota.shape[0] > 0:
        return adaptation
    newest = board.memory[board.count[at.SUBMITTED] - 1]
    if newest[TYPES_PRICED] == 0.0:
        _price_types(board, adaptation.rate)
    least = np.inf
    for v in range(types):
        if board.capacity[v, at.LARGEST] > 0:
            least = min(least, 1.0 + newest[sim.FREE_COLUMNS + v])
    rate, deferrable = adaptation.rate.copy(), adaptation.deferrable_rate.copy()
    for c in range(rate.shape[0]):
        price = 1.0 + newest[sim.FREE_COLUMNS + configs[c, at.CONFIG_TYPE]]
        price = min(MOST, max(1.0, price / least))
        rate[c] *= price
        deferrable[c] *= price
    return Adaptation(adaptation.jobs, rate, deferrable, adaptation.same, adaptation.max_deferral)


@kernel
def _price_types(board: Board, rate: Floats) -> None:
    """Write the prices of types to the memory of the newest job, as multiples of the price of their power."""
    jobs, memory, last, types = board.jobs, board.memory, board.count[at.SUBMITTED], board.capacity.shape[0]
    first, newest = max(0, last - RECENT), memory[last - 1]
    count = last - first
    epochs, windows = np.empty(count), np.empty(count)
    can_meet, mean_window = 0.0, 0.0
    for i in range(count):
        job = first + i
        epochs[i] = jobs[job, at.MAX_EPOCHS] * board.tail[int(jobs[job, at.DISTRIBUTION]), 0]
        windows[i] = jobs[job, at.DUE] - jobs[job, at.SUBMISSION]
        mean_window += windows[i] / count
        can_meet += 1.0 if epochs[i] * jobs[job, at.MIN_TAU] <= windows[i] else 0.0
    span = board.clock[at.NOW] - jobs[first, at.SUBMISSION] + max(0.0, mean_window) * min(1.0, RECENT / last)
    gpus, room = np.zeros(types), np.empty(types)
    for n in range(board.nodes.shape[0]):
        gpus[board.nodes[n, at.NODE_TYPE]] += board.nodes[n, at.NODE_GPUS]
    stretch = max(1.0, _time_needed(board, first, epochs, gpus) / max(1.0, FILLED * span))
    room[:] = gpus * FILLED * max(span, 1.0) * stretch
    windows *= stretch  # in overload all jobs take longer
    prices = newest[sim.FREE_COLUMNS : sim.FREE_COLUMNS + types]
    if last > 1:
        prices[:] = memory[last - 2, sim.FREE_COLUMNS : sim.FREE_COLUMNS + types]
    power = np.empty(types)
    for v in range(types):
        power[v] = board.node_rate[v, board.capacity[v, at.LARGEST]] / max(1, board.capacity[v, at.LARGEST])
    used = np.empty(types)
    for turn in range(TURNS):
        _assign(board, first, (epochs, windows), rate, (prices, power), used)
        for v in range(types):
            if room[v] > 0.0 and power[v] > 0.0:
                excess = max(-1.0, min(1.0, used[v] / room[v] - 1.0))
                prices[v] = max(0.0, prices[v] + STEP / (1.0 + 0.2 * turn) * excess)
    prices *= (
        can_meet / count * (1.0 - 1.0 / count)
    )  # where no due date can be met, tardiness decides; one job has no others
    newest[TYPES_PRICED] = 1.0
    for job in board.active[: board.count[at.ACTIVE]]:  # the cheapest configurations may have changed
        memory[job, CHEAPEST] = 0.0


@kernel
def _time_needed(board: Board, first: int, epochs: Floats, gpus: Floats) -> float:
    """Return the time that the whole cluster would need for the jobs from `first` on, each at its own speeds [s]."""
    configs, total = board.facts.configs, 0.0
    least = np.empty(gpus.shape[0])
    for i in range(epochs.shape[0]):
        least[:] = np.inf
        for c in range(configs.shape[0]):
            v = configs[c, at.CONFIG_TYPE]
            least[v] = min(least[v], board.tau[first + i, c] * configs[c, at.CONFIG_SIZE] / at.UNITS)
        speed = 0.0
        for v in range(gpus.shape[0]):
            speed += gpus[v] / least[v]
        total += epochs[i] / speed if speed > 0.0 else 0.0
    return total


@kernel
def _assign(
    board: Board,
    first: int,
    jobs: tuple[Floats, Floats],
    rate: Floats,
    prices: tuple[Floats, Floats],
    used: Floats,
) -> None:
    """Assign each job to its cheapest configuration at the prices; write the GPU-seconds of every type, (V,)."""
    configs, (epochs, windows), (price, power) = board.facts.configs, jobs, prices
    extra = np.empty(rate.shape[0])  # cost rate of a configuration [€/s]
    for c in range(rate.shape[0]):
        v = configs[c, at.CONFIG_TYPE]
        extra[c] = rate[c] + price[v] * power[v] * configs[c, at.CONFIG_SIZE] / at.UNITS
    used[:] = 0.0
    for i in range(epochs.shape[0]):
        job, best, least = first + i, -1, np.inf
        weight, due = board.jobs[job, at.WEIGHT], windows[i] / epochs[i]
        for c in range(rate.shape[0]):
            tau = board.tau[job, c]
            if tau == np.inf:
                continue
            cost = extra[c] * tau + weight * max(0.0, tau - due)
            if cost < least:
                best, least = c, cost
        if best >= 0:
            v = configs[best, at.CONFIG_TYPE]
            used[v] += epochs[i] * board.tau[job, best] * configs[best, at.CONFIG_SIZE] / at.UNITS
