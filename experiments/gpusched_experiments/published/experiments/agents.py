"""`agents`: what a trained agent saves against reference policies, on workloads that it never saw."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from gpusched_agents.any_policy import is_agent
from gpusched_env.workload import load_scenario
from gpusched_experiments.published.chart import Chart, Panel, series
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.estimate import mean, saving, share
from gpusched_experiments.published.experiment import Experiment
from gpusched_experiments.published.experiments.workloads import ARRIVALS, JOBS_PER_NODE, cells_of
from gpusched_experiments.published.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusched_experiments.published.cell import Cell
    from gpusched_experiments.published.chart import Series
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.published.estimate import Estimate
    from gpusched_experiments.published.run import Label, Runs
    from gpusched_experiments.published.table import Value

# Seeds that nobody looks at while agents are trained and tuned, as it is easily done with 0 to 99.
SIZES = Sizes(full=(Size(10, 50, 50), Size(30, 50, 0)), quick=(Size(10, 5, 5),), first_seed=100)
OTHER_GPUS = "default"  # run on the least size alone


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    sizes = SIZES.nodes(choice)
    for nodes, name in product(sizes, (*ARRIVALS, OTHER_GPUS)):
        if name == OTHER_GPUS and nodes != sizes[0]:
            continue
        labels: dict[str, Label] = {"scenario": name, "nodes": nodes}
        scenario = load_scenario(name).replace({"cluster.nodes": nodes, "jobs.count": JOBS_PER_NODE * nodes})
        cells += cells_of(labels, scenario, choice, policies, SIZES)
    return tuple(cells)


def _subjects(runs: Runs) -> list[str]:
    """Name the policies whose saving is asked for: the agents; without any, the last policy."""
    return [name for name in runs.policies if is_agent(name)] or [runs.policies[-1]]


def _groups(runs: Runs) -> list[tuple[Label, Label, Runs]]:
    """Give the runs of every scenario and number of nodes."""
    places = product(runs.labels("nodes"), runs.labels("scenario"))
    each = [(name, nodes, runs.where(scenario=name, nodes=nodes)) for nodes, name in places]
    return [group for group in each if len(group[2])]


def _summary(runs: Runs) -> Table:
    subjects = _subjects(runs)
    rows = []
    for scenario, nodes, group in _groups(runs):
        for policy in group.policies:
            own = group.where(policy)
            row: list[Value] = [
                str(scenario),
                nodes,
                policy,
                len(own),
                mean(own, "total_eur"),
                mean(own, "tardiness_eur"),
            ]
            row += [None if name == policy else saving(group.where(name), own, "total_eur") for name in subjects]
            rows.append((*row, share(own, "decision_s", "jobs")))
    return Table(
        "What is saved, scenario by scenario",
        (
            Column("scenario", "scenario"),
            Column("nodes", "nodes", "count"),
            Column("policy", "policy"),
            Column("seeds", "seeds", "count"),
            Column("total_eur", "total €", "money", interval=True),
            Column("tardiness_eur", "tardiness €", "money", interval=True),
            *(Column(f"saving_of_{name}", f"{name} saves", "percent", interval=True) for name in subjects),
            Column("decision_s_per_job", "deciding, a job [ms]", "milliseconds", interval=True),
        ),
        tuple(rows),
        (
            "Saves: the part of the policy's total cost, over the seeds that both ran on; below 0 it costs more.",
            "Deciding: all the time that the policy took in a run / jobs, while other runs went on beside it.",
        ),
    )


def _details(runs: Runs) -> Table:
    rows = []
    for scenario, nodes, group in _groups(runs):
        for policy in group.policies:
            own = group.where(policy)
            row: list[Value] = [str(scenario), nodes, policy, len(own)]
            row += [mean(own, cost) for cost in ("energy_eur", "tardiness_eur", "total_eur")]
            row += [share(own, "total_eur", "clairvoyant_eur").as_saving().as_extra(), share(own, "late_jobs", "jobs")]
            rows.append((*row, mean(own, "switches"), mean(own, "rounds")))
    return Table(
        "Every scenario and number of nodes",
        (
            Column("scenario", "scenario"),
            Column("nodes", "nodes", "count"),
            Column("policy", "policy"),
            Column("seeds", "seeds", "count"),
            Column("energy_eur", "energy €", "money", interval=True),
            Column("tardiness_eur", "tardiness €", "money", interval=True),
            Column("total_eur", "total €", "money", interval=True),
            Column("clairvoyant_gap", "above the clairvoyant bound", "percent", interval=True),
            Column("late_share", "late jobs", "share", interval=True),
            Column("switches", "switches", "count", interval=True),
            Column("rounds", "rounds", "count", interval=True),
        ),
        tuple(rows),
    )


def _chart(runs: Runs) -> Chart:
    subject = _subjects(runs)[0]
    others = [name for name in runs.policies if name != subject]
    costs, savings, times = [], [], []
    for nodes in runs.labels("nodes"):
        groups = [(str(name), group) for name, size, group in _groups(runs) if size == nodes]
        cost = _bars(groups, runs.policies, lambda own, _: mean(own, "total_eur"))
        saved = _bars(groups, others, lambda own, all_: saving(all_.where(subject), own, "total_eur"))
        time = _bars(groups, runs.policies, lambda own, _: share(own, "decision_s", "jobs").times(1000.0))
        title = f"{nodes} nodes, {JOBS_PER_NODE * int(nodes)} jobs"
        costs.append(Panel(title, "", "total cost [€]", cost, kind="bars", logarithmic="y"))
        savings.append(Panel("", "", f"{subject} saves", saved, kind="bars", percent=True))
        times.append(Panel("", "", "deciding, a job [ms]", time, kind="bars", logarithmic="y"))
    return Chart("A trained agent and reference policies", (tuple(costs), tuple(savings), tuple(times)))


def _bars(
    groups: Sequence[tuple[str, Runs]], policies: Sequence[str], estimate: Callable[[Runs, Runs], Estimate]
) -> tuple[Series, ...]:
    """Make bars of every policy, from its own runs and all runs of each group."""
    return tuple(
        series(policy, ((name, estimate(group.where(policy), group)) for name, group in groups)) for policy in policies
    )


AGENTS = Experiment(
    name="agents",
    title="A trained agent against reference policies",
    question=(
        "What does an agent that has learnt save, on workloads that neither its training nor its tuning ever saw? The "
        "thesis's four arrival scenarios and the default one on 10 nodes, and the four on 30 nodes without training "
        "again; 10 jobs a node, nodes with the base power of their types."
    ),
    policies=("edf", "random-greedy", "sts", "sts-x", "agent:default"),
    labels=("scenario", "nodes"),
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(),
)
