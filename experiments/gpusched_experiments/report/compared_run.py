"""One run of a comparison: a policy on an instance, whose costs are bounded once for all policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusched_baselines.bounds.capacity import clairvoyant_bound, non_clairvoyant_bound
from gpusched_env.model import Instance
from gpusched_env.simulator import Policy, Result
from gpusched_env.simulator.policy import check_fit
from gpusched_experiments.report.evaluation import evaluate
from gpusched_experiments.report.metrics import Billing
from gpusched_experiments.report.run_summary import RunSummary


@dataclass(frozen=True, slots=True, eq=False)
class ComparedWorkload:
    """The instance of a seed, and its bounds."""

    seed: int
    instance: Instance
    bounds_eur: tuple[float, float]

    @classmethod
    def of(cls, seed: int, instance: Instance, policies: Sequence[Policy]) -> ComparedWorkload:
        check_fit(policies, instance)
        return cls(seed, instance, (clairvoyant_bound(instance), non_clairvoyant_bound(instance)))


@dataclass(frozen=True, slots=True, eq=False)
class ComparedRun:
    """One policy on one workload."""

    workload: ComparedWorkload
    policy: Policy
    whole: bool
    billing: Billing

    def run(self) -> tuple[RunSummary, Result | None]:
        seed, results = self.workload.seed, list[Result]()
        evaluate(self.policy, self.workload.instance, (seed,), on_result=results.append)
        summary = RunSummary.of(results[0], seed, *self.workload.bounds_eur, self.billing)
        return summary, results[0] if self.whole else None
