"""A driver on a real Slurm of this machine: how long jobs wait for it, and how long a round takes with many jobs."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.figure import Figure, at_most
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.asking import decider_of
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.emulated import PACKAGES, EmulatedCluster, missing_programs
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress_reports import ProgressReports
from gpusched_operations.live.slurm_commands import Done, SlurmControl, run_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROUND_S = 10.0
SUBMITTERS = 16
COMMENT = "gpusched app=resnet50-imagenet-bs64 epochs=90 due=+24h gpus=1,2,4 types=v100,a100 checkpoint=yes"


def measure(
    jobs: int = 60, queued: int = 1000, nodes: int = 400, policies: Sequence[str] = ("edf", "sts")
) -> list[Figure]:
    """Measure on test clusters.

    Args:
        jobs: Jobs whose latency is measured.
        queued: Jobs that wait in the round of many.
        nodes: Nodes there, > 1; they have no daemons.
        policies: The policies of that round.
    """
    if missing := missing_programs():
        note = f"Slurm is not installed: {', '.join(missing)} (Debian: {PACKAGES})"
        return [Figure("latency from submission to start", (), "s", note=note)]
    figures = []
    with tempfile.TemporaryDirectory(prefix="slurm-") as folder:
        with _cluster(Path(folder, "few"), "v100:4x2,a100:8x2") as cluster:
            figures += _latency(cluster, "plain Slurm", jobs)
            driver = _driver(cluster, "edf", Path(folder, "state"))
            figures += _latency(cluster, "driver, edf", jobs, driver)
        half = nodes // 2
        for policy in policies:
            with _cluster(Path(folder, "many"), f"v100:4x{half},a100:8x{nodes - half}", daemons=False) as cluster:
                _submit_at_once(cluster, queued)
                figures += _round(cluster, policy, Path(folder, policy), f"{queued:,} jobs, {nodes} nodes, {policy}")
    return figures


@contextmanager
def _cluster(folder: Path, nodes: str, *, daemons: bool = True) -> Iterator[EmulatedCluster]:
    """Start a cluster that this process means, too."""
    former = {name: os.environ.get(name) for name in ("SLURM_CONF", "PATH")}
    with EmulatedCluster(folder, nodes, daemons=daemons) as cluster:
        os.environ.update({name: cluster.environment[name] for name in former})
        try:
            yield cluster
        finally:
            for name, value in former.items():
                if value is None:
                    os.environ.pop(name)
                else:
                    os.environ[name] = value


def _driver(cluster: EmulatedCluster, policy: str, folder: Path, run: object = run_command) -> Driver:
    folder.mkdir(mode=0o700, exist_ok=True)
    settings = DriveSettings("gpu", policy, every_s=5.0, poll_s=0.25)
    ask = decider_of(policy, b"k" * 32).ask
    reports = ProgressReports(cluster.folder)
    commands = SlurmControl(run=run)  # type: ignore[arg-type]
    return Driver(settings, JobRules.load(None), commands, ask, folder, lambda _kind, **_fields: None, reports)


def _latency(cluster: EmulatedCluster, who: str, count: int, driver: Driver | None = None) -> list[Figure]:
    """Measure from `sbatch` to the first line of the job: short jobs, one after another, on GPUs that are free."""
    if driver is not None:
        driver.decide(driver.observe())  # kernels are loaded
    folder = cluster.folder / who.replace(" ", "-")
    folder.mkdir()
    asked = (f"--comment={COMMENT}", "--hold") if driver is not None else ()
    submitted: dict[str, float] = {}
    calls, rounds = 0, 0
    next_s = time.monotonic()
    by_s = next_s + 10.0 + 2.0 * count
    while len(list(folder.iterdir())) < count and time.monotonic() < by_s:
        if len(submitted) < count and time.monotonic() >= next_s:
            at_s = time.time()
            job = cluster.submit(
                *asked, "--gres=gpu:1", "--output=/dev/null",
                f"--wrap=date +%s.%N > {folder}.$SLURM_JOB_ID; mv {folder}.$SLURM_JOB_ID {folder}/$SLURM_JOB_ID;"
                " sleep 0.5",
            )  # fmt: skip
            submitted[job] = at_s
            next_s += 0.5
            if driver is None or len(submitted) % 2:
                continue
        if driver is None:
            time.sleep(0.05)
        else:
            before = driver.commands.calls
            driver.round()
            calls, rounds = calls + driver.commands.calls - before, rounds + 1
            driver.wait(max(0.0, next_s - time.monotonic()) if len(submitted) < count else 1.0)
    waited = [float((folder / job).read_text()) - at_s for job, at_s in submitted.items() if (folder / job).exists()]
    name = f"{who}: from submission to start"
    note = f"{len(waited)} of {count} jobs"
    found = [
        Figure(f"{name}, median", (float(np.median(waited)),), "s", note=note),
        Figure(f"{name}, 99 %", (float(np.quantile(waited, 0.99)),), "s", note=note),
    ]
    if driver is not None:
        found.append(Figure(f"{who}: calls of Slurm a round", (calls / max(1, rounds),), "", note=f"{rounds} rounds"))
    return found


def _submit_at_once(cluster: EmulatedCluster, count: int) -> None:
    script = (
        f"for i in $(seq {count}); do sbatch --hold --requeue --gres=gpu:1 --output=/dev/null --comment='{COMMENT}'"
        f" --wrap='sleep 100' >/dev/null & [ $((i % {SUBMITTERS})) = 0 ] && wait; done; wait"
    )
    subprocess.run(["/bin/bash", "-c", script], env=cluster.environment, check=True)  # noqa: S603 - of constants


def _round(cluster: EmulatedCluster, policy: str, folder: Path, title: str) -> list[Figure]:
    """Time two rounds in their parts: the calls that read, what is made of their texts, the decision, and the changes.

    In the first, jobs start on all GPUs; in the second nothing is new. Nodes have no daemons: Slurm takes all changes
    and gives jobs nodes, but none begins. So the changes are timed, and not the wait for the begin of jobs.
    """
    spent: dict[str, float] = {}

    def run(words: Sequence[str], text: str, limit_s: float) -> Done:
        begin_s = time.perf_counter()
        try:
            return run_command(words, text, limit_s)
        finally:
            kind = "read" if words[0] == "squeue" or tuple(words[:2]) == ("scontrol", "show") else "act"
            spent[kind] = spent.get(kind, 0.0) + time.perf_counter() - begin_s

    driver = _driver(cluster, policy, folder, run)
    driver.decide(driver.observe())  # kernels are loaded; jobs are known, and held as the driver's
    figures = []
    for which in ("all GPUs are free", "nothing is new"):
        spent.clear()
        begin_s = time.perf_counter()
        request = driver.observe()
        observed_s = time.perf_counter()
        parse_s = observed_s - begin_s - sum(spent.values())
        answer = driver.decide(request)
        decide_s = time.perf_counter() - observed_s
        read_s, calls = spent.get("read", 0.0), driver.commands.calls
        driver.apply(answer)
        parts = {"read": read_s, "parse": parse_s, "decide": decide_s, "act": spent.get("act", 0.0)}
        note = ", ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items())
        note += f"; {len(driver.actions.starts)} jobs placed and released in {driver.commands.calls - calls} calls"
        figures.append(Figure(f"{title}, {which}", (sum(parts.values()),), "s", at_most(ROUND_S), note))
    return figures
