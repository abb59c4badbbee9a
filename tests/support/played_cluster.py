"""A Slurm cluster that plays a schedule: what `squeue --json` and `scontrol show nodes` say at a time."""

import json
from dataclasses import dataclass, field

from gpusched_operations.live.slurm_state import cluster_of
from gpusched_operations.live.state import LiveCluster

KEPT_S = 300.0
"""How long Slurm tells of a job after its end (MinJobAge)."""
NODES = {"v1": ("v100", 4), "v2": ("v100", 4), "a1": ("a100", 8)}


@dataclass(frozen=True)
class PlayedJob:
    """A job with its runs: start, end and node of each, in order; None: the end is not reached.

    `told` is how long Slurm tells of it after its last end.
    """

    id: int
    submit_s: float
    gpus: int
    runs: tuple[tuple[float, float | None, str], ...] = ()
    comment: str = ""
    user: str = "ana"
    end_state: str = "COMPLETED"
    cancelled_s: float | None = None
    told_s: float = KEPT_S
    limit_min: int = 600

    def record(self, now_s: float) -> dict[str, object] | None:
        """Return what `squeue --json` says of it at a time; None: nothing."""
        if now_s < self.submit_s or (self.cancelled_s is not None and now_s >= self.cancelled_s):
            return None
        begun = [run for run in self.runs if run[0] <= now_s]
        base: dict[str, object] = {
            "job_id": self.id, "array_job_id": 0, "name": f"job{self.id}", "user_name": self.user, "account": "lab",
            "partition": "gpu", "comment": self.comment, "command": "/home/train.sh", "submit_time": self.submit_s,
            "tres_per_node": f"gres:gpu:{self.gpus}", "node_count": 1, "tasks": 1, "time_limit": self.limit_min,
            "requeue": True, "restart_cnt": max(0, len(begun) - 1), "state_reason": "None", "nodes": "",
            "start_time": 0, "end_time": 0, "gres_detail": [],
        }  # fmt: skip
        if not begun:
            return base | {"job_state": "PENDING", "state_reason": "Resources"}
        start_s, end_s, node = begun[-1]
        kind = NODES[node][0]
        if end_s is None or now_s < end_s:
            return base | {
                "job_state": "RUNNING", "start_time": start_s, "end_time": start_s + 60.0 * self.limit_min,
                "nodes": node, "gres_detail": [f"gpu:{kind}:{self.gpus}(IDX:0-{self.gpus - 1})"],
            }  # fmt: skip
        if begun[-1] is not self.runs[-1]:
            return base | {"job_state": "PENDING", "state_reason": "BeginTime", "start_time": self.runs[len(begun)][0]}
        if now_s >= end_s + self.told_s:
            return None
        return base | {"job_state": self.end_state, "start_time": start_s, "end_time": end_s, "nodes": node}


@dataclass
class PlayedCluster:
    """The cluster; `now_s` is moved by whoever plays it."""

    jobs: tuple[PlayedJob, ...]
    now_s: float
    steady_s: float = 0.0
    texts: list[tuple[str, str]] = field(default_factory=list)

    def squeue(self) -> str:
        """Return what `squeue --json` says now."""
        return json.dumps({"jobs": [r for job in self.jobs if (r := job.record(self.now_s)) is not None]})

    def nodes(self) -> str:
        """Return what `scontrol show nodes` says now."""
        return "\n\n".join(
            f"NodeName={name} Arch=x86_64 CoresPerSocket=8\n   Gres=gpu:{kind}:{gpus}\n   State=IDLE Partitions=gpu"
            for name, (kind, gpus) in NODES.items()
        )

    def read(self) -> LiveCluster:
        """Read it, as `gpusched slurm watch` does."""
        return cluster_of(self.squeue(), self.nodes(), self.now_s)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        self.steady_s += seconds


def queued(jobs: list[tuple[float, int, float, str]], begin_s: float) -> tuple[PlayedJob, ...]:
    """Schedule jobs in the order of submission on the first node with GPUs free, as soon as one has them.

    Args:
        jobs: Of each: submission after `begin_s` [s], GPUs, duration [s], comment.
        begin_s: The beginning [Unix s].
    """
    ends: dict[str, list[tuple[float, int]]] = {name: [] for name in NODES}
    made, least_s = [], begin_s
    for number, (after_s, gpus, seconds, comment) in enumerate(sorted(jobs), 1):
        submit_s = begin_s + after_s
        times = sorted({max(submit_s, least_s), *(end for each in ends.values() for end, _ in each if end > submit_s)})
        start_s, node = next(
            (time_s, name)
            for time_s in times
            if time_s >= least_s
            for name, held in ends.items()
            if sum(many for end, many in held if end > time_s) + gpus <= NODES[name][1]
        )
        ends[node].append((start_s + seconds, gpus))
        least_s = start_s
        made.append(PlayedJob(number, submit_s, gpus, ((start_s, start_s + seconds, node),), comment))
    return tuple(made)
