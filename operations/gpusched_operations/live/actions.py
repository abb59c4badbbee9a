"""What is to be done, from a policy's answer: which jobs are stopped, which are placed where, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.live.driven_job import DrivenJob, Running
from gpusched_operations.live.job_rules import JobRequest
from gpusched_operations.live.state import LiveCluster, LiveJob
from gpusched_operations.service.cluster import configuration_of

ACTIONS = ("start", "keep", "change", "stop", "wait")


@dataclass(frozen=True, slots=True)
class Placement:
    """A job that is to start."""

    job: str
    configuration: str
    nodes: tuple[str, ...]
    gpus_per_node: int
    changes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Actions:
    """What is to be done.

    Attributes:
        stops: Ids of jobs that are stopped and go back into the queue.
        starts: Jobs that start, in the order of the answer; some of them are stopped first.
        refused: Why something of the answer is not done, by id of the job.
    """

    stops: tuple[str, ...]
    starts: tuple[Placement, ...]
    refused: Mapping[str, str]

    def lines(self) -> list[str]:
        again = {placement.job for placement in self.starts}
        return [
            *(f"stop {job}" for job in self.stops if job not in again),
            *(
                f"{'change' if p.job in self.stops else 'start'} {p.job}: {p.configuration} on {', '.join(p.nodes)}"
                for p in self.starts
            ),
            *(f"not done for {job}: {why}" for job, why in self.refused.items()),
        ]


def actions_of(
    answer: Mapping[str, Any],
    cluster: LiveCluster,
    records: Mapping[str, DrivenJob],
    told: Mapping[str, JobRequest],
    types: Mapping[str, str],
) -> Actions:
    """Return what is to be done for an answer; only what jobs allow.

    Args:
        told: What the policy was told of jobs, by id: no other is touched.
        types: The GPU type of each node that the policy was told of, as configurations name it.

    Raises:
        InputError: It is no answer of a service.
    """
    stops, starts, refused = [], [], {}
    gpu_types = {node.name: node.gpu_type for node in cluster.nodes if node.available}
    jobs = {job.id: job for job in cluster.jobs}
    for given in _jobs_of(answer):
        name, action = str(given["id"]), given["action"]
        if action in ("keep", "wait"):
            continue
        job, record, description = jobs.get(name), records.get(name), told.get(name)
        if job is None or record is None or description is None:
            refused[name] = "the policy was not told of it"
            continue
        try:
            if action in ("stop", "change"):
                _check_stop(job, record, description)
            if action in ("start", "change"):
                _check_types(given, types)
                starts.append(_placement(given, job, record, description, gpu_types))
            if action in ("stop", "change"):
                stops.append(name)
        except InputError as error:
            refused[name] = str(error)
    return Actions(tuple(stops), tuple(starts), refused)


def _jobs_of(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = answer.get("jobs") if isinstance(answer, Mapping) else None
    if not isinstance(found, list) or not all(isinstance(job, Mapping) and "id" in job for job in found):
        raise InputError("answer", str(answer), "what POST /v1/decide answers")
    for job in found:
        if job.get("action") not in ACTIONS:
            raise InputError("answer.jobs.action", job.get("action"), f"one of {', '.join(ACTIONS)}")
    return found


def _check_types(given: Mapping[str, Any], types: Mapping[str, str]) -> None:
    wanted = configuration_of(str(given.get("configuration"))).gpu_type
    wrong = [str(name) for name in given.get("nodes") or () if types.get(str(name)) != wanted]
    if wrong:
        raise InputError("nodes", wrong, f"nodes of {wanted} that the policy was told of")


def _check_stop(job: LiveJob, record: DrivenJob, description: JobRequest) -> None:
    if job.phase != "running":
        raise InputError("phase", job.phase, "running: only what runs is stopped")
    if not may_stop(job, record, description):
        raise InputError("stop", job.id, "only jobs that checkpoint, and that Slurm may put back into the queue")


def may_stop(job: LiveJob, record: DrivenJob, description: JobRequest) -> bool:
    return description.checkpoints and job.can_requeue and not record.cannot_stop


def _placement(
    given: Mapping[str, Any], job: LiveJob, record: DrivenJob, description: JobRequest, gpu_types: Mapping[str, str]
) -> Placement:
    configuration = configuration_of(str(given.get("configuration")))
    if configuration.kind == "shared" or configuration.spread:
        raise InputError("configuration", configuration.name, "whole GPUs, the same number on each node")
    if given["action"] == "start" and job.phase != "pending":
        raise InputError("phase", job.phase, "pending: only what waits is started")
    names = [str(name) for name in given.get("nodes") or ()]
    there = [name for name in names if name in gpu_types]
    if len(there) != configuration.nodes or len(set(there)) != len(there):
        raise InputError("nodes", names, f"{configuration.nodes} nodes on which jobs may start")
    allowed = [configuration_of(name) for name in description.configurations]
    if replace(configuration, power_limit=1.0) not in allowed:
        raise InputError("configuration", configuration.name, f"one of {', '.join(description.configurations)}")
    if record.first_start_s is not None and not description.resizes and configuration.gpus != job.gpus:
        raise InputError("configuration", configuration.name, f"{job.gpus} GPUs: the job does not resize")
    changes = record.request.elsewhere(
        gpu_types[there[0]], configuration.gpus_per_node, there, configuration.power_limit, job.request.admin_comment
    )
    return Placement(job.id, configuration.name, tuple(there), configuration.gpus_per_node, changes)


def free_gpus(cluster: LiveCluster, records: Mapping[str, DrivenJob]) -> dict[str, int]:
    """Return the GPUs of each node that no job holds; of a job that ends Slurm may no longer tell what it holds."""
    free = {node.name: node.gpus if node.available else 0 for node in cluster.nodes}
    for job in cluster.jobs:
        if job.phase not in ("running", "ending"):
            continue
        for name, count in held_by(job, records.get(job.id)):
            free[name] = free.get(name, 0) - count
    return free


def held_by(job: LiveJob, record: DrivenJob | None) -> tuple[tuple[str, int], ...]:
    if job.phase == "ending" and record is not None and isinstance(record.stage, Running):
        return tuple((name, record.stage.gpus_per_node) for name in record.stage.nodes)
    return job.holds
