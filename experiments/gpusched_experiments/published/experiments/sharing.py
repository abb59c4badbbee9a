"""`sharing`: what sharing GPUs saves."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_env.workload import builtin_gpu_types
from gpusched_experiments.published.chart import Band, Chart, Panel, series
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.estimate import mean, pooled_saving, saving, share
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
    rows = []
    for policy, way, memory in product(runs.policies, _ways(runs), runs.labels("memory")):
        row: list[Value] = [policy, way, str(memory)]
        for name in ("energy_eur", "total_eur"):
            pairs = []
            for arrivals, nodes in product(runs.labels("arrivals"), runs.labels("nodes")):
                group = runs.where(policy, arrivals=arrivals, nodes=nodes, memory=memory)
                pairs.append((group.where(sharing=way), group.where(sharing=OFF)))
            row.append(pooled_saving(pairs, name, LEAST_SEEDS))
        rows.append((*row, REPORTED))
    return Table(
        "What sharing saves, the mean over arrival rates and numbers of nodes",
        (
            Column("policy", "policy"),
            Column("sharing", "sharing"),
            Column("memory", "GPU memory"),
            Column("energy_saving", "energy saved by sharing", "percent", interval=True),
            Column("total_saving", "total cost saved by sharing", "percent", interval=True),
            Column("reported", "reported"),
        ),
        tuple(rows),
        (f"Reported: {REPORTED} lower, by workload and GPU memory ({THESIS}).",),
    )


def _details(runs: Runs) -> Table:
    rows = []
    names = ("arrivals", "nodes", "memory", "sharing")
    for arrivals, nodes, memory, way in product(*(runs.labels(name) for name in names)):
        group = runs.where(arrivals=arrivals, nodes=nodes, memory=memory)
        for policy in runs.policies:
            own, off = group.where(policy, sharing=way), group.where(policy, sharing=OFF)
            row: list[Value] = [str(arrivals), nodes, str(memory), str(way), policy, len(own)]
            row += [mean(own, name) for name in ("energy_eur", "tardiness_eur", "total_eur")]
            row += [None if way == OFF else saving(own, off, name) for name in ("energy_eur", "total_eur")]
            rows.append((*row, share(own, "late_jobs", "jobs")))
    return Table(
        "Every workload",
        (
            Column("arrivals", "arrivals"),
            Column("nodes", "nodes", "count"),
            Column("memory", "GPU memory"),
            Column("sharing", "sharing"),
            Column("policy", "policy"),
            Column("seeds", "seeds", "count"),
            Column("energy_eur", "energy €", "money", interval=True),
            Column("tardiness_eur", "tardiness €", "money", interval=True),
            Column("total_eur", "total €", "money", interval=True),
            Column("energy_saving", "energy saved by sharing", "percent", interval=True),
            Column("total_saving", "total saved by sharing", "percent", interval=True),
            Column("late_share", "late jobs", "share", interval=True),
        ),
        tuple(rows),
    )


def _chart(runs: Runs) -> Chart:
    rows = []
    largest = max(int(nodes) for nodes in runs.labels("nodes"))
    for way in _ways(runs):
        panels = []
        for arrivals in runs.labels("arrivals"):
            bars = []
            for policy in runs.policies:
                points = []
                for memory in runs.labels("memory"):
                    group = runs.where(policy, arrivals=arrivals, nodes=largest, memory=memory)
                    points.append(
                        (str(memory), saving(group.where(sharing=way), group.where(sharing=OFF), "energy_eur"))
                    )
                bars.append(series(policy, points))
            band = Band(0.17, 0.29, "reported: 17 to 29 %")
            title = f"{arrivals} arrivals, {way}"
            panels.append(Panel(title, "", "energy saved", tuple(bars), kind="bars", percent=True, bands=(band,)))
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
    labels=("arrivals", "nodes", "memory", "sharing"),
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(Reported("GPU sharing on, against off, by workload and GPU memory", f"{REPORTED} lower", THESIS),),
)
