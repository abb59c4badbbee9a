"""A stand-in for Slurm: a small state machine that answers `squeue` and `scontrol`, and that may refuse, stall or die.

It does what Slurm 22.05.8 was seen to do: a requeue that holds ends in JobHeldUser with a begin two minutes later,
`scontrol hold` of an administrator in JobHeldAdmin, requests of jobs that run cannot be changed, and a pending job in a
list is refused while the others are done.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gpusched_operations.live.progress_reports import Report
from gpusched_operations.live.slurm_commands import Done

BEGIN_LATER_S = 120.0
REQUEUED = "job requeued in held state"


class Killed(BaseException):
    """The driver is killed here."""


@dataclass
class MadeUpJob:
    """A job: what it asks for, how it is, and the seconds of work that it still has on one GPU."""

    id: int
    comment: str = ""
    tres: str = "gres:gpu:2"
    per: str = "tres_per_node"
    partition: str = "gpu"
    user: str = "somebody"
    name: str = "train"
    command: str = "/home/somebody/train.sh"
    work_s: float = 100.0
    submit_s: float = 0.0
    kill_s: float = 1.0
    requeue: bool = True
    reports: bool = True
    dependency: str = ""
    state: str = "PENDING"
    reason: str = ""
    description: str = ""
    priority: int = 1
    places: str = ""
    admin_comment: str = ""
    begin_s: float = 0.0
    start_s: float = 0.0
    end_s: float = 0.0
    settle_s: float = 0.0
    restarts: int = 0
    done_s: float = 0.0
    saved_s: float = 0.0
    requeueing: bool = False
    node_left: str = ""
    left_s: float = 0.0
    node: str = ""
    runs: list[tuple[float, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.first = self.request()

    def request(self) -> tuple[str, str, str]:
        return self.tres, self.places, self.admin_comment

    @property
    def gpus(self) -> int:
        return int(self.tres.rpartition(":")[2] or 0)

    @property
    def gpu_type(self) -> str | None:
        words = self.tres.split(":")
        return words[2] if len(words) == 4 else None

    @property
    def over(self) -> bool:
        return self.state in ("COMPLETED", "CANCELLED", "FAILED")


@dataclass
class MadeUpSlurm:
    """The cluster; `run` is what `SlurmControl` runs commands with, `clock` and `pause` are its time.

    Attributes:
        nodes: Type and GPUs of each node.
        faults: What happens at the k-th call: `late`, `timeout`, `down`, `garbage`, `refuse`, `die`, `die-after`.
        must_not_stop: Jobs that may never be stopped.
        cluster: Its name.
        others: Nodes that run jobs without GPUs.
        partitions: Partitions of nodes that do not belong to `gpu` alone.
    """

    nodes: dict[str, tuple[str, int]] = field(
        default_factory=lambda: {"v1": ("v100", 4), "v2": ("v100", 4), "a1": ("a100", 8)}
    )
    jobs: dict[int, MadeUpJob] = field(default_factory=dict)
    now_s: float = 1_800_000_000.0
    step_s: float = 0.02
    calls: int = 0
    faults: dict[int, str] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    touched: set[int] = field(default_factory=set)
    stopped: list[int] = field(default_factory=list)
    powered_down: list[str] = field(default_factory=list)
    posted: dict[str, Report] = field(default_factory=dict)
    cluster: str = "made-up"
    others: set[str] = field(default_factory=set)
    partitions: dict[str, str] = field(default_factory=dict)

    # Time

    def clock(self) -> float:
        """Return the time [s]."""
        return self.now_s

    def pause(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s - 1e-9:
            self.now_s = min(until_s, self.now_s + 0.5)
            self._settle()

    def submit(self, job: MadeUpJob, *, held: bool = False) -> MadeUpJob:
        job.submit_s = job.begin_s = self.now_s
        job.priority = 10_000 - job.id
        if held:
            job.priority, job.reason = 0, "JobHeldUser"
        self.jobs[job.id] = job
        return job

    def cancel(self, number: int) -> None:
        job = self.jobs[number]
        if not job.over:
            job.state, job.end_s, job.node = "CANCELLED", self.now_s, ""

    def user_holds(self, number: int) -> None:
        """Hold as `scontrol uhold` does."""
        job = self.jobs[number]
        if job.state == "PENDING":
            job.priority, job.reason = 0, "JobHeldUser"

    def _settle(self) -> None:
        for job in self.jobs.values():
            if job.state == "RUNNING":
                job.done_s += 0.5 * job.runs[-1][2]
                if int(job.done_s / 10.0) > int(job.saved_s / 10.0):
                    job.saved_s = job.done_s
                    self._report(job)
                if job.done_s >= job.work_s:
                    job.state, job.end_s, job.node = "COMPLETED", self.now_s, ""
            if job.state == "COMPLETING" and self.now_s >= job.settle_s:
                job.node_left, job.left_s = job.node, self.now_s
                job.state, job.node, job.requeueing = "PENDING", "", False
                job.restarts += 1
                job.begin_s = self.now_s + BEGIN_LATER_S
                job.submit_s = self.now_s
        for job in sorted(self.jobs.values(), key=lambda j: -j.priority):
            if job.state == "PENDING" and job.priority and not job.dependency and job.begin_s <= self.now_s:
                self._place(job)

    def _place(self, job: MadeUpJob) -> None:
        free = self.free()
        fits = [
            name
            for name, (gpu_type, _) in self.nodes.items()
            if free[name] >= job.gpus
            and job.gpu_type in (None, gpu_type)
            and job.places in ("", name)
            and name not in self.down
        ]
        if fits:
            late_s = self.now_s - job.left_s
            assert job.node_left != fits[0] or late_s >= 1.0, "the node refuses it: credential revoked"
            job.state, job.node, job.start_s = "RUNNING", fits[0], self.now_s
            job.reason = job.description = ""
            job.done_s = job.saved_s
            job.runs.append((self.now_s, fits[0], job.gpus))
            assert sum(j.gpus for j in self.jobs.values() if j.node == fits[0]) <= self.nodes[fits[0]][1]
            self._report(job)
        elif not job.reason:
            job.reason = "Resources"

    def free(self) -> dict[str, int]:
        free = {name: count for name, (_, count) in self.nodes.items()}
        for job in self.jobs.values():
            if job.node:
                free[job.node] -= job.runs[-1][2]
        return free

    def _report(self, job: MadeUpJob) -> None:
        if job.reports:
            self.posted[str(job.id)] = Report(str(job.id), job.restarts, job.saved_s / 10.0, self.now_s)

    # Commands

    def run(self, words: Sequence[str], text: str, limit_s: float) -> Done:
        self.calls += 1
        self.pause(self.step_s)
        fault = self.faults.get(self.calls, "")
        if fault == "die":
            raise Killed
        if fault == "timeout":
            self.pause(limit_s)
            raise TimeoutError(f"no answer within {limit_s:g} s")
        if fault == "down":
            return Done(1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
        done = self._done(words, text, refuse=fault == "refuse")
        if fault == "die-after":
            raise Killed
        if fault == "late":
            self.pause(limit_s)
            raise TimeoutError(f"no answer within {limit_s:g} s")
        if fault == "garbage" and words[0] == "squeue":
            return Done(0, done.output[: len(done.output) // 2], "")
        return done

    def _done(self, words: Sequence[str], text: str, *, refuse: bool) -> Done:
        if words[:2] == ("squeue", "--json"):
            return Done(0, json.dumps({"jobs": [self._json(job) for job in self.jobs.values()]}), "")
        if words[0] == "squeue":
            partition = words[-1].partition("=")[2]
            there = [j for j in self.jobs.values() if not j.over and j.partition == partition]
            return Done(0, "".join(f"{j.id} {j.state} {j.reason}\n" for j in there), "")
        if words[:3] == ("scontrol", "show", "nodes"):
            return Done(0, "".join(self._node(name) for name in self.nodes), "")
        if words[1:2] == ("update",):
            self.powered_down += words[2].partition("=")[2].split(",")
            return Done(0, "", "")
        errors = []
        if len(words) == 1:
            for line in text.splitlines():
                found = re.fullmatch(r"update JobId=(\d+) (.*)", line)
                if found:
                    fields = dict(word.partition("=")[::2] for word in found[2].split(" "))
                    errors.append(
                        self._refused(int(found[1]), refuse) or self._update(self.jobs[int(found[1])], fields)
                    )
        else:
            for number in map(int, words[-1].split(",")):
                again = words[1] == "requeuehold" and "Incomplete" not in words  # it would start again what is over
                said = self._refused(number, refuse, over=again)
                errors.append(said or getattr(self, f"_{words[1]}")(self.jobs[number]))
        errors = [error for error in errors if error]
        return Done(int(bool(errors)), "", "".join(f"{error}\n" for error in errors))

    def _refused(self, number: int, refuse: bool, *, over: bool = False) -> str:
        self.touched.add(number)
        if number not in self.jobs:
            return f"Invalid job id specified for job {number}"
        if refuse:
            return f"Access/permission denied for job {number}"
        if self.jobs[number].over and not over:
            return f"Job/step already completing or completed for job {number}"
        return ""

    def _update(self, job: MadeUpJob, fields: dict[str, str]) -> str:
        if job.state != "PENDING":
            return f"Job is no longer pending execution for job {job.id}"
        names = {"tres_per_node": "TresPerNode", "tres_per_job": "TresPerJob"}
        tres = fields.get(names[job.per])
        if set(fields) - {names[job.per], "ReqNodeList", "AdminComment", "StartTime"}:
            return f"Invalid generic resource (gres) specification for job {job.id}"
        if tres is not None:
            if (len(tres.split(":")) == 4) != (job.gpu_type is not None):
                return f"Invalid GRES specification (with and without type identification) for job {job.id}"
            if job.gpu_type is not None:
                assert tres.split(":")[2] == job.gpu_type, "Slurm would answer BadConstraints, and never start it"
            job.tres = tres
        job.places = fields.get("ReqNodeList", job.places)
        job.admin_comment = fields.get("AdminComment", job.admin_comment)
        if fields.get("StartTime", "").startswith("now"):
            job.begin_s = self.now_s + float(fields["StartTime"].removeprefix("now") or 0)
        return ""

    def _hold(self, job: MadeUpJob) -> str:
        job.priority = 0
        if job.state in ("PENDING", "COMPLETING"):
            job.reason = "JobHeldAdmin"
        return ""

    def _release(self, job: MadeUpJob) -> str:
        if job.priority == 0:
            job.priority = 10_000 - self.calls
        if job.state == "PENDING":
            job.reason = job.description = ""
        return ""

    def _requeuehold(self, job: MadeUpJob) -> str:
        if job.state == "PENDING":
            return f"Job is pending execution for job {job.id}"
        if not job.requeue:
            return f"Requested operation is presently disabled for job {job.id}"
        if job.state in ("RUNNING", "COMPLETED"):
            assert not job.over, "a job that was over starts again"
            self.stopped.append(job.id)
            job.state, job.settle_s = "COMPLETING", self.now_s + job.kill_s
            job.saved_s = max(job.saved_s, float(int(job.done_s / 10.0) * 10))
            self._report(job)
        job.priority, job.reason, job.description = 0, "JobHeldUser", REQUEUED
        return ""

    # What it prints

    def _json(self, job: MadeUpJob) -> dict[str, Any]:
        held = {"tres_per_node": "", "tres_per_job": ""} | {job.per: job.tres}
        runs = job.state == "RUNNING"
        gpu_type = self.nodes[job.node][0] if job.node else ""
        return held | {
            "job_id": job.id,
            "job_state": job.state,
            "state_reason": job.reason or "None",
            "state_description": job.description,
            "priority": job.priority,
            "comment": job.comment,
            "partition": job.partition,
            "user_name": job.user,
            "name": job.name,
            "command": job.command,
            "cluster": self.cluster,
            "node_count": 1,
            "nodes": job.node,
            "required_nodes": job.places,
            "admin_comment": job.admin_comment,
            "dependency": job.dependency,
            "gres_detail": [f"gpu:{gpu_type}:{job.runs[-1][2]}(IDX:0)"] if runs else [],
            "submit_time": job.submit_s,
            "eligible_time": job.begin_s if job.priority else 0,
            "start_time": job.start_s if job.state != "PENDING" else 0,
            "end_time": job.end_s,
            "restart_cnt": job.restarts,
            "requeue": job.requeue,
            "time_limit": None,
            "array_job_id": 0,
            "het_job_id": 0,
        }

    def _node(self, name: str) -> str:
        gpu_type, count = self.nodes[name]
        state = "DOWN" if name in self.down else "MIXED" if name in self.others else "IDLE"
        partitions = f"Partitions={self.partitions.get(name, 'gpu')}"
        lines = (f"NodeName={name} Arch=x", f"Gres=gpu:{gpu_type}:{count}", f"State={state}", partitions)
        return "\n   ".join(lines) + "\n\n"
