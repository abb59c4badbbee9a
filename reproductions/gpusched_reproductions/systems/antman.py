"""AntMan: guaranteed and opportunistic jobs on shared GPUs, against exclusive GPUs, on published traces."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from gpusched_baselines import make_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, UtilisationModel, simulate
from gpusched_experiments.report.usage import JobTimes, Usage
from gpusched_reproductions.systems.validation import Check, Measured, Part

MURI = Path("../shared/data/muri")
"""Where Muri's traces and stage times (Apache-2.0) are looked for; they are not part of the project."""
GPUS = {1: 8, 2: 16, 4: 16}
"""GPUs for the single-GPU jobs of each trace: loads of 2.6, 2.0 and 1.2."""
TIRESIAS = {1: 1.64, 2: 2.12, 4: 1.68}
"""Mean completion with AntMan over that with Tiresias, that its authors found on each whole trace."""
OVERHEAD = 0.03
_GPU = GpuType("V100", gpu_power_w=250.0, node_base_power_w=300.0, memory_gib=32.0, max_gpus_per_node=8)
_ONE, _HOST, _GUEST = Configuration("V100", 1), Configuration("V100", 1, share=0.6, priority=1), Configuration(
    "V100", 1, share=0.4
)  # fmt: skip
_MEMORY_GIB = 12.0  # of every job: it fits an opportunistic share, and what is reported are ratios
_CERTAIN = EpochDistribution.certain()
_SLACK = (1.0, 4.0)  # due dates, as multiples of the time alone
_EURO_PER_S = 0.001


def trace_instance(trace: int, *, shared: bool, first: int | None = None) -> Instance:
    """Make the single-GPU jobs of a trace: as guaranteed and opportunistic on V100s, or alone on them.

    A job's epochs are seconds alone. Utilisations are GPU time over iteration time of its model; a restart takes as
    long as was measured. Due dates are drawn, from once to four times the time alone after the submission; all weights
    are 1 € for a thousand seconds, and all jobs need the same memory.

    Args:
        trace: 1, 2 or 4.
        shared: Whether jobs may be guaranteed and opportunistic jobs; else each has a GPU for itself.
        first: How many jobs, in the order of submission; None for all.
    """
    rows = list(_single_gpu_rows(trace))[:first]
    restart_s = _restarts()
    slack = np.random.default_rng(trace).uniform(*_SLACK, len(rows))
    configurations = (_HOST, _GUEST) if shared else (_ONE,)
    seconds = dict.fromkeys(configurations, 1.0)
    jobs, utilisations = [], {}
    for row, drawn in zip(rows, slack, strict=True):
        submission_s, long_s = float(row["submit_time"]) / 1000.0, float(row["duration"]) / 1000.0
        model = row["model_name"]
        utilisations[model] = float(row["resource_time_1"]) / float(row["iteration_time"])
        jobs.append(
            Job(
                submission_s, submission_s + (1.0 + drawn) * long_s, _EURO_PER_S, long_s, _CERTAIN, long_s, seconds,
                _MEMORY_GIB, model, restart_s[model], opportunistic=row["priority"] == "1", resume_s=restart_s[model],
            )
        )  # fmt: skip
    utilisation = UtilisationModel(np.array([list(utilisations.values())]), overhead=OVERHEAD)
    nodes = [Node("V100", 8)] * (GPUS[trace] // 8)
    return Instance.from_jobs([_GPU], nodes, jobs, configurations, interference=utilisation, name=f"muri-{trace}")


def _single_gpu_rows(trace: int) -> Iterator[dict[str, str]]:
    with (MURI / f"trace{trace}.csv").open(encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row["num_gpu"] == "1")


def _restarts() -> dict[str, float]:
    with (MURI / "muri_stage_times.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return {row["model"]: float(row["restart_s"]) for row in rows if row["gpus"] == "1"}


def sharing(trace: int, quick: bool) -> Measured:
    """Compare AntMan with first come, first served on GPUs of their own."""
    first = 200 if quick else None
    fifo = simulate(trace_instance(trace, shared=False, first=first), make_policy("fifo"))
    antman = simulate(trace_instance(trace, shared=True, first=first), make_policy("antman"))
    (before, classes), (after, now) = ((Usage.of(each), JobTimes.by_label(each)) for each in (fifo, antman))
    computing, memory = after.computing / before.computing - 1.0, after.memory / before.memory - 1.0
    guaranteed, others = now["guaranteed"], now["opportunistic"]
    source = "AntMan, abstract: production cluster"
    return Measured(
        (
            Check("computing utilisation against exclusive FIFO", computing, 0.2, 0.5, 0.34, source),
            Check("memory utilisation against exclusive FIFO", memory, max(0.35, computing), 0.75, 0.42, source),
            Check("makespan over FIFO's", after.makespan_s / before.makespan_s, 0.65, 0.9),
            Check("guaranteed jobs: largest time over time alone", guaranteed.most_stretch, 1.0, 1.0 + OVERHEAD + 1e-9),
            Check(
                "guaranteed jobs: mean completion over FIFO's",
                guaranteed.completion_s / classes["guaranteed"].completion_s, 0.0, 1.0,
            ),
            Check(
                "opportunistic jobs: queueing over FIFO's", others.queueing_s / classes["opportunistic"].queueing_s,
                0.0, 0.75,
            ),
            Check("opportunistic jobs: mean time over time alone", others.stretch),
            Check("mean completion over FIFO's", antman.mean_completion_s / fifo.mean_completion_s, 0.0, 1.0),
            Check("GPU time held over FIFO's", after.held * after.makespan_s / (before.held * before.makespan_s)),
        )
    )  # fmt: skip


def preempting(trace: int, quick: bool) -> Measured:
    """Compare AntMan with rules that preempt, on GPUs of their own."""
    first = 200 if quick else None
    antman = simulate(trace_instance(trace, shared=True, first=first), make_policy("antman"))
    alone = trace_instance(trace, shared=False, first=first)
    others = {name: simulate(alone, make_policy(name)) for name in ("las", "greedy", "sts", "srpt-worst")}
    source = "Muri's simulation of AntMan, all jobs, against Tiresias"
    completion = {name: antman.mean_completion_s / other.mean_completion_s for name, other in others.items()}
    tardiness = {name: antman.tardiness_eur / max(other.tardiness_eur, 1e-9) for name, other in others.items()}
    return Measured(
        (
            Check("AntMan's mean completion over that of las", completion["las"], 1.0, np.inf, TIRESIAS[trace], source),
            Check("the same over that of srpt-worst", completion["srpt-worst"], 1.0),
            Check("AntMan's tardiness cost over that of greedy", tardiness["greedy"], 1.0),
            Check("the same over that of sts", tardiness["sts"], 1.0),
            Check("the same over that of srpt-worst", tardiness["srpt-worst"]),
        )
    )


PARTS = tuple(
    Part("antman", f"{name}-{trace}", title.format(trace), partial(run, trace), MURI)
    for name, title, run in (
        ("sharing", "AntMan against exclusive GPUs, single-GPU jobs of Muri's trace {}", sharing),
        ("preempting", "AntMan against rules that preempt, Muri's trace {}", preempting),
    )
    for trace in GPUS
)
