"""`sensitivity`: what explains the saving of STS, and what a wrong distribution costs it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from gpusched_experiments.published.changes import WAYS, SpeedUp, Told
from gpusched_experiments.published.chart import Chart, Panel, series
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.estimate import mean, saving, share
from gpusched_experiments.published.experiment import Experiment
from gpusched_experiments.published.experiments.workloads import cells_of, thesis_scenario
from gpusched_experiments.published.reported import Reported
from gpusched_experiments.published.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpusched_experiments.published.cell import Cell, Change
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.published.run import Label, Runs
    from gpusched_experiments.published.table import Value

SIZES = Sizes(full=(Size(20, 20, 3),), quick=(Size(5, 5, 3),))
ARRIVALS = "exponential"  # the base; each axis changes one thing of it
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


def _reference(runs: Runs) -> str:
    return "edf" if "edf" in runs.policies else runs.policies[0]


def _summary(runs: Runs) -> Table:
    """Give for every axis and policy the saving at its first and last point, and what a wrong distribution costs."""
    reference = _reference(runs)
    rows = []
    for axis, nodes, policy in product(runs.labels("axis"), runs.labels("nodes"), runs.policies):
        own = runs.where(policy, axis=axis, nodes=nodes)
        if axis == TOLD or policy == reference:
            continue
        other = runs.where(reference, axis=axis, nodes=nodes)
        saved = {s: saving(own.where(setting=s), other.where(setting=s), "energy_eur") for s in own.labels("setting")}
        least, most = min(saved, key=lambda s: saved[s].value), max(saved, key=lambda s: saved[s].value)
        unit = AXES[str(axis)].unit
        row: list[Value] = [f"{axis} [{unit}]" if unit else str(axis), nodes, policy]
        rows.append((*row, str(least), saved[least], str(most), saved[most]))
    return Table(
        f"Energy saved against {reference}: where least, where most",
        (
            Column("axis", "varied"),
            Column("nodes", "nodes", "count"),
            Column("policy", "policy"),
            Column("least_at", "least at"),
            Column("least_saving", "saved there", "percent", interval=True),
            Column("most_at", "most at"),
            Column("most_saving", "saved there", "percent", interval=True),
        ),
        tuple(rows),
        (
            f"One thing at a time is varied about the scenario {ARRIVALS} without node base power.",
            "What a wrong distribution costs is in the table below, under told.",
        ),
    )


def _details(runs: Runs) -> Table:
    reference = _reference(runs)
    rows = []
    for axis, nodes in product(runs.labels("axis"), runs.labels("nodes")):
        of_axis = runs.where(axis=axis, nodes=nodes)
        for setting, policy in product(of_axis.labels("setting"), runs.policies):
            own, other = of_axis.where(policy, setting=setting), of_axis.where(reference, setting=setting)
            row: list[Value] = [str(axis), str(setting), nodes, policy, len(own)]
            row += [mean(own, name) for name in ("energy_eur", "tardiness_eur", "total_eur")]
            row += [None if policy == reference else saving(own, other, n) for n in ("energy_eur", "total_eur")]
            row.append(share(own, "late_jobs", "jobs"))
            truth = of_axis.where(policy, setting=TRUTH)
            wrong = axis == TOLD and setting != TRUTH
            row.append(saving(own, truth, "energy_eur").as_extra() if wrong else None)
            rows.append(tuple(row))
    return Table(
        "Every setting",
        (
            Column("axis", "varied"),
            Column("setting", "setting"),
            Column("nodes", "nodes", "count"),
            Column("policy", "policy"),
            Column("seeds", "seeds", "count"),
            Column("energy_eur", "energy €", "money", interval=True),
            Column("tardiness_eur", "tardiness €", "money", interval=True),
            Column("total_eur", "total €", "money", interval=True),
            Column("energy_saving", f"energy saved against {reference}", "percent", interval=True),
            Column("total_saving", f"total saved against {reference}", "percent", interval=True),
            Column("late_share", "late jobs", "share", interval=True),
            Column("extra_energy", "energy above being told the truth", "percent", interval=True),
        ),
        tuple(rows),
    )


def _chart(runs: Runs) -> Chart:
    reference = _reference(runs)
    nodes = max(int(n) for n in runs.labels("nodes"))
    some = runs.where(nodes=nodes)
    panels = [_panel(some.where(axis=name), AXES[str(name)], reference) for name in some.labels("axis") if name != TOLD]
    told = some.where(axis=TOLD)
    if len(told):
        panels.append(_told_panel(told, reference))
    rows = tuple(tuple(panels[i : i + 4]) for i in range(0, len(panels), 4))
    return Chart(f"What the saving depends on ({nodes} nodes, {ARRIVALS} arrivals)", rows)


def _panel(runs: Runs, axis: Axis, reference: str) -> Panel:
    drawn = []
    for policy in runs.policies:
        if policy != reference:
            points = []
            for s in runs.labels("setting"):
                own, other = runs.where(policy, setting=s), runs.where(reference, setting=s)
                points.append((s, saving(own, other, "energy_eur")))
            drawn.append(series(policy, points))
    lines = not any(isinstance(s, str) for s in runs.labels("setting"))
    wide = axis.unit in {"concentration", "arrival rate / the scenario's"}
    return Panel(
        axis.title,
        axis.unit,
        f"energy saved against {reference}",
        tuple(drawn),
        kind="lines" if lines else "bars",
        logarithmic="x" if wide else "",
        percent=True,
    )


def _told_panel(runs: Runs, reference: str) -> Panel:
    drawn = []
    for policy in runs.policies:
        if policy == reference:
            continue
        truth = runs.where(policy, setting=TRUTH)
        wrong = [s for s in runs.labels("setting") if s != TRUTH]
        extra = ((s, saving(runs.where(policy, setting=s), truth, "energy_eur").as_extra()) for s in wrong)
        bars = series(policy, extra)
        if any(estimate.value for _, estimate in bars.points):  # others take no notice of distributions
            drawn.append(bars)
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
    labels=("axis", "setting", "nodes"),
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
