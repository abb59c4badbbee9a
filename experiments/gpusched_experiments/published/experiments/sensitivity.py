"""`sensitivity`: what explains the saving of STS, and what a wrong distribution costs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from gpusched_experiments.published import columns as of
from gpusched_experiments.published.changes import WAYS, SpeedUp, Told
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.experiment import Experiment, Reported
from gpusched_experiments.published.workloads import cells_of, thesis_scenario
from gpusched_experiments.report.chart import Chart, Panel, Series
from gpusched_experiments.report.estimate import saving
from gpusched_experiments.report.table import COUNT, PERCENT, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.report.cell import Cell, Change
    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.run import Group, Label, Runs

SIZES = Sizes(full=(Size(20, 20, 3),), quick=(Size(5, 5, 3),))
ARRIVALS = "exponential"  # the base; each axis changes one thing of it
LABELS = ("axis", "setting", "nodes")
LAMBDA_S = 6_000.0
TRUTH, TOLD = "the truth", "told"
STEEP, FLAT = "steep", "flat"  # the ends of the independent trial
TRIAL = "an independent trial with power-law speed-ups and beta-shaped histograms"


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of an axis: a name, what changes of the scenario, and what of its instances."""

    name: Label
    values: Mapping[str, object] = field(default_factory=dict)
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that is varied, with its unit, and its points: numbers make lines, texts bars."""

    title: str
    unit: str
    settings: tuple[Setting, ...]


def _mean_need(mean_need: float) -> dict[str, object]:
    return {"epochs.family": "beta", "epochs.mean": (mean_need, mean_need)}


def _spread(concentration: float) -> dict[str, object]:
    return {**_mean_need(0.4), "epochs.concentration": (concentration, concentration)}


AXES: dict[str, Axis] = {
    "speed-up": Axis(
        "Power-law speed-ups, not the measured ones",
        "exponent",
        tuple(Setting(a, change=SpeedUp(a, a)) for a in (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)),
    ),
    "mean need": Axis(
        "How early jobs stop (beta)",
        "mean epochs needed / E",
        tuple(Setting(m, _mean_need(m)) for m in (0.1, 0.2, 0.3, 0.4, 0.6, 0.8)),
    ),
    "spread": Axis(
        "How sure their end is (beta, mean 0.4)",
        "concentration",
        tuple(Setting(c, _spread(c)) for c in (0.5, 2.0, 5.0, 20.0, 100.0)),
    ),
    "slack": Axis(
        "Tightness of due dates",
        "due_dates.slack",
        tuple(Setting(s, {"due_dates.slack": s}) for s in (0.5, 0.75, 1.0, 1.5, 2.0, 4.0)),
    ),
    "base power": Axis(
        "Power of a node beside its GPUs",
        "W a node",
        tuple(Setting(w, {"cluster.node_base_power_w": float(w)}) for w in (0, 75, 150, 275, 400, 800)),
    ),
    "load": Axis(
        "Load",
        "arrival rate / the scenario's",
        tuple(Setting(r, {"arrivals.lambda_s": LAMBDA_S / r}) for r in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)),
    ),
    "trial": Axis(
        "The independent trial's ends",
        "",
        (
            Setting(STEEP, {**_mean_need(0.4), "cluster.node_base_power_w": 150.0}, SpeedUp(0.5, 0.85)),
            Setting(FLAT, _mean_need(0.2), SpeedUp(0.2, 0.5)),
        ),
    ),
    TOLD: Axis(
        "Policies are told a wrong distribution",
        "",
        (Setting(TRUTH), *(Setting(way, change=Told(way)) for way in WAYS)),
    ),
}


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for nodes, (name, axis) in product(SIZES.nodes(choice), AXES.items()):
        for setting in axis.settings:
            labels: dict[str, Label] = {"axis": name, "setting": setting.name, "nodes": nodes}
            scenario = thesis_scenario(ARRIVALS, nodes, settings=setting.values)
            cells += cells_of(labels, scenario, choice, policies, SIZES, setting.change)
    return tuple(cells)


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """What a policy saves along an axis: where least, and where most."""

    group: Group
    savings: Mapping[Label, Estimate]

    @property
    def least(self) -> Label:
        """The setting where it is least."""
        return min(self.savings, key=lambda setting: self.savings[setting].value)

    @property
    def most(self) -> Label:
        """The setting where it is most."""
        return max(self.savings, key=lambda setting: self.savings[setting].value)

    @property
    def axis(self) -> str:
        """The axis, with its unit."""
        name = str(self.group.labels["axis"])
        return f"{name} [{AXES[name].unit}]" if AXES[name].unit else name


def _ends(runs: Runs, reference: str) -> Iterator[_Ends]:
    for group in runs.groups("axis", "nodes"):
        if group.labels["axis"] != TOLD and group.policy != reference:
            other = group.beside(reference)
            yield _Ends(
                group,
                {
                    setting: saving(group.own.where(setting=setting), other.where(setting=setting), "energy_eur")
                    for setting in group.own.labels("setting")
                },
            )


def _summary(runs: Runs) -> Table:
    """Give for every axis and policy the saving at its first and last point, and what a wrong distribution costs."""
    reference = of.reference_of(runs)
    columns: tuple[Column[_Ends], ...] = (
        Column("axis", "varied", lambda ends: ends.axis),
        Column("nodes", "nodes", lambda ends: ends.group.labels["nodes"], COUNT),
        Column("policy", "policy", lambda ends: ends.group.policy),
        Column("least_at", "least at", lambda ends: str(ends.least)),
        Column("least_saving", "saved there", lambda ends: ends.savings[ends.least], PERCENT, interval=True),
        Column("most_at", "most at", lambda ends: str(ends.most)),
        Column("most_saving", "saved there", lambda ends: ends.savings[ends.most], PERCENT, interval=True),
    )
    notes = (
        f"One thing at a time is varied about the scenario {ARRIVALS} without node base power.",
        "What a wrong distribution costs is in the table below, under told.",
    )
    title = f"Energy saved against {reference}: where least, where most"
    return Table.of(title, columns, _ends(runs, reference), notes)


def _details(runs: Runs) -> Table:
    reference = of.reference_of(runs)

    def truth(group: Group) -> Runs | None:
        wrong = group.labels["axis"] == TOLD and group.labels["setting"] != TRUTH
        return group.beside(setting=TRUTH) if wrong else None

    columns = (
        *of.places(*LABELS),
        *of.COSTS,
        *of.saved_against(reference, "energy", "total"),
        of.LATE,
        of.saved("extra_energy", "energy above being told the truth", truth, "energy_eur", extra=True),
    )
    places = product(runs.labels("axis"), runs.labels("nodes"))
    subjects = (g for axis, nodes in places for g in runs.where(axis=axis, nodes=nodes).groups(*LABELS))
    return Table.of("Every setting", columns, subjects)


def _chart(runs: Runs) -> Chart:
    reference = of.reference_of(runs)
    nodes = max(int(n) for n in runs.labels("nodes"))
    some = runs.where(nodes=nodes)
    panels = [_panel(some.where(axis=name), AXES[str(name)], reference) for name in some.labels("axis") if name != TOLD]
    told = some.where(axis=TOLD)
    if len(told):
        panels.append(_told_panel(told, reference))
    rows = tuple(tuple(panels[i : i + 4]) for i in range(0, len(panels), 4))
    return Chart(f"What the saving depends on ({nodes} nodes, {ARRIVALS} arrivals)", rows)


def _panel(runs: Runs, axis: Axis, reference: str) -> Panel:
    others = [name for name in runs.policies if name != reference]
    drawn = of.lines(runs, "setting", lambda g: saving(g.own, g.beside(reference), "energy_eur"), others)
    numbers = {str(setting.name): setting.name for setting in axis.settings}  # runs have them as texts
    drawn = tuple(Series(s.name, tuple((numbers[str(x)], estimate) for x, estimate in s.points)) for s in drawn)
    return Panel(
        axis.title,
        axis.unit,
        f"energy saved against {reference}",
        drawn,
        kind="bars" if any(isinstance(name, str) for name in numbers.values()) else "lines",
        logarithmic="x" if axis.unit in {"concentration", "arrival rate / the scenario's"} else "",
        percent=True,
    )


def _told_panel(runs: Runs, reference: str) -> Panel:
    def extra(group: Group) -> Estimate:
        return saving(group.own, group.beside(setting=TRUTH), "energy_eur").as_extra()

    others = [name for name in runs.policies if name != reference]
    drawn = []
    for bars in of.lines(runs, "setting", extra, others):
        points = tuple((way, estimate) for way, estimate in bars.points if way != TRUTH)
        if any(estimate.value for _, estimate in points):  # others take no notice of distributions
            drawn.append(Series(bars.name, points))
    label = "energy above being told the truth"
    return Panel(AXES[TOLD].title, "", label, tuple(drawn), kind="bars", percent=True)


SENSITIVITY = Experiment(
    name="sensitivity",
    title="What the saving of STS depends on",
    question=(
        "Why does STS save what it saves? About one workload (exponential arrivals, no node base power) one thing at a "
        "time is varied: how much more GPUs help, how early jobs stop and how sure that is, how tight due dates are, "
        "what a node draws beside its GPUs, the load, and what policies are told of the epochs that jobs will need, "
        "which is no longer what jobs follow (optimistic: S², pessimistic: √S, shuffled between jobs, the average of "
        "all jobs, uniform, and the worst case, which tells nothing)."
    ),
    policies=("edf", "greedy", "sts", "sts-x"),
    labels=LABELS,
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(
        Reported(
            f"{STEEP}: STS against EDF, exponents 0.5 to 0.85, 150 W node base power, mean need about 40 % of E",
            "7 %",
            TRIAL,
        ),
        Reported(
            f"{FLAT}: STS against EDF, exponents 0.2 to 0.5, no node base power, mean need about 20 % of E",
            "26 %",
            TRIAL,
        ),
    ),
)
