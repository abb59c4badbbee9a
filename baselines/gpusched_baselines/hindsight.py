"""A good schedule found with every need known, beside which policies that do not know them can be judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.controls import adaptation_of, control_count, controls_of
from gpusched_baselines.registry import make_policy
from gpusched_baselines.sts_x.plan import Adaptation
from gpusched_baselines.sts_x.policy import StsX
from gpusched_env import Policy, simulate
from gpusched_env.model import EpochDistribution, Instance
from gpusched_env.model.checks import whole
from gpusched_env.simulator.kernels import Board, Floats

RULES = ("sts-x", "atc", "atc-co-located", "edf-preemptive")
"""The policies from which the search begins: each is run once, told the needs."""
FIRST_STEP = 0.3  # standard deviation of the first changes of the controls, which are from -1 to 1
LONGER, SHORTER = 1.5, 1.5**-0.25  # the step after a change that is cheaper, and after another one


def told(instance: Instance) -> Instance:
    """Return the instance in which every job needs all of its epochs for certain, as many as it needs."""
    jobs, none = instance.jobs, np.zeros(len(instance.jobs), dtype=np.int64)
    known = replace(
        jobs, max_epochs=jobs.epochs_needed, distribution=none, distributions=(EpochDistribution.certain(),)
    )
    return replace(instance, jobs=known)


@dataclass(frozen=True, slots=True)
class _Controlled(StsX):
    """STS-X with constant controls."""

    controls: tuple[float, ...] = ()

    def _adaptation(self, board: Board, rate: Floats) -> Adaptation:
        action = np.array(self.controls)
        return adaptation_of(controls_of(action, board.facts.configs, board.capacity.shape[0]), board, rate)


def hindsight_cost(instance: Instance, evaluations: int = 50, seed: int = 0) -> float:
    """Return the cost of the best schedule that a search finds which knows every job's need [€].

    The search runs policies that are told the needs: first `RULES`, then STS-X with constant controls, changed at
    random from the best ones: a (1+1) evolution strategy with the one-fifth rule. Every run is a schedule of this
    instance. So the least possible cost lies between `capacity_bound` and this one, which falls with the evaluations.

    Args:
        instance: The instance.
        evaluations: Runs, ≥ 1.
        seed: Seed of the search, ≥ 0.

    Raises:
        InputError: A number is out of its range.
    """
    whole("evaluations", evaluations, 1)
    rng, known = np.random.default_rng(whole("seed", seed, 0)), told(instance)
    costs = [_cost(known, make_policy(name)) for name in RULES[:evaluations]]
    best, least, step = np.zeros(control_count(len(instance.gpu_types))), costs[0], FIRST_STEP
    for _ in range(evaluations - len(costs)):
        changed: NDArray[np.float64] = np.clip(best + step * rng.standard_normal(len(best)), -1.0, 1.0)
        cost = _cost(known, _Controlled(controls=tuple(changed.tolist())))
        if cost < least:
            best, least = changed, cost
        step *= LONGER if cost == least else SHORTER
    return min(least, *costs)


def _cost(known: Instance, policy: Policy) -> float:
    return simulate(known, policy, record=False).total_eur
