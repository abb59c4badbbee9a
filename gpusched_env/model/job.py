"""A training job, and the table that many of them make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_env.model.configuration import Configuration
    from gpusched_env.model.distribution import EpochDistribution

BYTES_PER_GIB = 2.0**30


def moving_s(state_gib: float, gb_per_s: float) -> float:
    """Return the seconds in which a state S leaves a GPU and comes back at a bandwidth B, 2 S / B."""
    return 2.0 * state_gib * BYTES_PER_GIB / (gb_per_s * 1e9)


@dataclass(frozen=True, slots=True)
class Job:
    """A training job j ∈ J, as its owner submits it.

    Args:
        submission_s: Submission time a_j [s], from 0 to `checks.LONGEST_S`.
        due_s: Due date d_j [s], at or after the submission, `LONGEST_S` at most.
        tardiness_weight_eur_per_s: Tardiness weight ω_j [€/s], ≥ 0.
        max_epochs: Maximum epochs E_j, > 0.
        distribution: Distribution of the epochs it will need.
        seconds_per_epoch: τ_{j,c} [s/epoch] for every configuration it may use; a missing one is not allowed. All
            epochs take `LONGEST_S` at most.
        memory_gib: Memory it needs on each GPU [GiB], ≥ 0.
        application: Name of what it trains.
        restart_s: Seconds without progress after its configuration or node has changed, from 0 to `LONGEST_S`; None for
            the instance's.
        start_s: Seconds without progress at its first start, from 0 to `LONGEST_S`.
        resume_s: Seconds without progress where it continues on the nodes where it ran last, from 0 to `LONGEST_S`;
            None for `restart_s`. If any job of an instance has it, costs depend on the distance (`JobTable.resume_s`).
        opportunistic: Whether its user put it into the class that gets the GPUs that guaranteed jobs leave: a label
            that only policies and reports read.
        epochs_needed: Realised demand: epochs that it needs, X_j in (0, E_j]; hidden from policies until the job ends.
        tenant: Index of its tenant among the instance's, ≥ 0.
        state_gib: State that moves when it is switched [GiB], ≥ 0: weights, gradients and the optimiser's state.

    Raises:
        InputError: A value is out of its range.
    """

    submission_s: float
    due_s: float
    tardiness_weight_eur_per_s: float
    max_epochs: float
    distribution: EpochDistribution
    epochs_needed: float
    seconds_per_epoch: Mapping[Configuration, float] = field(default_factory=dict)
    memory_gib: float = 0.0
    application: str = ""
    restart_s: float | None = None
    start_s: float = 0.0
    resume_s: float | None = None
    opportunistic: bool = False
    tenant: int = 0
    state_gib: float = 0.0

    def __post_init__(self) -> None:
        checks.seconds("job.submission_s", self.submission_s)
        checks.not_negative("job.tardiness_weight_eur_per_s", self.tardiness_weight_eur_per_s)
        checks.positive("job.max_epochs", self.max_epochs)
        checks.not_negative("job.memory_gib", self.memory_gib)
        checks.not_negative("job.state_gib", self.state_gib)
        checks.whole("job.tenant", self.tenant, 0)
        if self.restart_s is not None:
            checks.seconds("job.restart_s", self.restart_s)
        checks.seconds("job.start_s", self.start_s)
        if self.resume_s is not None:
            checks.seconds("job.resume_s", self.resume_s)
        if not isinstance(self.opportunistic, bool):
            raise InputError("job.opportunistic", self.opportunistic, "True or False")
        if not self.submission_s <= checks.finite("job.due_s", self.due_s) <= checks.LONGEST_S:
            allowed = f"a number >= job.submission_s ({self.submission_s}) and <= {checks.LONGEST}"
            raise InputError("job.due_s", self.due_s, allowed)
        if not 0.0 < self.epochs_needed <= self.max_epochs:
            raise InputError("job.epochs_needed", self.epochs_needed, f"a number in (0, {self.max_epochs}]")
        for configuration, seconds in self.seconds_per_epoch.items():
            where = f"job.seconds_per_epoch[{configuration.name}]"
            if checks.positive(where, seconds) * self.max_epochs > checks.LONGEST_S:
                raise InputError(where, seconds, f"a number that job.max_epochs times make {checks.LONGEST} at most")
