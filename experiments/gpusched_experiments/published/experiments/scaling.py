"""`scaling`: how long one decision round takes, and how that grows."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from gpusched_experiments.published.cell import Cell
from gpusched_experiments.published.chart import Chart, Panel, series
from gpusched_experiments.published.choice import Size, Sizes
from gpusched_experiments.published.estimate import Estimate, mean
from gpusched_experiments.published.experiment import Experiment
from gpusched_experiments.published.experiments.workloads import thesis_scenario
from gpusched_experiments.published.reported import PAPER, THESIS, Reported
from gpusched_experiments.published.table import Column, Table
from gpusched_experiments.report.statistics import BOOTSTRAP_SEED, CONFIDENCE, LEAST_SEEDS, RESAMPLES

if TYPE_CHECKING:
    from gpusched_experiments.published.choice import Choice
    from gpusched_experiments.published.run import Runs
    from gpusched_experiments.published.table import Value

SIZES = Sizes(
    full=(
        Size(10, 5, 5), Size(20, 5, 5), Size(50, 5, 5), Size(100, 5, 5), Size(200, 3, 3), Size(500, 2, 1),
        Size(1000, 2, 1),
    ),
    quick=(Size(20, 1, 1), Size(30, 1, 1)),
)  # fmt: skip
JOBS_PER_NODE = {"high": 4, "exponential": 2, "low": 1}
EXTRA = ("path-relinking", "as reported", 100, 450)  # policy, arrivals, nodes and jobs of the source's own figure
MOST_JOBS = {"sts-ipopt": 400, "sts-highs": 100}
"""Most jobs of a round that slow solvers are asked to decide: all sizes would take them most of an hour."""
SOLVER_SEEDS = 2  # of theirs where there are more jobs than this:
MANY_JOBS = 80
REPORTED_NODES = 100
LEAST_NODES = 20  # below, a round takes so little time that what does not grow decides it


def _cells(choice: Choice, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for policy, nodes, (arrivals, each) in product(policies, SIZES.nodes(choice), JOBS_PER_NODE.items()):
        if each * nodes <= MOST_JOBS.get(policy, each * nodes):
            cells += _round_cells(choice, policy, arrivals, nodes, each * nodes)
    policy, arrivals, nodes, jobs = EXTRA
    if policy in policies and nodes in SIZES.nodes(choice):
        cells += _round_cells(choice, policy, arrivals, nodes, jobs)
    return tuple(cells)


def _round_cells(choice: Choice, policy: str, arrivals: str, nodes: int, jobs: int) -> list[Cell]:
    labels = (("arrivals", arrivals), ("nodes", nodes), ("jobs", jobs))
    scenario = thesis_scenario("high", nodes, settings={"jobs.count": jobs, "arrivals.kind": "simultaneous"})
    seeds = SIZES.seeds(choice, nodes, policy)
    if choice.seeds is None and policy in MOST_JOBS and jobs > MANY_JOBS:
        seeds = seeds[:SOLVER_SEEDS]
    return [Cell(labels, scenario, policy, seed, measure="round") for seed in seeds]


def growth(runs: Runs) -> Estimate:
    """Estimate the exponent b of round time ∝ jobs^b: least squares on logarithms, over sizes of 20 nodes or more."""
    sizes = [int(jobs) for jobs in runs.labels("jobs")]
    groups = {jobs: runs.where(jobs=jobs) for jobs in sizes}
    times = {jobs: g.by_seed("round_s") for jobs, g in groups.items() if int(g.all[0].labels["nodes"]) >= LEAST_NODES}
    if len(times) < 2:
        return Estimate(float("nan"), None, 0)
    logs = {jobs: np.log(list(of_seed.values())) for jobs, of_seed in times.items()}
    x = np.log(list(logs))
    value = _slope(x, np.array([[each.mean() for each in logs.values()]]))[0]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = [rng.choice(each, size=(RESAMPLES, len(each))).mean(axis=1) for each in logs.values()]
    tail = 50.0 * (1.0 - CONFIDENCE)
    low, high = np.percentile(_slope(x, np.stack(drawn, axis=1)), [tail, 100.0 - tail])
    most = max(map(len, logs.values()))
    return Estimate(float(value), (float(low), float(high)) if most >= LEAST_SEEDS else None, most)


def _slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Give the slope of the least-squares line through (x, each row of y)."""
    centred = x - x.mean()
    slopes: np.ndarray = (y * centred).sum(axis=1) / (centred**2).sum()
    return slopes


def _reported(policy: str, arrivals: str) -> str | None:
    if policy == "path-relinking":
        return "under 7 s with 450 jobs" if arrivals == EXTRA[1] else None
    return "thesis: under 60 s; paper: under 5 s" if policy == "sts" and arrivals in JOBS_PER_NODE else None


def _summary(runs: Runs) -> Table:
    rows = []
    for policy, arrivals in product(runs.policies, runs.labels("arrivals")):
        own = runs.where(policy, arrivals=arrivals)
        if not len(own):
            continue
        sizes = sorted(int(nodes) for nodes in own.labels("nodes"))
        compared = max((nodes for nodes in sizes if nodes <= REPORTED_NODES), default=sizes[0])
        row: list[Value] = [policy, str(arrivals)]
        for nodes in (compared, sizes[-1]):
            group = own.where(nodes=nodes)
            row += [nodes, group.labels("jobs")[0], mean(group, "round_s")]
        instead = mean(own.where(nodes=compared), "fallbacks").value
        rows.append((*row, growth(own), instead, _reported(policy, str(arrivals))))
    return Table(
        "Time of one round, all jobs submitted at time 0",
        (
            Column("policy", "policy"),
            Column("arrivals", "jobs as for"),
            Column("nodes", "nodes", "count"),
            Column("jobs", "jobs", "count"),
            Column("round_s", "one round [ms]", "milliseconds", interval=True),
            Column("most_nodes", "most nodes", "count"),
            Column("most_jobs", "jobs", "count"),
            Column("largest_round_s", "one round [ms]", "milliseconds", interval=True),
            Column("growth", "grows as jobs to the power of", "ratio", interval=True),
            Column("fallbacks", "plans that the exact solver gave instead", "count"),
            Column("reported", "reported, up to 100 nodes"),
        ),
        tuple(rows),
        (
            "Jobs as for: high stands for 4 jobs a node, exponential for 2, low for 1, as in the thesis.",
            "Mean over seeds of the median of up to 15 repetitions; reported times are of other machines.",
            f"The growth is fitted from {LEAST_NODES} nodes on; jobs and nodes grow together.",
        ),
    )


def _details(runs: Runs) -> Table:
    rows = []
    for policy, arrivals in product(runs.policies, runs.labels("arrivals")):
        own = runs.where(policy, arrivals=arrivals)
        for nodes in own.labels("nodes"):
            group = own.where(nodes=nodes)
            row: list[Value] = [policy, str(arrivals), nodes, group.labels("jobs")[0], len(group)]
            row += [mean(group, name) for name in ("round_s", "placed")]
            rows.append((*row, mean(group, "fallbacks").value))
    return Table(
        "Every size",
        (
            Column("policy", "policy"),
            Column("arrivals", "jobs as for"),
            Column("nodes", "nodes", "count"),
            Column("jobs", "jobs", "count"),
            Column("seeds", "seeds", "count"),
            Column("round_s", "one round [ms]", "milliseconds", interval=True),
            Column("placed", "jobs placed", "count", interval=True),
            Column("fallbacks", "plans that the exact solver gave instead", "count"),
        ),
        tuple(rows),
    )


def _chart(runs: Runs) -> Chart:
    panels = []
    for arrivals, each in JOBS_PER_NODE.items():
        lines = []
        for policy in runs.policies:
            own = runs.where(policy, arrivals=arrivals)
            points = ((int(n), mean(own.where(nodes=n), "round_s").times(1000.0)) for n in own.labels("nodes"))
            lines.append(series(policy, points))
        title = f"{each} job{'s' if each > 1 else ''} a node ({arrivals})"
        panels.append(Panel(title, "nodes", "time of one round [ms]", tuple(lines), logarithmic="xy"))
    return Chart("Time of one decision round, all jobs at time 0", (tuple(panels),))


SCALING = Experiment(
    name="scaling",
    title="Time of one round",
    question=(
        "How long does one decision round take, and how does that grow? All jobs are submitted at time 0, 4, 2 or 1 of "
        "them for each node, and the first round is timed, alone on the machine and without compilation."
    ),
    policies=(
        "sts", "sts-ipopt", "sts-highs", "sts-x", "edf", "greedy", "random-greedy", "local-search", "path-relinking",
    ),
    labels=("arrivals", "nodes", "jobs"),
    cells=_cells,
    summary=_summary,
    details=_details,
    chart=_chart,
    reported=(
        Reported("STS, one round, up to 100 nodes and 400 jobs", "under 60 s, 90 % of it in Ipopt", THESIS),
        Reported("STS, one round, up to 100 nodes and 400 jobs; linear in jobs", "under 5 s", PAPER),
        Reported("Path Relinking, one round, 100 nodes and 450 jobs", "under 7 s", THESIS),
    ),
    alone=True,
)  # fmt: skip
