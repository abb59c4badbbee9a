"""What a comparison keeps of one run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpusched_env.simulator import Result


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

    @classmethod
    def of(cls, result: Result, seed: int, clairvoyant_eur: float, non_clairvoyant_eur: float) -> RunSummary:
        """Take the summary of a finished run."""
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
        )

    @property
    def total_eur(self) -> float:
        """Give the total cost: energy + tardiness [€]."""
        return self.energy_eur + self.tardiness_eur

    @property
    def decision_s_per_round(self) -> float:
        """Give the seconds of scheduling per decision round; 0 without a round."""
        return self.decision_s / self.rounds if self.rounds else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Give all values, derived ones included, by name."""
        return {**asdict(self), "total_eur": self.total_eur, "decision_s_per_round": self.decision_s_per_round}
