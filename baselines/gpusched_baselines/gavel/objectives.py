"""Gavel's objectives: from a demand to shares of time (Narayanan and others, OSDI 2020, sections 4 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel.program import Program, raised

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.demand import Demand

CLOSE = 1e-3  # the finish-time ratio is found up to this factor - 1
MOST_STEPS = 20  # towards it


def proportional_shares(demand: Demand) -> NDArray[np.float64]:
    """Give the shares that are fair where all types are alike: each GPU type in proportion to its GPUs, (A, K).

    Job j runs min(1, level · w_j / s_j) of the time, with the largest level for which there are GPUs. Of the optima of
    max-min fairness for equal speeds this is the one that treats types alike.
    """
    there, size = demand.speed > 0.0, np.maximum(demand.size, 1e-300)
    total = demand.capacity.sum()
    want = demand.weight / size  # time for a level of 1
    at_one = np.sort(1.0 / want)  # the levels at which jobs run all the time
    order = np.argsort(1.0 / want, kind="stable")
    full = np.concatenate([[0.0], np.cumsum(size[order])])[:-1]  # GPUs of those that run all the time already
    rising = np.cumsum(demand.weight[order][::-1])[::-1]
    levels = (total - full) / rising
    first = np.flatnonzero(levels <= at_one)
    level = levels[first[0]] if len(first) else np.inf
    time = np.minimum(1.0, np.minimum(level, 1e300) * want)
    share = np.where(there, demand.capacity[demand.kind], 0.0)
    return time[:, None] * share / np.maximum(share.sum(axis=1), 1e-300)[:, None]


def las(demand: Demand) -> NDArray[np.float64]:
    """Maximise min_j s_j / w_j · thr_j(x) / thr_j(x_prop), the time got as if all types were alike."""
    worth = demand.size[:, None] * demand.speed / (demand.weight * demand.proportional)[:, None]
    ones = np.ones(len(worth))
    return raised(demand, worth, ones, np.zeros(len(worth))).x


def makespan(demand: Demand) -> NDArray[np.float64]:
    """Minimise the time T by which all jobs that are there end: thr_j(x) ≥ left_j z with the largest z = 1 / T."""
    worth = demand.speed / demand.left[:, None]
    scale = worth.max()
    return raised(demand, worth / scale, np.ones(len(worth)), np.zeros(len(worth))).x


def finish_time(demand: Demand) -> NDArray[np.float64]:
    """Minimise max_j (age_j + left_j / thr_j(x)) / (age_j + left_j / thr_j(x_iso)).

    x_iso gives every job W_v / (m s_j) of type v, m jobs, at most 1 in all. For a ratio ρ that can be had, thr_j(x) ≥
    t left_j / (ρ D_j - age_j) with the largest t gives an x of a smaller one, and the least is found in a few steps.
    """
    share = demand.capacity[demand.kind] / (len(demand.speed) * np.maximum(demand.size, 1e-300))[:, None]
    share = np.where(demand.speed > 0.0, share, 0.0)
    x = share / np.maximum(1.0, share.sum(axis=1))[:, None]
    alone_s = demand.age_s + demand.left / np.maximum(demand.thr(x), 1e-300)
    ratio = 1.0
    for _ in range(MOST_STEPS):
        slope = demand.left / np.maximum(ratio * alone_s - demand.age_s, 1e-9 * alone_s)
        better = raised(demand, demand.speed / slope[:, None], np.ones(len(slope)), np.zeros(len(slope))).x
        found = float(((demand.age_s + demand.left / np.maximum(demand.thr(better), 1e-300)) / alone_s).max())
        if found >= ratio * (1.0 - CLOSE):
            return better if found < ratio else x
        ratio, x = found, better
    return x


def cost_slo(demand: Demand) -> NDArray[np.float64]:
    """Maximise the epochs per euro, Σ_j Σ_k T[j, k] x[j, k] / price_k, such that all due dates are met.

    Epochs are counted in those that a job does in a second with x_prop, so that jobs weigh alike. The price is the cost
    rate in full nodes; where energy is free, the GPUs. thr_j(x) ≥ left_j / (due_j - t); where that has no solution, due
    dates are left out altogether, as published.
    """
    price = demand.rate if demand.rate.max() > 0.0 else demand.gpus
    worth = demand.speed / np.maximum(price, 1e-300) / demand.proportional[:, None]
    worth = worth / worth.max()
    program = Program(demand)
    fastest = np.maximum(demand.speed.max(axis=1), 1e-300)
    need = demand.left / np.maximum(demand.due_in_s, 1e-9)
    rows = -program.per_job(demand.speed / fastest[:, None])
    nothing = np.zeros(0)
    in_time = program.least(-worth, nothing, rows, -need / fastest) if np.all(need <= fastest) else None
    found = in_time or program.least(-worth, nothing)
    return np.zeros(worth.shape) if found is None else found.x


def fifo(demand: Demand) -> NDArray[np.float64]:
    """Give the jobs, in the order of their submission, all the time of the fastest type that has room for them.

    The first for which no type has room ends it: nobody overtakes. As in Gavel's program, one for which there is room
    only where it cannot run waits, but does not hold up those behind it.
    """
    x, free = np.zeros(demand.speed.shape), demand.capacity.astype(np.float64)
    for j in range(len(x)):
        room = np.where(demand.speed[j] > 0.0, demand.gpus[j], demand.size[j]) <= free[demand.kind]
        if not room.any():
            break
        k = int(np.where(room, demand.speed[j], -1.0).argmax())
        if demand.speed[j, k] > 0.0:
            x[j, k] = 1.0
            free[demand.kind[k]] -= demand.gpus[j, k]
    return x


def any_fifo(demand: Demand, rng: Generator) -> NDArray[np.float64]:
    """Give the jobs, in the order of their submission, all the time of a type that has room, drawn at random.

    Jobs keep the type that they have had. The first that fits nowhere ends it: nobody overtakes.
    """
    x = (demand.before > 0.0).astype(np.float64)
    free = demand.capacity - demand.used(x)
    for j in np.flatnonzero(x.sum(axis=1) == 0.0):
        fits = np.flatnonzero((demand.speed[j] > 0.0) & (demand.gpus[j] <= free[demand.kind]))
        if not len(fits):
            break
        k = int(rng.choice(fits))
        x[j, k] = 1.0
        free[demand.kind[k]] -= demand.gpus[j, k]
    return x
