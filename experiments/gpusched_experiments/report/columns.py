"""Columns and lines that several experiments have: what they say of the runs of a policy in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from gpusched_experiments.report.chart import Series, series
from gpusched_experiments.report.estimate import Estimate, mean, saving, share
from gpusched_experiments.report.run import Group, Label, Runs
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, SHARE, TEXT, Column, Form

GroupColumn: TypeAlias = Column[Group]


TITLES = {"memory": "GPU memory", "axis": "varied"}  # of labels that are not their own


def _label(name: str) -> Callable[[Group], Label]:
    return lambda group: group.labels[name]


def places(*labels: str) -> tuple[GroupColumn, ...]:
    own = (Column(name, TITLES.get(name, name), _label(name), COUNT if name == "nodes" else TEXT) for name in labels)
    return (*own, POLICY, SEEDS)


def mean_of(name: str, title: str, form: Form = MONEY) -> GroupColumn:
    return Column(name, title, lambda group: mean(group.own, name), form, interval=True)


def saved(
    name: str, title: str, other: Callable[[Group], Runs | None], cost: str | None = None, *, extra: bool = False
) -> GroupColumn:
    """Make the column of what a group saves against other runs, paired by seed.

    Args:
        other: Gives the other runs; None where nothing is to be said.
        cost: What is saved; by default what the column's name says, `energy_saving` or `total_saving`.
    """
    saved_cost = cost or name.replace("_saving", "_eur")

    def value(group: Group) -> Estimate | None:
        others = other(group)
        if others is None:
            return None
        estimate = saving(group.own, others, saved_cost)
        return estimate.as_extra() if extra else estimate

    return Column(name, title, value, PERCENT, interval=True)


def saved_against(reference: str, *costs: str) -> tuple[GroupColumn, ...]:
    def other(group: Group) -> Runs | None:
        return None if group.policy == reference else group.beside(reference)

    return tuple(saved(f"{cost}_saving", f"{cost} saved against {reference}", other) for cost in costs)


POLICY: GroupColumn = Column("policy", "policy", lambda group: group.policy)
SEEDS: GroupColumn = Column("seeds", "seeds", lambda group: len(group.own), COUNT)
ENERGY = mean_of("energy_eur", "energy €")
TARDINESS = mean_of("tardiness_eur", "tardiness €")
TOTAL = mean_of("total_eur", "total €")
COSTS = (ENERGY, TARDINESS, TOTAL)
SWITCHES = mean_of("switches", "switches", COUNT)
LATE: GroupColumn = Column(
    "late_share", "late jobs", lambda group: share(group.own, "late_jobs", "jobs"), SHARE, interval=True
)


def reference_of(runs: Runs, usual: str = "edf") -> str:
    return usual if usual in runs.policies else runs.policies[0]


def lines(
    runs: Runs, along: str, estimate: Callable[[Group], Estimate], policies: Iterable[str] | None = None
) -> tuple[Series, ...]:
    groups = list(runs.groups(along))
    return tuple(
        series(policy, ((group.labels[along], estimate(group)) for group in groups if group.policy == policy))
        for policy in (runs.policies if policies is None else policies)
    )
