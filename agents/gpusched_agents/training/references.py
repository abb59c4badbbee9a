"""The reference policies of a training, on its validation workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_agents.training.checkpoint import best_point
from gpusched_agents.training.evolution import validation_costs
from gpusched_baselines import make_policy
from gpusched_env import Instance, simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpusched_agents.training.config import TrainingConfig

USUAL = ("sts", "edf")
BASE = "sts-x"  # the first agent of a training that adapts


def reference_names(config: TrainingConfig) -> tuple[str, ...]:
    """Return the reference policies of a run: its expert, if it has one, STS and EDF."""
    expert = (config.imitation.expert,) if config.imitation.steps else ()
    if config.adapts:
        expert = (BASE,)
    return tuple(dict.fromkeys(expert + USUAL))


def reference_costs(names: Iterable[str], instances: Sequence[Instance]) -> dict[str, float]:
    """Return the mean cost of each policy on the instances [€]."""
    return {
        name: float(np.mean([simulate(one, make_policy(name), record=False).total_eur for one in instances]))
        for name in names
    }


def costs_over_base(config: TrainingConfig) -> dict[str, Any]:
    """Return the reference costs for an agent that adapts, as in training.json.

    Returns:
        `references`: mean cost of each reference policy on the validation workloads of the scenarios [€]; and
        `base_eur_each`: that of STS-X on each of these, and on each randomised one [€].
    """
    listed = len(config.scenarios) * len(config.validation_seeds)  # validation workloads, without randomised ones
    base, *others = reference_names(config)
    each = validation_costs(config, make_policy(base))
    costs = {base: each[:listed]} | {name: validation_costs(config, make_policy(name), listed) for name in others}
    return {"references": {name: float(cost.mean()) for name, cost in costs.items()}, "base_eur_each": each.tolist()}


def warnings_of(
    config: TrainingConfig, curve: Sequence[Mapping[str, Any]], references: Mapping[str, float]
) -> list[str]:
    """Return warnings on the agent that a run kept, with advice: it is untrained, or costlier than a reference.

    Args:
        config: The settings of the run.
        curve: Its evaluations, at least one.
        references: Mean costs of the reference policies on the same workloads [€].
    """
    kept = best_point(curve)
    cost, expert = kept["total_eur"], config.imitation.expert if config.imitation.steps else None
    found = [f"is {first_agent(config)}: nothing after step 0 was better"] if kept["steps"] == 0 else []
    costlier = [
        f"costs {cost / references[name] - 1.0:.1%} more than {whose}{name} ({references[name]:,.2f} €)"
        for name, whose in ((expert, "its expert "), ("edf", ""))
        if name is not None and cost > references[name]
    ]
    return [f"the agent that is kept {text}; {_advice(config)}" for text in found + costlier]


def first_agent(config: TrainingConfig) -> str:
    """Return a description of the untrained agent."""
    if config.adapts:
        return f"{getattr(config.agent, 'begin', '') or BASE} itself"
    return "the untrained one"


def _advice(config: TrainingConfig) -> str:
    """Return the advice: a warm start, or a longer one; more decisions for agents that adapt."""
    if config.adapts:
        return "try more decisions (--steps), or another --seed, in another --out"
    if config.imitation.steps == 0:
        return "try a warm start (--imitate sts-x), or more decisions (--steps)"
    return f"try --imitation-steps {max(20_000, 4 * config.imitation.steps)}, or another --seed, in another --out"
