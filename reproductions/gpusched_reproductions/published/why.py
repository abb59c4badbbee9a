"""`why`: what makes the saving of STS, one change of the published workload at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Chart, Panel, Series
from gpusched_experiments.report.estimate import Estimate, saving
from gpusched_experiments.report.experiment import THESIS, Experiment, Reported, Size, Sizes
from gpusched_experiments.report.table import COUNT, PERCENT, Column, Table
from gpusched_reproductions.published.changes import WAYS, BasePower, Misspecified, Slower, SpeedUp
from gpusched_reproductions.published.workloads import MEASURED, listed, published_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gpusched_experiments.report.cell import Change
    from gpusched_experiments.report.run import Group, Label, Runs
    from gpusched_reproductions.published.workloads import Place

SIZES = Sizes(full=(Size(20, 20, 3),), quick=(Size(5, 5, 2),))
BASE = "high"
"""The arrival rate of the published inputs about which one thing at a time is changed."""
LABELS = ("axis", "setting", "nodes")
AS_PUBLISHED, TRUTH, MISSPECIFIED, PREEMPTIVE = "as published", "the truth", "misspecified", "edf:preemptive"
SUBJECT = "sts"
SMALL = 0.02
LEAST_EUR_PER_S, GREATEST_EUR_PER_S = 0.0253709514333333, 0.0443991650083333


@dataclass(frozen=True, slots=True)
class Setting:
    """One point of an axis: a name, what changes of the scenario, and what of its instances."""

    name: Label
    values: Mapping[str, object] = field(default_factory=dict)
    change: Change | None = None
    arrivals: str = BASE


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that is changed, with its unit, and its points: numbers make lines, texts bars."""

    title: str
    unit: str
    settings: tuple[Setting, ...]


def _weights(factor: float) -> dict[str, object]:
    return {"weights.min_eur_per_s": LEAST_EUR_PER_S * factor, "weights.max_eur_per_s": GREATEST_EUR_PER_S * factor}


AXES: dict[str, Axis] = {
    "published": Axis("The published workload", "", (Setting(AS_PUBLISHED),)),
    "speed-up": Axis(
        "Speed-up of g GPUs: g^a",
        "exponent a",
        tuple(Setting(a, change=SpeedUp(a, a)) for a in (0.1, 0.3, 0.5, 0.7, 0.9)),
    ),
    "due dates": Axis(
        "Later due dates",
        "due_dates.slack",
        tuple(Setting(s, {"due_dates.slack": s}) for s in (0.75, 1.0, 1.25, 1.5, 2.0, 4.0)),
    ),
    "slower type": Axis(
        "M60 slower, so that due dates are looser",
        "times of M60",
        tuple(Setting(f, change=Slower("M60", f)) for f in (1.0, 1.5, 2.0, 3.0)),
    ),
    "base power": Axis(
        "Nodes draw power beside their GPUs",
        "in units of one GPU",
        tuple(Setting(p, change=BasePower(p)) for p in (0.0, 0.25, 1.0, 2.0)),
    ),
    "weights": Axis("Tardiness weights", "factor", tuple(Setting(f, _weights(f)) for f in (0.01, 0.1, 1.0, 10.0))),
    "load": Axis(
        "Load", "arrival rate / published", tuple(Setting(r, {"arrivals.rate": r}) for r in (0.5, 1.0, 2.0, 2.5, 3.0))
    ),
    "arrivals": Axis(
        "Arrivals",
        "",
        tuple(Setting(kind, arrivals=kind) for kind in ("high", "exponential", "low", "mixed", "poisson")),
    ),
    "distributions": Axis(
        "Other distributions of epochs",
        "",
        (
            Setting(AS_PUBLISHED),
            Setting("made-up histograms", {"epochs": {"family": "histogram"}}),
            Setting("beta, mean 0.4", {"epochs": {"family": "beta", "mean": (0.4, 0.4)}}),
            Setting("two-point", {"epochs": {"family": "two-point"}}),
            Setting("half need all", {"epochs": {"masses": ((1.0, 0.0, 0.0, 0.0, 1.0),)}}),
            Setting("all need all", {"epochs": {"masses": ((0.0, 1.0),)}}),
        ),
    ),
    MISSPECIFIED: Axis(
        "Policies plan with a misspecified distribution",
        "",
        (Setting(TRUTH), *(Setting(w, change=Misspecified(w)) for w in WAYS)),
    ),
    MEASURED: Axis(
        "The package's measured workload",
        "",
        (
            Setting("default", arrivals=MEASURED),
            Setting("due dates half as far", {"due_dates.slack": 0.5}, arrivals=MEASURED),
        ),
    ),
}


def _places(sizes: tuple[int, ...]) -> Iterator[Place]:
    for nodes, (name, axis) in product(sizes, AXES.items()):
        for setting in axis.settings:
            scenario = published_scenario(setting.arrivals, nodes, settings=setting.values)
            yield {"axis": name, "setting": setting.name, "nodes": nodes}, scenario, setting.change


def _against(reference: str) -> of.GroupColumn:
    def value(group: Group) -> Estimate | None:
        return None if reference == group.policy else saving(group.own, group.beside(reference), "energy_eur")

    return Column(f"saving_against_{reference}", f"energy saved against {reference}", value, PERCENT, interval=True)


def _misspecified(group: Group) -> Runs | None:
    wrong = group.labels["axis"] == MISSPECIFIED and group.labels["setting"] != TRUTH
    return group.beside(setting=TRUTH) if wrong else None


def _summary(runs: Runs) -> Table:
    """Return for every change what STS saves, against EDF and against EDF that preempts, and how late it is."""
    reference = of.reference_of(runs)
    subject = SUBJECT if SUBJECT in runs.policies else runs.policies[-1]
    columns: tuple[of.GroupColumn, ...] = (
        Column("axis", "changed", _axis),
        Column("setting", "to", lambda group: str(group.labels["setting"])),
        Column("nodes", "nodes", lambda group: group.labels["nodes"], COUNT),
        _against(reference),
        *((_against(PREEMPTIVE),) if PREEMPTIVE in runs.policies else ()),
        *of.saved_against(reference, "total"),
        of.LATE,
        of.saved("extra_energy", "energy above knowing the truth", _misspecified, "energy_eur", extra=True),
    )
    notes = (f"The published inputs at {BASE} rates, with one change at a time.",)
    groups = [group for group in _groups(runs) if group.policy == subject]
    return Table.of(f"What {subject} saves", columns, groups, notes)


def _axis(group: Group) -> str:
    name = str(group.labels["axis"])
    return f"{name} [{AXES[name].unit}]" if AXES[name].unit else name


def _groups(runs: Runs) -> list[Group]:
    places = product(runs.labels("axis"), runs.labels("nodes"))
    return [g for axis, nodes in places for g in runs.where(axis=axis, nodes=nodes).groups(*LABELS)]


def _details(runs: Runs) -> Table:
    reference = of.reference_of(runs)
    columns = (*of.places(*LABELS), *of.COSTS, *of.saved_against(reference, "energy", "total"), of.LATE)
    return Table.of("Every setting and policy", columns, _groups(runs))


def _chart(runs: Runs) -> Chart:
    reference = of.reference_of(runs)
    nodes = max(int(n) for n in runs.labels("nodes"))
    some = runs.where(nodes=nodes)
    drawn = [name for name in some.labels("axis") if name not in {MISSPECIFIED, "published"}]
    panels = [_panel(some.where(axis=name), AXES[str(name)], reference) for name in drawn]
    informed = some.where(axis=MISSPECIFIED)
    if len(informed):
        panels.append(_misspecified_panel(informed))
    rows = tuple(tuple(panels[i : i + 3]) for i in range(0, len(panels), 3))
    return Chart(f"What makes the saving: one change of the published workload at a time ({nodes} nodes)", rows)


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
        logarithmic="x" if axis.unit == "factor" else "",
        percent=True,
    )


def _misspecified_panel(runs: Runs) -> Panel:
    def extra(group: Group) -> Estimate:
        return saving(group.own, group.beside(setting=TRUTH), "energy_eur").as_extra()

    drawn = []
    for bars in of.lines(runs, "setting", extra, runs.policies):
        points = tuple((way, estimate) for way, estimate in bars.points if way != TRUTH)
        if any(estimate.value for _, estimate in points):  # others take no notice of distributions
            drawn.append(Series(bars.name, points))
    label = "energy above knowing the truth"
    small = all(abs(estimate.value) < SMALL for bars in drawn for _, estimate in bars.points)
    results = (-SMALL, SMALL) if small else None  # else the axis shows no more than rounding
    return Panel(AXES[MISSPECIFIED].title, "", label, tuple(drawn), kind="bars", percent=True, y_range=results)


WHY = Experiment(
    name="why",
    title="What makes the saving of STS",
    question=(
        "Why does STS save what it saves on the published inputs? They have one change at a time, at high "
        "arrival rates: how much more GPUs help, how far due dates are, how unlike the GPU types are, what a node "
        "draws without its GPUs, the tardiness weights, the load, the arrivals, the distributions of epochs, and what "
        "policies plan with them while jobs need what they need (optimistic: S², pessimistic: √S, shuffled between "
        "jobs, the average of all jobs, uniform, and the worst case, which has no information). Preemption is a "
        "policy, edf:preemptive."
    ),
    policies=("edf", PREEMPTIVE, "greedy", "sts", "sts-x"),
    labels=LABELS,
    cells=listed(SIZES, _places),
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(Reported("energy cost of STS below EDF and Random Greedy", "38 to 40 % on average", THESIS),),
)
