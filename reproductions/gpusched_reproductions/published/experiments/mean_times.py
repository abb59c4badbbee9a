"""`mean-times`: EDF and Random Greedy on mean instead of worst-case execution times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_baselines.registry import POLICIES
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, pooled_saving, pooled_share, share
from gpusched_experiments.report.experiment import THESIS, Experiment, Reported, Size, Sizes
from gpusched_experiments.report.table import MONEY, PERCENT, SHARE, Column, Form, Table
from gpusched_reproductions.published.workloads import published_cells

if TYPE_CHECKING:
    from gpusched_experiments.report.run import Group, Runs

SIZES = Sizes(full=(Size(10, 20, 10), Size(20, 20, 10)), quick=(Size(3, 5, 5), Size(6, 5, 5)))
AGAINST_ITSELF = {
    "energy_saving": "energy saved against its worst-case form",
    "total_saving": "total saved against its worst-case form",
}


def _worst_case(policy: str) -> str | None:
    return POLICIES[policy].worst_case if policy in POLICIES else None


def _plans_on(policy: str) -> str:
    if _worst_case(policy):
        return "mean times"
    return "distribution" if policy.startswith("sts") else "worst case"


def _worst_case_of(runs: Runs, policy: str) -> str | None:
    """Give the worst-case form of a policy, if it has one that ran."""
    name = _worst_case(policy)
    return name if name in runs.policies else None


def _summary(runs: Runs) -> Table:
    places = runs.parts("arrivals", "nodes")

    def runs_of(policy: str) -> list[Runs]:
        return [place.where(policy) for place in places]

    def per_job(name: str, title: str, measured: str, form: Form) -> Column[str]:
        value = lambda policy: pooled_share(runs_of(policy), measured, "jobs", LEAST_SEEDS)  # noqa: E731
        return Column(name, title, value, form, interval=True)

    def saved(name: str, title: str) -> Column[str]:
        def value(policy: str) -> Estimate | None:
            worst_case = _worst_case_of(runs, policy)
            if worst_case is None:
                return None
            pairs = list(zip(runs_of(policy), runs_of(worst_case), strict=True))
            return pooled_saving(pairs, name.replace("_saving", "_eur"), LEAST_SEEDS)

        return Column(name, title, value, PERCENT, interval=True)

    columns: tuple[Column[str], ...] = (
        Column("policy", "policy", str),
        Column("plans_on", "plans on", _plans_on),
        per_job("late_share", "late jobs", "late_jobs", SHARE),
        per_job("tardiness_eur_per_job", "tardiness € per job", "tardiness_eur", MONEY),
        per_job("energy_eur_per_job", "energy € per job", "energy_eur", MONEY),
        *(saved(name, title) for name, title in AGAINST_ITSELF.items()),
        Column("reported", "reported", lambda policy: "due dates missed" if _worst_case(policy) else None),
    )
    return Table.of("All arrival rates and numbers of nodes", columns, runs.policies)


def _details(runs: Runs) -> Table:
    def worst_case(group: Group) -> Runs | None:
        name = _worst_case_of(runs, group.policy)
        return None if name is None else group.beside(name)

    saved = (of.saved(name, title, worst_case) for name, title in AGAINST_ITSELF.items())
    columns = (*of.places("arrivals", "nodes"), of.LATE, of.TARDINESS, of.ENERGY, of.TOTAL, *saved)
    return Table.of("Every arrival rate and number of nodes", columns, runs.groups("arrivals", "nodes"))


def _chart(runs: Runs) -> Chart:
    late: list[Panel] = []
    cost: list[Panel] = []
    for arrivals in runs.labels("arrivals"):
        sizes = {f"{n} nodes": runs.where(arrivals=arrivals, nodes=n) for n in runs.labels("nodes")}
        panels = (("late_jobs", "late jobs", True, late), ("energy_eur", "energy cost per job [€]", False, cost))
        for name, label, percent, panel_row in panels:
            drawn = tuple(
                series(size, ((policy, share(some.where(policy), name, "jobs")) for policy in runs.policies))
                for size, some in sizes.items()
            )
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
    policies=("edf", "edf-mean", "random-greedy", "random-greedy-mean", "random-greedy-conditional-mean", "sts"),
    labels=("arrivals", "nodes"),
    cells=published_cells(SIZES),
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
