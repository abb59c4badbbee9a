"""One run of a comparison: a policy on an instance, whose costs are bounded once for all policies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpusched_agents.files.own_code import failure_of
from gpusched_baselines.bounds.capacity import clairvoyant_bound, non_clairvoyant_bound
from gpusched_env.model import Instance
from gpusched_env.simulator import Policy, Result, simulate
from gpusched_env.simulator.policy import check_fit
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
        seed = self.workload.seed
        try:
            result = simulate(self.workload.instance, self.policy, seed=seed)
        except (Exception, SystemExit) as error:  # here: another process passes on no frames
            own = failure_of(error)
            if own is None:
                raise
            raise own from error
        summary = RunSummary.of(result, seed, *self.workload.bounds_eur, self.billing)
        return summary, result if self.whole else None
