"""A good schedule found with every need known, beside which policies that do not know them can be judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.dispatching.dispatch import edf_preemptive
from gpusched_baselines.index_rules.policy import atc, atc_co_located
from gpusched_baselines.tuned import TunedStsX, search
from gpusched_env import Policy, simulate
from gpusched_env.model import EpochDistribution, Instance
from gpusched_env.model.checks import whole

VARIANTS: tuple[dict[str, Any], ...] = (
    {},
    {"priced": False},
    {"waits": False},
    {"full_nodes": 0.0},
    {"by_price": False},
)
"""Settings of STS-X that are run first, with all needs known."""
RULES: tuple[Callable[[], Policy], ...] = (atc, atc_co_located, edf_preemptive)
"""The rules that are run once, with all needs known."""
ENERGY = ("prices", "cap")
"""Mechanisms for which STS-X has further controls."""


def with_known_needs(instance: Instance) -> Instance:
    """Return the instance whose jobs need for certain the epochs that they will need."""
    jobs, none = instance.jobs, np.zeros(len(instance.jobs), dtype=np.int64)
    known = replace(
        jobs, max_epochs=jobs.epochs_needed, distribution=none, distributions=(EpochDistribution.certain(),)
    )
    return replace(instance, jobs=known)


def hindsight_cost(instance: Instance, evaluations: int = 50, seed: int = 0) -> float:
    """Return the cost of the best schedule that a search finds which knows every job's need [€].

    The search runs policies that know the needs: first `VARIANTS` of STS-X and `RULES`; then the best variant with
    constant controls, changed at random from the best ones: a (1+1) evolution strategy with the one-fifth rule. Every
    run is a schedule of this instance. So the least possible cost lies between `capacity_bound` and this one, which
    falls with the evaluations.

    Args:
        instance: The instance.
        evaluations: Runs, ≥ 1.
        seed: Seed of the search, ≥ 0.

    Raises:
        InputError: A number is out of its range.
    """
    whole("evaluations", evaluations, 1)
    known, energy = with_known_needs(instance), any(instance.find(name) is not None for name in ENERGY)
    names = control_names([v.name for v in instance.gpu_types], "energy" if energy else "round")
    variants = [TunedStsX(**settings) for settings in VARIANTS]
    costs = [_cost(known, policy) for policy in [*variants, *(rule() for rule in RULES)][:evaluations]]
    best = int(np.argmin(costs[: len(variants)]))

    def cost(action: NDArray[np.float64]) -> float:
        return _cost(known, replace(variants[best], constants=tuple(zip(names, action.tolist(), strict=True))))

    _, least = search(cost, len(names), evaluations - len(costs), seed, costs[best])
    return min(least, *costs)


def _cost(known: Instance, policy: Policy) -> float:
    return simulate(known, policy, record=False).total_eur
