"""Which jobs of a live cluster a request has, and what it asks for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_env.model.checks import LONGEST, LONGEST_S
from gpusched_operations.live.job_rules import UNIFORM, JobRequest, JobRules
from gpusched_operations.live.progress import JobHistory, JobProgress
from gpusched_operations.live.state import LiveJob, LiveNode, opts_in
from gpusched_operations.service.cluster import configuration_of

ALMOST = 0.999
"""Part of its maximum epochs that a job has done at most while it is not over, and of an epoch since its report."""

MAY_NOT_STOP = "runs, and did not say that it may be stopped and continued"
"""Why a policy that stops jobs which run is not told of a job."""


@dataclass(frozen=True)
class UsableNodes:
    """Nodes on which a policy may start jobs.

    Args:
        nodes: The nodes, by name.
        types: The GPU type of each by the model's name, by name of the node.
    """

    nodes: Mapping[str, LiveNode]
    types: Mapping[str, str]

    @cached_property
    def _nodes_of_size(self) -> Counter[tuple[str, int]]:
        return Counter((self.types[name], node.gpus) for name, node in self.nodes.items())

    def sizes(self, gpu_type: str) -> dict[int, int]:
        return {gpus: count for (name, gpus), count in self._nodes_of_size.items() if name == gpu_type}

    def beyond(self, partitions: str) -> frozenset[str]:
        """Return the types of which a node is in none of a job's partitions, names with commas between; empty: any."""
        own = set(partitions.split(",")) if partitions else set()
        others = (name for name, node in self.nodes.items() if own and node.partitions and not own & {*node.partitions})
        return frozenset(self.types[name] for name in others)

    def could_hold(self, configuration: Configuration) -> bool:
        sizes, gpus = self.sizes(configuration.gpu_type), configuration.gpus_per_node
        if configuration.nodes == 1:
            return max(sizes, default=0) >= gpus
        return sizes.get(gpus, 0) >= configuration.nodes and gpus == max(sizes)


def rejected_because(
    job: LiveJob, usable: UsableNodes, fixed: frozenset[str], partition: str | None, *, only_opted_in: bool
) -> str:
    """Return why a policy is not told of a job that is not over; empty: it may be."""
    opted_in, pending = opts_in(job.comment), job.phase == "pending"
    reasons = (
        ("not the policy's to decide", job.id in fixed),
        (f"not in {partition}", partition is not None and job.partition != partition),
        ("did not opt in", only_opted_in and not opted_in),
        (job.unfit, bool(job.unfit)),
        (f"asks for {job.asks}", bool(job.asks)),
        ("asks for no GPUs", not job.gpus and not opted_in),
        ("is ending", job.phase == "ending"),
        (f"held: {job.reason or job.held}", pending and bool(job.held) and not opted_in),
        (f"waits for something else: {job.waits_for}", pending and bool(job.waits_for)),
        ("holds GPUs of a node that is left out", not pending and any(n not in usable.nodes for n, _ in job.holds)),
    )
    return next((why for why, so in reasons if so), "")


def job_request(
    job: LiveJob,
    rules: JobRules,
    usable: UsableNodes,
    read_s: float,
    done: JobProgress | None,
    seen: JobHistory,
    *,
    preemptive: bool = True,
) -> JobRequest | str:
    """Return what is asked for a job, with its entry in the request; or why it must be left as it is.

    A job that runs and may not be stopped has one configuration: the one that it holds.

    Args:
        preemptive: Whether the policy may stop jobs that run.
    """
    what = rules.describe(job)
    held = None if job.phase == "pending" else _held(job, usable)
    if held is not None and not what.checkpoints:
        if preemptive:
            return MAY_NOT_STOP
        what = _to_its_limit(job, what, rules, held)
    seconds = _seconds(job, what, rules, usable, held)
    clock = rules.clock
    now_s = clock.model_s(read_s)
    submission_s = min(max(0.0, clock.model_s(job.submit_s)), now_s)

    def time_s(unix_s: float) -> float:
        return min(max(clock.model_s(unix_s), submission_s), now_s)

    entry: dict[str, Any] = {
        "id": job.id,
        "submission_s": submission_s,
        "due_s": min(max(clock.model_s(what.due_s), submission_s), LONGEST_S),
        "tardiness_weight_eur_per_s": what.weight_eur_per_s,
        "application": what.application,
        "max_epochs": what.max_epochs,
        "restart_s": rules.restart_s(what),
    }
    if what.distribution:
        entry["distribution"] = what.distribution
    first_s, epochs = seen.first_start_s, seen.epochs if done is None else done.epochs
    if held is not None:
        since_s = next((each for each in (seen.since_s, job.start_s) if each is not None), read_s)
        ready_s = max(clock.model_s(since_s if seen.ready_s is None else seen.ready_s), time_s(since_s))
        entry["running"] = {
            "configuration": held.name,
            "nodes": [node for node, _ in job.holds],
            "since_s": time_s(since_s),
            "ready_s": ready_s,
        }
        first_s = since_s if first_s is None else min(first_s, since_s)
        from_s = ready_s if done is None else max(ready_s, clock.model_s(done.at_s))
        more = max(0.0, now_s - from_s) / seconds[held.name]
        epochs += more if done is None else min(more, ALMOST)  # one more whole epoch would have been reported
    if epochs > 0.0:
        entry["epochs_done"] = min(epochs, ALMOST * what.max_epochs)
    if first_s is not None:
        entry["started_s"] = time_s(first_s)
    if seen.last_nodes:
        entry["state_on"] = list(seen.last_nodes)
    return replace(what, fields=entry | {"seconds_per_epoch": seconds})


def _to_its_limit(job: LiveJob, what: JobRequest, rules: JobRules, held: Configuration) -> JobRequest:
    """Return what a job is whose epochs are taken from its time limit, with those that fit it on what it holds."""
    seconds = rules.seconds(what.application, held)
    if what.distribution != UNIFORM or not job.time_limit_s or not math.isfinite(seconds):
        return what
    return replace(what, max_epochs=job.time_limit_s * rules.clock.speed / seconds)


def _held(job: LiveJob, usable: UsableNodes) -> Configuration:
    counts, types = {gpus for _, gpus in job.holds}, {usable.types[node] for node, _ in job.holds}
    if len(counts) != 1 or len(types) != 1:
        shown = ", ".join(f"{gpus} on {node}" for node, gpus in job.holds) or "none"
        raise InputError(f"GPUs of job {job.id}", shown, "the same number on every node, of one type")
    return Configuration(types.pop(), counts.pop(), len(job.holds))


def _seconds(
    job: LiveJob, what: JobRequest, rules: JobRules, usable: UsableNodes, held: Configuration | None
) -> dict[str, float]:
    """Return the seconds per epoch on what a job may be given, and on what it holds."""
    offered = [configuration_of(name) for name in what.configurations]
    if held is not None:
        offered = [*offered, held] if what.resizes else [held]
    beyond = usable.beyond(job.partition)
    if offered and all(each.gpu_type in beyond and each != held for each in offered):
        allowed = f"types of which all nodes are in its partition or queue; --partition {job.partition} takes no others"
        raise InputError(f"GPUs of job {job.id}", ", ".join(what.configurations), allowed)
    offered = [each for each in offered if each.gpu_type not in beyond or each == held]
    seconds = {each.name: rules.seconds(what.application, each) for each in offered if usable.could_hold(each)}
    seconds = {name: value for name, value in seconds.items() if math.isfinite(value)}
    if not seconds or (held is not None and held.name not in seconds):
        shown = ", ".join(what.configurations) if held is None else held.name
        allowed = f"some that usable nodes have, several nodes only as whole ones, and {what.application} has times for"
        raise InputError(f"GPUs of job {job.id}", shown, allowed)
    longest_s = what.max_epochs * max(seconds.values())
    if longest_s > LONGEST_S:
        raise InputError(f"epochs of job {job.id}", what.max_epochs, f"so many that it takes {LONGEST} at most")
    return seconds
