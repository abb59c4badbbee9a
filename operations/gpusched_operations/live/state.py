"""The state of a cluster as its manager tells it: nodes, and jobs that wait or run.

Times are Unix times [s]. Names are those of the manager. Only `LiveJob.request` depends on which manager it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gpusched_operations.live.slurm_requests import SubmittedRequest

Phase: TypeAlias = Literal["pending", "running", "ending", "ended"]
HeldBy: TypeAlias = Literal["", "user", "admin", "requeue"]
Outcome: TypeAlias = Literal["", "completed", "failed", "cancelled", "timeout", "node-fail"]

WORD = "gpusched"
"""Begins what a comment of a job says to a policy."""


def opts_in(comment: str) -> bool:
    return WORD in comment.split()


@dataclass(frozen=True, slots=True)
class LiveNode:
    """A node.

    Attributes:
        name: Its name.
        gpu_type: The type of its GPUs, as the manager names it.
        gpus: Number of its GPUs, ≥ 0.
        available: Whether a job may start on it now, perhaps after it was switched on: not down, drained or reserved.
        on: Whether it is switched on.
        state: Its state in the manager's words.
        partitions: The partitions or queues that it belongs to.
    """

    name: str
    gpu_type: str
    gpus: int
    available: bool = True
    on: bool = True
    state: str = ""
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LiveJob:
    """A job.

    Attributes:
        id: Its id.
        name: Its name.
        user: Who submitted it.
        account: The account or tenant that it belongs to.
        partition: Its partition or queue.
        comment: What its owner wrote to it: the comment of Slurm, an annotation of Kubernetes.
        script: Path of its script, or its image.
        phase: `pending`, `running`, `ending` (its GPUs are not free yet) or `ended`.
        held: Who holds it back while it is pending; `requeue`: it was stopped and put back into the queue, held.
        reason: Why it is pending, in the manager's words.
        outcome: How it ended.
        submit_s: When it was submitted.
        start_s: When it last started; None: it does not run.
        end_s: When it ended, or the time limit ends it; None: not known.
        time_limit_s: Its time limit [s]; None: none.
        gpus: GPUs that it asks for, in all.
        gpu_type: The type that it asks for; one of several, with `|` between them; None: any.
        holds: Nodes that it runs on, and GPUs on each.
        gpu_numbers: Numbers of the GPUs that it holds, by node, where the manager tells them.
        restarts: How often it was started again.
        can_requeue: Whether the manager may stop it and put it back into the queue.
        nodes: Nodes that its GPUs are asked on, ≥ 1; all of them have the same number.
        unfit: Why no policy can be told of it; empty: it can. Its GPUs are not free.
        request: What it asks of Slurm now, by the names of Slurm; of other managers nothing. Journals leave it out.
    """

    id: str
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    comment: str = ""
    script: str = ""
    phase: Phase = "pending"
    held: HeldBy = ""
    reason: str = ""
    outcome: Outcome = ""
    submit_s: float = 0.0
    start_s: float | None = None
    end_s: float | None = None
    time_limit_s: float | None = None
    gpus: int = 0
    gpu_type: str | None = None
    holds: tuple[tuple[str, int], ...] = ()
    gpu_numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    restarts: int = 0
    can_requeue: bool = False
    nodes: int = 1
    unfit: str = ""
    request: SubmittedRequest = field(default=SubmittedRequest(), compare=False)


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A cluster at one moment.

    Attributes:
        manager: `slurm`, `kueue` or `kai`.
        read_s: When it was read.
        nodes: The nodes.
        jobs: The jobs, in any phase that the manager still tells.
        names: The names of the cluster that Slurm writes at its jobs; none where there are no jobs.
    """

    manager: str
    read_s: float
    nodes: tuple[LiveNode, ...]
    jobs: tuple[LiveJob, ...]
    names: frozenset[str] = field(default=frozenset(), compare=False)

    def job(self, name: str) -> LiveJob | None:
        return next((job for job in self.jobs if job.id == name and job.phase != "ended"), None)


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of policies beside that of the cluster; the same, except in trials with shortened jobs.

    Args:
        speed: Seconds of the model in a second of the cluster, > 0.
        origin_s: The Unix time at which both agree.
    """

    speed: float = 1.0
    origin_s: float = 0.0

    def model_s(self, unix_s: float) -> float:
        return unix_s if self.speed == 1.0 else self.origin_s + (unix_s - self.origin_s) * self.speed

    def unix_s(self, model_s: float) -> float:
        return model_s if self.speed == 1.0 else self.origin_s + (model_s - self.origin_s) / self.speed
