"""What a comparison keeps of one run."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gpusched_env.parsing import parse_json
from gpusched_env.simulator import Result
from gpusched_experiments.report.metrics import ENERGY, NAN, UNKNOWN, Billing, GroupMetrics, RunMetrics, group_metrics
from gpusched_experiments.report.store import finite


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One policy on the instance of one seed.

    Attributes:
        policy: Name of the policy.
        seed: Seed of the instance and of the policy's randomness.
        jobs: Number of jobs.
        energy_eur: Energy cost [€].
        tardiness_eur: Tardiness cost [€].
        late_jobs: Jobs that ended after their due date.
        mean_completion_s: Mean time from submission to completion [s].
        switches: Changes of configuration or node after a job's first start, pauses included, over all jobs.
        rounds: Decision rounds.
        decision_s: Seconds of wall clock that the policy took in all; compilation is not among them.
        clairvoyant_eur: Clairvoyant bound of the instance [€].
        non_clairvoyant_eur: Non-clairvoyant bound of the instance [€].
        metrics: Metrics of its jobs and machines.
        co2_kg: What its energy emitted [kg CO₂]; None where that is not known.
        groups: Metrics of the jobs of every tenant and class, where there are several.
    """

    policy: str
    seed: int
    jobs: int
    energy_eur: float
    tardiness_eur: float
    late_jobs: int
    mean_completion_s: float
    switches: int
    rounds: int
    decision_s: float
    clairvoyant_eur: float
    non_clairvoyant_eur: float
    metrics: RunMetrics = UNKNOWN
    co2_kg: float | None = None
    groups: tuple[GroupMetrics, ...] = ()

    @classmethod
    def of(
        cls,
        result: Result,
        seed: int,
        clairvoyant_eur: float,
        non_clairvoyant_eur: float,
        billing: Billing = ENERGY,
    ) -> RunSummary:
        """Take the summary of a finished run."""
        metrics = RunMetrics.of(result, billing)
        return cls(
            policy=result.policy,
            seed=seed,
            jobs=len(result.completion_s),
            energy_eur=result.energy_eur,
            tardiness_eur=result.tardiness_eur,
            late_jobs=result.late_jobs,
            mean_completion_s=result.mean_completion_s,
            switches=int(result.switches.sum()),
            rounds=result.rounds,
            decision_s=result.decision_s,
            clairvoyant_eur=clairvoyant_eur,
            non_clairvoyant_eur=non_clairvoyant_eur,
            metrics=metrics,
            co2_kg=billing.co2_kg(result),
            groups=group_metrics(result),
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunSummary:
        """Take the summary from what `as_dict` or `stored` gave; null and missing values of `metrics` stand for NaN.

        Raises:
            KeyError: Another value is missing.
            TypeError: A value is no number, or the policy no text.
        """
        own: dict[str, Any] = {name: NAN if values[name] is None else values[name] for name in _NAMES}
        metrics: dict[str, Any] = {name: NAN if values.get(name) is None else values[name] for name in _METRICS}
        co2_kg = values["co2_kg"]
        for name, value in (*own.items(), *metrics.items()):
            number = isinstance(value, int | float) and not (name in _KNOWN and math.isnan(value))
            if not (isinstance(value, str) if name == "policy" else number):
                raise TypeError(f"{name}: {value!r:.80}")
        own["co2_kg"] = None if co2_kg is None or math.isnan(co2_kg) else co2_kg
        groups = tuple(map(_group, parse_json(values.get("groups", "[]"))))
        return cls(**own, metrics=RunMetrics(**metrics), groups=groups)

    @property
    def total_eur(self) -> float:
        """Return the total cost: energy + tardiness [€]."""
        return self.energy_eur + self.tardiness_eur

    @property
    def decision_s_per_round(self) -> float:
        """Return the seconds of scheduling per decision round; 0 without a round."""
        return self.decision_s / self.rounds if self.rounds else 0.0

    def costs(self) -> dict[str, Any]:
        """Return what the run cost and how it went by name, derived values included: all but `metrics` and `groups`."""
        own = {name: getattr(self, name) for name in _NAMES if name != "co2_kg"}
        return {**own, "total_eur": self.total_eur, "decision_s_per_round": self.decision_s_per_round}

    def as_dict(self) -> dict[str, Any]:
        """Return all values but those of groups, derived ones included, by name."""
        return {**self.costs(), **asdict(self.metrics), "co2_kg": self.co2_kg}

    def stored(self) -> dict[str, Any]:
        """Return all values as a store keeps them: but the policy and the seed, and groups as JSON."""
        values = {name: value for name, value in self.as_dict().items() if name not in {"policy", "seed"}}
        return {**values, "groups": json.dumps([finite(asdict(group)) for group in self.groups])}


def _group(values: dict[str, Any]) -> GroupMetrics:
    known: dict[str, Any] = {name: NAN if value is None else value for name, value in values.items()}
    return GroupMetrics(**known)


_NAMES = tuple(each.name for each in fields(RunSummary) if each.name not in {"metrics", "groups"})
_KNOWN = ("seed", "jobs", "energy_eur", "tardiness_eur", "late_jobs", "switches", "rounds")
_METRICS = tuple(each.name for each in fields(RunMetrics))
