"""`load`: what STS saves as the cluster fills, down to where it loses."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Band, Chart, Panel, Series
from gpusched_experiments.report.estimate import saving, share
from gpusched_experiments.report.experiment import THESIS, Experiment, Reported, Size, Sizes
from gpusched_experiments.report.table import PERCENT, SHARE, Column, Table
from gpusched_reproductions.published.workloads import MEASURED, cells_of, published_scenario

if TYPE_CHECKING:
    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.experiment import Choice
    from gpusched_experiments.report.run import Group, Label, Runs

SIZES = Sizes(full=(Size(100, 20, 0),), quick=(Size(5, 5, 0),))
RATES = {
    "high": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    "exponential": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    "low": (0.5, 1.0, 1.5, 2.0, 2.5, 4.0),
    MEASURED: (0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
}
"""Factors on the published rates, and on that of the scenario default."""
REPORTED_RATE = {"high": 2.5, "exponential": 1.5, "low": 2.5}
"""Where about as many jobs are there at once as the thesis names."""
LABELS = ("arrivals", "rate", "nodes")


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for nodes, arrivals in product(SIZES.nodes(choice), RATES):
        for rate in RATES[arrivals]:
            labels: dict[str, Label] = {"arrivals": arrivals, "rate": rate, "nodes": nodes}
            scenario = published_scenario(arrivals, nodes, settings={"arrivals.rate": rate})
            cells += cells_of(labels, scenario, choice, policies, SIZES)
    return tuple(cells)


def _groups(runs: Runs) -> list[Group]:
    return [g for arrivals in runs.labels("arrivals") for g in runs.where(arrivals=arrivals).groups(*LABELS)]


def _summary(runs: Runs) -> Table:
    """Give for every rate what STS and the others save against EDF, and who is late."""
    reference = of.reference_of(runs)

    def saved(name: str) -> of.GroupColumn:
        def value(group: Group) -> Estimate:
            return saving(group.beside(name), group.own, "energy_eur")

        return Column(f"saving_of_{name}", f"energy that {name} saves", value, PERCENT, interval=True)

    def late(name: str) -> of.GroupColumn:
        def value(group: Group) -> Estimate:
            return share(group.beside(name), "late_jobs", "jobs")

        return Column(f"late_{name}", f"late, {name}", value, SHARE, interval=True)

    columns: tuple[of.GroupColumn, ...] = (
        Column("arrivals", "arrivals", lambda group: group.labels["arrivals"]),
        Column("rate", "rate", lambda group: str(group.labels["rate"])),
        *(saved(name) for name in runs.policies if name != reference),
        *(late(name) for name in runs.policies),
    )
    rates = ", ".join(f"{rate:g} at {arrivals}" for arrivals, rate in REPORTED_RATE.items())
    notes = (f"Rate: factor on the published one. At {rates} about as many jobs are there at once as in the thesis.",)
    rows = [group for group in _groups(runs) if group.policy == reference]
    return Table.of(f"Energy saved against {reference}, as the cluster fills", columns, rows, notes)


def _details(runs: Runs) -> Table:
    reference = of.reference_of(runs)
    columns = (*of.places(*LABELS), *of.COSTS, *of.saved_against(reference, "energy", "total"), of.LATE)
    return Table.of("Every rate and policy", columns, _groups(runs))


def _chart(runs: Runs) -> Chart:
    reference = of.reference_of(runs)
    nodes = max(int(n) for n in runs.labels("nodes"))
    others = [name for name in runs.policies if name != reference]
    rows: tuple[list[Panel], ...] = ([], [])
    for arrivals in runs.labels("arrivals"):
        some = runs.where(arrivals=arrivals, nodes=nodes)
        saved = of.lines(some, "rate", lambda g: saving(g.own, g.beside(reference), "energy_eur"), others)
        late = of.lines(some, "rate", lambda g: share(g.own, "late_jobs", "jobs"), runs.policies)
        bands = () if arrivals == MEASURED else (Band(0.38, 0.40, "reported for sts: 38 to 40 %"),)
        unit = "arrival rate / that of default" if arrivals == MEASURED else "arrival rate / published"
        label = f"energy saved against {reference}"
        rows[0].append(Panel(f"{arrivals}", unit, label, _numbers(saved), percent=True, bands=bands))
        rows[1].append(Panel("", unit, "late jobs", _numbers(late), percent=True))
    return Chart(f"What is saved as the cluster fills, {nodes} nodes", tuple(map(tuple, rows)))


def _numbers(drawn: tuple[Series, ...]) -> tuple[Series, ...]:
    """Let rates be numbers, which runs have as texts."""
    return tuple(Series(s.name, tuple((float(x), estimate) for x, estimate in s.points)) for s in drawn)


LOAD = Experiment(
    name="load",
    title="What the saving is at other loads",
    question=(
        "How does what STS saves against EDF depend on the load? The published inputs on 100 nodes with 1,000 jobs, at "
        "multiples of the published rates; and the measured workload at multiples of its own."
    ),
    policies=("edf", "edf-preemptive", "sts", "sts-x"),
    labels=LABELS,
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(Reported("energy cost of STS below EDF and Random Greedy", "38 to 40 % on average", THESIS),),
)
