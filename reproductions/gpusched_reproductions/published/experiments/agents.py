"""`agents`: what a trained agent saves against reference policies, on workloads that it never saw."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import is_agent
from gpusched_env.workload import load_scenario
from gpusched_experiments.report import columns as of
from gpusched_experiments.report.chart import Chart, Panel
from gpusched_experiments.report.estimate import mean, saving, share
from gpusched_experiments.report.experiment import Experiment, Size, Sizes
from gpusched_experiments.report.table import COUNT, MILLISECONDS, PERCENT, Column, Table
from gpusched_reproductions.published.workloads import JOBS_PER_NODE, cells_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_experiments.report.cell import Cell
    from gpusched_experiments.report.estimate import Estimate
    from gpusched_experiments.report.experiment import Choice
    from gpusched_experiments.report.run import Group, Label, Runs

# Seeds that nobody looks at while agents are trained and tuned, as it is easily done with 0 to 99.
SIZES = Sizes(full=(Size(10, 50, 20), Size(30, 50, 0)), quick=(Size(10, 5, 5),), first_seed=100)
SCENARIOS = ("default", "high", "low", "mixed")
OTHER_GPUS = "published-high"  # run on the least size alone


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    sizes = SIZES.nodes(choice)
    for nodes, name in product(sizes, (*SCENARIOS, OTHER_GPUS)):
        if name == OTHER_GPUS and nodes != sizes[0]:
            continue
        labels: dict[str, Label] = {"scenario": name, "nodes": nodes}
        scenario = load_scenario(name).replace({"cluster.nodes": nodes, "jobs.count": JOBS_PER_NODE * nodes})
        cells += cells_of(labels, scenario, choice, policies, SIZES)
    return tuple(cells)


def _subjects(runs: Runs) -> list[str]:
    """Name the policies whose saving is asked for: the agents; without any, the last policy."""
    return [name for name in runs.policies if is_agent(name)] or [runs.policies[-1]]


def _groups(runs: Runs) -> Iterator[Group]:
    return runs.groups("nodes", "scenario")


def _saving_of(subject: str) -> of.GroupColumn:
    """Make the column of what a policy saves against each group's."""

    def value(group: Group) -> Estimate | None:
        return None if group.policy == subject else saving(group.beside(subject), group.own, "total_eur")

    return Column(f"saving_of_{subject}", f"{subject} saves", value, PERCENT, interval=True)


def _decision_s(group: Group) -> Estimate:
    return share(group.own, "decision_s", "jobs")


def _summary(runs: Runs) -> Table:
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
    return Table.of("What is saved, scenario by scenario", columns, _groups(runs), notes)


def _details(runs: Runs) -> Table:
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
    return Table.of("Every scenario and number of nodes", columns, _groups(runs))


def _chart(runs: Runs) -> Chart:
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
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(),
)
