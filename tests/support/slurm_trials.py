"""Trials on a test cluster of Slurm: jobs with made-up training, submitted as time passes, and a driver beside them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from gpusched_operations.live.emulated import EmulatedCluster
from gpusched_operations.live.made_up_training import MadeUpTraining, RunEvent, command, run_events
from slurm_clusters import states
from waiting import eventually

SPEED = 600.0
"""Seconds of the model in a real second."""

POLLS_S = 0.5
"""How often the driver looks."""

RATES = {
    "small": {"V100": (1200.0, 660.0), "A100": (640.0, 350.0)},
    "large": {"V100": (2400.0, 1260.0), "A100": (1180.0, 610.0)},
}
"""Seconds of the model for an epoch of an application, by GPU type, on 1 and 2 GPUs."""


@dataclass(frozen=True)
class TrialJob:
    """A job of a trial.

    Attributes:
        after_s: When it is submitted after the trial's start [real s].
        application: Its application.
        most: Most epochs that it needs: what the policy is told.
        needs: Epochs that it needs.
        due_s: Its due date after its submission [model s].
        weight: What a second of delay costs [€/s of the model].
        fails_at: As in `MadeUpTraining`.
        reports: As in `MadeUpTraining`.
        checkpoints: Whether it may be stopped and continued.
    """

    after_s: float = 0.0
    application: str = "small"
    most: float = 10.0
    needs: float = 10.0
    due_s: float = 36_000.0
    weight: float = 0.002
    fails_at: float | None = None
    reports: bool = True
    checkpoints: bool = True

    @property
    def comment(self) -> str:
        return (
            f"gpusched app={self.application} epochs={self.most:g} due=+{self.due_s:.0f}s weight={self.weight:g}"
            f" gpus=1,2 types=v100,a100 checkpoint={'yes' if self.checkpoints else 'no'}"
        )


def drawn_jobs(count: int, seed: int, mean_gap_s: float) -> list[TrialJob]:
    """Draw the jobs of a trial: a third at its start, the others one by one."""
    rng = np.random.default_rng(seed)
    jobs, at_s = [], 0.0
    for index in range(count):
        at_s += rng.exponential(mean_gap_s) if index >= count // 3 else 0.0
        application = ("small", "large")[int(rng.integers(2))]
        most = float(rng.integers(8, 21))
        needs = float(np.ceil(most * rng.uniform(0.5, 1.0)))
        due_s = most * RATES[application]["A100"][0] * rng.uniform(0.7, 3.0)
        jobs.append(TrialJob(at_s, application, most, needs, due_s, float(rng.choice([0.001, 0.002, 0.004]))))
    return jobs


@dataclass
class Trial:
    """A trial on a cluster that runs.

    Args:
        cluster: The cluster.
        restart_s: What a restart costs each job [real s].
        speed: Seconds of the model in a real second.

    Attributes:
        jobs: What was submitted, by id.
        submitted_s: When [s], Unix time.
    """

    cluster: EmulatedCluster
    restart_s: float = 0.5
    speed: float = SPEED
    jobs: dict[str, TrialJob] = field(default_factory=dict)
    submitted_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.cluster.folder / "trial"
        self.runs, self.progress, self.state = (self.folder / name for name in ("runs", "progress", "state"))
        for each in (self.runs, self.progress):
            each.mkdir(parents=True)
        self.rules = self.folder / "jobs.toml"
        lines = ["[clock]", f"speed = {self.speed:g}", f"origin_s = {np.floor(time.time()) - 60.0:.0f}"]
        lines += ["[gpu_types]", 'v100 = "V100"', 'a100 = "A100"']
        for application in RATES:
            times = ", ".join(f"{name} = {seconds:g}" for name, seconds in seconds_of(application).items())
            lines += [f"[applications.{application}]"]  # without what a restart costs: the driver measures it
            lines += [f"seconds_per_epoch = {{ {times} }}"]
        self.rules.write_text("\n".join(lines) + "\n")

    @property
    def environment(self) -> dict[str, str]:
        return {**self.cluster.environment, "GPUSCHED_PROGRESS": str(self.progress)}

    def submit(self, job: TrialJob, *arguments: str, opted_in: bool = True) -> str:
        path = self.folder / f"training-{len(self.jobs)}.json"
        seconds = {name.lower(): each / self.speed for name, each in seconds_of(job.application).items()}
        MadeUpTraining(
            str(self.runs), job.needs, seconds, self.restart_s, fails_at=job.fails_at, reports=job.reports
        ).save(path)
        words = ["sbatch", "--parsable", "--gres=gpu:1", "--output=/dev/null", "--requeue", *arguments]
        if opted_in:
            words += ["--hold", f"--comment={job.comment}"]
        done = subprocess.run(
            [*words, f"--wrap={command(path)}"], env=self.environment, cwd=self.folder, capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        name = done.stdout.strip()
        self.jobs[name], self.submitted_s[name] = job, time.time()
        return name

    def warm_up(self, within_s: float = 600.0) -> None:
        """Let the driver decide once about a short job: kernels are loaded, or compiled if they have to be."""
        aside = self.runs, self.jobs, self.submitted_s
        self.runs, self.jobs, self.submitted_s = self.folder / "first", {}, {}
        self.runs.mkdir()
        self.submit(TrialJob(most=1.0, needs=0.1))
        eventually(self.all_ended, within_s)
        self.runs, self.jobs, self.submitted_s = aside

    def submit_all(self, jobs: Sequence[TrialJob]) -> None:
        """Submit jobs at their times; returns after the last one."""
        start_s = time.monotonic()
        for job in jobs:
            time.sleep(max(0.0, job.after_s - (time.monotonic() - start_s)))
            self.submit(job)

    def driver(self, policy: str, *more: str, path: str | None = None) -> subprocess.Popen[bytes]:
        """Start a driver: the command of the project, in a process of its own.

        Args:
            policy: The policy.
            more: More options.
            path: A folder whose programs come first.
        """
        words = [sys.executable, "-m", "gpusched_experiments", "slurm", "drive", "--partition", "gpu"]
        words += ["--policy", policy, "--rules", str(self.rules), "--state", str(self.state), "--poll", str(POLLS_S)]
        words += ["--every", "5", "--progress", str(self.progress), *more]
        environment = self.environment
        if path is not None:
            environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
        with (self.folder / "driver.log").open("ab") as log:
            return subprocess.Popen(words, env=environment, cwd=self.folder, stdout=log, stderr=log)

    @contextmanager
    def driving(self, policy: str, *more: str, path: str | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Let a driver work inside; after, it is told to end and has ended."""
        process = self.driver(policy, *more, path=path)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(300.0)

    def said(self) -> str:
        return (self.folder / "driver.log").read_text(errors="replace")

    def events(self) -> list[RunEvent]:
        return run_events(self.runs)

    def states(self) -> dict[str, str]:
        return states(self.cluster)

    def all_ended(self) -> bool:
        ended = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"}
        states = self.states()
        return all(states.get(name) in ended for name in self.jobs)

    def completed(self) -> set[str]:
        return {name for name, state in self.states().items() if state == "COMPLETED"}

    def rounds(self) -> int:
        return sum(event["kind"] == "round" for event in journal_of(self))

    def wait_for_rounds(self, more: int, driver: subprocess.Popen[bytes]) -> None:
        before = self.rounds()
        eventually(lambda: driver.poll() is not None or self.rounds() >= before + more)
        assert driver.poll() is None, self.said()

    def check_runs(self) -> None:
        """Check by what jobs wrote down: each ended once, none ran twice at once, no GPU was used twice at once.

        Slurm can stop a job that has just written its last line, until it has seen the end of its process. Such a job
        runs once more, from its last checkpoint, with nothing left to do.
        """
        events = self.events()
        assert not [event for event in events if event.kind == "overlap"]
        by_job: dict[str, list[RunEvent]] = defaultdict(list)
        for event in events:
            by_job[event.job].append(event)
        assert set(by_job) == set(self.jobs)
        stopped_at_their_end = 0
        for name, job in self.jobs.items():
            kinds = [event.kind for event in by_job[name]]
            last = "end" if job.fails_at is None else "failed"
            epochs = job.needs if job.fails_at is None else job.fails_at
            without_work = sum(event.kind == "start" and event.epochs >= epochs for event in by_job[name])
            stopped_at_their_end += without_work
            assert kinds.count("end") + kinds.count("failed") == 1 + without_work, (name, kinds)
            assert kinds[-1] == last, (name, kinds)
            assert by_job[name][-1].epochs == epochs
            done = [event.epochs for event in by_job[name]]
            assert done == sorted(done), (name, done)
        assert stopped_at_their_end <= 2
        used: dict[tuple[str, int], list[tuple[float, float]]] = defaultdict(list)
        for first, until_s in runs_of(events):
            for gpu in first.gpus:
                used[first.node, gpu].append((first.at_s, until_s))
        for place, spans in used.items():
            spans.sort()
            for (_, end_s), (start_s, _) in pairwise(spans):
                assert start_s >= end_s - 0.05, (place, spans)


def runs_of(events: Sequence[RunEvent]) -> list[tuple[RunEvent, float]]:
    """Return the start of each run, and when it wrote its last line [s]: a run that was killed ends before that."""
    last: dict[tuple[str, int], tuple[RunEvent, float]] = {}
    for event in events:
        key = event.job, event.restarts
        first = last[key][0] if key in last else event
        last[key] = first, event.at_s
    return list(last.values())


def journal_of(trial: Trial) -> list[dict[str, object]]:
    found = []
    for path in sorted((trial.state / "journal").glob("*")):
        found += [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return found


def seconds_of(application: str) -> dict[str, float]:
    """Return the seconds of the model for an epoch of an application, by configuration."""
    return {
        f"{gpu_type}x{count}": seconds
        for gpu_type, times in RATES[application].items()
        for count, seconds in enumerate(times, start=1)
    }
