"""Compare policies: every policy on the same instance of every seed."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gpusched_baselines.bounds.per_job import clairvoyant_bound, non_clairvoyant_bound
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks
from gpusched_env.simulator import Result, simulate
from gpusched_env.simulator.policy import check_fit
from gpusched_experiments.report.billing import ENERGY
from gpusched_experiments.report.lists import each_once
from gpusched_experiments.report.processes import PROCESSES, call_all
from gpusched_experiments.report.run_summary import RunSummary

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy
    from gpusched_experiments.report.backends.backend import Backend
    from gpusched_experiments.report.billing import Billing

OnRun: TypeAlias = Callable[[RunSummary], None]
OnResult: TypeAlias = Callable[[Result], None]


@dataclass(frozen=True, slots=True, eq=False)
class _Workload:
    """The instance of a seed, and its bounds."""

    seed: int
    instance: Instance
    bounds_eur: tuple[float, float]

    @classmethod
    def of(cls, seed: int, instance: Instance, policies: Sequence[Policy]) -> _Workload:
        """Take an instance that every policy can decide on."""
        check_fit(policies, instance)
        return cls(seed, instance, (clairvoyant_bound(instance), non_clairvoyant_bound(instance)))


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """One policy on one workload."""

    workload: _Workload
    policy: Policy
    whole: bool
    billing: Billing

    def run(self) -> tuple[RunSummary, Result | None]:
        """Give the summary, and if wanted the whole result with its intervals."""
        seed = self.workload.seed
        result = simulate(self.workload.instance, self.policy, seed=seed)
        summary = RunSummary.of(result, seed, *self.workload.bounds_eur, self.billing)
        return summary, result if self.whole else None


def compare(
    make: Callable[[int], Instance],
    policies: Sequence[Policy],
    seeds: Sequence[int],
    *,
    workers: int = 1,
    on_run: OnRun | None = None,
    on_result: OnResult | None = None,
    known: Sequence[RunSummary] = (),
    billing: Billing = ENERGY,
    backend: Backend = PROCESSES,
) -> tuple[RunSummary, ...]:
    """Run every policy on the instance of every seed.

    The result does not depend on `workers`, but for the seconds of scheduling, which are measured. Before the first
    run, every instance is made (so bad input shows, and a policy that cannot decide on it), and each process runs
    every policy on a tiny instance, so that compilation is not measured.

    Args:
        make: Gives the instance of a seed: `InstanceMaker(scenario).make`. Called once for each seed.
        policies: The policies, with different names.
        seeds: The seeds, all different, ≥ 0; a seed decides the instance and the policy's own randomness.
        workers: Number of processes, ≥ 1; with more than one, the policies and instances must be picklable.
        on_run: Called in this process after every run, in order of completion.
        on_result: Called in this process with the whole result, intervals included, of every policy's run on the
            first seed; without it no intervals are kept.
        known: Runs that are finished already, and are not run again; others among them are passed over.
        billing: What is billed.
        backend: What makes the runs; by default processes of this machine.

    Returns:
        The summaries by seed, and of each seed by policy, both in the order given.

    Raises:
        InputError: There is no policy or seed, one stands twice, a policy cannot decide on an instance, or something
            cannot be sent to other processes.
        WorkerError: A process ended early.
    """
    each_once("policies", [policy.name for policy in policies])
    each_once("seeds", [checks.whole(f"seeds[{i}]", seed, 0) for i, seed in enumerate(seeds)])
    checks.whole("workers", workers)
    finished = {(run.seed, run.policy): run for run in known}
    places = [(seed, policy.name) for seed in seeds for policy in policies]
    done = {place: finished[place] for place in places if place in finished}
    left = [seed for seed in seeds if any((seed, policy.name) not in done for policy in policies)]
    workloads = {seed: _Workload.of(seed, make(seed), policies) for seed in left}
    if left and (workers > 1 or backend is not PROCESSES):
        _check_picklable(policies, workloads[left[0]], workers)
    runs = [
        _Run(workloads[seed], policy, on_result is not None and seed == seeds[0], billing)
        for seed in left
        for policy in policies
        if (seed, policy.name) not in done
    ]
    for _, (summary, result) in call_all([run.run for run in runs], policies, workers, backend):
        done[summary.seed, summary.policy] = summary
        if result is not None and on_result is not None:
            on_result(result)
        if on_run is not None:
            on_run(summary)
    return tuple(done[place] for place in places)


def _check_picklable(policies: Sequence[Policy], workload: _Workload, workers: int) -> None:
    for policy in policies:
        try:
            pickle.dumps((policy, workload))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            allowed = f"1, since policy {policy.name} or its workload cannot be sent to other processes ({error})"
            raise InputError("workers", workers, allowed) from error
