"""What a driver made of a trial beside what `gpusched simulate` makes of the same jobs, with the latencies seen."""

import csv
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from gpusched_env import Configuration, EpochDistribution, Instance, Job, Node, save_instance
from gpusched_env.workload import Scenario
from gpusched_env.workload.catalogue import Catalogue, of_size
from slurm_trials import RATES, Trial, journal_of, seconds_of

SAME_READING_S = 0.2

SIZES = {"V100": (4, 2), "A100": (8, 2)}
"""GPUs a node, and nodes, by GPU type."""


@dataclass(frozen=True)
class Schedule:
    """A schedule.

    Attributes:
        configurations: What each job held, one after another, by its place in the order of submission.
        starts_s: When each job first held GPUs [real s after the driver saw the first job].
    """

    configurations: dict[int, tuple[str, ...]]
    starts_s: dict[int, float]


@dataclass(frozen=True)
class Agreement:
    """How far two schedules agree.

    Attributes:
        same: Jobs with the same configurations one after another, of all.
        same_first: Jobs with the same first configuration, of all.
        rank_correlation: Spearman's, of the first starts.
        differences_s: Differences of the first starts [real s], one for each job.
        differs_first: The job that starts first of those whose first configurations differ, as a text.
    """

    same: float
    same_first: float
    rank_correlation: float
    differences_s: tuple[float, ...]
    differs_first: str


def seen_s(trial: Trial) -> dict[str, float]:
    """Return when the driver first saw each job, as Unix times [s]: to a policy it is submitted then."""
    adopted = {str(event["job"]): float(event["time"]) for event in journal_of(trial) if event["kind"] == "adopted"}  # type: ignore[arg-type]
    # One reading sees several jobs; the journal's lines of them follow each other within milliseconds.
    found: dict[str, float] = {}
    last_s = 0.0
    for name, at_s in sorted(adopted.items(), key=lambda each: each[1]):
        last_s = last_s if at_s - last_s < SAME_READING_S else at_s
        if name in trial.jobs:
            found[name] = last_s
    return found


def driven(trial: Trial) -> Schedule:
    place = {name: i for i, name in enumerate(trial.jobs)}
    zero_s = min(seen_s(trial).values())
    held: dict[int, list[str]] = defaultdict(list)
    starts: dict[int, float] = {}
    for event in trial.events():
        if event.kind != "start":
            continue
        job = place[event.job]
        name = event.configuration.upper().replace("X", "x")
        starts.setdefault(job, event.at_s - zero_s)
        if not held[job] or held[job][-1] != name:
            held[job].append(name)
    return Schedule({job: tuple(names) for job, names in held.items()}, starts)


def latencies_s(trial: Trial) -> tuple[float, float]:
    """Return the median times from when a job could have started until it made progress, and of a change [real s].

    It could have started when the driver saw it and another job had left the GPUs that it got.
    """
    seen = seen_s(trial)
    left: dict[tuple[str, int], float] = {}
    could: dict[str, float] = {}
    first: dict[str, float] = {}
    for event in trial.events():
        places = [(event.node, gpu) for gpu in event.gpus]
        if event.kind == "start":
            could.setdefault(event.job, max(seen[event.job], *(left.get(each, 0.0) for each in places)))
        elif event.kind == "ready":
            first.setdefault(event.job, event.at_s - could[event.job])
        else:
            left.update(dict.fromkeys(places, event.at_s))
    costs = [float(event["cost_s"]) for event in journal_of(trial) if event["kind"] == "restarted"]  # type: ignore[arg-type]
    return float(np.median(list(first.values()))), float(np.median(costs)) if costs else trial.restart_s


def as_run(trial: Trial) -> Instance:
    """Return the instance of a trial's jobs as the driver came to see them, with the needs and latencies seen."""
    start_s, restart_s = latencies_s(trial)
    catalogue = Catalogue.of(Scenario())
    types = [of_size(catalogue.gpu_types[name], gpus) for name, (gpus, _) in SIZES.items()]
    nodes = [Node(name, gpus) for name, (gpus, count) in SIZES.items() for _ in range(count)]
    configurations = {
        app: {Configuration(n.partition("x")[0], int(n.partition("x")[2])): s for n, s in seconds_of(app).items()}
        for app in RATES
    }
    seen = seen_s(trial)
    zero_s = min(seen.values())
    jobs = [
        Job(
            at_s := (seen[name] - zero_s) * trial.speed,
            at_s + max(0.0, job.due_s - (seen[name] - trial.submitted_s[name]) * trial.speed),
            job.weight,
            job.most,
            EpochDistribution.certain(),
            job.needs,
            configurations[job.application],
            application=job.application,
            restart_s=restart_s * trial.speed,
            start_s=start_s * trial.speed,
        )
        for name, job in trial.jobs.items()
    ]
    return Instance.from_jobs(types, nodes, jobs, energy_price_eur_per_kwh=0.172, pue=1.58, name="trial")


def simulated(trial: Trial, policy: str, folder: Path) -> Schedule:
    """Return the schedule of `gpusched simulate`."""
    folder.mkdir(parents=True, exist_ok=True)
    instance = as_run(trial)
    save_instance(instance, folder / "instance.json")
    words = [sys.executable, "-m", "gpusched_experiments", "simulate", "--policy", policy]
    words += ["--instance", str(folder / "instance.json"), "--out", str(folder / "run")]
    subprocess.run(words, check=True, capture_output=True, text=True)
    held: dict[int, list[str]] = defaultdict(list)
    starts: dict[int, float] = {}
    with (folder / "run" / "intervals.csv").open() as file:
        for row in sorted(csv.DictReader(file), key=lambda row: float(row["start_s"])):
            job = int(row["job"])
            starts.setdefault(job, float(row["start_s"]) / trial.speed)
            if not held[job] or held[job][-1] != row["configuration"]:
                held[job].append(row["configuration"])
    return Schedule({job: tuple(names) for job, names in held.items()}, starts)


def agreement(one: Schedule, other: Schedule) -> Agreement:
    jobs = sorted(one.configurations)
    first = [job for job in jobs if one.configurations[job][0] == other.configurations[job][0]]
    apart = [job for job in jobs if job not in first]
    differs = ""
    if apart:
        job = min(apart, key=lambda job: min(one.starts_s[job], other.starts_s[job]))
        differs = (
            f"job {job}: {'>'.join(one.configurations[job])} at {one.starts_s[job]:.1f} s,"
            f" {'>'.join(other.configurations[job])} at {other.starts_s[job]:.1f} s"
        )
    ranks = [np.argsort(np.argsort([each.starts_s[job] for job in jobs])) for each in (one, other)]
    return Agreement(
        sum(one.configurations[job] == other.configurations[job] for job in jobs) / len(jobs),
        len(first) / len(jobs),
        float(np.corrcoef(*ranks)[0, 1]),
        tuple(one.starts_s[job] - other.starts_s[job] for job in jobs),
        differs,
    )


def round_length_s(trial: Trial) -> float:
    """Return the largest time between two rounds, of which the later one began with something new [real s]."""
    ends = [float(event["time"]) for event in journal_of(trial) if event["kind"] == "round"]  # type: ignore[arg-type]
    return max((later - earlier for earlier, later in pairwise(ends)), default=0.0)
