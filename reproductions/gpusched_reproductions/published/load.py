"""`load` and `sharing`: what STS saves as the cluster fills, down to where it loses, and what sharing GPUs saves."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_env.workload import Scenario, load_scenario
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Band, Chart, Panel, Series
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, pooled_saving, pooled_share, saving, share
from gpusched_experiments.report.experiment import THESIS, Experiment, Reported, Size, Sizes, beside_reported
from gpusched_experiments.report.table import COUNT, PERCENT, SHARE, Column, Table
from gpusched_reproductions.published.cost import REPORTED_ENERGY
from gpusched_reproductions.published.workloads import (
    ARRIVALS,
    JOBS_PER_NODE,
    MEASURED,
    cells_of,
    listed,
    published_scenario,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.experiment import Selection
    from gpusched_experiments.report.run import Group, Label, Runs
    from gpusched_reproductions.published.workloads import Place

LOAD_SIZES = Sizes(full=(Size(100, 20, 5),), quick=(Size(5, 5, 1),))
RATES = {
    "high": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    "exponential": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0),
    "low": (0.5, 1.0, 1.5, 2.0, 2.5, 4.0),
    MEASURED: (0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
}
"""Factors on the published rates, and on that of the scenario default."""
REPORTED_RATE = {"high": 2.5, "exponential": 1.5, "low": 2.5}
"""Where about as many jobs are there at once as the thesis names."""
OF_THESIS = ("random-greedy", "sts:published", "sts:ipopt")
"""Policies that run at these rates alone: the thesis's baseline, and both halves of its method."""
ALL_THREE = "mean of the three"
LOAD_LABELS = ("arrivals", "rate", "nodes")


def _load_places(sizes: tuple[int, ...]) -> Iterator[Place]:
    for nodes, arrivals in product(sizes, RATES):
        for rate in RATES[arrivals]:
            scenario = published_scenario(arrivals, nodes, settings={"arrivals.rate": rate})
            yield {"arrivals": arrivals, "rate": rate, "nodes": nodes}, scenario, None


def _load_cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for labels, scenario, change in _load_places(LOAD_SIZES.nodes(choice)):
        of_thesis = labels["rate"] == REPORTED_RATE.get(str(labels["arrivals"]))
        asked = policies if of_thesis else tuple(name for name in policies if name not in OF_THESIS)
        cells += cells_of(labels, scenario, choice, asked, LOAD_SIZES, change)
    return tuple(cells)


def _load_groups(runs: Runs) -> list[Group]:
    return [g for arrivals in runs.labels("arrivals") for g in runs.where(arrivals=arrivals).groups(*LOAD_LABELS)]


def _load_summary(runs: Runs) -> Table:
    """Return for every rate what STS and the others save against EDF, and who is late."""
    reference = of.reference_of(runs)
    names = [name for name in runs.policies if name not in OF_THESIS]

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
        *(saved(name) for name in names if name != reference),
        *(late(name) for name in names),
    )
    rates = ", ".join(f"{rate:g} at {arrivals}" for arrivals, rate in REPORTED_RATE.items())
    notes = (f"Rate: factor on the published one. At {rates} about as many jobs are there at once as in the thesis.",)
    rows = [group for group in _load_groups(runs) if group.policy == reference]
    return Table.of(f"Energy saved against {reference}, as the cluster fills", columns, rows, notes)


def _thesis_table(runs: Runs) -> Table:
    """Return what every policy saves against EDF and Random Greedy at the thesis's rates, and who is late."""
    places = {arrivals: [runs.where(arrivals=arrivals, rate=rate)] for arrivals, rate in REPORTED_RATE.items()}
    places = {arrivals: own for arrivals, own in places.items() if len(own[0])}
    groups = places | {ALL_THREE: [own for each in places.values() for own in each]}

    def saved(against: str) -> Column[tuple[str, str]]:
        def value(row: tuple[str, str]) -> Estimate | None:
            if row[1] == against:
                return None
            pairs = [(own.where(row[1]), own.where(against)) for own in groups[row[0]]]
            return pooled_saving(pairs, "energy_eur")

        return Column(f"saving_against_{against}", f"energy saved against {against}", value, PERCENT, interval=True)

    def late(row: tuple[str, str]) -> Estimate:
        return pooled_share([own.where(row[1]) for own in groups[row[0]]], "late_jobs", "jobs")

    columns: tuple[Column[tuple[str, str]], ...] = (
        Column("arrivals", "arrivals", lambda row: row[0]),
        Column("rate", "rate", lambda row: f"{REPORTED_RATE[row[0]]:g}" if row[0] in REPORTED_RATE else ""),
        Column("policy", "policy", lambda row: row[1]),
        Column("seeds", "seeds", lambda row: len(groups[row[0]][0].where(row[1])), COUNT),
        *(saved(name) for name in ("edf", "random-greedy") if name in runs.policies),
        Column("late_share", "late jobs", late, SHARE, interval=True),
        Column("reported", "reported", lambda row: REPORTED_ENERGY if row == (ALL_THREE, "sts:ipopt") else None),
    )
    notes = (
        "random-greedy, sts:published and sts:ipopt run at these rates alone; savings are over common seeds.",
        "sts:ipopt has the published solver, sts:published the published rank of GPU types with an exact solver.",
    )
    rows = [(name, policy) for name in groups for policy in runs.policies if len(places)]
    return Table.of("With as many jobs at once as in the thesis", columns, rows, notes)


def _load_details(runs: Runs) -> Table:
    reference = of.reference_of(runs)
    columns = (*of.places(*LOAD_LABELS), *of.COSTS, *of.saved_against(reference, "energy", "total"), of.LATE)
    return Table.of("Every rate and policy", columns, _load_groups(runs))


def _load_chart(runs: Runs) -> Chart:
    reference = of.reference_of(runs)
    nodes = max(int(n) for n in runs.labels("nodes"))
    names = [name for name in runs.policies if name not in OF_THESIS]
    others = [name for name in names if name != reference]
    rows: tuple[list[Panel], ...] = ([], [])
    for arrivals in runs.labels("arrivals"):
        some = runs.where(arrivals=arrivals, nodes=nodes)
        saved = of.lines(some, "rate", lambda g: saving(g.own, g.beside(reference), "energy_eur"), others)
        late = of.lines(some, "rate", lambda g: share(g.own, "late_jobs", "jobs"), names)
        bands = () if arrivals == MEASURED else (Band(0.38, 0.40, "reported for sts: 38 to 40 %"),)
        unit = "arrival rate / that of default" if arrivals == MEASURED else "arrival rate / published"
        label = f"energy saved against {reference}"
        rows[0].append(Panel(f"{arrivals}", unit, label, _numbers(saved), percent=True, bands=bands))
        rows[1].append(Panel("", unit, "late jobs", _numbers(late), percent=True))
    return Chart(f"What is saved as the cluster fills, {nodes} nodes", tuple(zip(*rows, strict=True)))


def _numbers(drawn: tuple[Series, ...]) -> tuple[Series, ...]:
    return tuple(Series(s.name, tuple((float(x), estimate) for x, estimate in s.points)) for s in drawn)


LOAD = Experiment(
    name="load",
    title="What the saving is at other loads",
    question=(
        "How does what STS saves against EDF depend on the load? The published inputs on 100 nodes with 1,000 jobs, at "
        "multiples of the published rates; and the measured workload at multiples of its own. Where as many jobs are "
        "there at once as in the thesis (400, 200 and 100), Random Greedy and the published solver run too."
    ),
    policies=("edf", "edf:preemptive", "random-greedy", "sts", "sts:published", "sts:ipopt", "sts-x"),
    labels=LOAD_LABELS,
    cells=_load_cells,
    summary=_load_summary,
    verdict=beside_reported(("policy", "arrivals"), "saving_against_edf", "energy saved against EDF"),
    details=_load_details,
    chart=_load_chart,
    reported=(Reported("energy cost of STS below EDF and Random Greedy", f"{REPORTED_ENERGY} on average", THESIS),),
    more={"thesis": _thesis_table},
)


SHARING_SIZES = Sizes(full=(Size(20, 20, 5),), quick=(Size(5, 5, 5),))
OFF, DRAWN, PAIRS = "off", "inflation drawn", "measured pairs"
MEMORY = {"24 and 16 GiB": "published-sharing", "80 GiB": "published-sharing-a100"}
"""The published variants, and the scenarios that have them: halves and quarters; 15 and 10 per cent of a K80."""
SMALL = "16 and 40 GiB"  # V100, T4 and A100, with small measured jobs
SHARING_LABELS = ("arrivals", "nodes", "memory", "sharing")
SHARING_REPORTED = "17 to 29 %"


def _sharing_places(sizes: tuple[int, ...]) -> Iterator[Place]:
    for arrivals, nodes, memory in product(ARRIVALS, sizes, MEMORY):
        rule = published_scenario(arrivals, nodes).arrivals
        scenario = load_scenario(MEMORY[memory]).replace({"arrivals": rule, "cluster.nodes": nodes})
        yield from _with_and_without(scenario, arrivals, nodes, memory, (OFF, DRAWN))
    for nodes in sizes:
        scenario = load_scenario("sharing").replace({"cluster.nodes": nodes})
        yield from _with_and_without(scenario, MEASURED, nodes, SMALL, (OFF, DRAWN, PAIRS))


def _with_and_without(
    scenario: Scenario, arrivals: str, nodes: int, memory: str, ways: tuple[str, ...]
) -> Iterator[Place]:
    values: dict[str, dict[str, object]] = {OFF: {"sharing": {}}, PAIRS: {"sharing.interference": "measured"}}
    for way in ways:
        offered = scenario.replace({"jobs.count": JOBS_PER_NODE * nodes, **values.get(way, {})})
        yield {"arrivals": arrivals, "nodes": nodes, "memory": memory, "sharing": way}, offered, None


def _ways(runs: Runs) -> list[str]:
    return [str(way) for way in runs.labels("sharing") if way != OFF]


def _sharing_summary(runs: Runs) -> Table:
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
        Column("reported", "reported", lambda subject: SHARING_REPORTED if subject[2] != SMALL else None),
    )
    return Table.of(
        "What sharing saves, the mean over arrival rates and numbers of nodes",
        columns,
        [
            (policy, way, memory)
            for policy, way, memory in product(runs.policies, _ways(runs), runs.labels("memory"))
            if len(runs.where(policy, memory=memory, sharing=way))
        ],
        (f"Reported: {SHARING_REPORTED} lower, by workload and GPU memory ({THESIS}).",),
    )


def _sharing_details(runs: Runs) -> Table:
    def off(group: Group) -> Runs | None:
        return None if group.labels["sharing"] == OFF else group.beside(sharing=OFF)

    columns = (
        *of.places(*SHARING_LABELS),
        *of.COSTS,
        of.saved("energy_saving", "energy saved by sharing", off),
        of.saved("total_saving", "total saved by sharing", off),
        of.LATE,
    )
    return Table.of("Every workload", columns, runs.groups(*SHARING_LABELS))


def _sharing_chart(runs: Runs) -> Chart:
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
        results = tuple(Series(s.name, tuple(point for point in s.points if point[0] != OFF)) for s in bars)
        bands = (band,) if memory in MEMORY else ()
        title = f"published, {memory}" if memory in MEMORY else f"{MEASURED}, {memory}"
        panels.append(Panel(title, "", "energy saved by sharing", results, kind="bars", percent=True, bands=bands))
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
    labels=SHARING_LABELS,
    cells=listed(SHARING_SIZES, _sharing_places),
    summary=_sharing_summary,
    verdict=beside_reported(("policy", "sharing", "memory"), "total_saving", "total cost saved by sharing"),
    details=_sharing_details,
    chart=_sharing_chart,
    reported=(
        Reported("GPU sharing on, against off, by workload and GPU memory", f"{SHARING_REPORTED} lower", THESIS),
    ),
)
