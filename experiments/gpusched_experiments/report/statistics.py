"""What a comparison says of each policy: means, paired savings with their uncertainty, gaps to the bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from gpusched_experiments.report.run_summary import RunSummary

RESAMPLES = 9_999
CONFIDENCE = 0.95
LEAST_SEEDS = 5  # the bootstrap of fewer says little more than their least and greatest
BOOTSTRAP_SEED = 20_220_101

Interval = tuple[float, float]


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


def summarise(runs: Iterable[RunSummary], reference: str) -> tuple[PolicyStatistics, ...]:
    """Give each policy's statistics, in the order in which the policies first appear.

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


def saving(cost: ArrayLike, reference_cost: ArrayLike) -> float:
    """Give the share of the reference cost that is saved: 1 - Σ cost / Σ reference cost.

    A ratio of means, not a mean of ratios: it is the part of the bill over all seeds that somebody would save, and a
    seed on which the reference happens to cost next to nothing cannot outweigh all others. NaN if the reference
    costs nothing.
    """
    total = float(np.sum(reference_cost))
    return 1.0 - float(np.sum(cost)) / total if total > 0.0 else float("nan")


def saving_interval(cost: ArrayLike, reference_cost: ArrayLike) -> Interval | None:
    """Give the 95 % percentile bootstrap interval of `saving`.

    Seeds are drawn with replacement, each with both of its costs (paired): what makes a workload dear for both
    policies cancels out. The draws are seeded, so equal input gives an equal interval.

    Args:
        cost: Costs of the policy, one per seed, (S,) [€].
        reference_cost: Costs of the reference on the same seeds, (S,) [€].

    Returns:
        Lower and upper end; None with fewer than `LEAST_SEEDS` seeds or a reference that costs nothing on some seed.
    """
    own, other = np.asarray(cost, dtype=np.float64), np.asarray(reference_cost, dtype=np.float64)
    if len(own) < LEAST_SEEDS or not np.all(other > 0.0):
        return None
    draws = _draws(len(own))
    return _percentiles(1.0 - own[draws].sum(axis=1) / other[draws].sum(axis=1))


def mean_interval(values: ArrayLike) -> Interval | None:
    """Give the 95 % percentile bootstrap interval of the mean; None with fewer than `LEAST_SEEDS` values."""
    array = np.asarray(values, dtype=np.float64)
    return _percentiles(array[_draws(len(array))].mean(axis=1)) if len(array) >= LEAST_SEEDS else None


def gap(cost: Sequence[float], bound: Sequence[float]) -> float:
    """Give by how much the mean cost exceeds the mean bound, as a share of it; NaN if the bound is 0."""
    total = float(np.sum(bound))
    return float(np.sum(cost)) / total - 1.0 if total > 0.0 else float("nan")


def _statistics(group: list[RunSummary], reference: list[RunSummary]) -> PolicyStatistics:
    total, energy = [run.total_eur for run in group], [run.energy_eur for run in group]
    reference_total, reference_energy = [run.total_eur for run in reference], [run.energy_eur for run in reference]
    is_reference = group is reference
    rounds = sum(run.rounds for run in group)
    return PolicyStatistics(
        policy=group[0].policy,
        runs=len(group),
        energy_eur=_mean(energy),
        tardiness_eur=_mean(run.tardiness_eur for run in group),
        total_eur=_mean(total),
        total_interval_eur=mean_interval(total),
        late_jobs=_mean(run.late_jobs for run in group),
        mean_completion_s=_mean(run.mean_completion_s for run in group),
        decision_s_per_round=sum(run.decision_s for run in group) / rounds if rounds else 0.0,
        switches=_mean(run.switches for run in group),
        saving=0.0 if is_reference else saving(total, reference_total),
        saving_interval=None if is_reference else saving_interval(total, reference_total),
        energy_saving=0.0 if is_reference else saving(energy, reference_energy),
        energy_saving_interval=None if is_reference else saving_interval(energy, reference_energy),
        clairvoyant_gap=gap(total, [run.clairvoyant_eur for run in group]),
        non_clairvoyant_gap=gap(total, [run.non_clairvoyant_eur for run in group]),
    )


def _draws(seeds: int) -> NDArray[np.int64]:
    """Draw seeds with replacement, (resamples, seeds): the same draws at every call."""
    return np.random.default_rng(BOOTSTRAP_SEED).integers(seeds, size=(RESAMPLES, seeds))


def _percentiles(values: NDArray[np.float64]) -> Interval:
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(values, [tail, 100.0 - tail])
    return float(low), float(high)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))
