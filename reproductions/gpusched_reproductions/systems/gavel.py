"""Gavel (OSDI 2020): our event loop and our port of its policies beside the figures of its authors' simulator.

Jobs are drawn in their order from their seeds: the same jobs, one by one. What they got are outputs stored in the
notebooks of their repository, github.com/stanford-futuredata/gavel, commit c4fa400,
`scheduler/notebooks/figures/evaluation`: `makespan.ipynb`, `continuous_jobs.ipynb` and
`continuous_jobs_multigpu.ipynb`, cell 10 of each.
"""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel import Gavel, GavelDemand
from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Node
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.job_table import JobTable
from gpusched_env.simulator import Policy, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.simulate import simulate
from gpusched_reproductions.systems.validation import Check, Measured, Part

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


TYPES = ("V100", "P100", "K80")
GPUS_PER_TYPE = 36
SIZES = (1, 2, 4, 8)
ROUND_S = 360.0
NOT_DISTRIBUTED = ("A3C", "Recommendation", "CycleGAN")  # models that run on one GPU only
THROUGHPUTS = Path(__file__).with_name("gavel_throughputs.csv")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A job as it is drawn.

    Attributes:
        model: Model and batch size.
        gpus: GPUs that it asks for.
        arrival_s: When it comes [s].
        steps: Mini-batches that it needs.
    """

    model: tuple[str, int]
    gpus: int
    arrival_s: float
    steps: float


@cache
def throughputs() -> dict[tuple[str, int], dict[int, tuple[float, ...]]]:
    """Read mini-batches per second by (model, batch), GPUs and type, in the order of the job table.

    The order matters, since a job is a draw from it. It is that of the published runs: A3C before LM.
    """
    table: dict[tuple[str, int], dict[int, tuple[float, ...]]] = {}
    with THROUGHPUTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            speeds = tuple(float(row[name]) for name in TYPES)
            table.setdefault((row["model"], int(row["batch"])), {})[int(row["gpus"])] = speeds
    return table


def drawn_jobs(seed: int, jobs: int, per_hour: float | None, multi_gpu: bool) -> list[Drawn]:
    """Draw jobs as Gavel's generator does.

    Args:
        seed: Seed of the experiment: jobs come from seed + 2, times between arrivals from seed + 3.
        jobs: How many.
        per_hour: Mean arrivals per hour; None: all come at once.
        multi_gpu: Whether jobs ask for 1, 2, 4 or 8 GPUs, 70, 10, 15 and 5 % of them; else for one.
    """
    what, when = random.Random(seed + 2), random.Random(seed + 3)  # noqa: S311 - their generator, not a secret
    arrival_s, found = 0.0, []
    for _ in range(jobs):
        found.append(_draw(what, arrival_s, multi_gpu))
        if per_hour is not None:
            arrival_s += -math.log(1.0 - when.random()) * 3600.0 / per_hour
    return found


def _draw(what: random.Random, arrival_s: float, multi_gpu: bool) -> Drawn:
    scale = what.uniform(0, 1)  # drawn also where it does not count
    gpus = 1
    if multi_gpu and scale >= 0.7:
        gpus = 2 if scale <= 0.8 else 4 if scale <= 0.95 else 8
    long = what.random() >= 0.8
    minutes = 10 ** (what.uniform(3, 4) if long else what.uniform(1.5, 3))
    table = list(throughputs())
    model = what.choice(table)
    while gpus > 1 and model[0] in NOT_DISTRIBUTED:
        model = what.choice(table)
    return Drawn(model, gpus, arrival_s, 60.0 * minutes * throughputs()[model][gpus][0])


def cluster(jobs: list[Drawn], name: str) -> Instance:
    """Make the instance: one node of 36 GPUs per type, jobs that run on just as many GPUs as they ask for.

    A mini-batch is an epoch, all are needed, nothing is due and no restart takes time, as in theirs. There a job does
    whole mini-batches in a round and loses the rest of it, so that its speed is that of those.
    """
    configurations = tuple(Configuration(name, gpus) for name in TYPES for gpus in SIZES)
    seconds = np.full((len(jobs), len(configurations)), np.inf)
    for row, job in enumerate(jobs):
        for v, speed in enumerate(throughputs()[job.model][job.gpus]):
            if speed > 0.0:
                column = len(SIZES) * v + SIZES.index(job.gpus)
                seconds[row, column] = ROUND_S / math.floor(ROUND_S * speed)
    steps = np.array([job.steps for job in jobs])
    ones, zeros = np.ones(len(jobs)), np.zeros(len(jobs), dtype=np.int64)
    table = JobTable(
        submission_s=np.array([job.arrival_s for job in jobs]),
        due_s=np.full(len(jobs), LONGEST_S),
        tardiness_weight_eur_per_s=ones,
        max_epochs=steps,
        epochs_needed=steps,
        memory_gib=np.zeros(len(jobs)),
        seconds_per_epoch=seconds,
        application=zeros,
        applications=("job",),
        distribution=zeros,
        distributions=(EpochDistribution.certain(),),
    )
    types = tuple(GpuType(name, 250.0, 0.0, 16.0, GPUS_PER_TYPE) for name in TYPES)
    nodes = tuple(Node(name, GPUS_PER_TYPE) for name in TYPES)
    return Instance(types, nodes, configurations, table, name=name)


MAKESPAN_CELL = "makespan.ipynb, cell 10"
SINGLE_GPU_CELL = "continuous_jobs.ipynb, cell 10"
MULTI_GPU_CELL = "continuous_jobs_multigpu.ipynb, cell 10"

# Makespan [h], mean of seeds 0, 1 and 2, by the number of jobs that are there at the beginning.
FIFO_MAKESPAN_H = {100: 182.32, 300: 295.56, 500: 426.58, 700: 619.52}
GAVEL_MAKESPAN_H = {100: 161.16, 300: 161.16, 500: 169.42, 700: 244.23}

# Mean time from submission to completion [h], seed 0, jobs 4000 to 4999, by arrivals per hour.
FIFO_PERF_H = {4.0: 17.08, 4.8: 22.24}
LAS_H = {4.0: 23.49, 4.8: 35.79, 5.6: 95.99}
LAS_PERF_H = {4.0: 16.82, 4.8: 18.97, 5.6: 28.96}
MULTI_FIFO_PERF_H = {2.0: 27.68}
MULTI_LAS_H = {2.0: 28.91}
MULTI_LAS_PERF_H = {2.0: 21.90}


FASTEST_LAST = (2, 1, 0)  # K80, P100, V100: the order in which their program looks at types


def fifo_as_run(demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
    """Return the jobs in order all the time of a type, and keep it: what their FIFO that knows no speeds gave, (A, V).

    It draws a type that has room, but assigns the last of those that are still on its list, which is V100 if it is
    there; and when that is exactly full it takes the drawn type off the list, not that one. So V100 is given to more
    jobs than fit, which then share its time. A job that fits on no listed type ends the round of assignments.
    """
    x = (demand.before > 0.0).astype(np.float64)
    free = demand.capacity - demand.used(x)
    waiting = list(np.flatnonzero(x.sum(axis=1) == 0.0))
    listed = [v for v in FASTEST_LAST if free[v] > 0.0]
    while waiting and listed:
        j = waiting.pop(0)
        fitting = [v for v in listed if demand.size[j] <= free[v]]
        if not fitting:
            break
        drawn, given = fitting[int(rng.integers(len(fitting)))], listed[-1]
        x[j, given] = 1.0
        free[given] -= demand.size[j]
        if free[given] == 0.0:
            listed.remove(drawn)
    return x


FIRST, LAST = 4000, 5000  # the jobs that are measured of a steady state, the last excluded


class _DoneError(Exception):
    """All that is measured has happened."""


def mean_completion_h(instance: Instance, policy: Policy, first: int = FIRST, last: int = LAST) -> float:
    """Return the mean time from submission to completion [h] of the jobs `first` to `last` - 1.

    Jobs go on coming until the last of them is done.

    Raises:
        InputError: The instance has too few jobs for that.
    """
    times_s = np.empty(0)

    def look(state: State) -> None:
        nonlocal times_s
        jobs = state.board.jobs[first:last]
        if last <= state.board.count[at.SUBMITTED] < len(instance.jobs) and not np.any(np.isnan(jobs[:, at.END_S])):
            times_s = jobs[:, at.END_S] - jobs[:, at.SUBMISSION]
            raise _DoneError

    try:
        simulate(instance, policy, record=False, on_round=look)
    except _DoneError:
        return float(times_s.mean()) / 3600.0
    raise InputError("jobs", len(instance.jobs), f"more, so that jobs come until job {last - 1} is done")


def makespan_h(instance: Instance, policy: Policy) -> float:
    """Return when the last job is done [h]."""
    return float(simulate(instance, policy, record=False).completion_s.max()) / 3600.0


JOBS = 24_000  # more than come until job 4999 is done
FIFO = Gavel("fifo", name="gavel-fifo")
LAS = Gavel(aware=False, name="gavel-las:agnostic")
LAS_PERF = Gavel()
DIGIT_H, SHARE = 0.01, 0.01
VERTEX_LOW, VERTEX_HIGH = (
    -0.07,
    0.01,
)  # of jobs of several GPUs: optima at vertices have shorter times than theirs inside


def completion_h(policy: Policy, per_hour: float, multi_gpu: bool) -> float:
    """Return the mean time to completion [h] of the jobs that are measured, seed 0."""
    return mean_completion_h(cluster(drawn_jobs(0, JOBS, per_hour, multi_gpu), "gavel"), policy)


def run_single(quick: bool) -> Measured:
    """Compare jobs of one GPU; quickly, first in, first out with four an hour, which must agree to the digit."""
    there = FIFO_PERF_H
    checks = []
    for per_hour in (4.0,) if quick else (4.0, 4.8):
        what = f"FIFO on the fastest type, {per_hour} jobs/h [h]"
        ours = completion_h(FIFO, per_hour, False)
        checks.append(Check.around(what, ours, there[per_hour], DIGIT_H, SINGLE_GPU_CELL))
    if quick:
        return Measured(tuple(checks))
    las = {rate: completion_h(LAS, rate, False) for rate in LAS_H}
    perf = {rate: completion_h(LAS_PERF, rate, False) for rate in LAS_PERF_H}
    for rate in las:
        for name, hours, theirs in (("LAS", las, LAS_H), ("Gavel's LAS", perf, LAS_PERF_H)):
            what = f"{name}, {rate} jobs/h [h]"
            checks.append(Check.within(what, hours[rate], theirs[rate], SHARE, SINGLE_GPU_CELL))
    for rate, low, high in ((4.8, 1.84, 1.94), (5.6, 3.0, 3.6)):
        ratio = LAS_H[rate] / LAS_PERF_H[rate]
        what = f"LAS / Gavel's LAS, {rate} jobs/h"
        checks.append(Check(what, las[rate] / perf[rate], low, high, ratio, SINGLE_GPU_CELL))
    return Measured(tuple(checks))


def run_multi(quick: bool) -> Measured:
    """Compare jobs of 1, 2, 4 and 8 GPUs, two an hour; quickly, first in, first out only."""
    rate, source = 2.0, MULTI_GPU_CELL
    there = MULTI_FIFO_PERF_H[rate]
    fifo = completion_h(FIFO, rate, True)
    checks = [Check.around(f"FIFO on the fastest type, {rate} jobs/h [h]", fifo, there, DIGIT_H, source)]
    if quick:
        return Measured(tuple(checks))
    for name, policy, theirs in (
        ("LAS", LAS, MULTI_LAS_H[rate]),
        ("Gavel's LAS", LAS_PERF, MULTI_LAS_PERF_H[rate]),
    ):
        low, high = theirs * (1.0 + VERTEX_LOW), theirs * (1.0 + VERTEX_HIGH)
        checks.append(Check(f"{name}, {rate} jobs/h [h]", completion_h(policy, rate, True), low, high, theirs, source))
    return Measured(tuple(checks))


_part = partial(Part, "gavel")
SINGLE_GPU = _part("single-gpu", "Time to completion of jobs of one GPU: our simulator and Gavel's own", run_single)
MULTI_GPU = _part("multi-gpu", "Time to completion of jobs of 1 to 8 GPUs: our simulator and Gavel's own", run_multi)


SEEDS = (0, 1, 2)
MAKESPAN_SHARE = 0.02  # by which a mean may differ
QUICK_H = 2.0  # the same where one number of jobs is run_makespan


def mean_makespan_h(policy: Policy, jobs: int) -> float:
    """Return the mean makespan [h] of so many jobs over the seeds."""
    return float(np.mean([makespan_h(cluster(drawn_jobs(s, jobs, None, True), "gavel"), policy) for s in SEEDS]))


def run_makespan(quick: bool) -> Measured:
    """Compare makespans; quickly, those of Gavel with 100 jobs."""
    gavel = Gavel("makespan", name="gavel-makespan")
    if quick:
        what, there = "Gavel, makespan of 100 jobs [h]", GAVEL_MAKESPAN_H[100]
        return Measured((Check.around(what, mean_makespan_h(gavel, 100), there, QUICK_H, MAKESPAN_CELL),))
    fifo = Gavel(fifo_as_run, aware=False, idle_too=False, name="fifo-as-run_makespan")
    ours: dict[str, dict[int, float]] = {}
    checks = []
    for name, policy, theirs in (
        ("FIFO", fifo, FIFO_MAKESPAN_H),
        ("Gavel", gavel, GAVEL_MAKESPAN_H),
    ):
        ours[name] = {jobs: mean_makespan_h(policy, jobs) for jobs in theirs}
        for jobs, hours in ours[name].items():
            what = f"{name}, makespan of {jobs} jobs [h]"
            checks.append(Check.within(what, hours, theirs[jobs], MAKESPAN_SHARE, MAKESPAN_CELL))
    ratio = FIFO_MAKESPAN_H[500] / GAVEL_MAKESPAN_H[500]
    what = "FIFO / Gavel, makespan of 500 jobs"
    checks.append(Check(what, ours["FIFO"][500] / ours["Gavel"][500], 2.4, 2.6, ratio, MAKESPAN_CELL))
    return Measured(tuple(checks))


MAKESPAN = Part("gavel", "makespan", "Makespan of jobs that are all there: our simulator and Gavel's own", run_makespan)

PARTS = (MAKESPAN, SINGLE_GPU, MULTI_GPU)
