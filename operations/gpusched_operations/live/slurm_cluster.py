"""A partition of a Slurm cluster as an environment needs it: read, driven, and what really ran there."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_operations.live.acting import DriveSettings
from gpusched_operations.live.costs import RealRun
from gpusched_operations.live.driver import Driver
from gpusched_operations.live.driving import BUSY
from gpusched_operations.live.emulated import PACKAGES, EmulatedCluster, missing_programs
from gpusched_operations.live.instance_jobs import InstanceJobs
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.journal import Journal
from gpusched_operations.live.last_drive import Interval, separate
from gpusched_operations.live.lease import JOURNAL, Lease, locked, partition_lock, start_watchdog
from gpusched_operations.live.progress_reports import ProgressReports
from gpusched_operations.live.run_record import write_drive
from gpusched_operations.live.slurm_commands import SlurmControl, run_command
from gpusched_operations.live.slurm_state import read_cluster

if TYPE_CHECKING:
    from gpusched_env.model import Instance
    from gpusched_operations.live.request import LiveRequest

ENDING_S, ENDING_PAUSE_S = 5.0, 0.1
LEASE_S = 3600.0
"""A process that takes no step for so long is ended by a watchdog, and its jobs are left to Slurm [s]."""

NO_EVENTS = ("told", "cluster")
"""Kinds of lines of the journal that tell what is, not what happened."""

TIMES = ("submission_s", "due_s", "started_s")
OF_RUN = ("since_s", "ready_s")


class SlurmCluster:
    """A partition of a Slurm cluster.

    Args:
        conf: Path of its slurm.conf, or an emulated cluster; if it does not run, it does so from the first
            episode to `close`.
        submits: Whether episodes submit the jobs of their instances; else they have those that opt in there.
        partition: The partition.
        rules: A file of rules that describe jobs which are not submitted by episodes.
        speed: Seconds of the model in a second of the cluster, for jobs that are.
        poll_s: Time between two looks [s].

    Raises:
        InputError: Slurm is not installed, or there is no such file.
    """

    def __init__(
        self,
        conf: str | Path | EmulatedCluster,
        submits: bool,
        partition: str,
        rules: Path | None,
        speed: float,
        poll_s: float,
    ) -> None:
        if missing := missing_programs():
            allowed = f"a machine with Slurm: {', '.join(missing)} not found (Debian: apt-get install {PACKAGES})"
            raise InputError("conf", str(getattr(conf, "conf", conf)), allowed)
        self._emulated = conf if isinstance(conf, EmulatedCluster) else None
        self._started = False
        if isinstance(conf, EmulatedCluster):
            self._environment = conf.environment
        elif Path(conf).is_file():
            self._environment = {**os.environ, "SLURM_CONF": str(Path(conf).absolute())}
        else:
            raise InputError("conf", str(conf), "path of a slurm.conf")
        self._run = partial(run_command, environment=self._environment)
        self._submits, self._partition, self._speed, self._poll_s = submits, partition, speed, poll_s
        self._rules = JobRules.load(rules)
        self._driver: Driver | None = None
        self._folder: Path | None = None
        self._lock: IO[bytes] | None = None
        self._journal: Journal | None = None

    def begin(self, instance: Instance) -> None:
        """Begin an episode."""
        self._leave()
        if self._emulated is not None and " is UP" not in self._run(("scontrol", "ping"), "", 20.0).output:
            self._emulated.start()
            self._started = True
        self._folder = Path(tempfile.mkdtemp(prefix="gpusched-live-"))
        self._origin_s = time.time()
        self._instance_jobs: InstanceJobs | None = None
        rules = self._rules
        if self._submits:
            self._instance_jobs = InstanceJobs(instance, self._speed, self._partition, self._folder)
            rules = self._instance_jobs.rules(self._origin_s)
        self._clock, self._first_s = rules.clock, self._origin_s if self._submits else 0.0
        self._events: list[dict[str, Any]] = []
        self._stays: dict[str, list[Interval]] = {}
        self._ended: dict[str, float] = {}
        self._seen: LiveRequest | None = None
        self._expected: dict[str, bool] = {}
        self._journal = Journal(self._folder / JOURNAL)
        commands = SlurmControl(run=self._run)
        settings = DriveSettings(self._partition, "environment", poll_s=self._poll_s, lease_s=LEASE_S)
        if self._emulated is None:
            self._lock = locked(partition_lock(self._partition, self._environment), BUSY)
            Lease.mine(LEASE_S).save(self._folder)
            start_watchdog(self._folder, self._partition, LEASE_S, self._environment)
        reports = ProgressReports(self._folder)
        self._driver = Driver(settings, rules, commands, dict, self._folder, self._tell, reports)
        nodes = read_cluster(commands, self._origin_s).nodes
        mine = [node for node in nodes if self._partition in node.partitions and node.gpus]
        self._slurm_types = {rules.gpu_type(node.gpu_type) or "": node.gpu_type for node in mine}
        self._submit()

    def observe(self) -> dict[str, Any]:
        live, self._seen = self._seen or self._read_cluster(), None
        fields = live.fields
        now_s = fields["now_s"] if fields else self._clock.model_s(time.time())
        jobs = [self._in_episode(dict(job)) for job in fields.get("jobs", ())]
        told: dict[str, Any] = {
            name: fields[name] for name in ("cluster", "applications", "times", "distributions") if name in fields
        }
        if self._instance_jobs is not None:
            told |= self._instance_jobs.named()
            told.pop("applications", None)
        self._expected = {job["id"]: job.get("running") is not None for job in jobs}
        return told | {"now_s": now_s - self._first_s, "jobs": jobs}

    def apply(self, answer: dict[str, Any]) -> None:
        driver = self._began()
        self._expected = {job["id"]: job["configuration"] is not None for job in answer["jobs"]}
        driver.apply(answer)

    def wait(self, until_s: float) -> None:
        """Wait until a job was submitted, has ended, or is not as it was left; or until a time."""
        driver = self._began()
        while self._seen is None:
            left_s = self._unix_s(min(until_s, self.next_submission_s())) - time.time()
            if left_s > 0.0:
                driver.wait(min(left_s, driver.settings.every_s))
            self._submit()
            live = self._read_cluster()
            running = {job["id"]: job.get("running") is not None for job in live.fields.get("jobs", ())}
            if running != self._expected or time.time() >= self._unix_s(until_s) or self.over():
                self._seen = live

    def next_submission_s(self) -> float:
        return np.inf if self._instance_jobs is None else self._instance_jobs.next_s()

    def real_run(self) -> RealRun:
        runs = {name: [replace(stay) for stay in stays] for name, stays in self._stays.items()}
        separate(runs.values())
        intervals = [
            replace(stay, start_s=self._model_s(stay.start_s), end_s=self._model_s(stay.end_s))
            for stays in runs.values()
            for stay in stays
        ]
        return RealRun(intervals, {name: self._model_s(end_s) for name, end_s in self._ended.items()})

    def over(self) -> bool:
        if self._instance_jobs is None:
            return self._began().idle()
        return self.next_submission_s() == np.inf and self._instance_jobs.ids.keys() <= self._ended.keys()

    def events(self) -> list[dict[str, Any]]:
        told, self._events = self._events, []
        return told

    def write_run(self, out: Path) -> list[str]:
        """Write the run of the episode, which must not be closed, as a folder; return lines for the user."""
        return write_drive(self._began().folder, out, self._partition)

    def close(self) -> None:
        """Hold no job any more, cancel those that were submitted here and have not ended, and stop what was started."""
        self._leave()
        if self._emulated is not None and self._started:
            self._emulated.stop()
            self._started = False

    def _leave(self) -> None:
        if self._driver is None or self._folder is None:
            return
        left = [] if self._instance_jobs is None else sorted(self._instance_jobs.ids.keys() - self._ended.keys())
        if left:
            self._run(("scancel", *left), "", 20.0)
        self._driver.finish("the episode is over")
        self._driver = None
        if self._journal is not None:
            self._journal.close()
        if self._lock is None:
            shutil.rmtree(self._folder, ignore_errors=True)
        else:  # its watchdog looks there until it has seen that all is over
            Lease.mine(LEASE_S, over=True).save(self._folder)
            self._lock.close()
            self._lock = None

    def _began(self) -> Driver:
        if self._driver is None:
            raise InputError("cluster", "no episode", "begin one first")
        return self._driver

    def _submit(self) -> None:
        if self._instance_jobs is not None:
            self._instance_jobs.submit(self._model_s(time.time()), self._slurm_types, self._run)

    def _read_cluster(self) -> LiveRequest:
        by_s, driver = time.monotonic() + ENDING_S, self._began()
        if self._lock is not None:
            Lease.mine(LEASE_S).save(driver.folder)
        live = driver.observe()
        while "is ending" in live.left_out.values() and time.monotonic() < by_s:
            time.sleep(ENDING_PAUSE_S)
            live = driver.observe()
        return live

    def _in_episode(self, job: dict[str, Any]) -> dict[str, Any]:
        """Return a job of a request with times since the episode began, and what the instance tells of it."""
        job |= {name: max(0.0, job[name] - self._first_s) for name in TIMES if name in job}
        if self._instance_jobs is not None and job["id"] in self._instance_jobs.ids:
            job |= self._instance_jobs.told(self._instance_jobs.ids[job["id"]])
        running, least_s = job.get("running"), job["submission_s"]  # Slurm tells whole seconds, which may be too early
        if running is not None:
            job["running"] = running | {n: max(least_s, running[n] - self._first_s) for n in OF_RUN if n in running}
        if "started_s" in job:
            job["started_s"] = max(least_s, job["started_s"])
        return job

    def _model_s(self, unix_s: float) -> float:
        return np.inf if unix_s == np.inf else self._clock.model_s(unix_s) - self._first_s

    def _unix_s(self, time_s: float) -> float:
        return np.inf if time_s == np.inf else self._clock.unix_s(time_s + self._first_s)

    def _tell(self, kind: str, **fields: Any) -> None:
        if self._journal is not None:
            self._journal.append(kind, **fields)
        if kind not in NO_EVENTS:
            self._events.append({"kind": kind, **fields})
        if kind in ("runs", "interval"):
            held = (fields["job"], fields["configuration"], tuple(fields["nodes"]), None)
            stays = self._stays.setdefault(fields["job"], [])
            if stays and stays[-1].end_s == np.inf:
                stays.pop()
            stays.append(Interval(*held, fields["start_s"], fields.get("end_s", np.inf)))
        elif kind == "ended":
            self._ended[fields["job"]] = fields["end_s"]
