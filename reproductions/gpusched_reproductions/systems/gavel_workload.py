"""Gavel's workloads, job by job as its authors draw them, and what is measured of a run.

Jobs are drawn in their order from their seeds: the same jobs, one by one.
"""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.gavel.round import StepSpeeds
from gpusched_env.errors import InputError
from gpusched_env.mechanisms.shares.model import Interference
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Node
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.job_table import JobTable
from gpusched_env.simulator import Policy, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy_run import simulate

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_baselines.gavel import GavelDemand


TYPES = ("V100", "P100", "K80")
GPUS_PER_TYPE = 36
SIZES = (1, 2, 4, 8)
ROUND_S = 360.0
NOT_DISTRIBUTED = ("A3C", "Recommendation", "CycleGAN")  # models that run on one GPU only
THROUGHPUTS = Path(__file__).with_name("gavel_throughputs.csv")
PAIRS = Path(__file__).with_name("gavel_pairs.csv")
NO_FIT = 1e4  # slow-down of pairs that do not fit on a GPU


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


@cache
def step_speeds() -> StepSpeeds:
    """Return the measured mini-batches per second of the models, in the order of the job table.

    The configurations are those of `cluster` with pairs.
    """
    models = list(throughputs())
    alone = np.zeros((len(models), len(TYPES) * (len(SIZES) + 1)))
    for model, sizes in zip(alone, throughputs().values(), strict=True):
        for gpus, speeds in sizes.items():
            model[SIZES.index(gpus) : len(TYPES) * len(SIZES) : len(SIZES)] = speeds
        model[len(TYPES) * len(SIZES) :] = sizes[1]
    paired = np.zeros((len(TYPES), len(models), len(models)))
    with PAIRS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            keys = (row["model"], int(row["batch"])), (row["other"], int(row["other_batch"]))
            one, other = (models.index(key) for key in keys)
            for v, name in enumerate(TYPES):
                paired[v, one, other], paired[v, other, one] = float(row[name]), float(row[f"{name}_other"])
    return StepSpeeds(alone, paired)


@cache
def pair_slowdowns() -> NDArray[np.float64]:
    """Return the slow-down of every model with every other on one GPU, (V, M, M), in the order of the job table.

    It is that of the whole mini-batches in a round. Pairs that do not fit have `NO_FIT`.
    """
    speeds = step_speeds()
    alone = np.floor(ROUND_S * speeds.alone[:, len(TYPES) * len(SIZES) :].T)[:, :, None]
    paired = np.floor(ROUND_S * speeds.paired)
    return np.where(paired > 0.0, alone / np.maximum(paired, 1.0), NO_FIT)


def drawn_jobs(seed: int, jobs: int, per_hour: float | None, multi_gpu: bool) -> list[Drawn]:
    """Draw jobs as Gavel's generator does.

    Args:
        seed: Seed of the experiment: jobs come from seed + 2, times between arrivals from seed + 3.
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


def cluster(jobs: list[Drawn], name: str, *, pairs: bool = False) -> Instance:
    """Make the instance: one node of 36 GPUs per type, jobs that run on just as many GPUs as they ask for.

    A mini-batch is an epoch, all are needed, nothing is due and no restart takes time, as in theirs. There a job does
    whole mini-batches in a round and loses the rest of it, so that its speed is that of those. With `pairs`, jobs of
    one GPU can share one in pairs, and slow one another down as measured.
    """
    models = list(throughputs())
    halves = tuple(Configuration(name, 1, share=0.5) for name in TYPES) if pairs else ()
    configurations = tuple(Configuration(name, gpus) for name in TYPES for gpus in SIZES) + halves
    seconds = np.full((len(jobs), len(configurations)), np.inf)
    for row, job in enumerate(jobs):
        for v, speed in enumerate(throughputs()[job.model][job.gpus]):
            if speed > 0.0:
                column = len(SIZES) * v + SIZES.index(job.gpus)
                seconds[row, column] = ROUND_S / math.floor(ROUND_S * speed)
                if pairs and job.gpus == 1:
                    seconds[row, len(SIZES) * len(TYPES) + v] = seconds[row, column]
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
        application=np.array([models.index(job.model) for job in jobs]),
        applications=tuple(f"{model} {batch}" for model, batch in models),
        distribution=zeros,
        distributions=(EpochDistribution.certain(),),
    )
    types = tuple(GpuType(name, 250.0, 0.0, 16.0, GPUS_PER_TYPE) for name in TYPES)
    nodes = tuple(Node(name, GPUS_PER_TYPE) for name in TYPES)
    beside = (Interference(pair_slowdowns()),) if pairs else ()
    return Instance(types, nodes, configurations, table, name=name, mechanisms=beside)


FASTEST_LAST = (2, 1, 0)  # K80, P100, V100: the order in which their program looks at types


def fifo_as_run(demand: GavelDemand, rng: Generator) -> NDArray[np.float64]:
    """Return shares as the FIFO of the authors assigns them, without speeds, (A, V): each job keeps one type.

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
    return float(simulate(instance, policy, record=False).completion_s.max()) / 3600.0
