"""What a driver does: it stops, places and starts jobs, takes back what did not come, and powers nodes down."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpusched_operations.live.actions import Actions, Placement, free_gpus
from gpusched_operations.live.asking import Ask
from gpusched_operations.live.drive_state import DriveState
from gpusched_operations.live.driven_job import Held, Stopping
from gpusched_operations.live.following import Follower, OnEvent, is_held_by_user
from gpusched_operations.live.job_rules import JobRules
from gpusched_operations.live.progress_reports import ProgressReports
from gpusched_operations.live.slurm_commands import SlurmControl, SlurmError
from gpusched_operations.live.slurm_state import read_cluster
from gpusched_operations.live.state import LiveCluster

_IS_STOPPED = re.compile("pending execution|completing", re.IGNORECASE)
RELAUNCH_S = 3.0
"""Shortest time from the end of a run to the next start of the job [s]: a node refuses a job that comes back within the
second in which it was stopped there ("credential revoked"), and Slurm then counts it as failed."""
_NEVER_STOPS = re.compile(r"disabled|not permitted|requeue", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DriveSettings:
    """How a driver works. Times in seconds.

    Attributes:
        partition: The partition.
        policy: The policy.
        every_s: Longest time between two rounds.
        poll_s: Time between two looks whether something is new.
        settle_s: Longest wait for GPUs of jobs that were stopped.
        start_s: Longest wait until a job runs that was released.
        lease_s: A job that no request can tell for so long is left to Slurm.
        power_off_s: Nodes without jobs for so long are switched off; None: they are not.
    """

    partition: str
    policy: str
    every_s: float = 30.0
    poll_s: float = 2.0
    settle_s: float = 60.0
    start_s: float = 30.0
    lease_s: float = 600.0
    power_off_s: float | None = None


@dataclass
class Acting:
    """The part of a `Driver` that acts.

    Args:
        settings: How.
        rules: What jobs are.
        commands: Slurm's commands; `commands.dry`: nothing is changed, and nothing is written.
        ask: Asks the policy.
        folder: Where the state is.
        on_event: Takes events: their kind, and their fields.
        reports: What jobs report.
        clock: Tells the Unix time [s].
        pause: Waits so many seconds.
        steady: Tells seconds of a clock that nobody sets.
    """

    settings: DriveSettings
    rules: JobRules
    commands: SlurmControl
    ask: Ask
    folder: Path
    on_event: OnEvent
    reports: ProgressReports = field(default_factory=ProgressReports)
    clock: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep
    steady: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.state = DriveState.load(self.folder, self.settings.partition)
        self.actions = Actions((), (), {})
        self._follower = Follower(self.state, self.rules, self.reports, self.on_event)
        self._seen: LiveCluster | None = None
        self._nodes_text = ""
        self._empty_s: dict[str, float] = {}

    def _read_cluster(self) -> LiveCluster:
        cluster = read_cluster(self.commands, self.clock(), self._nodes_text)
        self.state.check_cluster(cluster.names)
        self._follower.follow(cluster)
        self._seen = cluster
        return cluster

    def _hold(self, names: list[str]) -> None:
        if not names:
            return
        for name in names:
            self.state.jobs[name].hold()
        self._save()
        refused = self.commands.hold(names)
        for name, said in refused.items():
            self.on_event("refused", job=name, action="hold", said=said)
            if self.state.jobs[name].stage.stopped_s is None:  # else it is tried again
                self.state.jobs[name].release()
        held = [name for name in names if name not in refused]
        if held and not self.commands.dry:
            for name in held:
                self.state.jobs[name].confirm()
            self.on_event("held", jobs=held)

    def _stop(self, names: list[str]) -> None:
        if not names:
            return
        now_s = self.clock()
        for name in names:
            self.state.jobs[name].stop(now_s)
        self._save()
        refused = self.commands.stop(names)
        if self.commands.tries > 1:  # the try that was not answered may have stopped them
            refused = {name: said for name, said in refused.items() if not _IS_STOPPED.search(said)}
        for name, said in refused.items():
            record = self.state.jobs[name]
            record.release()
            record.cannot_stop = bool(_NEVER_STOPS.search(said))
            self.on_event("refused", job=name, action="stop", said=said)
        self._save()
        for name in names:
            if name not in refused:
                run = self.state.jobs[name].run
                self.on_event("stop", job=name, configuration="" if run is None else run.configuration)

    def _start(self, starts: list[Placement]) -> None:
        """Start jobs as soon as their GPUs are free, and wait until they run; what does not come is told."""
        waiting = {placement.job: placement for placement in starts}
        released: dict[str, float] = {}
        until_s, pause_s = self.steady() + self.settings.settle_s, 0.25
        stopped = [name for name in self.actions.stops if isinstance(self.state.jobs[name].stage, Stopping)]
        cluster = self._read_cluster() if waiting or stopped else None
        while cluster is not None and (waiting or released or stopped):
            self._note_started(cluster, waiting, released)
            stopped = [n for n in stopped if n in self.state.jobs and self._is_going(cluster, n)]
            self._hold_back(cluster)
            ready = self._ready(cluster, waiting)
            if ready:
                for placement in ready:
                    del waiting[placement.job]
                for name in self._launch(ready):
                    released[name] = self.steady()
            now_s = self.steady()
            late = [name for name, since_s in released.items() if now_s - since_s > self.settings.start_s]
            for name in late:
                del released[name]
            self._take_back(late)
            if now_s > until_s:
                stopped = []
                for name in list(waiting):
                    self.on_event(
                        "not-started", job=name, why="its GPUs did not become free", nodes=waiting.pop(name).nodes
                    )
            if waiting or released or stopped:
                self.pause(pause_s)
                pause_s = min(2.0, 1.5 * pause_s)
                cluster = self._read_cluster()

    def _note_started(self, cluster: LiveCluster, waiting: dict[str, Placement], released: dict[str, float]) -> None:
        """Take off the lists what runs, is over, or is no longer the driver's to start."""
        there = {job.id: job for job in cluster.jobs if job.phase != "ended"}
        for name in list(released):
            job = there.get(name)
            if job is None or job.phase != "pending" or name not in self.state.jobs or job.held:
                del released[name]
        for name in list(waiting):
            job, record = there.get(name), self.state.jobs.get(name)
            if job is None or record is None:
                why = "it is over"
            elif job.phase == "running" and not isinstance(record.stage, Stopping):
                why = "it runs already"
            elif job.phase == "pending" and not record.given_back and is_held_by_user(job, record):
                why = "its user holds it"
            else:
                why = record.given_back
            if why:
                self.on_event("not-started", job=name, why=why)
                del waiting[name]

    def _is_going(self, cluster: LiveCluster, name: str) -> bool:
        job = cluster.job(name)
        stops = isinstance(self.state.jobs[name].stage, Stopping)
        return job is not None and (job.phase == "ending" or (job.phase == "running" and stops))

    def _hold_back(self, cluster: LiveCluster) -> None:
        """Hold jobs that are back in the queue as an administrator, so that holds of their users are told apart."""
        self._hold(
            [
                name
                for name, record in self.state.jobs.items()
                if isinstance(stage := record.stage, Held)
                and stage.stopped_s is not None
                and not stage.confirmed
                and not record.given_back
                and (job := cluster.job(name)) is not None
                and job.phase == "pending"
            ]
        )

    def _ready(self, cluster: LiveCluster, waiting: Mapping[str, Placement]) -> list[Placement]:
        """Return the jobs whose GPUs are free now, all together."""
        free, ready = free_gpus(cluster, self.state.jobs), []
        for placement in waiting.values():
            job = cluster.job(placement.job)
            ended_s = self.state.jobs[placement.job].ended_s
            if job is None or job.phase != "pending" or 0.0 <= self.clock() - (ended_s or 0.0) < RELAUNCH_S:
                continue
            if all(free.get(name, 0) >= placement.gpus_per_node for name in placement.nodes):
                for name in placement.nodes:
                    free[name] -= placement.gpus_per_node
                ready.append(placement)
        return ready

    def _launch(self, ready: list[Placement]) -> list[str]:
        """Place jobs and release them; return those that Slurm took."""
        changes: dict[str, dict[str, str]] = {}
        for placement in ready:
            record = self.state.jobs[placement.job]
            record.placed = placement.configuration
            changes[placement.job] = dict(placement.changes)
            if record.first_start_s is not None:  # else a time that its user gave would be lost
                changes[placement.job]["StartTime"] = "now"
        self._save()
        refused = self.commands.update(changes)
        for name, said in refused.items():
            self.on_event("refused", job=name, action="place", said=said)
            self._follower.came_to_nothing(self.state.jobs[name], self.clock())
        placed = [name for name in changes if name not in refused]
        refused = self.commands.release(placed)
        for name, said in refused.items():
            self.on_event("refused", job=name, action="release", said=said)
        begun = [name for name in placed if name not in refused]
        for placement in ready:
            if placement.job in begun:
                self.state.jobs[placement.job].start()
                self.on_event("start", job=placement.job, configuration=placement.configuration, nodes=placement.nodes)
        self._save()
        return begun

    def _take_back(self, names: list[str]) -> None:
        """Hold jobs again that Slurm did not start, and restore their requests."""
        names = [name for name in names if name in self.state.jobs and not self.state.jobs[name].given_back]
        if not names:
            return
        for name in names:
            self._follower.came_to_nothing(self.state.jobs[name], self.clock())
        self._hold(names)
        cluster = self._read_cluster()
        changes: dict[str, dict[str, str]] = {}
        for name in names:
            job = cluster.job(name)
            if job is None or job.phase != "pending" or name not in self.state.jobs:
                continue
            self.on_event(
                "not-started",
                job=name,
                why=job.reason or "Slurm did not start it",
                planned=self.state.jobs[name].placed,
            )
            changes[name] = self.state.jobs[name].request.restored(job.request)
        refused = self.commands.update({name: each for name, each in changes.items() if each})
        for name, said in refused.items():
            self.on_event("refused", job=name, action="restore", said=said)
        for name in changes.keys() - refused.keys():
            self.state.jobs[name].placed = ""

    def _power_down(self) -> None:
        """Switch nodes off that had no job for long and that no waiting job is about to get."""
        if self.settings.power_off_s is None or self._seen is None:
            return
        now_s, partition = self.steady(), (self.settings.partition,)
        busy = {name for job in self._seen.jobs if job.phase in ("running", "ending") for name, _ in job.holds}
        busy |= {name for placement in self.actions.starts for name in placement.nodes}
        empty = [
            node.name
            for node in self._seen.nodes
            if node.on
            and node.available
            and node.partitions == partition
            and node.name not in busy
            and node.gpus
            # a job without GPUs shows only here
            and node.state.upper().startswith("IDLE")
            and "COMPLETING" not in node.state.upper()
        ]
        self._empty_s = {name: self._empty_s.get(name, now_s) for name in empty}
        off = [name for name in empty if now_s - self._empty_s[name] >= self.settings.power_off_s]
        if off:
            try:
                self.commands.power_down(off)
            except SlurmError as error:
                self.on_event("refused", action="power-down", nodes=off, said=error.said)
                again_s = now_s
            else:
                self.on_event("power-down", nodes=off)
                again_s = float("inf")  # not again before it had a job, or was off
            self._empty_s |= dict.fromkeys(off, again_s)

    def _save(self) -> None:
        if not self.commands.dry:
            self.state.save(self.folder)
