"""Drawn queues that run on a test cluster of real Slurm daemons: the draw, the runs, and the table of their jobs."""

from __future__ import annotations

import csv
import io
import re
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError, RunError
from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.emulated_files import CPUS_PER_GPU, FAST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

QUEUES, JOBS = 40, 12
"""Queues 0 to 19 were seen while the rules were written; those from 20 on are a fresh draw."""

AT_ONCE = 12
"""Clusters that run side by side."""

WITHIN_S = 1_800.0
"""Longest time of a queue [s]."""

CLUSTERS = ((6, 1), (2, 4))
"""Nodes and GPUs per node: of queues with an even number, and with an odd one."""

SIZES = ((1, 2, 3, 4, 6), (1, 2, 3, 4, 8))
"""GPUs that a job may ask for, of the same queues."""

_BACKFILL = f"SchedulerParameters={FAST},bf_resolution=1"
_BY_SIZE = ("PriorityType=priority/multifactor", "PriorityWeightJobSize=1000", "PriorityCalcPeriod=1")
SETTINGS: dict[str, tuple[str, ...]] = {
    "slurm-backfill": (_BACKFILL, "PriorityType=priority/basic"),
    "one-reservation": (f"{_BACKFILL},bf_job_part_count_reserve=1", "PriorityType=priority/basic"),
    "multifactor": (_BACKFILL, *_BY_SIZE),
}
"""Slurm's settings by rule."""

ZERO_S = 30
"""Times count from a multiple of it: Slurm rounds the ends of jobs up to full half minutes of its clock [s]."""

_LOGGED = re.compile(
    r"\[(\S+)\] (_slurm_rpc_submit_batch_job: |sched: Allocate |sched/backfill: _start_job: Started |_job_complete: )"
    r"JobId=(\d+)\b(?! WEX)"
)


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """A job of a queue that ran on Slurm: a row of the table.

    Attributes:
        queue: Number of the queue, ≥ 0.
        rule: One of `SETTINGS`.
        gpus: GPUs that it asked for; more than a node has: whole nodes.
        limit_s: Its time limit [s].
        submission_s: When it was submitted, after a full half minute of Slurm's clock [s].
        start_s: When it started [s].
        end_s: When it ended [s].
        backfilled: 1 if the backfill plugin started it, 0 if the main scheduler did.
    """

    queue: int
    rule: str
    gpus: int
    limit_s: int
    submission_s: float
    start_s: float
    end_s: float
    backfilled: int


COLUMNS = tuple(field.name for field in fields(SlurmJob))


def run_all(cases: Sequence[tuple[int, str]]) -> Iterator[tuple[tuple[int, str], list[SlurmJob]]]:
    """Run queues by rules, several at once; yield each with its jobs as it ends."""
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
        EmulatedCluster(Path(folder) / "slurm", f"a100:{gpus}x{nodes}", settings=SETTINGS[rule]) as cluster,
    ):
        asked: dict[str, tuple[int, int]] = {}
        after_s, began_s = 0, time.monotonic()
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
        _wait_for_jobs(cluster)
        times_s = logged_times((cluster.folder / "log" / "slurmctld.log").read_text(encoding="utf-8"))
    return [SlurmJob(queue, rule, gpus, limit_s, *times_s[job]) for job, (gpus, limit_s) in asked.items()]


def _wait_for_jobs(cluster: EmulatedCluster) -> None:
    """Wait until no job waits or runs; check that all ended well."""
    by_s = time.monotonic() + WITHIN_S
    while cluster.run("squeue", "--noheader"):
        if time.monotonic() > by_s:
            raise RunError(f"the jobs of {cluster.folder} did not end in {WITHIN_S:g} s")
        time.sleep(1.0)
    rows = [line.split() for line in cluster.run("squeue", "-ht", "all", "--format=%i %T").splitlines()]
    if wrong := [f"job {job}: {state}" for job, state in rows if state != "COMPLETED"]:
        raise RunError(f"jobs of {cluster.folder} did not complete: {', '.join(wrong)}")


def logged_times(log: str) -> dict[str, tuple[float, float, float, int]]:
    """Return when each job of a log of slurmctld was submitted, started and ended [s], and if it was backfilled."""
    found: dict[str, dict[str, float]] = {}
    for at, what, job in _LOGGED.findall(log):
        found.setdefault(job, {})[what] = datetime.fromisoformat(at).timestamp()
    zero_s = min(min(times.values()) for times in found.values()) // ZERO_S * ZERO_S
    rows = {}
    for job, times in found.items():
        submitted, started, ended = (round(each - zero_s, 3) for each in sorted(times.values()))
        rows[job] = submitted, started, ended, int(any("backfill" in what for what in times))
    return rows


def read_runs(path: Path) -> dict[tuple[int, str], list[SlurmJob]]:
    """Read a table of runs.

    Raises:
        InputError: It is no such table.
    """
    found: dict[tuple[int, str], list[SlurmJob]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                queue, gpus, limit_s, backfilled = (
                    int(row[name]) for name in ("queue", "gpus", "limit_s", "backfilled")
                )
                submission_s, start_s, end_s = (float(row[name]) for name in ("submission_s", "start_s", "end_s"))
                job = SlurmJob(queue, row["rule"], gpus, limit_s, submission_s, start_s, end_s, backfilled)
                found.setdefault((job.queue, job.rule), []).append(job)
    except (OSError, KeyError, TypeError, ValueError):
        found = {}
    lengths = [min(job.gpus, job.limit_s, job.end_s - job.start_s) for jobs in found.values() for job in jobs]
    if not lengths or min(lengths) <= 0 or not {rule for _, rule in found} <= set(SETTINGS):
        allowed = f"a table of runs with columns {', '.join(COLUMNS)}, and rules {', '.join(SETTINGS)}"
        raise InputError("files", str(path), allowed)
    return found


def table_of(jobs: Iterable[SlurmJob]) -> str:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    rows.writerows(astuple(job) for job in jobs)
    return text.getvalue()
