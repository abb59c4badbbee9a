"""What policies would have saved against the schedule that a journal saw, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_env.simulator import Result
from gpusched_env.workload.traces.seen_jobs import SeenCluster, SeenJob
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate, bootstrap
from gpusched_experiments.report.table import RATIO, Column, Table
from gpusched_operations.live.costs import HeldGpus, shared_energy_eur

HOUR_S = 3600.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the jobs of an instance ran, and what that cost.

    Attributes:
        name: What made it.
        submission_s: Submissions [s], (J,), as all other arrays.
        start_s: First starts [s].
        completion_s: Ends [s].
        energy_eur: Energy of each job [€].
        tardiness_eur: Tardiness of each [€].
    """

    name: str
    submission_s: Floats
    start_s: Floats
    completion_s: Floats
    energy_eur: Floats
    tardiness_eur: Floats

    @classmethod
    def of_result(cls, result: Result) -> Schedule:
        return cls(
            result.policy, result.instance.jobs.submission_s, result.start_s, result.completion_s,
            result.job_energy_eur, result.job_tardiness_eur,
        )  # fmt: skip

    @classmethod
    def of_journal(cls, seen: SeenCluster, instance: Instance, left: Collection[str] = ()) -> Schedule:
        """Take the one that a journal saw, on the nodes where it saw the jobs.

        Costs are those of the model: a node draws power by its busy GPUs, as in simulated runs, and its jobs share
        that by their GPUs.

        Args:
            instance: The instance of the scenario that replays it; seeds decide nothing here.
            left: Ids of jobs that the scenario leaves out.
        """
        ordered = sorted(seen.jobs.values(), key=lambda each: each.submit_s)
        jobs = [job for job in ordered if job.id not in left and _is_taken(seen, job)]
        if len(jobs) != len(instance.jobs):
            raise InputError("instance.jobs", len(instance.jobs), f"the {len(jobs)} jobs that ran in the journal")
        table = instance.jobs

        def at(unix_s: float) -> float:
            return (unix_s - jobs[0].submit_s) * seen.speed

        start_s = np.array([at(job.runs[0].start_s) for job in jobs])
        completion_s = np.array([at(job.runs[-1].end_s) for job in jobs])
        late_s = np.maximum(0.0, completion_s - table.due_s)
        energy = _energy_eur(seen, jobs, instance)
        return cls(
            "what ran", table.submission_s, start_s, completion_s, energy, late_s * table.tardiness_weight_eur_per_s
        )


def _is_taken(seen: SeenCluster, job: SeenJob) -> bool:
    own = seen.partition in (None, job.fields.get("partition"))
    return own and job.is_known and job.duration_s > 0.0 and job.runs[-1].gpus > 0


def _energy_eur(seen: SeenCluster, jobs: Sequence[SeenJob], instance: Instance) -> Floats:
    """Return what the energy of each job cost [€], (J,)."""
    types = [each.name for each in instance.gpu_types]
    held = [
        HeldGpus(
            node, types.index(seen.type_of(run)), run.gpus // len(run.nodes), index,
            run.start_s * seen.speed, run.end_s * seen.speed,
        )
        for index, job in enumerate(jobs)
        for run in job.runs
        for node in run.nodes
    ]  # fmt: skip
    return shared_energy_eur(held, instance)


@dataclass(frozen=True, slots=True)
class _Measure:
    """What can be saved: its name, its unit, what each job has of it, (J,), and whether the mean is shown."""

    name: str
    unit: str
    of: Callable[[Schedule], Floats]
    mean: bool = False


MEASURES = (
    _Measure("energy", "€", lambda made: made.energy_eur),
    _Measure("tardiness", "€", lambda made: made.tardiness_eur),
    _Measure("total cost", "€", lambda made: made.energy_eur + made.tardiness_eur),
    _Measure("mean waiting", "h", lambda made: (made.start_s - made.submission_s) / HOUR_S, mean=True),
    _Measure("mean completion", "h", lambda made: (made.completion_s - made.submission_s) / HOUR_S, mean=True),
)
Saved = tuple[str, _Measure, float, float, Estimate]
SAVED: tuple[Column[Saved], ...] = (
    Column("policy", "policy", lambda row: row[0]),
    Column("measure", "measure", lambda row: f"{row[1].name} [{row[1].unit}]"),
    Column("ran", "what ran", lambda row: row[2], RATIO),
    Column("policy_value", "policy", lambda row: row[3], RATIO),
    Column("saved", "saved", lambda row: row[4], RATIO, interval=True),
)


def blocks_of(submission_s: Floats, speed: float = 1.0) -> tuple[NDArray[np.int64], str]:
    """Return which jobs are drawn together, (J,), and how that is called.

    Jobs that wait for each other are not independent: those submitted in one hour of the cluster belong together; in
    one day, where there are 14 of them or more; each is alone, where there are fewer than 5 hours.
    """
    hours = np.floor(submission_s / (HOUR_S * speed)).astype(np.int64)
    for blocks, least, name in ((hours // 24, 14, "days"), (hours, LEAST_SEEDS, "hours")):
        if len(np.unique(blocks)) >= least:
            return blocks, f"{len(np.unique(blocks))} {name} of submission"
    return np.arange(len(hours)), f"{len(hours)} jobs, as there are fewer than {LEAST_SEEDS} hours of submission"


def savings_table(ran: Schedule, others: Sequence[Schedule], speed: float = 1.0) -> Table:
    """Make the table of what policies save against what ran, with intervals."""
    blocks, drawn = blocks_of(ran.submission_s, speed)
    _, index = np.unique(blocks, return_inverse=True)
    size = np.bincount(index).astype(np.float64)
    rows: list[Saved] = []
    for other in others:
        for measure in MEASURES:
            before, own = measure.of(ran), measure.of(other)
            many = len(own) if measure.mean else 1
            less = np.bincount(index, weights=before - own).astype(np.float64)
            interval = bootstrap(len(size), _saved(less, size if measure.mean else None))
            saved = Estimate(float((before - own).sum()) / many, interval, len(size))
            rows.append((other.name, measure, float(before.sum()) / many, float(own.sum()) / many, saved))
    note = (
        "What ran: starts, ends and nodes as the journal saw them, with the power and prices of the model. Saved: what "
        f"ran less the policy (first seed), with 95 % bootstrap intervals over {drawn}, drawn with all their jobs and "
        "the same for both. They say how much this depends on a few busy hours; one journal is one sample of the "
        "cluster's load, and says nothing of other weeks."
    )
    return Table.of("Against what ran", SAVED, rows, (note,))


def verdict_of(table: Table) -> str:
    """Say in a sentence or two what the table of savings comes to."""
    said = []
    for policy in dict.fromkeys(str(row["policy"]) for row in table.as_dicts()):
        parts = []
        for row in table.as_dicts():
            saved = row["saved"]
            if row["policy"] != policy or not isinstance(saved, Estimate):
                continue
            name, _, unit = str(row["measure"]).rstrip("]").rpartition(" [")
            ends = "" if saved.interval is None else f" [{saved.interval[0]:,.2f}, {saved.interval[1]:,.2f}]"
            parts.append(f"{name} {saved.value:,.2f} {unit}{ends}")
        said.append(f"Against what ran, {policy} would have saved (a minus: lost): {'; '.join(parts)}.")
    return " ".join(said)


def _saved(less: Floats, size: Floats | None) -> Callable[[NDArray[np.int64]], Any]:
    """Return what gives the saving of every draw of blocks: the sum, or the mean over jobs."""
    if size is None:
        return lambda draws: less[draws].sum(axis=1)
    return lambda draws: less[draws].sum(axis=1) / size[draws].sum(axis=1)
