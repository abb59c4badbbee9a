"""What a driver's journal tells of its last drive: the cluster, what each job was, and when it ran on what."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from gpusched_operations.live.state import Clock

CLOSE_S = 3.0
"""Slurm tells whole seconds: a run that ends so little after another began in its place ended before it."""
SHORT_S = 1e-3
"""The least time between two stays of a job [s]."""


@dataclass
class Interval:
    """An interval in which a job held one configuration in one place. Times are of the model's clock or of Unix [s].

    Attributes:
        job: Id of the job.
        configuration: Name of the configuration.
        nodes: Names of its nodes; of a spread configuration the node of every GPU.
        gpu: Number of the shared GPU on the node; None: whole ones.
        start_s: When it began.
        end_s: When it ended; inf: it goes on.
        ready_s: When the job first reported in it; None: it did not.
    """

    job: str
    configuration: str
    nodes: tuple[str, ...]
    gpu: int | None
    start_s: float
    end_s: float = math.inf
    ready_s: float | None = None


@dataclass
class LiveRun:
    """What a journal tells of a job that a driver drove.

    Attributes:
        told: What the policy was told of it; None: nothing.
        stays: When it ran on what.
        epochs: The epochs that it reported last; None: it never did.
        outcome: How it ended; empty: it did not.
        overhead: Seconds without progress at its first start, and after each restart.
        factor: What its seconds per epoch are multiplied by.
        ran_before: Whether a run of it ended before the drive began.
    """

    told: dict[str, Any] | None = None
    stays: list[Interval] = field(default_factory=list)
    epochs: float | None = None
    outcome: str = ""
    overhead: tuple[float, float] = (0.0, 0.0)
    factor: float = 1.0
    ran_before: bool = False

    def take(self, line: Mapping[str, Any]) -> None:
        if line["kind"] == "told":
            self.told = line["fields"]
        elif line["kind"] == "interval":
            place = (line["job"], line["configuration"], tuple(line["nodes"]), None)
            self.stays.append(Interval(*place, line["start_s"], line["end_s"], line["ready_s"]))
        else:
            self.outcome, self.epochs = line["outcome"], line["epochs"]

    def measure(self) -> None:
        costs = [max(0.0, stay.ready_s - stay.start_s) for stay in self.stays if stay.ready_s is not None]
        first = costs[0] if costs and self.stays[0].ready_s is not None else 0.0
        later = costs[1:] if self.stays[0].ready_s is not None else costs
        self.overhead = first, statistics.median(later) if later else first
        been_ready = False
        for stay in self.stays:
            stay.ready_s = min(stay.end_s, stay.start_s + self.overhead[been_ready])
            been_ready = been_ready or stay.start_s + self.overhead[been_ready] <= stay.end_s


@dataclass
class LastDrive:
    """What a journal tells of the last drive.

    Attributes:
        policy: Name of the policy; empty: the journal does not say it.
        cluster: What the policy was told of the cluster; None: nothing.
        runs: The jobs, by id.
        rounds: Rounds.
        decision_s: Seconds of the policy in them.
    """

    policy: str = ""
    cluster: dict[str, Any] | None = None
    runs: dict[str, LiveRun] = field(default_factory=dict)
    rounds: int = 0
    decision_s: float = 0.0

    def goes_on(self, policy: str) -> bool:
        return policy == self.policy and any(not run.outcome for run in self.runs.values())


def last_drive(lines: Iterable[Mapping[str, Any]]) -> LastDrive:
    """Take from the lines of a journal what they tell of the last drive.

    A driver that was killed while it had jobs, and was started again with the same policy, goes on with its drive. Any
    other start begins a new one. A journal without starts is that of one drive.
    """
    drive, released = LastDrive(), True
    seen: set[tuple[str, float]] = set()
    for line in lines:
        kind = line["kind"]
        if kind == "drive" and (released or not drive.goes_on(line["policy"])):
            ran = [name for name, run in drive.runs.items() if not run.outcome and (run.stays or run.ran_before)]
            drive = LastDrive(line["policy"], runs={name: LiveRun(ran_before=True) for name in ran})
        if kind in ("drive", "released"):
            released = kind == "released"
        elif kind == "round":
            drive.rounds, drive.decision_s = drive.rounds + 1, drive.decision_s + line["ask_s"]
        elif kind == "cluster":
            drive.cluster = (drive.cluster or {}) | dict(line["fields"])
        elif kind in ("told", "ended") or (kind == "interval" and (line["job"], line["start_s"]) not in seen):
            drive.runs.setdefault(line["job"], LiveRun()).take(line)
            seen |= {(line["job"], line["start_s"])} if kind == "interval" else set()
    separate([run.stays for run in drive.runs.values()])
    if drive.cluster is not None:
        _tell_by_the_model(drive, Clock(*drive.cluster["clock"]))
    return drive


def _tell_by_the_model(drive: LastDrive, clock: Clock) -> None:
    for stay in (stay for run in drive.runs.values() for stay in run.stays):
        stay.start_s, stay.end_s = clock.model_s(stay.start_s), clock.model_s(stay.end_s)
        stay.ready_s = None if stay.ready_s is None else clock.model_s(stay.ready_s)


def separate(runs: Iterable[list[Interval]]) -> None:
    """Let no stay reach into another that began in its place, as those do whose times were rounded or seen late."""
    by_node: dict[str, list[Interval]] = {}
    for run in runs:
        run.sort(key=lambda stay: stay.start_s)
        for before, after in pairwise(run):
            before.end_s = min(before.end_s, after.start_s - SHORT_S)
        for stay in run:
            for node in stay.nodes:
                by_node.setdefault(node, []).append(stay)
    for stays in by_node.values():
        for stay in stays:
            begun = [
                each.start_s for each in stays if stay.start_s < each.start_s < stay.end_s <= each.start_s + CLOSE_S
            ]
            stay.end_s = min([stay.end_s, *begun])
