"""Muri's traces as instances: all jobs on 64 GPUs, alone on them or guaranteed and opportunistic."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, SharedMemory, UtilisationModel
from gpusched_env.errors import InputError
from gpusched_reproductions.data_sources import DATA
from gpusched_reproductions.systems.muri.memory import least_gib, need_gib

MURI = DATA / "muri"
"""Where Muri's traces (github.com/pkusys/Muri, simulator/trace-data, Apache-2.0) are looked for."""
ANSWERS = MURI.parent / "muri_antman"
"""Where the answers of Muri's program are, and trace 3 too."""
HERE = Path(__file__).parent
NODES, GPUS = 8, 8
GPU = GpuType("V100", gpu_power_w=250.0, node_base_power_w=300.0, memory_gib=16.0, max_gpus_per_node=GPUS)
_CERTAIN = EpochDistribution.certain()
_SLACK = (1.0, 4.0)  # due dates, as multiples of the time alone
_EURO_PER_S = 0.001  # a job's tardiness weight; for each GPU, so that work per weight is time
_FIELDS = {"num_gpu", "submit_time", "iterations", "model_name", "batch_size", "iteration_time", "priority"}

Sharing = Literal["alone", "utilisation", "moving"]
"""Jobs alone on whole GPUs; or shares, in which opportunistic jobs are slowed by utilisation, or by utilisation and by
memory that moves."""

HARDLY = 1e-3
"""Loss to opportunistic jobs once limits are right, where the loss until then is what counts."""


@dataclass(frozen=True, slots=True)
class Stages:
    """An iteration of a model on some GPUs alone: its time, and how long it takes each resource [s].

    Attributes:
        iteration_s: Time of the iteration.
        data_s: Time in which it loads data.
        gpu_s: Time in which it computes on its GPUs.
        network_s: Time in which it synchronises.
    """

    iteration_s: float
    data_s: float
    gpu_s: float
    network_s: float


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A job of a trace.

    Attributes:
        submission_s: When it was submitted [s].
        gpus: How many GPUs it takes.
        model: Its model.
        batch: Samples on each GPU.
        iterations: How many iterations it does.
        stages: Its iteration.
        opportunistic: Whether it is opportunistic.
    """

    submission_s: float
    gpus: int
    model: str
    batch: int
    iterations: float
    stages: Stages
    opportunistic: bool

    @property
    def alone_s(self) -> float:
        return self.iterations * self.stages.iteration_s

    @property
    def application(self) -> str:
        return f"{self.model}-{self.gpus}"


def path_of(trace: int) -> Path:
    """Return the file of a trace; in `MURI` if there is none."""
    path, other = (folder / f"trace{trace}.csv" for folder in (MURI, ANSWERS))
    return other if other.is_file() and not path.is_file() else path


def read_trace(path: Path, *, at_once: bool = False) -> list[TraceJob]:
    """Read a trace, its lines that begin with # left out.

    Args:
        path: The file.
        at_once: Whether all jobs are submitted at time 0, as in traces 1' to 4'.

    Raises:
        InputError: It cannot be read, or a column is missing.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        return [_job(row, at_once) for row in rows]
    except (OSError, ValueError, KeyError) as error:
        needed = ", ".join(sorted(_FIELDS))
        raise InputError(str(path), str(error), f"a trace of Muri with the columns {needed}") from error


def _job(row: dict[str, str], at_once: bool) -> TraceJob:
    iteration_s, *stages = (
        float(row[name]) / 1000.0
        for name in ("iteration_time", "resource_time_0", "resource_time_1", "resource_time_2")
    )
    return TraceJob(
        0.0 if at_once else float(row["submit_time"]) / 1000.0,
        int(row["num_gpu"]),
        row["model_name"],
        int(row["batch_size"]),
        float(row["iterations"]),
        Stages(iteration_s, *stages),
        row["priority"] == "1",
    )


def restarts() -> dict[tuple[str, int], float]:
    with (HERE / "stage_times.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {(row["model"], int(row["gpus"])): float(row["restart_s"]) for row in rows}


def muri_instance(
    jobs: list[TraceJob],
    sharing: Sharing,
    *,
    nodes: int = NODES,
    adapt_s: float = 10.0,
    needs: bool = True,
    seed: int = 0,
) -> Instance:
    """Make the jobs of a trace on nodes of 8 V100s with 16 GiB, or on them alone.

    A job's epochs are seconds alone. Utilisations are GPU time over iteration time; a first start and a restart take as
    long as a restart was measured to. Due dates are drawn, from once to four times the time alone after the submission;
    weights are 1 € for a thousand seconds, times the GPUs.

    Args:
        sharing: `alone`, or guaranteed (0.6) and opportunistic (0.4) shares of as many GPUs. Whole GPUs are offered too
            where jobs need memory.
        adapt_s: Seconds until limits follow the jobs on a GPU, with `moving`.
        needs: Whether jobs need memory as `memory` derives it; else all fit a share, as in Muri's simulations.
    """
    restart_s, slack = restarts(), np.random.default_rng(seed).uniform(*_SLACK, len(jobs))
    sizes = {gpus: _configurations(gpus, sharing, whole=needs) for gpus in sorted({job.gpus for job in jobs})}
    first = {job.application: job for job in jobs}
    stages = {name: job.stages for name, job in first.items()}
    table = [
        Job(
            job.submission_s, job.submission_s + (1.0 + drawn) * job.alone_s, _EURO_PER_S * job.gpus, job.alone_s,
            _CERTAIN, job.alone_s, dict.fromkeys(sizes[job.gpus], 1.0),
            need_gib(job.model, job.batch) if needs else 1.0, job.application,
            restart_s[job.model, job.gpus], opportunistic=job.opportunistic,
            start_s=restart_s[job.model, job.gpus], resume_s=restart_s[job.model, job.gpus],
        )
        for job, drawn in zip(jobs, slack, strict=True)
    ]  # fmt: skip
    utilisation = np.array([[min(1.0, each.gpu_s / each.iteration_s) for each in stages.values()]])
    model = UtilisationModel(utilisation)
    if sharing == "moving":
        memory = _memory(list(first.values()), adapt_s)
        model = UtilisationModel(utilisation, overhead=HARDLY, least_speed=0.5 * HARDLY, memory=memory)
    configurations = [each for size in sizes.values() for each in size]
    cluster = [Node(GPU.name, GPUS)] * nodes
    return Instance.from_jobs([GPU], cluster, table, configurations, mechanisms=[model], name="muri")


def _memory(jobs: list[TraceJob], adapt_s: float) -> SharedMemory:
    need = np.array([need_gib(job.model, job.batch) for job in jobs])
    least = np.array([least_gib(job.model) for job in jobs])
    return SharedMemory(need, least, np.array([[job.stages.iteration_s for job in jobs]]), adapt_s=adapt_s)


def _configurations(gpus: int, sharing: Sharing, *, whole: bool) -> tuple[Configuration, ...]:
    each, nodes = min(gpus, GPUS), math.ceil(gpus / GPUS)
    alone = (Configuration(GPU.name, each, nodes),)
    if sharing == "alone":
        return alone
    shares = tuple(Configuration(GPU.name, each, nodes, *share) for share in ((0.6, 1), (0.4, 0)))
    return shares + (alone if whole else ())
