"""`mean-times`: EDF and Random Greedy on mean instead of worst-case execution times."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_baselines.registry import POLICIES
from gpusched_experiments.published.chart import Chart, Panel, series
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.estimate import mean, pooled_saving, pooled_share, saving, share
from gpusched_experiments.published.experiment import Experiment
from gpusched_experiments.published.experiments.workloads import ARRIVALS, cells_of, thesis_scenario
from gpusched_experiments.published.reported import THESIS, Reported
from gpusched_experiments.published.table import Column, Table
from gpusched_experiments.report.statistics import LEAST_SEEDS

if TYPE_CHECKING:
    from gpusched_experiments.published.cell import Cell
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.published.run import Label, Runs
    from gpusched_experiments.published.table import Value

SIZES = Sizes(full=(Size(10, 20, 10), Size(20, 20, 5)), quick=(Size(3, 5, 5), Size(6, 5, 5)))


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for arrivals, nodes in product(ARRIVALS, SIZES.nodes(choice)):
        labels: dict[str, Label] = {"arrivals": arrivals, "nodes": nodes}
        cells += cells_of(labels, thesis_scenario(arrivals, nodes), choice, policies, SIZES)
    return tuple(cells)


def _worst_case_of(policy: str) -> str | None:
    return POLICIES[policy].worst_case if policy in POLICIES else None


def _plans_on(policy: str) -> str:
    if _worst_case_of(policy):
        return "mean times"
    return "distribution" if policy.startswith("sts") else "worst case"


def _summary(runs: Runs) -> Table:
    rows = []
    places = list(product(runs.labels("arrivals"), runs.labels("nodes")))
    for policy in runs.policies:
        own = [runs.where(policy, arrivals=a, nodes=n) for a, n in places]
        worst_case = _worst_case_of(policy)
        row: list[Value] = [policy, _plans_on(policy)]
        row += [pooled_share(own, name, "jobs", LEAST_SEEDS) for name in ("late_jobs", "tardiness_eur", "energy_eur")]
        for name in ("energy_eur", "total_eur"):
            if worst_case not in runs.policies:
                row.append(None)
                continue
            other = [runs.where(worst_case, arrivals=a, nodes=n) for a, n in places]
            row.append(pooled_saving(list(zip(own, other, strict=True)), name, LEAST_SEEDS))
        rows.append((*row, "due dates missed" if worst_case else None))
    return Table(
        "All arrival rates and numbers of nodes",
        (
            Column("policy", "policy"),
            Column("plans_on", "plans on"),
            Column("late_share", "late jobs", "share", interval=True),
            Column("tardiness_eur_per_job", "tardiness € per job", "money", interval=True),
            Column("energy_eur_per_job", "energy € per job", "money", interval=True),
            Column("energy_saving", "energy saved against its worst-case form", "percent", interval=True),
            Column("total_saving", "total saved against its worst-case form", "percent", interval=True),
            Column("reported", "reported"),
        ),
        tuple(rows),
    )


def _details(runs: Runs) -> Table:
    rows = []
    for arrivals, nodes, policy in product(runs.labels("arrivals"), runs.labels("nodes"), runs.policies):
        own = runs.where(policy, arrivals=arrivals, nodes=nodes)
        row: list[Value] = [str(arrivals), nodes, policy, len(own), share(own, "late_jobs", "jobs")]
        row += [mean(own, name) for name in ("tardiness_eur", "energy_eur", "total_eur")]
        worst_case = _worst_case_of(policy)
        if worst_case in runs.policies:
            other = runs.where(worst_case, arrivals=arrivals, nodes=nodes)
            row += [saving(own, other, "energy_eur"), saving(own, other, "total_eur")]
        else:
            row += [None, None]
        rows.append(tuple(row))
    return Table(
        "Every arrival rate and number of nodes",
        (
            Column("arrivals", "arrivals"),
            Column("nodes", "nodes", "count"),
            Column("policy", "policy"),
            Column("seeds", "seeds", "count"),
            Column("late_share", "late jobs", "share", interval=True),
            Column("tardiness_eur", "tardiness €", "money", interval=True),
            Column("energy_eur", "energy €", "money", interval=True),
            Column("total_eur", "total €", "money", interval=True),
            Column("energy_saving", "energy saved against its worst-case form", "percent", interval=True),
            Column("total_saving", "total saved against its worst-case form", "percent", interval=True),
        ),
        tuple(rows),
    )


def _chart(runs: Runs) -> Chart:
    late: list[Panel] = []
    cost: list[Panel] = []
    for arrivals in runs.labels("arrivals"):
        bars = {
            f"{nodes} nodes": [(p, runs.where(p, arrivals=arrivals, nodes=nodes)) for p in runs.policies]
            for nodes in runs.labels("nodes")
        }
        panels = (("late_jobs", "late jobs", True, late), ("energy_eur", "energy cost per job [€]", False, cost))
        for name, label, percent, panel_row in panels:
            drawn = tuple(series(size, ((p, share(g, name, "jobs")) for p, g in of)) for size, of in bars.items())
            title = f"{arrivals} arrivals" if percent else ""
            panel_row.append(Panel(title, "", label, drawn, kind="bars", percent=percent))
    return Chart("Planning on mean or on worst-case times", (tuple(late), tuple(cost)))


MEAN_TIMES = Experiment(
    name="mean-times",
    title="Planning on mean times",
    question=(
        "Would it be enough to plan on mean execution times? EDF and Random Greedy on the times of the mean epochs "
        "instead of all epochs, on the workloads of the experiment cost; beside them STS, which uses the whole "
        "distribution."
    ),
    policies=("edf", "edf-mean", "random-greedy", "random-greedy-mean", "sts"),
    labels=("arrivals", "nodes"),
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(
        Reported(
            "RG and EDF on mean instead of worst-case times",
            "fail: due dates are missed; a method must use both",
            THESIS,
        ),
    ),
)
