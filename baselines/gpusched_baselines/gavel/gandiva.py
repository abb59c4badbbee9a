"""Gandiva's packing, as Gavel's authors model it: pairs at random, kept while they gain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel.pairs import JobPairs
    from gpusched_baselines.gavel.program import GavelDemand


def random_pairs(
    demand: GavelDemand, pairs: JobPairs, partner: NDArray[np.int64], rng: Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Divide the time of all GPUs equally among jobs alone and random pairs.

    Where the jobs ask for no more GPUs than there are, all are alone. Else the pairs of before stay in which both jobs
    are still there, run on every type, and do more together than one alone (the speeds beside one another relative to
    those alone, in sum over the types, are 1 or more). Of the other jobs as many times as there are of them two are
    drawn, which become a pair if they ask for as many GPUs.

    Args:
        pairs: Their speeds in pairs; jobs of several GPUs can be none.
        partner: The job that each is paired with, by index of the run; -1: none, (A,).

    Returns:
        Shares of time alone, (A, K), of pairs i < j, (A, A, K), and the new partners, (A,).
    """
    jobs, types = demand.speed.shape
    place = {int(job): i for i, job in enumerate(demand.job)}
    mate = np.array([place.get(int(job), -1) for job in partner])
    for i in np.flatnonzero(mate >= 0):
        if mate[i] == i or not _gains(demand, pairs, int(i), int(mate[i])):
            mate[i] = -1
    mate[(mate >= 0) & (mate[mate] != np.arange(jobs))] = -1
    if demand.size.sum() > demand.capacity.sum():
        _draw(demand, mate, rng)
        single = mate < 0
    else:
        single = np.ones(jobs, dtype=bool)
    one = np.flatnonzero((mate > np.arange(jobs)) & ~single)
    groups = max(1, int(single.sum()) + len(one))
    share = demand.capacity[demand.kind] / groups / np.maximum(demand.size, 1e-300)[:, None]
    share = share / np.maximum(1.0, share.sum(axis=1))[:, None]
    packed = np.zeros((jobs, jobs, types))
    packed[one, mate[one]] = share[one]
    alone = np.where(single[:, None] & (demand.speed > 0.0), share, 0.0)
    runs = (pairs.speed(one, mate[one]) > 0.0) & (pairs.speed(mate[one], one) > 0.0)
    packed[one, mate[one]] *= runs
    return alone, packed, np.where(mate >= 0, demand.job[mate], -1)


def _gains(demand: GavelDemand, pairs: JobPairs, one: int, other: int) -> bool:
    """Whether two jobs run together on every type on which they run alone, and do more than one of them."""
    total = 0.0
    for a, b in ((one, other), (other, one)):
        beside = pairs.speed(np.array([a]), np.array([b]))[0]
        if np.any(beside <= 0.0):
            return False
        total += float((beside / np.maximum(demand.speed[a], 1e-300)).sum())
    return total >= 1.0


def _draw(demand: GavelDemand, mate: NDArray[np.int64], rng: Generator) -> None:
    left = list(np.flatnonzero(mate < 0))
    for _ in range(len(left)):
        if len(left) < 2:
            break
        i, j = (left[k] for k in rng.choice(len(left), 2, replace=False))
        if demand.size[i] == demand.size[j] == 1.0:
            left.remove(i)
            left.remove(j)
            mate[i], mate[j] = j, i
