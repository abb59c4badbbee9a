"""`sts-x` and `agents`: what STS-X and each of its parts save, and a trained agent on workloads that it never saw."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import is_agent
from gpusched_baselines.registry import ablation_names
from gpusched_env.workload import load_scenario
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Chart, Panel, series
from gpusched_experiments.report.estimate import Estimate, mean, pooled_saving, saving, share
from gpusched_experiments.report.experiment import Experiment, Reported, Selection, Size, Sizes
from gpusched_experiments.report.table import COUNT, MILLISECONDS, PERCENT, Column, Table
from gpusched_reproductions.published.workloads import JOBS_PER_NODE, MEASURED, cells_of, listed, published_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.run import Group, Label, Runs
    from gpusched_reproductions.published.workloads import Place

STSX_SIZES = Sizes(full=tuple(Size(n, 20, 20) for n in (10, 20, 50)), quick=(Size(5, 5, 5),))
WORKLOADS = ("high", "exponential", "low", MEASURED)
STSX_LABELS = ("setting", "arrivals", "nodes")
AS_IT_IS = "as they are"
SETTINGS: dict[str, dict[str, object]] = {
    AS_IT_IS: {},
    "restart 0 s": {"restart_s": 0.0},
    "restart 60 s": {"restart_s": 60.0},
    "restart 600 s": {"restart_s": 600.0},
    "due dates half as far": {"due_dates.slack": 0.5},
    "due dates a quarter as far": {"due_dates.slack": 0.25},
}
MORE_JOBS = "four times the jobs"


def _sts_x_cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    """List all sizes with the settings as they are; with other settings, or without a part, the least size alone."""
    cells: list[Cell] = []
    sizes = STSX_SIZES.nodes(choice)
    for setting, arrivals, nodes in product((*SETTINGS, MORE_JOBS), WORKLOADS, sizes):
        if setting != AS_IT_IS and nodes != sizes[0]:
            continue
        labels: dict[str, Label] = {"setting": setting, "arrivals": arrivals, "nodes": nodes}
        jobs_per_node = JOBS_PER_NODE * (4 if setting == MORE_JOBS else 1)
        scenario = published_scenario(arrivals, nodes, jobs_per_node, SETTINGS.get(setting, {}))
        whole = tuple(name for name in policies if name not in ablation_names("sts-x"))
        chosen = policies if setting == AS_IT_IS and nodes == sizes[0] else whole
        cells += cells_of(labels, scenario, choice, chosen, STSX_SIZES)
    return tuple(cells)


def _total_saving(runs: Runs, policy: str, reference: str) -> Estimate:
    """Estimate what a policy saves against the reference, the mean over the scenarios and sizes that it ran on."""
    pairs = [(place.where(policy), place.where(reference)) for place in runs.parts("arrivals", "nodes")]
    return pooled_saving([pair for pair in pairs if len(pair[0])], "total_eur")


def _sts_x_summary(runs: Runs) -> Table:
    reference = of.reference_of(runs, "sts")

    def saved(group: Group) -> Estimate | None:
        if group.policy == reference:
            return None
        return _total_saving(runs.where(None, **group.labels), group.policy, reference)

    columns: tuple[of.GroupColumn, ...] = (
        Column("setting", "setting", lambda group: group.labels["setting"]),
        of.POLICY,
        Column("nodes", "nodes", lambda group: ", ".join(map(str, group.own.labels("nodes")))),
        *of.COSTS,
        Column("total_saving", f"total saved against {reference}", saved, PERCENT, interval=True),
        of.mean_of("late_jobs", "late jobs", COUNT),
        of.SWITCHES,
    )
    notes = (
        "Seeds 0 to 19 were not looked at while the policy was made and tuned (that used seeds from 100 on).",
        "Savings are means over the scenarios and sizes, paired by seed; costs are their sums by seed.",
        "Other settings, and STS-X without one of its parts, are run on the smallest cluster alone.",
    )
    title = "Published and measured workloads and the numbers of nodes, together"
    return Table.of(title, columns, runs.groups("setting"), notes)


def _sts_x_details(runs: Runs) -> Table:
    reference = of.reference_of(runs, "sts")
    columns = (*of.places(*STSX_LABELS), *of.COSTS, *of.saved_against(reference, "total"))
    return Table.of("Every scenario and size", columns, runs.groups(*STSX_LABELS))


def _sts_x_chart(runs: Runs) -> Chart:
    reference = of.reference_of(runs, "sts")
    usual = [name for name in runs.policies if name not in ablation_names("sts-x")]
    others = [name for name in usual if name != reference]
    some = runs.where(setting=AS_IT_IS)
    first = []
    for arrivals in some.labels("arrivals"):
        there = some.where(arrivals=arrivals)
        drawn = of.lines(there, "nodes", lambda g: saving(g.own, g.beside(reference), "total_eur"), others)
        label = f"total cost saved against {reference}"
        first.append(Panel(f"{arrivals} arrivals", "nodes", label, drawn, percent=True))
    parts = [name for name in runs.policies if name not in usual or name == "sts-x"]
    least = some.where(nodes=some.labels("nodes")[0])
    bars = series("saved", ((name, _total_saving(least, name, reference)) for name in parts))
    settings = ((str(s), _total_saving(runs.where(setting=s), "sts-x", reference)) for s in runs.labels("setting"))
    saved = f"saved against {reference}"
    second = (
        Panel("Without one of its parts", "", saved, (bars,), kind="bars", percent=True),
        Panel("Other settings", "", saved, (series("sts-x", settings),), kind="bars", percent=True),
    )
    return Chart("What STS-X saves", (tuple(first), second) if "sts-x" in runs.policies else (tuple(first),))


STS_X = Experiment(
    name="sts-x",
    title="STS-X against STS, and what each of its parts is worth",
    question=(
        "How much cheaper is STS-X than STS, energy and tardiness together, and why? The published inputs at three "
        "arrival rates and the measured ones, 10 to 50 nodes, 10 jobs a node; STS-X as it is and without one of its "
        "parts; and both policies in other settings."
    ),
    policies=("sts", "greedy", "sts-x", *ablation_names("sts-x")),
    labels=STSX_LABELS,
    cells=_sts_x_cells,
    summary=_sts_x_summary,
    details=_sts_x_details,
    chart=_sts_x_chart,
    reported=(
        Reported(
            "planning at full-node rates instead of alone on the node; and over all GPU types too",
            "0 to 21 % saved against STS; up to 27 %",
            "an independent trial: 10 nodes, 60 jobs, 150 to 400 W node base power",
        ),
    ),
)


# Seeds that nobody looks at while agents are trained and tuned, as it is easily done with 0 to 99.
AGENTS_SIZES = Sizes(full=(Size(10, 50, 20), Size(30, 50, 0)), quick=(Size(10, 5, 5),), first_seed=100)
SCENARIOS = ("default", "high", "low", "mixed")
OTHER_GPUS = "published-high"  # run on the least size alone


def _agents_places(sizes: tuple[int, ...]) -> Iterator[Place]:
    for nodes, name in product(sizes, (*SCENARIOS, OTHER_GPUS)):
        if name != OTHER_GPUS or nodes == sizes[0]:
            scenario = load_scenario(name).replace({"cluster.nodes": nodes, "jobs.count": JOBS_PER_NODE * nodes})
            yield {"scenario": name, "nodes": nodes}, scenario, None


def _subjects(runs: Runs) -> list[str]:
    return [name for name in runs.policies if is_agent(name)] or [runs.policies[-1]]


def _agents_groups(runs: Runs) -> Iterator[Group]:
    return runs.groups("nodes", "scenario")


def _saving_of(subject: str) -> of.GroupColumn:
    def value(group: Group) -> Estimate | None:
        return None if group.policy == subject else saving(group.beside(subject), group.own, "total_eur")

    return Column(f"saving_of_{subject}", f"{subject} saves", value, PERCENT, interval=True)


def _decision_s(group: Group) -> Estimate:
    return share(group.own, "decision_s", "jobs")


def _agents_summary(runs: Runs) -> Table:
    columns = (
        *of.places("scenario", "nodes"),
        of.TOTAL,
        of.TARDINESS,
        *map(_saving_of, _subjects(runs)),
        Column("decision_s_per_job", "deciding, a job [ms]", _decision_s, MILLISECONDS, interval=True),
    )
    notes = (
        "Saves: the part of the policy's total cost, over the seeds that both ran on; below 0 it costs more.",
        "Deciding: all the time that the policy took in a run / jobs, while other runs went on beside it.",
    )
    return Table.of("What is saved, scenario by scenario", columns, _agents_groups(runs), notes)


def _agents_details(runs: Runs) -> Table:
    def gap(group: Group) -> Estimate:
        return share(group.own, "total_eur", "clairvoyant_eur").as_saving().as_extra()

    columns = (
        *of.places("scenario", "nodes"),
        *of.COSTS,
        Column("clairvoyant_gap", "above the clairvoyant bound", gap, PERCENT, interval=True),
        of.LATE,
        of.SWITCHES,
        of.mean_of("rounds", "rounds", COUNT),
    )
    return Table.of("Every scenario and number of nodes", columns, _agents_groups(runs))


def _agents_chart(runs: Runs) -> Chart:
    subject = _subjects(runs)[0]
    others = [name for name in runs.policies if name != subject]
    rows: tuple[list[Panel], ...] = ([], [], [])
    for nodes in runs.labels("nodes"):
        some = runs.where(nodes=nodes)
        cost = of.lines(some, "scenario", lambda group: mean(group.own, "total_eur"), runs.policies)
        saved = of.lines(some, "scenario", lambda g: saving(g.beside(subject), g.own, "total_eur"), others)
        times = of.lines(some, "scenario", lambda group: _decision_s(group).times(1000.0), runs.policies)
        title = f"{nodes} nodes, {JOBS_PER_NODE * int(nodes)} jobs"
        rows[0].append(Panel(title, "", "total cost [€]", cost, kind="bars", logarithmic="y"))
        rows[1].append(Panel("", "", f"{subject} saves", saved, kind="bars", percent=True))
        rows[2].append(Panel("", "", "deciding, a job [ms]", times, kind="bars", logarithmic="y"))
    return Chart("A trained agent and reference policies", tuple(map(tuple, rows)))


AGENTS = Experiment(
    name="agents",
    title="A trained agent against reference policies",
    question=(
        "What does an agent that has learnt save, on workloads that neither its training nor its tuning ever saw? The "
        "scenario default and its variants with other arrivals on 10 nodes and, without training again, on 30; and the "
        "published inputs, whose GPUs, jobs, costs and weights it never saw; 10 jobs a node."
    ),
    policies=("edf", "random-greedy", "sts", "sts-x", "agent:default"),
    labels=("scenario", "nodes"),
    cells=listed(AGENTS_SIZES, _agents_places),
    summary=_agents_summary,
    details=_agents_details,
    chart=_agents_chart,
    reported=(),
)
