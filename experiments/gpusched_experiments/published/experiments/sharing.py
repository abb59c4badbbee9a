"""`sharing`: what sharing GPUs saves."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_env.workload import builtin_gpu_types
from gpusched_experiments.published import columns as of
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.experiment import THESIS, Experiment, Reported
from gpusched_experiments.published.workloads import ARRIVALS, cells_of, thesis_scenario
from gpusched_experiments.report.chart import Band, Chart, Panel
from gpusched_experiments.report.estimate import LEAST_SEEDS, pooled_saving, saving
from gpusched_experiments.report.table import PERCENT, Column, Table

if TYPE_CHECKING:
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.run import Group, Label, Runs

SIZES = Sizes(full=(Size(20, 20, 5),), quick=(Size(5, 5, 5),))
MEMORY = {"12 to 16 GiB": 1.0, "24 to 32 GiB": 2.0, "48 to 64 GiB": 4.0}
FRACTIONS = (0.5, 0.25, 0.125)
OFF = "off"
SHARING: dict[str, dict[str, object]] = {
    OFF: {},
    "inflation to 1.2": {"sharing.fractions": FRACTIONS, "sharing.max_inflation": (1.2,)},
    "inflation to 2": {"sharing.fractions": FRACTIONS, "sharing.max_inflation": (2.0,)},
    "built-in inflation": {"sharing.fractions": FRACTIONS},
    "measured pairs": {"sharing.fractions": FRACTIONS, "sharing.interference": "measured"},
}
LABELS = ("arrivals", "nodes", "memory", "sharing")
REPORTED = "17 to 29 %"


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for arrivals, nodes, memory, sharing in product(ARRIVALS, SIZES.nodes(choice), MEMORY, SHARING):
        labels: dict[str, Label] = {"arrivals": arrivals, "nodes": nodes, "memory": memory, "sharing": sharing}
        scenario = thesis_scenario(arrivals, nodes)
        known = builtin_gpu_types()
        larger = {
            f"cluster.overrides.{name}.memory_gib": known[name].memory_gib * MEMORY[memory]
            for name in scenario.cluster.gpu_types
            if MEMORY[memory] != 1.0
        }
        cells += cells_of(labels, scenario.replace({**larger, **SHARING[sharing]}), choice, policies, SIZES)
    return tuple(cells)


def _ways(runs: Runs) -> list[str]:
    return [str(way) for way in runs.labels("sharing") if way != OFF]


def _summary(runs: Runs) -> Table:
    def saved(name: str, title: str) -> Column[tuple[str, str, Label]]:
        def value(subject: tuple[str, str, Label]) -> Estimate:
            policy, way, memory = subject
            places = [place.where(policy, memory=memory) for place in runs.parts("arrivals", "nodes")]
            pairs = [(place.where(sharing=way), place.where(sharing=OFF)) for place in places]
            return pooled_saving(pairs, name.replace("_saving", "_eur"), LEAST_SEEDS)

        return Column(name, title, value, PERCENT, interval=True)

    columns: tuple[Column[tuple[str, str, Label]], ...] = (
        Column("policy", "policy", lambda subject: subject[0]),
        Column("sharing", "sharing", lambda subject: subject[1]),
        Column("memory", "GPU memory", lambda subject: subject[2]),
        saved("energy_saving", "energy saved by sharing"),
        saved("total_saving", "total cost saved by sharing"),
        Column("reported", "reported", lambda _: REPORTED),
    )
    return Table.of(
        "What sharing saves, the mean over arrival rates and numbers of nodes",
        columns,
        product(runs.policies, _ways(runs), runs.labels("memory")),
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
    rows = []
    largest = max(int(nodes) for nodes in runs.labels("nodes"))
    for way in _ways(runs):

        def saved(group: Group, way: str = way) -> Estimate:
            return saving(group.own.where(sharing=way), group.own.where(sharing=OFF), "energy_eur")

        panels = []
        for arrivals in runs.labels("arrivals"):
            bars = of.lines(runs.where(arrivals=arrivals, nodes=largest), "memory", saved, runs.policies)
            band = Band(0.17, 0.29, "reported: 17 to 29 %")
            title = f"{arrivals} arrivals, {way}"
            panels.append(Panel(title, "", "energy saved", bars, kind="bars", percent=True, bands=(band,)))
        rows.append(tuple(panels))
    return Chart(f"What sharing GPUs saves by GPU memory, {largest} nodes", tuple(rows))


SHARING_EXPERIMENT = Experiment(
    name="sharing",
    title="GPU sharing on against off",
    question=(
        "How much does it save if small jobs may share a GPU (halves, quarters, eighths, where their memory fits)? "
        "Each policy against itself without sharing, with the GPUs' own memory and with two and four times as much, "
        "and with several models of what sharing does to a job's time: drawn from 1.01 to 1.2 times, or to 2 times, or "
        "from the package's own table (far wider), and measured pairs. The thesis's table is not public."
    ),
    policies=("edf", "greedy", "sts", "sts-x"),
    labels=LABELS,
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(Reported("GPU sharing on, against off, by workload and GPU memory", f"{REPORTED} lower", THESIS),),
)
