"""The reference policies of a training, on its validation workloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_agents.training.checkpoint import best_point
from gpusched_agents.training.evolution import validation_costs
from gpusched_baselines import make_policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusched_agents.training.config import TrainingConfig

BASE = "sts-x"  # the first agent of a training
REFERENCES = (BASE, "sts", "edf")
ADVICE = "try more decisions (--steps), or another --seed, in another --out"


def costs_over_base(config: TrainingConfig) -> dict[str, Any]:
    """Return the costs of the reference policies, as in training.json.

    Returns:
        `references`: mean cost of each reference policy on the validation workloads of the scenarios [€]; and
        `base_eur_each`: that of STS-X on each of these, and on each randomised one [€].
    """
    listed = len(config.scenarios) * len(config.validation_seeds)  # validation workloads, without randomised ones
    each = validation_costs(config, make_policy(BASE))
    others = {name: validation_costs(config, make_policy(name), listed) for name in REFERENCES if name != BASE}
    costs = {BASE: each[:listed]} | others
    return {"references": {name: float(cost.mean()) for name, cost in costs.items()}, "base_eur_each": each.tolist()}


def warnings_of(
    config: TrainingConfig, curve: Sequence[Mapping[str, Any]], references: Mapping[str, float]
) -> list[str]:
    """Return warnings on the agent that a run kept, with advice: it is untrained, or costlier than EDF."""
    kept, edf = best_point(curve), references["edf"]
    found = [f"is {first_agent(config)}: nothing after step 0 was better"] if kept["steps"] == 0 else []
    if kept["total_eur"] > edf:
        found.append(f"costs {kept['total_eur'] / edf - 1.0:.1%} more than edf ({edf:,.2f} €)")
    return [f"the agent that is kept {text}; {ADVICE}" for text in found]


def first_agent(config: TrainingConfig) -> str:
    return f"{config.agent.begin or BASE} itself"
