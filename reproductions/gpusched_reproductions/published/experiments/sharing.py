"""`sharing`: what sharing GPUs saves."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_env.workload import load_scenario
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Band, Chart, Panel, Series
from gpusched_experiments.report.estimate import LEAST_SEEDS, pooled_saving, saving
from gpusched_experiments.report.experiment import THESIS, Experiment, Reported, Size, Sizes
from gpusched_experiments.report.table import PERCENT, Column, Table
from gpusched_reproductions.published.workloads import ARRIVALS, JOBS_PER_NODE, MEASURED, cells_of, published_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.workload import Scenario
    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.experiment import Choice
    from gpusched_experiments.report.run import Group, Label, Runs

SIZES = Sizes(full=(Size(20, 20, 5),), quick=(Size(5, 5, 5),))
OFF, DRAWN, PAIRS = "off", "inflation drawn", "measured pairs"
MEMORY = {"24 and 16 GiB": "published-sharing", "80 GiB": "published-sharing-a100"}
"""The published variants, and the scenarios that have them: halves and quarters; 15 and 10 per cent of a K80."""
SMALL = "16 and 40 GiB"  # V100, T4 and A100, with small measured jobs
LABELS = ("arrivals", "nodes", "memory", "sharing")
REPORTED = "17 to 29 %"


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for arrivals, nodes, memory in product(ARRIVALS, SIZES.nodes(choice), MEMORY):
        rule = published_scenario(arrivals, nodes).arrivals
        scenario = load_scenario(MEMORY[memory]).replace({"arrivals": rule, "cluster.nodes": nodes})
        cells += _with_and_without(scenario, arrivals, nodes, memory, (OFF, DRAWN), choice, policies)
    for nodes in SIZES.nodes(choice):
        scenario = load_scenario("sharing").replace({"cluster.nodes": nodes})
        cells += _with_and_without(scenario, MEASURED, nodes, SMALL, (OFF, DRAWN, PAIRS), choice, policies)
    return tuple(cells)


def _with_and_without(
    scenario: Scenario,
    arrivals: str,
    nodes: int,
    memory: str,
    ways: tuple[str, ...],
    choice: Choice,
    policies: tuple[str, ...],
) -> Iterator[Cell]:
    """List the runs of a workload with sharing in several ways."""
    values: dict[str, dict[str, object]] = {
        OFF: {"sharing": {}},
        DRAWN: {},
        PAIRS: {"sharing.interference": "measured"},
    }
    for way in ways:
        labels: dict[str, Label] = {"arrivals": arrivals, "nodes": nodes, "memory": memory, "sharing": way}
        offered = scenario.replace({"jobs.count": JOBS_PER_NODE * nodes, **values[way]})
        yield from cells_of(labels, offered, choice, policies, SIZES)


def _ways(runs: Runs) -> list[str]:
    return [str(way) for way in runs.labels("sharing") if way != OFF]


def _summary(runs: Runs) -> Table:
    def saved(name: str, title: str) -> Column[tuple[str, str, Label]]:
        def value(subject: tuple[str, str, Label]) -> Estimate:
            policy, way, memory = subject
            places = [place.where(policy, memory=memory) for place in runs.parts("arrivals", "nodes")]
            pairs = [(place.where(sharing=way), place.where(sharing=OFF)) for place in places if len(place)]
            return pooled_saving(pairs, name.replace("_saving", "_eur"), LEAST_SEEDS)

        return Column(name, title, value, PERCENT, interval=True)

    columns: tuple[Column[tuple[str, str, Label]], ...] = (
        Column("policy", "policy", lambda subject: subject[0]),
        Column("sharing", "sharing", lambda subject: subject[1]),
        Column("memory", "GPU memory", lambda subject: subject[2]),
        saved("energy_saving", "energy saved by sharing"),
        saved("total_saving", "total cost saved by sharing"),
        Column("reported", "reported", lambda subject: REPORTED if subject[2] != SMALL else None),
    )
    return Table.of(
        "What sharing saves, the mean over arrival rates and numbers of nodes",
        columns,
        [
            (policy, way, memory)
            for policy, way, memory in product(runs.policies, _ways(runs), runs.labels("memory"))
            if len(runs.where(policy, memory=memory, sharing=way))
        ],
        (f"Reported: {REPORTED} lower, by workload and GPU memory ({THESIS}).",),
    )


def _details(runs: Runs) -> Table:
    def off(group: Group) -> Runs | None:
        return None if group.labels["sharing"] == OFF else group.beside(sharing=OFF)

    columns = (
        *of.places(*LABELS),
        *of.COSTS,
        of.saved("energy_saving", "energy saved by sharing", off),
        of.saved("total_saving", "total saved by sharing", off),
        of.LATE,
    )
    return Table.of("Every workload", columns, runs.groups(*LABELS))


def _chart(runs: Runs) -> Chart:
    largest = max(int(nodes) for nodes in runs.labels("nodes"))

    def saved(group: Group) -> Estimate:
        off = runs.where(group.policy, nodes=largest, memory=group.own.labels("memory")[0], sharing=OFF)
        return saving(group.own, off.where(arrivals=group.own.labels("arrivals")[0]), "energy_eur")

    band = Band(0.17, 0.29, "reported: 17 to 29 %")
    panels = []
    for memory in (*MEMORY, SMALL):
        some = runs.where(nodes=largest, memory=memory)
        along = "arrivals" if memory in MEMORY else "sharing"
        bars = of.lines(some.where(sharing=DRAWN) if memory in MEMORY else some, along, saved, runs.policies)
        shown = tuple(Series(s.name, tuple(point for point in s.points if point[0] != OFF)) for s in bars)
        bands = (band,) if memory in MEMORY else ()
        title = f"published, {memory}" if memory in MEMORY else f"{MEASURED}, {memory}"
        panels.append(Panel(title, "", "energy saved by sharing", shown, kind="bars", percent=True, bands=bands))
    return Chart(f"What sharing GPUs saves, {largest} nodes", (tuple(panels),), (4.2, 3.2))


SHARING_EXPERIMENT = Experiment(
    name="sharing",
    title="GPU sharing on against off",
    question=(
        "How much does it save if small jobs may share a GPU? Each policy against itself without sharing, on the "
        "published inputs with the published fractions and inflations: halves and quarters of 24 and 16 GiB, and 15 "
        "and 10 per cent of 80 GiB. What is left of a shared GPU goes to a job there (the published last step). Beside "
        "them small measured jobs, with the package's own inflations, far wider, and with measured pairs."
    ),
    policies=("edf", "greedy", "sts", "sts-x"),
    labels=LABELS,
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(Reported("GPU sharing on, against off, by workload and GPU memory", f"{REPORTED} lower", THESIS),),
)
