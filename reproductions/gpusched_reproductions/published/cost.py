"""`cost` and `mean-times`: what STS saves against Random Greedy and EDF, and whether mean times would be enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from operator import attrgetter

from gpusched_baselines.registry import POLICIES
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Band, Chart, Panel, series
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, pooled_saving, pooled_share, saving, share
from gpusched_experiments.report.experiment import PAPER, THESIS, Experiment, Reported, Size, Sizes, beside_reported
from gpusched_experiments.report.run import Group, Runs
from gpusched_experiments.report.table import MONEY, PERCENT, SHARE, Column, Form, Table
from gpusched_reproductions.published.workloads import MEASURED, listed, published_places

COST_SIZES = Sizes(
    full=(Size(10, 20, 20), Size(20, 20, 10), Size(50, 20, 5), Size(100, 20, 5)),
    quick=(Size(3, 5, 5), Size(6, 5, 5)),
)
STOCHASTIC = ("sts", "sts-x")  # whose saving is asked for; without them, that of the last policy
REPORTED_ENERGY, REPORTED_TOTAL = "38 to 40 %", "32 to 80 %"
MEAN = "mean of the published"


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """The runs of a policy and of another one at some arrivals, by size, and whether their saving was reported."""

    policy: str
    other: str
    arrivals: str
    own: list[Runs]
    others: list[Runs]

    @property
    def reported(self) -> bool:
        return self.policy == "sts" and self.other in {"edf", "random-greedy"} and self.arrivals != MEASURED


def _pairs(runs: Runs) -> Iterator[_Pair]:
    subjects = [name for name in runs.policies if name in STOCHASTIC] or [runs.policies[-1]]
    for subject, other in product(subjects, runs.policies):
        if subject == other or (other in subjects and subjects.index(other) > subjects.index(subject)):
            continue
        known = [str(arrivals) for arrivals in runs.labels("arrivals")]
        published = [arrivals for arrivals in known if arrivals != MEASURED]
        for arrivals in (*published, *([MEAN] if published else []), *(name for name in known if name == MEASURED)):
            chosen = published if arrivals == MEAN else [arrivals]
            places = [part for each in chosen for part in runs.where(arrivals=each).parts("nodes")]
            own, others = ([place.where(policy) for place in places] for policy in (subject, other))
            yield _Pair(subject, other, arrivals, own, others)


def _cost_saved(name: str, title: str, cost: str) -> Column[_Pair]:
    def value(pair: _Pair) -> Estimate:
        return pooled_saving(list(zip(pair.own, pair.others, strict=True)), cost, LEAST_SEEDS)

    return Column(name, title, value, PERCENT, interval=True)


def _reported(name: str, figure: str) -> Column[_Pair]:
    return Column(name, "reported", lambda pair: figure if pair.reported else None)


def _late(name: str, title: str, whose: str) -> Column[_Pair]:
    runs = attrgetter(whose)
    return Column(
        name, title, lambda pair: pooled_share(runs(pair), "late_jobs", "jobs", LEAST_SEEDS), SHARE, interval=True
    )


def _cost_summary(runs: Runs) -> Table:
    """Return the saving of every stochastic policy against every other one, the mean over the sizes."""
    columns = (
        Column("policy", "policy", attrgetter("policy")),
        Column("against", "against", attrgetter("other")),
        Column("arrivals", "arrivals", attrgetter("arrivals")),
        _cost_saved("energy_saving", "energy saved", "energy_eur"),
        _reported("reported_energy_saving", REPORTED_ENERGY),
        _cost_saved("total_saving", "total cost saved", "total_eur"),
        _reported("reported_total_saving", REPORTED_TOTAL),
        _late("late_share", "late jobs", "own"),
        _late("late_share_against", "late jobs of the other", "others"),
    )
    notes = (
        f"Reported: energy {REPORTED_ENERGY} ({THESIS}), total cost {REPORTED_TOTAL} ({PAPER}).",
        f"Numbers of nodes with fewer than {LEAST_SEEDS} common seeds are left out here, unless all have fewer.",
    )
    return Table.of("What is saved, the mean over the numbers of nodes", columns, _pairs(runs), notes)


def _cost_verdict(summary: Table) -> tuple[str, ...]:
    """Return what STS saves here beside what was reported, over the published arrivals."""
    said = []
    for row, texts in zip(summary.as_dicts(), summary.texts(), strict=True):
        shown = dict(zip(row, texts, strict=True))
        if row["arrivals"] == MEAN and row["reported_energy_saving"]:
            said.append(
                f"{shown['policy']} against {shown['against']}: energy saved here {shown['energy_saving']}, reported "
                f"{REPORTED_ENERGY}; total cost here {shown['total_saving']}, reported {REPORTED_TOTAL}; late jobs "
                f"{shown['late_share']} against {shown['late_share_against']}."
            )
    return tuple(said)


def _cost_details(runs: Runs) -> Table:
    reference = of.reference_of(runs)
    saved = of.saved_against(reference, "energy", "total")
    columns = (*of.places("arrivals", "nodes"), *of.COSTS, *saved, of.LATE, of.SWITCHES)
    notes = ("Savings are over the seeds that both policies ran on; means are over the policy's own.",)
    return Table.of("Every number of nodes", columns, runs.groups("arrivals", "nodes"), notes)


def _cost_chart(runs: Runs) -> Chart:
    reference = of.reference_of(runs)
    others = [name for name in runs.policies if name != reference]
    band = Band(0.38, 0.40, "reported for sts: 38 to 40 %")
    rows: list[tuple[Panel, ...]] = []
    for arrivals in runs.labels("arrivals"):
        some = runs.where(arrivals=arrivals)
        cost = of.lines(some, "nodes", lambda group: share(group.own, "energy_eur", "jobs"), runs.policies)
        saved = of.lines(some, "nodes", lambda g: saving(g.own, g.beside(reference), "energy_eur"), others)
        late = of.lines(some, "nodes", lambda group: share(group.own, "late_jobs", "jobs"), runs.policies)
        bands = (band,) if reference == "edf" and "sts" in runs.policies and arrivals != MEASURED else ()
        most = max(0.01, 1.3 * max(estimate.value for line in late for _, estimate in line.points))
        rows.append(
            (
                Panel(f"{arrivals} arrivals", "nodes", "energy cost per job [€]", cost),
                Panel("", "nodes", f"energy saved against {reference}", saved, percent=True, bands=bands),
                Panel("", "nodes", "late jobs", late, percent=True, y_range=(0.0, most)),
            )
        )
    return Chart("Cost against the number of nodes, 10 jobs a node", tuple(rows))


COST = Experiment(
    name="cost",
    title="Cost of STS against Random Greedy and EDF",
    question=(
        "How much does the stochastic policy save? The published inputs at the published arrival rates, 10 jobs a "
        "node; and the package's measured workload (scenario default). edf:preemptive is EDF that places "
        "all jobs again in every round, as STS does."
    ),
    policies=("edf", "edf:preemptive", "greedy", "random-greedy", "sts", "sts-x"),
    labels=("arrivals", "nodes"),
    cells=listed(COST_SIZES, published_places),
    summary=_cost_summary,
    verdict=_cost_verdict,
    details=_cost_details,
    chart=_cost_chart,
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


MEAN_SIZES = Sizes(full=(Size(10, 20, 10), Size(20, 20, 10)), quick=(Size(3, 5, 5), Size(6, 5, 5)))
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
    name = _worst_case(policy)
    return name if name in runs.policies else None


def _mean_times_summary(runs: Runs) -> Table:
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


def _mean_times_details(runs: Runs) -> Table:
    def worst_case(group: Group) -> Runs | None:
        name = _worst_case_of(runs, group.policy)
        return None if name is None else group.beside(name)

    saved = (of.saved(name, title, worst_case) for name, title in AGAINST_ITSELF.items())
    columns = (*of.places("arrivals", "nodes"), of.LATE, of.TARDINESS, of.ENERGY, of.TOTAL, *saved)
    return Table.of("Every arrival rate and number of nodes", columns, runs.groups("arrivals", "nodes"))


def _mean_times_chart(runs: Runs) -> Chart:
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
    return Chart("Planning on mean or on worst-case times", tuple(zip(late, cost, strict=True)))


MEAN_TIMES = Experiment(
    name="mean-times",
    title="Planning on mean times",
    question=(
        "Would it be enough to plan on mean execution times? EDF and Random Greedy on the times of the mean epochs "
        "instead of all epochs, on the workloads of the experiment cost; beside them STS, which uses the whole "
        "distribution."
    ),
    policies=("edf", "edf:mean", "random-greedy", "random-greedy:mean", "random-greedy:conditional-mean", "sts"),
    labels=("arrivals", "nodes"),
    cells=listed(MEAN_SIZES, published_places),
    summary=_mean_times_summary,
    verdict=beside_reported(("policy",), "late_share", "late jobs"),
    details=_mean_times_details,
    chart=_mean_times_chart,
    reported=(
        Reported(
            "RG and EDF on mean instead of worst-case times",
            "fail: due dates are missed; a method must use both",
            THESIS,
        ),
    ),
)
