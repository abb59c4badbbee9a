"""What a comparison says of each policy: means, paired savings with their uncertainty, gaps to the bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from gpusched_env.errors import InputError
from gpusched_experiments.report.estimate import Interval, mean_interval, paired_saving
from gpusched_experiments.report.metrics import NAN, UNKNOWN, GroupMetrics, RunMetrics
from gpusched_experiments.report.run_summary import RunSummary

T = TypeVar("T", RunMetrics, GroupMetrics)


@dataclass(frozen=True, slots=True)
class PolicyStatistics:
    """A policy's row of the table: means over the seeds.

    Attributes:
        policy: Name of the policy.
        runs: Number of seeds.
        energy_eur: Mean energy cost [€].
        tardiness_eur: Mean tardiness cost [€].
        total_eur: Mean total cost [€].
        total_interval_eur: 95 % bootstrap interval of the mean total cost [€]; None with fewer than 5 seeds.
        late_jobs: Mean number of late jobs.
        mean_completion_s: Mean time from submission to completion [s].
        decision_s_per_round: Seconds of scheduling per round: all seconds / all rounds.
        switches: Mean number of changes of configuration or node.
        saving: Share of the reference policy's cost that is saved, paired by seed; 0 for the reference.
        saving_interval: Its 95 % bootstrap interval; None with fewer than 5 seeds, and for the reference.
        energy_saving: The same share of the energy cost alone.
        energy_saving_interval: Its 95 % bootstrap interval; None as above.
        clairvoyant_gap: Mean total cost / mean clairvoyant bound - 1; NaN if the bound is 0.
        non_clairvoyant_gap: The same for the non-clairvoyant bound. That bounds the *expected* cost of policies that
            keep due dates in the worst case, with epochs drawn from the jobs' distributions, so on a few seeds, and on
            a trace, whose jobs need what they needed, the gap may lie below 0.
        metrics: Means of metrics of jobs and machines.
        co2_kg: Mean emissions [kg CO₂]; NaN where it is not said what a kWh emits.
    """

    policy: str
    runs: int
    energy_eur: float
    tardiness_eur: float
    total_eur: float
    total_interval_eur: Interval | None
    late_jobs: float
    mean_completion_s: float
    decision_s_per_round: float
    switches: float
    saving: float
    saving_interval: Interval | None
    energy_saving: float
    energy_saving_interval: Interval | None
    clairvoyant_gap: float
    non_clairvoyant_gap: float
    metrics: RunMetrics = UNKNOWN
    co2_kg: float = NAN


@dataclass(frozen=True, slots=True)
class GroupStatistics:
    """A policy's row for the jobs of a tenant, or of a class.

    Attributes:
        policy: Name of the policy.
        runs: Number of seeds on which the group has jobs.
        mean: Means over those seeds.
    """

    policy: str
    runs: int
    mean: GroupMetrics


def summarise(runs: Iterable[RunSummary], reference: str) -> tuple[PolicyStatistics, ...]:
    """Return each policy's statistics, in the order in which the policies first appear.

    Args:
        runs: The runs of a comparison: the same seeds for every policy.
        reference: Name of the policy that savings are measured against.

    Raises:
        InputError: The reference is not among the policies, or the policies did not run on the same seeds.
    """
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(run.policy, []).append(run)
    if reference not in groups:
        raise InputError("reference", reference, f"one of the policies compared: {', '.join(groups) or 'none'}")
    ordered = {name: sorted(group, key=lambda run: run.seed) for name, group in groups.items()}
    seeds = [run.seed for run in ordered[reference]]
    for name, group in ordered.items():
        if [run.seed for run in group] != seeds:
            raise InputError(f"runs of {name}", [run.seed for run in group], f"the seeds of {reference}: {seeds}")
    return tuple(_statistics(group, ordered[reference]) for group in ordered.values())


def without_savings(row: PolicyStatistics) -> PolicyStatistics:
    return replace(row, saving=NAN, saving_interval=None, energy_saving=NAN, energy_saving_interval=None)


def summarise_groups(runs: Iterable[RunSummary]) -> tuple[GroupStatistics, ...]:
    """Return the means of every group of jobs under every policy; nothing where there is one group alone.

    Returns:
        By group, and of each group by policy, both in the order in which they first appear.
    """
    found: dict[tuple[str, str], dict[str, list[GroupMetrics]]] = {}
    for run in runs:
        for each in run.groups:
            found.setdefault((each.kind, each.name), {}).setdefault(run.policy, []).append(each)
    return tuple(
        GroupStatistics(policy, len(group), _mean_of(GroupMetrics, group))
        for by_policy in found.values()
        for policy, group in by_policy.items()
    )


def gap(cost: Sequence[float], bound: Sequence[float]) -> float:
    """Return by how much the mean cost exceeds the mean bound, as a share of it; NaN if the bound is 0."""
    total = float(np.sum(bound))
    return float(np.sum(cost)) / total - 1.0 if total > 0.0 else float("nan")


def _statistics(group: list[RunSummary], reference: list[RunSummary]) -> PolicyStatistics:
    costs, reference_costs = _costs(group), _costs(reference)
    saved = {name: paired_saving(costs[name], reference_costs[name]) for name in costs}
    is_reference = group is reference
    rounds = sum(run.rounds for run in group)
    return PolicyStatistics(
        policy=group[0].policy,
        runs=len(group),
        energy_eur=_mean(costs["energy"]),
        tardiness_eur=_mean(run.tardiness_eur for run in group),
        total_eur=_mean(costs["total"]),
        total_interval_eur=mean_interval(costs["total"]),
        late_jobs=_mean(run.late_jobs for run in group),
        mean_completion_s=_mean(run.mean_completion_s for run in group),
        decision_s_per_round=sum(run.decision_s for run in group) / rounds if rounds else 0.0,
        switches=_mean(run.switches for run in group),
        saving=0.0 if is_reference else saved["total"].value,
        saving_interval=None if is_reference else saved["total"].interval,
        energy_saving=0.0 if is_reference else saved["energy"].value,
        energy_saving_interval=None if is_reference else saved["energy"].interval,
        clairvoyant_gap=gap(costs["total"], [run.clairvoyant_eur for run in group]),
        non_clairvoyant_gap=gap(costs["total"], [run.non_clairvoyant_eur for run in group]),
        metrics=_mean_of(RunMetrics, [run.metrics for run in group]),
        co2_kg=_mean(NAN if run.co2_kg is None else run.co2_kg for run in group),
    )


def _mean_of(kind: type[T], values: Sequence[T]) -> T:
    first = {each.name: getattr(values[0], each.name) for each in fields(kind)}
    means: dict[str, Any] = {
        name: value if isinstance(value, str) else _mean(getattr(each, name) for each in values)
        for name, value in first.items()
    }
    return kind(**means)


def _costs(group: list[RunSummary]) -> dict[str, list[float]]:
    return {"total": [run.total_eur for run in group], "energy": [run.energy_eur for run in group]}


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
