"""The jobs with which Gavel's authors simulate, drawn in their order from their seeds: the same jobs, one by one."""

from __future__ import annotations

import csv
import math
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Node
from gpusched_env.model.checks import LONGEST_S
from gpusched_env.model.job_table import JobTable

TYPES = ("V100", "P100", "K80")
GPUS_PER_TYPE = 36
SIZES = (1, 2, 4, 8)
ROUND_S = 360.0
NOT_DISTRIBUTED = ("A3C", "Recommendation", "CycleGAN")  # models that run on one GPU only
THROUGHPUTS = Path(__file__).with_name("throughputs.csv")


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
        distributions=(EpochDistribution(np.array([0.0, 1.0]), np.array([1.0])),),
    )
    types = tuple(GpuType(name, 250.0, 0.0, 16.0, GPUS_PER_TYPE) for name in TYPES)
    nodes = tuple(Node(name, GPUS_PER_TYPE) for name in TYPES)
    return Instance(types, nodes, configurations, table, name=name)
