"""The finished runs of an experiment, and how to choose among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

Label: TypeAlias = str | int | float
Values: TypeAlias = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Run:
    """One finished cell.

    Attributes:
        labels: Where it stands in the experiment, by the experiment's own names.
        policy: Name of the policy.
        seed: Seed of the workload and of the policy's randomness.
        values: What was measured, by name.
    """

    labels: Mapping[str, Label]
    policy: str
    seed: int
    values: Values


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs in the order of the experiment's plan."""

    all: tuple[Run, ...]

    def where(self, policy: str | None = None, **labels: Label) -> Runs:
        """Choose the runs of a policy, if one is given, that have all of these labels."""
        return Runs(
            tuple(
                run
                for run in self.all
                if (policy is None or run.policy == policy)
                and all(run.labels.get(name) == value for name, value in labels.items())
            )
        )

    def labels(self, name: str) -> tuple[Label, ...]:
        """List the values of one label, each once, in the order in which they come."""
        return tuple(dict.fromkeys(run.labels[name] for run in self.all if name in run.labels))

    @property
    def policies(self) -> tuple[str, ...]:
        """List the policies, each once, in the order in which they come."""
        return tuple(dict.fromkeys(run.policy for run in self.all))

    def by_seed(self, name: str) -> dict[int, float]:
        """Give one measured value of every run, by seed; where several runs share a seed, their sum."""
        values: dict[int, float] = {}
        for run in self.all:
            values[run.seed] = values.get(run.seed, 0.0) + float(run.values[name])
        return values

    def __len__(self) -> int:
        return len(self.all)
