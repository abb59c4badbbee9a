"""The objectives of Gavel's shares of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel.interior import central
from gpusched_baselines.gavel.program import GavelProgram, raised
from gpusched_baselines.gavel.self_dual import published_optimum

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.program import GavelDemand

CLOSE = 1e-4  # relative accuracy of the finish-time ratio
MOST_STEPS = 20  # of the search for it


def las(demand: GavelDemand) -> NDArray[np.float64]:
    """Maximise min_j s_j / w_j · thr_j(x) / thr_j(x_prop), the time of each job as if all types were equally fast."""
    worth = demand.size[:, None] * demand.speed / (demand.weight * demand.proportional)[:, None]
    return published_optimum(demand, worth)


def las_without_speeds(demand: GavelDemand) -> NDArray[np.float64]:
    """Maximise min_j s_j / w_j · Σ_k x[j, k]: all types count as equally fast, also those on which a job cannot run."""
    return published_optimum(demand, np.broadcast_to((demand.size / demand.weight)[:, None], demand.speed.shape))


def makespan(demand: GavelDemand) -> NDArray[np.float64]:
    """Minimise the time T by which all active jobs end: thr_j(x) ≥ left_j z with the largest z = 1 / T."""
    worth = demand.speed / demand.left[:, None]
    scale = worth.max()
    return raised(demand, worth / scale, np.ones(len(worth)), np.zeros(len(worth))).x


def finish_time(demand: GavelDemand) -> NDArray[np.float64]:
    """Minimise max_j (age_j + left_j / thr_j(x)) / D_j, the time to completion over that in isolation.

    D_j = isolated_j + left_j / thr_j(x_iso): what the job has done took isolated_j in isolation, at the isolated speeds
    of then; what is left takes the rest at that of now. With the level t, one over the worst ratio, thr_j(x) ≥
    (left_j / D_j) t / (1 - t age_j / D_j). Where that is met too slowly near the end, thr_j(x) ≥ t left_j / (ratio D_j
    - age_j) with the largest t yields a smaller ratio.
    """
    alone_s = demand.isolated_s + demand.left / np.maximum(demand.isolated, 1e-300)
    x = central(demand, demand.speed, demand.left / alone_s, demand.age_s / alone_s)
    for _ in range(MOST_STEPS):
        ratio = float(((demand.age_s + demand.left / np.maximum(demand.thr(x), 1e-300)) / alone_s).max())
        slope = demand.left / np.maximum(ratio * alone_s - demand.age_s, 1e-9 * alone_s)
        better = central(demand, demand.speed, slope)
        if float((demand.thr(better) / slope).min()) <= 1.0 + CLOSE:
            return x
        x = better
    return x


def cost_slo(demand: GavelDemand) -> NDArray[np.float64]:
    """Maximise the epochs per euro, Σ_j Σ_k T[j, k] x[j, k] / price_k, such that all due dates are met.

    The price is the cost rate of a GPU in full nodes; where energy is free, all are equal. thr_j(x) ≥ left_j / (due_j -
    t) where the due date is to come; where that has no solution, all due dates are left out, as published.
    """
    price = demand.rate if demand.rate.max() > 0.0 else demand.gpus
    worth = demand.speed * demand.gpus / np.maximum(price, 1e-300)
    worth = worth / worth.max()
    program = GavelProgram(demand)
    fastest = np.maximum(demand.speed.max(axis=1), 1e-300)
    need = np.where(demand.due_in_s > 0.0, demand.left / np.maximum(demand.due_in_s, 1e-9), 0.0)
    rows = -program.per_job(demand.speed / fastest[:, None])
    nothing = np.zeros(0)
    in_time = program.least(-worth, nothing, rows, -need / fastest) if np.all(need <= fastest) else None
    found = in_time or program.least(-worth, nothing)
    return np.zeros(worth.shape) if found is None else found.x


def fifo(demand: GavelDemand) -> NDArray[np.float64]:
    """Return shares: each job, in the order of submission, has all the time of the fastest type with free capacity.

    At the first job for which no type has free capacity the assignment ends: no job overtakes. As in Gavel's program, a
    job that cannot run on the types with free capacity waits, but does not stop the jobs after it.
    """
    x, free = np.zeros(demand.speed.shape), demand.capacity.astype(np.float64)
    for j in range(len(x)):
        fits = np.where(demand.speed[j] > 0.0, demand.gpus[j], demand.size[j]) <= free[demand.kind]
        if not fits.any():
            break
        k = int(np.where(fits, demand.speed[j], -1.0).argmax())
        if demand.speed[j, k] > 0.0:
            x[j, k] = 1.0
            free[demand.kind[k]] -= demand.gpus[j, k]
    return x


def any_fifo(demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
    """Return shares: each job, in the order of submission, has all the time of a random type with free capacity.

    Jobs keep the type that they have had. At the first job that fits nowhere the assignment ends: no job overtakes.
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
