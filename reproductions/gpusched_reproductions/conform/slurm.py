"""Slurm's own starts beside those of our backfilling: drawn queues that run on a test cluster of real daemons.

Files: a table of runs that have ended, made here: a queue that is not in it runs first. Each queue runs under each of
`RULES`. Ours schedules the same jobs with the submission times and lengths that Slurm recorded. They agree if Slurm
starts each job within `CYCLE_S` after the event at which ours does, a submission or an end, and in the same order.
"""

from __future__ import annotations

import csv
import io
import itertools
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from gpusched_baselines.backfill.conservative import Conservative
from gpusched_baselines.backfill.easy import Easy
from gpusched_baselines.backfill.multifactor import Multifactor
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.errors import InputError, RunError
from gpusched_env.files import write_atomically
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.emulated_files import CPUS_PER_GPU, FAST
from gpusched_reproductions.conform.answer import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from gpusched_env.simulator import Policy

CYCLE_S = 3.0
"""Longest time from an event to a start [s]: both schedulers of Slurm look every second, and it records seconds."""

QUEUES, JOBS = 20, 12
AT_ONCE = 12
"""Clusters that run side by side."""

WITHIN_S = 1_800.0
"""Longest time of a queue [s]."""

CLUSTERS = ((6, 1), (2, 4))
"""Nodes and GPUs per node: of queues with an even number, and with an odd one."""

SIZES = ((1, 2, 3, 4, 6), (1, 2, 3, 4, 8))
"""GPUs that a job may ask for, of the same queues."""

_BACKFILL = f"SchedulerParameters={FAST},bf_resolution=1"
_ONE_RESERVATION = f"{_BACKFILL},bf_job_part_count_reserve=1"
_BY_SIZE = ("PriorityType=priority/multifactor", "PriorityWeightJobSize=1000", "PriorityCalcPeriod=1")
RULES: dict[str, tuple[Policy, tuple[str, ...]]] = {
    "easy": (Easy(), (_ONE_RESERVATION, "PriorityType=priority/basic")),
    "conservative-renewed": (Conservative(renewed=True), (_BACKFILL, "PriorityType=priority/basic")),
    "multifactor": (Multifactor(age=0.0, fair_share=0.0), (_ONE_RESERVATION, *_BY_SIZE)),
}
"""Our policy, and Slurm's settings for the same rule. A fair share needs its accounting database."""


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job of a queue that ran on Slurm: a row of the table.

    Attributes:
        queue: Number of the queue, ≥ 0.
        rule: One of `RULES`.
        gpus: GPUs that it asked for; more than a node has: whole nodes.
        limit_s: Its time limit [s].
        submission_s: When it was submitted, after the first one of the queue [s].
        start_s: When it started [s].
        end_s: When it ended [s].
    """

    queue: int
    rule: str
    gpus: int
    limit_s: int
    submission_s: int
    start_s: int
    end_s: int


COLUMNS = tuple(field.name for field in fields(SlurmJob))


def answers(paths: Sequence[Path]) -> Iterator[Answer]:
    """Yield one answer for each queue and rule; what has not run yet runs first, and is written to the file."""
    for path in paths:
        runs = read_runs(path) if path.exists() else {}
        for case, jobs in runs.items():
            yield compare(case, jobs)
        missing = [case for case in itertools.product(range(QUEUES), RULES) if case not in runs]
        for case, jobs in _run_all(missing):
            runs[case] = jobs
            write_atomically(path, _table(job for each in sorted(runs) for job in runs[each]))
            yield compare(case, jobs)


def compare(case: tuple[int, str], jobs: Sequence[SlurmJob], within_s: float = CYCLE_S) -> Answer:
    """Compare Slurm's starts of a queue with ours.

    Args:
        case: Number of the queue, and rule.
        jobs: Its jobs, in the order in which they were submitted.
        within_s: Longest time from the event at which ours starts a job to Slurm's start [s].
    """
    queue, rule = case
    ours = simulate(instance_of(jobs, *CLUSTERS[queue % 2]), RULES[rule][0], record=False).start_s
    theirs = np.array([job.start_s for job in jobs], dtype=float)
    late_s, swapped = _late_s(jobs, ours, theirs), _swapped(ours, theirs, within_s)
    near = int(np.count_nonzero(np.abs(late_s) <= within_s))
    return Answer(
        f"queue {queue}, {rule}",
        f"starts [s] {', '.join(f'{each:.0f}' for each in theirs)}",
        f"{', '.join(f'{each:.0f}' for each in ours)}; {near} of {len(jobs)} in time, {swapped} pairs in another order",
        near == len(jobs) and not swapped,
    )


def _late_s(jobs: Sequence[SlurmJob], ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how long after the event at which ours starts a job Slurm starts it [s], (J,)."""
    ends = np.array([job.end_s for job in jobs], dtype=float)
    our_ends = ours + ends - theirs
    last = [float(ends[np.abs(our_ends - start) < 0.5].max(initial=0.0)) for start in ours]
    events = [max(job.submission_s, end) for job, end in zip(jobs, last, strict=True)]
    return theirs - np.array(events)


def _swapped(ours: NDArray[np.float64], theirs: NDArray[np.float64], within_s: float) -> int:
    """Count the pairs that start in another order and, by ours, more than `within_s` apart."""
    first = ours[:, None] < ours[None, :] - within_s
    return int(np.count_nonzero(first & (theirs[:, None] > theirs[None, :])))


def instance_of(jobs: Sequence[SlurmJob], nodes: int, gpus: int) -> Instance:
    """Make the same queue, with the submission times and the lengths of jobs that Slurm recorded."""
    asked = [Configuration("A100", min(job.gpus, gpus), -(-job.gpus // gpus)) for job in jobs]
    even = EpochDistribution(np.array([0.0, 1.0]), np.array([1.0]))
    made = [
        Job(job.submission_s, 1e6, 1e-3, 1.0, even, (job.end_s - job.start_s) / job.limit_s, {one: job.limit_s})
        for job, one in zip(jobs, asked, strict=True)
    ]
    gpu_type = GpuType("A100", 400.0, 0.0, 40.0, gpus)
    return Instance.from_jobs([gpu_type], [Node("A100", gpus)] * nodes, made, list(dict.fromkeys(asked)))


def _run_all(cases: Sequence[tuple[int, str]]) -> Iterator[tuple[tuple[int, str], list[SlurmJob]]]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {pool.submit(run_queue, *case): case for case in cases}
        try:
            for done in as_completed(running):
                yield running[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def run_queue(queue: int, rule: str) -> list[SlurmJob]:
    """Draw a queue, and run it on a test cluster of its own under a rule.

    Jobs are submitted up to 4 s after each other and run for 8 to 30 s. Their limits are 1 to 12 minutes, which Slurm
    counts in whole ones, each once: between equal ones a second decides.

    Raises:
        InputError: Slurm is not installed.
        RunError: Slurm failed, or a job did not end well.
    """
    rng, (nodes, gpus) = np.random.default_rng(queue), CLUSTERS[queue % 2]
    with (
        TemporaryDirectory() as folder,
        EmulatedCluster(Path(folder) / "slurm", f"a100:{gpus}x{nodes}", settings=RULES[rule][1]) as cluster,
    ):
        asked, after_s, began_s = {}, 0, time.monotonic()
        for index, minutes in enumerate(1 + rng.permutation(JOBS)):
            after_s += int(rng.integers(0, 5)) if index > 1 else 0
            size, runs_s = int(rng.choice(SIZES[queue % 2])), int(rng.integers(8, 31))
            time.sleep(max(0.0, began_s + after_s - time.monotonic()))
            job = cluster.submit(
                f"--nodes={-(-size // gpus)}", f"--gres=gpu:{min(size, gpus)}", f"--time={minutes}",
                f"--ntasks-per-node={CPUS_PER_GPU * min(size, gpus)}", "--output=/dev/null",
                f"--wrap=exec sleep {runs_s}",
            )  # fmt: skip
            asked[job] = size, 60 * int(minutes)
        times_s = _times_s(cluster)
    first_s = min(submitted for submitted, _, _ in times_s.values())
    return [SlurmJob(queue, rule, *of, *(round(each - first_s) for each in times_s[job])) for job, of in asked.items()]


def _times_s(cluster: EmulatedCluster) -> dict[str, tuple[float, ...]]:
    """Wait until no job waits or runs; return when each was submitted, started and ended [s]."""
    by_s = time.monotonic() + WITHIN_S
    while cluster.run("squeue", "--noheader"):
        if time.monotonic() > by_s:
            raise RunError(f"the jobs of {cluster.folder} did not end in {WITHIN_S:g} s")
        time.sleep(1.0)
    rows = [line.split() for line in cluster.run("squeue", "-ht", "all", "--format=%i %T %V %S %e").splitlines()]
    if wrong := [f"job {job}: {state}" for job, state, *_ in rows if state != "COMPLETED"]:
        raise RunError(f"jobs of {cluster.folder} did not complete: {', '.join(wrong)}")
    return {job: tuple(datetime.fromisoformat(each).timestamp() for each in times) for job, _, *times in rows}


def read_runs(path: Path) -> dict[tuple[int, str], list[SlurmJob]]:
    """Read a table of runs.

    Raises:
        InputError: It is no such table.
    """
    found: dict[tuple[int, str], list[SlurmJob]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                numbers = {name: int(row[name]) for name in COLUMNS if name != "rule"}
                job = SlurmJob(rule=row["rule"], **numbers)
                found.setdefault((job.queue, job.rule), []).append(job)
    except (OSError, KeyError, TypeError, ValueError):
        found = {}
    lengths = [min(job.gpus, job.limit_s, job.end_s - job.start_s) for jobs in found.values() for job in jobs]
    if not lengths or min(lengths) <= 0 or not {rule for _, rule in found} <= set(RULES):
        allowed = f"a table of runs with columns {', '.join(COLUMNS)}, and rules {', '.join(RULES)}"
        raise InputError("files", str(path), allowed)
    return found


def _table(jobs: Iterable[SlurmJob]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(astuple(job) for job in jobs)
    return text.getvalue()
