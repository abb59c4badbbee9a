"""`scaling`: how long one decision round takes, and how that grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from gpusched_experiments.report import columns as of
from gpusched_experiments.report.cell import Cell
from gpusched_experiments.report.chart import Chart, Panel
from gpusched_experiments.report.estimate import (
    BOOTSTRAP_SEED,
    LEAST_SEEDS,
    RESAMPLES,
    Estimate,
    mean,
    percentile_interval,
)  # fmt: skip
from gpusched_experiments.report.experiment import (
    PAPER,
    THESIS,
    Experiment,
    Reported,
    Selection,
    Size,
    Sizes,
    beside_reported,
)
from gpusched_experiments.report.run import Label, Runs
from gpusched_experiments.report.table import COUNT, MILLISECONDS, RATIO, SHARE, Column, Table
from gpusched_reproductions.published.workloads import ONE_ROUND, published_scenario

SIZES = Sizes(
    full=(
        Size(10, 5, 5), Size(20, 5, 5), Size(50, 5, 5), Size(100, 5, 5), Size(200, 3, 3), Size(500, 2, 1),
        Size(1000, 2, 1),
    ),
    quick=(Size(20, 1, 1), Size(30, 1, 1)),
)  # fmt: skip
JOBS_PER_NODE = {"high": 4, "exponential": 2, "low": 1}
EXTRA = ("path-relinking", "as reported", 100, 450)  # policy, arrivals, nodes and jobs of the source's own figure
MOST_JOBS = {"sts:ipopt": 400, "sts:highs": 100}
"""Most jobs of a round that slow solvers are asked to decide: all sizes would take them most of an hour."""
REPORTED_NODES = 100
INSTEAD = "plans that the exact solver gave instead"
LEAST_NODES = 20  # below, a round takes so little time that what does not grow decides it


def _cells(choice: Selection, policies: tuple[str, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    for policy, nodes, (arrivals, each) in product(policies, SIZES.nodes(choice), JOBS_PER_NODE.items()):
        if each * nodes <= MOST_JOBS.get(policy, each * nodes):
            cells += _round_cells(choice, policy, arrivals, nodes, each * nodes)
    policy, arrivals, nodes, jobs = EXTRA
    if policy in policies and nodes in SIZES.nodes(choice):
        cells += _round_cells(choice, policy, arrivals, nodes, jobs)
    return tuple(cells)


def _round_cells(choice: Selection, policy: str, arrivals: str, nodes: int, jobs: int) -> list[Cell]:
    labels = (("arrivals", arrivals), ("nodes", nodes), ("jobs", jobs))
    scenario = published_scenario("high", nodes, settings={"jobs.count": jobs, "arrivals.kind": "simultaneous"})
    seeds = SIZES.seeds(choice, nodes, policy)
    return [Cell(labels, scenario, policy, seed, measure=ONE_ROUND) for seed in seeds]


def growth(runs: Runs) -> Estimate:
    """Estimate the exponent b of round time ∝ jobs^b: least squares on logarithms, over sizes of 20 nodes or more."""
    sizes = [int(jobs) for jobs in runs.labels("jobs")]
    groups = {jobs: runs.where(jobs=jobs) for jobs in sizes}
    times = {jobs: g.by_seed("round_s") for jobs, g in groups.items() if int(g.labels("nodes")[0]) >= LEAST_NODES}
    if len(times) < 2:
        return Estimate(float("nan"), None, 0)
    logs = {jobs: np.log(list(of_seed.values())) for jobs, of_seed in times.items()}
    x = np.log(list(logs))
    value = _slope(x, np.array([[each.mean() for each in logs.values()]]))[0]
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    drawn = [rng.choice(each, size=(RESAMPLES, len(each))).mean(axis=1) for each in logs.values()]
    most = max(map(len, logs.values()))
    interval = percentile_interval(_slope(x, np.stack(drawn, axis=1))) if most >= LEAST_SEEDS else None
    return Estimate(float(value), interval, most)


def _slope(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    centred = x - x.mean()
    slopes: np.ndarray = (y * centred).sum(axis=1) / (centred**2).sum()
    return slopes


def _reported(policy: str, arrivals: str) -> str | None:
    if policy == "path-relinking":
        return "under 7 s with 450 jobs" if arrivals == EXTRA[1] else None
    if policy == "sts:ipopt":
        return "thesis: under 60 s, 90 % of it in Ipopt"
    return "thesis: under 60 s; paper: under 5 s" if policy == "sts" and arrivals in JOBS_PER_NODE else None


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """The runs of a policy at one number of jobs a node."""

    policy: str
    arrivals: str
    own: Runs

    @property
    def sizes(self) -> tuple[int, int]:
        """The number of nodes that stands beside what was reported, and the most."""
        sizes = sorted(int(nodes) for nodes in self.own.labels("nodes"))
        return max((nodes for nodes in sizes if nodes <= REPORTED_NODES), default=sizes[0]), sizes[-1]

    def runs(self, largest: bool = False) -> Runs:
        return self.own.where(nodes=self.sizes[largest])


def _lines(runs: Runs) -> Iterator[_Line]:
    for policy, arrivals in product(runs.policies, runs.labels("arrivals")):
        own = runs.where(policy, arrivals=arrivals)
        if len(own):
            yield _Line(policy, str(arrivals), own)


def _jobs(runs: Runs) -> Label:
    return runs.labels("jobs")[0]


def _solver_share(runs: Runs) -> Estimate | None:
    return mean(runs, "solver_share") if runs.policies[0] in MOST_JOBS else None


def _summary(runs: Runs) -> Table:
    columns: tuple[Column[_Line], ...] = (
        Column("policy", "policy", lambda line: line.policy),
        Column("arrivals", "jobs as for", lambda line: line.arrivals),
        Column("nodes", "nodes", lambda line: line.sizes[0], COUNT),
        Column("jobs", "jobs", lambda line: _jobs(line.runs()), COUNT),
        Column("round_s", "one round [ms]", lambda line: mean(line.runs(), "round_s"), MILLISECONDS, interval=True),
        Column("most_nodes", "most nodes", lambda line: line.sizes[1], COUNT),
        Column("most_jobs", "jobs", lambda line: _jobs(line.runs(largest=True)), COUNT),
        Column(
            "largest_round_s", "one round [ms]", lambda line: mean(line.runs(largest=True), "round_s"), MILLISECONDS,
            interval=True,
        ),
        Column("growth", "grows as jobs to the power of", lambda line: growth(line.own), RATIO, interval=True),
        Column("solver_share", "of it in the solver", lambda line: _solver_share(line.runs()), SHARE, interval=True),
        Column("fallbacks", INSTEAD, lambda line: mean(line.runs(), "fallbacks").value, COUNT),
        Column("reported", "reported, up to 100 nodes", lambda line: _reported(line.policy, line.arrivals)),
    )  # fmt: skip
    notes = (
        "Jobs as for: high stands for 4 jobs a node, exponential for 2, low for 1, as in the thesis.",
        "Mean over seeds of the median of up to 15 repetitions; reported times are of other machines.",
        "In the solver: of a solver that is not compiled, with making its programs.",
        "Exponential has half as many jobs as high here; the thesis's figure 14 has it almost comparable with high.",
        f"The growth is fitted from {LEAST_NODES} nodes on; jobs and nodes grow together.",
    )
    return Table.of("Time of one round, all jobs submitted at time 0", columns, _lines(runs), notes)


def _details(runs: Runs) -> Table:
    columns: tuple[of.GroupColumn, ...] = (
        of.POLICY,
        Column("arrivals", "jobs as for", lambda group: group.own.labels("arrivals")[0]),
        Column("nodes", "nodes", lambda group: group.labels["nodes"], COUNT),
        Column("jobs", "jobs", lambda group: _jobs(group.own), COUNT),
        of.SEEDS,
        of.mean_of("round_s", "one round [ms]", MILLISECONDS),
        Column("solver_share", "of it in the solver", lambda group: _solver_share(group.own), SHARE, interval=True),
        of.mean_of("placed", "jobs placed", COUNT),
        Column("fallbacks", INSTEAD, lambda group: mean(group.own, "fallbacks").value, COUNT),
    )
    return Table.of("Every size", columns, (group for line in _lines(runs) for group in line.own.groups("nodes")))


def _chart(runs: Runs) -> Chart:
    panels = []
    for arrivals, each in JOBS_PER_NODE.items():
        some = runs.where(arrivals=arrivals)
        drawn = of.lines(some, "nodes", lambda group: mean(group.own, "round_s").times(1000.0), runs.policies)
        title = f"{each} job{'s' if each > 1 else ''} a node ({arrivals})"
        panels.append(Panel(title, "nodes", "time of one round [ms]", drawn, logarithmic="xy"))
    return Chart("Time of one decision round, all jobs at time 0", (tuple(panels),))


SCALING = Experiment(
    name="scaling",
    title="Time of one round",
    question=(
        "How long does one decision round take, and how does that grow? All jobs are submitted at time 0, 4, 2 or 1 of "
        "them for each node, and the first round is timed, alone on the machine and without compilation."
    ),
    policies=(
        "sts", "sts:ipopt", "sts:highs", "sts-x", "edf", "greedy", "random-greedy", "local-search", "path-relinking",
    ),
    labels=("arrivals", "nodes", "jobs"),
    cells=_cells,
    summary=_summary,
    verdict=beside_reported(("policy", "arrivals"), "round_s", "one round [ms]"),
    details=_details,
    chart=_chart,
    reported=(
        Reported("STS, one round, up to 100 nodes and 400 jobs", "under 60 s, 90 % of it in Ipopt", THESIS),
        Reported("STS, one round, up to 100 nodes and 400 jobs; linear in jobs", "under 5 s", PAPER),
        Reported("Path Relinking, one round, 100 nodes and 450 jobs", "under 7 s", THESIS),
    ),
    alone=True,
)  # fmt: skip
