"""Runs of `gpusched worlds`: policies on drawn scenarios, and one policy with parts of these left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gpusched_baselines.registry import POLICIES, make_policy, policy_names
from gpusched_env import Policy, Scenario, make_instance
from gpusched_env.errors import InputError
from gpusched_env.simulator.policy import can_decide
from gpusched_env.workload import parse_seeds
from gpusched_experiments.cli.comparison_plan import ComparisonPlan
from gpusched_experiments.cli.comparison_run import run_comparison
from gpusched_experiments.cli.policies import parse_policies
from gpusched_experiments.cli.world_costs import ComparedScenario, cost_ratio
from gpusched_experiments.report.comparison_writing import Workload


@dataclass(frozen=True, slots=True)
class WorldRuns:
    """What runs on drawn scenarios. Each comparison has a folder of its own, where finished runs are kept.

    Attributes:
        policies: The policies by name, each with what makes it; the reference first.
        entered: What was entered for each, by its name.
        seeds: Seeds of the workloads on which the other is chosen.
        confirm: Seeds on which it runs again where it was cheaper; None for none.
        workers: Number of processes; None for the default.
        out: Folder of the folders.
    """

    policies: Mapping[str, Policy]
    entered: Mapping[str, str]
    seeds: str
    confirm: str | None
    workers: int | None
    out: Path

    @classmethod
    def of(
        cls, policies: Sequence[str], seeds: str, confirm: str | None, workers: int | None, out: Path
    ) -> "WorldRuns":
        """Make the policies, the reference first.

        Raises:
            InputError: There is no such policy, or seeds are not valid or stand among both.
        """
        if confirm is not None and set(parse_seeds(seeds, "--seeds")) & set(parse_seeds(confirm, "--confirm")):
            raise InputError("--confirm", confirm, f"seeds that are none of --seeds ({seeds})")
        made = {entered: policy for name in policies for entered, policy in parse_policies(name).items()}
        by_name = {policy.name: policy for policy in made.values()}
        return cls(by_name, {p.name: entered for entered, p in made.items()}, seeds, confirm, workers, out)

    @property
    def reference(self) -> str:
        return next(iter(self.policies))

    def beside_policies(self, scenario: Scenario) -> list[ComparedScenario]:
        """Run all policies that can decide there, and return what the reference costs beside the best of the others."""
        instance, reference = make_instance(scenario, 0), self.reference
        fitting = [name for name, policy in self.policies.items() if can_decide(policy, instance)]
        costs = self._costs(scenario, fitting, self.seeds)
        own = costs.pop(reference)
        best = min(costs, key=lambda name: float(costs[name].sum()))
        chosen, confirmed = cost_ratio(own, costs[best]), None
        if self.confirm is not None and chosen.value > 1.0:
            again = self._costs(scenario, [reference, best], self.confirm)
            confirmed = cost_ratio(again[reference], again[best])
        return [ComparedScenario(scenario, best, float(own.mean()), chosen, confirmed)]

    def beside_variants(self, scenario: Scenario, variants: Mapping[str, Scenario]) -> list[ComparedScenario]:
        """Run the reference on the scenario and its variants, and return what it costs beside each of these."""
        own, rows = self._cost(scenario, self.seeds), []
        for without, variant in variants.items():
            chosen, confirmed = cost_ratio(own, self._cost(variant, self.seeds)), None
            if self.confirm is not None and chosen.value > 1.0:
                confirmed = cost_ratio(self._cost(scenario, self.confirm), self._cost(variant, self.confirm))
            rows.append(ComparedScenario(scenario, without, float(own.mean()), chosen, confirmed))
        return rows

    def _cost(self, scenario: Scenario, seeds: str) -> NDArray[np.float64]:
        return self._costs(scenario, [self.reference], seeds)[self.reference]

    def _costs(self, scenario: Scenario, names: Sequence[str], seeds: str) -> dict[str, NDArray[np.float64]]:
        """Return the total costs [€] of every policy, by seed, (S,)."""
        entered = ",".join(self.entered[name] for name in names)
        plan = ComparisonPlan.of(Workload(scenario), entered, seeds, self.reference, self.workers)
        folder = scenario.name if seeds == self.seeds else f"{scenario.name}-confirm"
        (compared,) = run_comparison(plan, self.out / folder, page=False)
        return {name: np.array([run.total_eur for run in compared.runs if run.policy == name]) for name in names}


def names_of(policies: str | None, reference: str) -> list[str]:
    """Return the reference and the others; by default all compiled ones that are not slow or variants of it.

    Raises:
        InputError: There is no other one.
    """
    if policies is None:
        (against,) = parse_policies(reference).values()
        quick = [name for name in policy_names() if POLICIES[name].compiled and not POLICIES[name].slow]
        chosen = [name for name in quick if not _is_variant(name, against)]
    else:
        chosen = list(parse_policies(policies))
    others = [name for name in chosen if name != reference]
    if not others:
        raise InputError("--policies", policies, f"a policy other than the reference {reference}")
    return [reference, *others]


def _is_variant(name: str, reference: Policy) -> bool:
    """Whether a policy is made as the reference is, with other settings, or is a subclass of it."""
    own, kind = type(make_policy(name)), type(reference)
    shipped = POLICIES.get(reference.name)
    return (issubclass(own, kind) and own is not kind) or (
        shipped is not None and POLICIES[name].place == shipped.place
    )
