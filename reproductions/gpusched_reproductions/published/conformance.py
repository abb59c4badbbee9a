"""`conformance`: our policies on the reference instances of the published generator, beside the published program."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.workload import load_scenario
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate, mean_interval, paired_saving
from gpusched_experiments.report.experiment import Experiment, Selection
from gpusched_experiments.report.run import Runs
from gpusched_experiments.report.table import COUNT, MONEY, PERCENT, Column, Table
from gpusched_reproductions.data_sources import DATA, where_from
from gpusched_reproductions.published.reference_instances import (
    SCENARIO,
    Reference,
    ReferenceAnswer,
    reference_answers,
    reference_digest,
    reference_names,
)

FOLDER = DATA / "gpuspb"
"""Where the reference instances are looked for; they are not part of the project."""
METHODS = {
    "fifo": "FIFO", "edf": "EDF", "priority": "PS", "edf:mean": "EDF-mean", "greedy": "G", "sts": "STS",
    "sts:published": "STS",
}  # fmt: skip
"""The published program's method for each of our policies."""
ALL = "all"
QUICK_SEEDS = 2


def _deviation(share: float) -> str:
    return f"{share:+.3%}"


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """A policy on the instances of a kind, and the published program's answers there."""

    policy: str
    kind: str
    own: Runs
    answers: tuple[ReferenceAnswer, ...]

    @property
    def deviations(self) -> NDArray[np.float64]:
        ours = self.own.frame["energy_eur"].to_numpy()
        return ours / np.array([answer.energy_eur for answer in self.answers]) - 1.0

    @property
    def mean(self) -> Estimate:
        return Estimate(float(self.deviations.mean()), mean_interval(self.deviations), len(self.deviations))

    @property
    def largest(self) -> float:
        return float(self.deviations[np.argmax(np.abs(self.deviations))])

    @property
    def late_jobs(self) -> int:
        return int(self.own.frame["late_jobs"].sum())


def _cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    names = reference_names(FOLDER)
    if not names:
        raise InputError("reference instances", str(FOLDER), f"a folder that has them{where_from(FOLDER)}")
    cells = []
    for name in names:
        kind, seed = name.rsplit("-", 1)
        asked = choice.seeds is None or int(seed) in choice.seeds
        if asked and (not choice.quick or int(seed) < QUICK_SEEDS):
            labels = (("kind", kind), ("instance", name))
            change = Reference(str(FOLDER), name, reference_digest(FOLDER, name))
            scenario = load_scenario(SCENARIO)
            cells += [Cell(labels, scenario, p, int(seed), change) for p in policies if p in METHODS]
    return tuple(cells)


def _compared(runs: Runs) -> Iterator[_Compared]:
    answers = reference_answers(FOLDER)
    for kind in (ALL, *(str(kind) for kind in runs.labels("kind"))):
        for policy in runs.policies:
            own = runs.where(policy) if kind == ALL else runs.where(policy, kind=kind)
            said = tuple(answers[str(name), METHODS[policy]] for name in own.labels("instance"))
            yield _Compared(policy, kind, own, said)


def _table(title: str, rows: list[_Compared], notes: tuple[str, ...] = ()) -> Table:
    columns: tuple[Column[_Compared], ...] = (
        Column("kind", "instances", lambda row: row.kind),
        Column("policy", "policy", lambda row: row.policy),
        Column("method", "published as", lambda row: METHODS[row.policy]),
        Column("instances", "number", lambda row: len(row.answers), COUNT),
        Column("energy_deviation", "energy against the published program", lambda row: row.mean, _deviation, True),
        Column("largest_deviation", "largest of one instance", lambda row: row.largest, _deviation),
        Column("tardiness_eur", "tardiness €", lambda row: float(row.own.frame["tardiness_eur"].sum()), MONEY),
        Column("published_eur", "published", lambda row: sum(a.tardiness_eur for a in row.answers), MONEY),
        Column("late_jobs", "late jobs", lambda row: row.late_jobs, COUNT),
    )
    return Table.of(title, columns, rows, notes)


def _summary(runs: Runs) -> Table:
    notes = (
        "Energy against the published program: the mean over instances of ours / theirs, less 1.",
        "The published STS ran with an exact single-job solve, and misses some due dates by rounding.",
    )
    return _table("All instances", [row for row in _compared(runs) if row.kind == ALL], notes)


def _details(runs: Runs) -> Table:
    return _table("Kind by kind: arrivals and number of nodes", [row for row in _compared(runs) if row.kind != ALL])


def _saving(runs: Runs) -> Table:
    """Return what STS saves against EDF on these instances, by the published program's own answers and by ours."""
    answers = reference_answers(FOLDER)
    stochastic = [name for name in runs.policies if METHODS[name] == "STS"]
    arrivals = dict.fromkeys(str(kind).rsplit("-", 1)[0] for kind in runs.labels("kind"))

    def instances(row: str) -> list[str]:
        return [name for name in map(str, runs.labels("instance")) if row == ALL or name.startswith(f"{row}-")]

    def published(row: str) -> Estimate:
        sts, edf = ([answers[name, method].energy_eur for name in instances(row)] for method in ("STS", "EDF"))
        return paired_saving(sts, edf)

    def ours(policy: str) -> Column[str]:
        def value(row: str) -> Estimate:
            own, edf = (
                [float(runs.where(each, instance=name).frame["energy_eur"][0]) for name in instances(row)]
                for each in (policy, "edf")
            )
            return paired_saving(own, edf)

        return Column(f"saving_of_{policy}", f"ours, {policy}", value, PERCENT, interval=True)

    columns: tuple[Column[str], ...] = (
        Column("arrivals", "arrivals", str),
        Column("instances", "instances", lambda row: len(instances(row)), COUNT),
        Column("published_saving", "published program", published, PERCENT, interval=True),
        *(ours(name) for name in stochastic if "edf" in runs.policies),
    )
    return Table.of("Energy that STS saves against EDF", columns, (ALL, *arrivals))


def _chart(runs: Runs) -> Chart:
    rows = [row for row in _compared(runs) if row.kind != ALL]
    drawn = [series(policy, ((row.kind, row.mean) for row in rows if row.policy == policy)) for policy in runs.policies]
    label = "energy against the published program"
    sts = tuple(each for each in drawn if METHODS[each.name] == "STS")
    others = tuple(each for each in drawn if METHODS[each.name] != "STS")
    panels = [Panel("", "", label, each, kind="bars", percent=True) for each in (others, sts) if each]
    return Chart("Our policies and the published program", tuple((panel,) for panel in panels), (11.0, 3.2))


CONFORMANCE = Experiment(
    name="conformance",
    title="Conformance with the published program",
    question=(
        "Do our policies do what the published ones do? Forty instances of the published generator, 10 and 20 nodes at "
        "four arrival rates, on which the published program answered; ours on the same instances."
    ),
    policies=tuple(METHODS),
    labels=("kind", "instance"),
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(),
    more={"saving": _saving},
)
