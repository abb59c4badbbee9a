"""The finished runs of a report, and how to choose among them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import polars as pl

Label: TypeAlias = str | int | float
Values: TypeAlias = Mapping[str, int | float]
Row: TypeAlias = tuple[Mapping[str, Label], str, int, Values]

_LABEL = "label: "  # before its name: a label may be named like something that was measured


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Runs in the order of the report's plan.

    Attributes:
        frame: A row for every run: `policy`, `seed`, its labels, and what was measured, by name.
    """

    frame: pl.DataFrame

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Runs:
        """Put runs together.

        Args:
            rows: Of every run the labels (where it stands in the report), the name of the policy, the seed of the
                workload and of the policy's randomness, and what was measured. Labels of one name that are not all
                numbers of one kind become texts.
        """
        runs = list(rows)
        labels = dict.fromkeys(name for run in runs for name in run[0])
        measured = dict.fromkeys(name for run in runs for name in run[3])
        return cls(
            pl.DataFrame(
                [
                    pl.Series("policy", [run[1] for run in runs], pl.String),
                    pl.Series("seed", [run[2] for run in runs], pl.Int64),
                    *(pl.Series(_LABEL + name, _alike([run[0].get(name) for run in runs])) for name in labels),
                    *(pl.Series(name, [run[3].get(name) for run in runs]) for name in measured),
                ]
            )
        )

    def where(self, policy: str | None = None, **labels: Label) -> Runs:
        wanted = {_LABEL + name: label for name, label in labels.items()}
        if policy is not None:
            wanted["policy"] = policy
        schema = self.frame.schema
        if not wanted.keys() <= schema.keys():
            return Runs(self.frame.clear())
        tests = [pl.col(name) == (str(v) if schema[name] == pl.String else v) for name, v in wanted.items()]
        return Runs(self.frame.filter(tests)) if tests else self

    def labels(self, name: str) -> tuple[Label, ...]:
        return self._each_once(_LABEL + name)

    @property
    def policies(self) -> tuple[str, ...]:
        return self._each_once("policy")

    def by_seed(self, name: str) -> dict[int, float]:
        """Return one measured value of every run, by seed; where several runs share a seed, their sum."""
        values: dict[int, float] = {}
        if len(self):
            for seed, value in zip(self.frame["seed"], self.frame[name], strict=True):
                values[seed] = values.get(seed, 0.0) + float(value)
        return values

    def parts(self, *labels: str) -> list[Runs]:
        places = product(*map(self.labels, labels))
        return [self.where(None, **dict(zip(labels, place, strict=True))) for place in places]

    def groups(self, *labels: str) -> Iterator[Group]:
        """Yield the runs of every combination of these labels and of a policy, which changes fastest, if there are any.

        What is measured against others is found from there: see `Group`.
        """
        for part in self.parts(*labels):
            for policy in self.policies:
                own = part.where(policy)
                if len(own):
                    yield Group(self, own, policy, {name: own.labels(name)[0] for name in labels})

    def _each_once(self, column: str) -> tuple[str, ...]:
        there = self.frame[column].drop_nulls() if column in self.frame.schema else ()
        return tuple(dict.fromkeys(there))

    def __len__(self) -> int:
        return len(self.frame)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """The runs of one policy in one place, among others.

    Attributes:
        runs: All runs.
        own: The runs of this group.
        policy: Their policy.
        labels: Where they stand, by the labels that make the groups.
    """

    runs: Runs
    own: Runs
    policy: str
    labels: Mapping[str, Label]

    def beside(self, policy: str | None = None, **labels: Label) -> Runs:
        return self.runs.where(self.policy if policy is None else policy, **{**self.labels, **labels})


def _alike(labels: list[Label | None]) -> list[Label | None]:
    if len({type(label) for label in labels if label is not None}) <= 1:
        return labels
    return [None if label is None else str(label) for label in labels]
