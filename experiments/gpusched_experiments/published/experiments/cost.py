"""`cost`: what STS saves against Random Greedy and EDF."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_experiments.published.chart import Band, Chart, Panel, series
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.estimate import (
    Estimate,
    mean,
    pooled_saving,
    pooled_share,
    saving,
    share,
)  # fmt: skip
from gpusched_experiments.published.experiment import Experiment
from gpusched_experiments.published.experiments.workloads import ARRIVALS, cells_of, thesis_scenario
from gpusched_experiments.published.reported import PAPER, THESIS, Reported
from gpusched_experiments.published.table import Column, Table
from gpusched_experiments.report.statistics import LEAST_SEEDS

if TYPE_CHECKING:
    from gpusched_experiments.published.cell import Cell
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.published.run import Label, Runs
    from gpusched_experiments.published.table import Value

SIZES = Sizes(
    full=(Size(10, 20, 20), Size(20, 20, 5), Size(50, 20, 1), Size(100, 20, 0)),
    quick=(Size(3, 5, 5), Size(6, 5, 5)),
)
STOCHASTIC = ("sts", "sts-x")  # whose saving is asked for; without them, that of the last policy
REPORTED_ENERGY, REPORTED_TOTAL = "38 to 40 %", "32 to 80 %"
MEAN = "mean of all"


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for arrivals, nodes in product(ARRIVALS, SIZES.nodes(choice)):
        labels: dict[str, Label] = {"arrivals": arrivals, "nodes": nodes}
        cells += cells_of(labels, thesis_scenario(arrivals, nodes), choice, policies, SIZES)
    return tuple(cells)


def _summary(runs: Runs) -> Table:
    """Give the saving of every stochastic policy against every other one, the mean over the sizes."""
    subjects = [name for name in runs.policies if name in STOCHASTIC] or [runs.policies[-1]]
    rows = []
    for subject, other in product(subjects, runs.policies):
        if subject == other or (other in subjects and subjects.index(other) > subjects.index(subject)):
            continue
        theirs = subject == "sts" and other in {"edf", "random-greedy"}
        for arrivals in (*runs.labels("arrivals"), MEAN):
            some = runs if arrivals == MEAN else runs.where(arrivals=arrivals)
            own, against = _groups(some, subject), _groups(some, other)
            pairs = list(zip(own, against, strict=True))
            row: list[Value] = [subject, other, str(arrivals)]
            row += [pooled_saving(pairs, "energy_eur", LEAST_SEEDS), REPORTED_ENERGY if theirs else None]
            row += [pooled_saving(pairs, "total_eur", LEAST_SEEDS), REPORTED_TOTAL if theirs else None]
            row += [_late(pairs, 0), _late(pairs, 1)]
            rows.append(tuple(row))
    return Table(
        "What is saved, the mean over the numbers of nodes",
        (
            Column("policy", "policy"),
            Column("against", "against"),
            Column("arrivals", "arrivals"),
            Column("energy_saving", "energy saved", "percent", interval=True),
            Column("reported_energy_saving", "reported"),
            Column("total_saving", "total cost saved", "percent", interval=True),
            Column("reported_total_saving", "reported"),
            Column("late_share", "late jobs", "share", interval=True),
            Column("late_share_against", "late jobs of the other", "share", interval=True),
        ),
        tuple(rows),
        (
            f"Reported: energy {REPORTED_ENERGY} ({THESIS}), total cost {REPORTED_TOTAL} ({PAPER}).",
            f"Numbers of nodes with fewer than {LEAST_SEEDS} common seeds are left out here, unless all have fewer.",
        ),
    )


def _groups(runs: Runs, policy: str) -> list[Runs]:
    """Give the policy's runs by arrivals and size, in the same order for every policy."""
    places = product(runs.labels("arrivals"), runs.labels("nodes"))
    return [runs.where(policy, arrivals=arrivals, nodes=nodes) for arrivals, nodes in places]


def _late(pairs: list[tuple[Runs, Runs]], whose: int) -> Estimate:
    return pooled_share([pair[whose] for pair in pairs], "late_jobs", "jobs", LEAST_SEEDS)


def _reference(runs: Runs) -> str:
    return "edf" if "edf" in runs.policies else runs.policies[0]


def _details(runs: Runs) -> Table:
    reference = _reference(runs)
    rows = []
    for arrivals, nodes, policy in product(runs.labels("arrivals"), runs.labels("nodes"), runs.policies):
        some = runs.where(policy, arrivals=arrivals, nodes=nodes)
        other = runs.where(reference, arrivals=arrivals, nodes=nodes)
        if not len(some):
            continue
        row: list[Value] = [str(arrivals), nodes, policy, len(some)]
        row += [mean(some, name) for name in ("energy_eur", "tardiness_eur", "total_eur")]
        for name in ("energy_eur", "total_eur"):
            row.append(None if policy == reference else saving(some, other, name))
        rows.append((*row, share(some, "late_jobs", "jobs"), mean(some, "switches")))
    return Table(
        "Every number of nodes",
        (
            Column("arrivals", "arrivals"),
            Column("nodes", "nodes", "count"),
            Column("policy", "policy"),
            Column("seeds", "seeds", "count"),
            Column("energy_eur", "energy €", "money", interval=True),
            Column("tardiness_eur", "tardiness €", "money", interval=True),
            Column("total_eur", "total €", "money", interval=True),
            Column("energy_saving", f"energy saved against {reference}", "percent", interval=True),
            Column("total_saving", f"total saved against {reference}", "percent", interval=True),
            Column("late_share", "late jobs", "share", interval=True),
            Column("switches", "switches", "count", interval=True),
        ),
        tuple(rows),
        ("Savings are over the seeds that both policies ran on; means are over the policy's own.",),
    )


def _chart(runs: Runs) -> Chart:
    reference = _reference(runs)
    first, second, third = [], [], []
    for arrivals in runs.labels("arrivals"):
        nodes = [int(n) for n in runs.labels("nodes")]
        groups = {p: [(n, runs.where(p, arrivals=arrivals, nodes=n)) for n in nodes] for p in runs.policies}
        cost = [series(p, ((n, share(g, "energy_eur", "jobs")) for n, g in of)) for p, of in groups.items()]
        saved = [
            series(p, ((n, saving(g, dict(groups[reference])[n], "energy_eur")) for n, g in of))
            for p, of in groups.items()
            if p != reference
        ]
        late = [series(p, ((n, share(g, "late_jobs", "jobs")) for n, g in of)) for p, of in groups.items()]
        band = Band(0.38, 0.40, "reported for sts: 38 to 40 %")
        bands = (band,) if reference == "edf" and "sts" in groups else ()
        first.append(Panel(f"{arrivals} arrivals", "nodes", "energy cost per job [€]", tuple(cost)))
        saving_label = f"energy saved against {reference}"
        second.append(Panel("", "nodes", saving_label, tuple(saved), percent=True, bands=bands))
        third.append(Panel("", "nodes", "late jobs", tuple(late), percent=True))
    return Chart("Cost against the number of nodes, 10 jobs a node", (tuple(first), tuple(second), tuple(third)))


COST = Experiment(
    name="cost",
    title="Cost of STS against Random Greedy and EDF",
    question=(
        "How much does the stochastic policy save? The thesis's workloads at its arrival rates, 10 jobs a node, and "
        "its cost rule: nothing but the power of busy GPUs is charged (no node base power). Applications, powers and "
        "distributions are the package's own: those behind the reported figures are not public."
    ),
    policies=("edf", "random-greedy", "greedy", "sts", "sts-x"),
    labels=("arrivals", "nodes"),
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(
        Reported(
            "energy cost of STS below Random Greedy and EDF, due dates kept, high, exponential and low arrival rates, "
            "10 to 100 nodes, 10 jobs a node",
            f"{REPORTED_ENERGY} on average",
            THESIS,
        ),
        Reported("total cost of STS below them", REPORTED_TOTAL, PAPER),
    ),
)
