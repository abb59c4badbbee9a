"""The state of a cluster as a request of the decision service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_env.model.configuration import MOST_ON_A_NODE
from gpusched_operations.live.job_requests import UsableNodes, job_request, rejected_because
from gpusched_operations.live.job_rules import DISTRIBUTIONS, JobRequest, JobRules
from gpusched_operations.live.occupancy import HOLDING, occupancy
from gpusched_operations.live.progress import JobHistory, JobProgress
from gpusched_operations.live.state import LiveCluster, LiveNode, parts_text
from gpusched_operations.service.cluster import configuration_of
from gpusched_operations.service.fields import MOST_CONFIGURATIONS, MOST_JOBS

NO_GPU = "no GPU is left on which a job may start, so that all jobs wait"
"""Why no policy is asked."""
UNSEEN = "jobs that cannot be seen"
NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A request, and what it was made of.

    Attributes:
        fields: The body, for `Decider` or `POST /v1/decide`.
        jobs: What it tells of each job, by id.
        left_out: Why the other jobs that are not over are left out, by id.
        nodes_left_out: Why nodes with GPUs are left out, by name.
    """

    fields: dict[str, Any]
    jobs: dict[str, JobRequest]
    left_out: dict[str, str]
    nodes_left_out: dict[str, str]


def request_of(
    cluster: LiveCluster,
    rules: JobRules,
    policy: str,
    *,
    memory: str | None = None,
    progress: Mapping[str, JobProgress] = NONE,
    seen: Mapping[str, JobHistory] = NONE,
    fixed: frozenset[str] = frozenset(),
    partition: str | None = None,
    only_opted_in: bool = False,
    preemptive: bool = True,
    with_nodes: bool = True,
) -> LiveRequest:
    """Make the request that asks a policy what to do now.

    Times of the request are those of `rules.clock`. GPUs of jobs that the policy is not told, or that cannot be seen,
    are not free: its nodes have that many fewer. Jobs that run, and do not say that they can be stopped and continued,
    are told to policies that stop none, with the one configuration that they hold; to others they are not told.

    Args:
        seen: What was seen of jobs, by id; of others the manager's last start counts.
        partition: The only partition whose nodes and jobs the policy is told; None: all.
        only_opted_in: Whether jobs that did not opt in are fixed.
        preemptive: Whether the policy may stop jobs that run.
        with_nodes: Whether it is an error that no node is left; else such a request has none, and no policy can decide.

    Raises:
        InputError: No node is left (`cluster.nodes`), the partition has no node with GPUs, or the clock of the rules
            begins after the present.
    """
    rules = rules.on(cluster)
    if rules.clock.model_s(cluster.read_s) < 0.0:
        raise InputError("clock.origin_s", rules.clock.origin_s, f"a time not after {cluster.read_s:g}")
    usable, nodes_left_out = _usable_nodes(cluster, rules, partition)
    told: dict[str, JobRequest] = {}
    left_out: dict[str, str] = {}
    for given in sorted((job for job in cluster.jobs if job.phase != "ended"), key=lambda job: job.submit_s):
        was = seen.get(given.id, JobHistory())
        job = given if was.submit_s is None else replace(given, submit_s=was.submit_s)
        found: JobRequest | str = rejected_because(job, usable, fixed, partition, only_opted_in=only_opted_in)
        try:
            found = found or job_request(
                job, rules, usable, cluster.read_s, progress.get(job.id), was, preemptive=preemptive
            )
        except InputError as error:
            found = str(error)
        if isinstance(found, JobRequest) and len(told) >= MOST_JOBS:
            found = f"a request has at most {MOST_JOBS:,} jobs"
        if isinstance(found, JobRequest):
            told[job.id] = found
        else:
            left_out[job.id] = found
    made = _assembled(cluster, rules, (policy, memory), usable, nodes_left_out, told, left_out)
    there = any(node.gpus and partition in (None, *node.partitions) for node in cluster.nodes)
    if not made.fields["cluster"]["nodes"] and (with_nodes or not there):
        whys = "; ".join(f"{name}: {why}" for name, why in nodes_left_out.items())
        raise InputError(
            "cluster.nodes",
            f"none{f' ({whys})' if whys else ''}",
            "at least one node with GPUs on which jobs may start",
        )
    return made


def _assembled(
    cluster: LiveCluster,
    rules: JobRules,
    asked: tuple[str, str | None],
    usable: UsableNodes,
    nodes_left_out: dict[str, str],
    told: dict[str, JobRequest],
    left_out: dict[str, str],
) -> LiveRequest:
    held = occupancy(cluster)
    given = Counter({name: held[name].free for name in usable.nodes})
    for job in cluster.jobs:
        if job.phase in HOLDING and job.id in told:
            given.update(dict(job.holds))
    nodes = [
        {"name": name, "gpu_type": usable.types[name], "gpus": given[name]} for name in usable.nodes if given[name] > 0
    ]
    for name in usable.nodes.keys() - {node["name"] for node in nodes}:
        unseen = f"; {UNSEEN} hold {held[name].unseen}" if held[name].unseen else ""
        what = "CPUs" if held[name].stranded else "GPUs"
        nodes_left_out[name] = f"jobs that the policy is not told hold all of its {what}{unseen}"
    offered = _offered(nodes, told.values())
    names = {each.name for each in offered}
    there = {node["name"] for node in nodes}
    jobs, times = [], _Times()
    for key, each in list(told.items()):
        seconds = {name: value for name, value in each.fields["seconds_per_epoch"].items() if name in names}
        if seconds:
            entry = each.fields | {"seconds_per_epoch": times.name(each.application, seconds)}
            if "state_on" in entry:
                entry["state_on"] = [name for name in entry["state_on"] if name in there]
            jobs.append({name: value for name, value in entry.items() if value != []})
        else:
            left_out[key] = "jobs that the policy is not told hold the GPUs that it may use"
            del told[key]
    fields = {
        "policy": asked[0],
        "now_s": rules.clock.model_s(cluster.read_s),
        "cluster": {"gpu_types": _gpu_types(rules, usable, nodes), "nodes": nodes},
        "configurations": [each.name for each in offered],
        "prices": rules.file.prices.model_dump(exclude_none=True),
        "applications": _applications(rules, told.values()),
        "times": times.by_name,
        "distributions": DISTRIBUTIONS,
        "jobs": jobs,
        "memory": asked[1],
    }
    return LiveRequest(fields, told, left_out, nodes_left_out)


class _Times:
    """Times that are told once for all jobs that have the same."""

    def __init__(self) -> None:
        self.by_name: dict[str, dict[str, float]] = {}
        self._names: dict[tuple[Any, ...], str] = {}

    def name(self, application: str, seconds: dict[str, float]) -> str:
        key = (application, *sorted(seconds.items()))
        if key not in self._names:
            self._names[key] = f"{application[:150]} {len(self._names) + 1}"
            self.by_name[self._names[key]] = seconds
        return self._names[key]


def _usable_nodes(cluster: LiveCluster, rules: JobRules, partition: str | None) -> tuple[UsableNodes, dict[str, str]]:
    """Return the nodes with GPUs on which jobs may start, and why others are left out."""
    nodes: dict[str, LiveNode] = {}
    types: dict[str, str] = {}
    left_out: dict[str, str] = {}
    held = occupancy(cluster)
    for node in cluster.nodes:
        gpu_type = rules.gpu_type(node.gpu_type)
        if not node.gpus:
            if node.parts:
                left_out[node.name] = f"it has no whole GPUs, but {parts_text(node.parts)}"
            continue
        if partition is not None and partition not in node.partitions:
            left_out[node.name] = f"not in {partition}"
        elif not node.available:
            left_out[node.name] = f"no job may start on it: {node.state}"
        elif gpu_type is None:
            left_out[node.name] = f"no GPU type of the model is known for {node.gpu_type}: name one in [gpu_types]"
        elif held[node.name].held > node.gpus or node.gpus > MOST_ON_A_NODE:
            left_out[node.name] = f"{held[node.name].held} of its {node.gpus} GPUs are held"
        else:
            nodes[node.name], types[node.name] = node, gpu_type
    return UsableNodes(nodes, types), left_out


def _offered(nodes: list[dict[str, Any]], told: Iterable[JobRequest]) -> list[Configuration]:
    """Return every number of GPUs of a node, by type, and the numbers of whole nodes that jobs may be given.

    Of more than a request may have, only those that jobs may be given.
    """
    largest: dict[str, int] = {}
    for node in nodes:
        largest[node["gpu_type"]] = max(largest.get(node["gpu_type"], 0), node["gpus"])
    named = {configuration_of(name) for each in told for name in each.fields["seconds_per_epoch"]}
    several = [each for each in named if each.nodes > 1 and each.gpu_type in largest]
    several.sort(key=lambda each: (each.gpu_type, each.nodes, each.gpus_per_node))
    single = [Configuration(v, gpus) for v in largest for gpus in range(1, largest[v] + 1)]
    if len(single) + len(several) > MOST_CONFIGURATIONS:
        single = [each for each in single if each in named]
    return [*single, *several]


def _gpu_types(rules: JobRules, usable: UsableNodes, nodes: list[dict[str, Any]]) -> list[str | dict[str, Any]]:
    """Return the GPU types of the request: names, or figures where nodes of a type differ in their number of GPUs.

    In the model idle GPUs draw power, so that nodes of one type are of one size. Where they are not, or where other
    jobs hold some of their GPUs, the base of a node takes what its GPUs draw while idle: its power stays what it was.
    """
    own = {each.name: each.model_dump(exclude_none=True) for each in rules.file.own_gpu_types}
    found: list[str | dict[str, Any]] = []
    for name in dict.fromkeys(node["gpu_type"] for node in nodes):
        made, whole = rules.catalogue.gpu_types[name], usable.sizes(name)
        alike = len({node["gpus"] for node in nodes if node["gpu_type"] == name} | whole.keys()) == 1
        if alike or made.node_power_w is not None or made.idle_gpu_power_w == 0.0:
            found.append(own.get(name, name))
            continue
        found.append(
            {
                "name": name,
                "memory_gib": made.memory_gib,
                "gpu_power_w": made.gpu_power_w - made.idle_gpu_power_w,
                "node_base_power_w": made.node_base_power_w + max(whole) * made.idle_gpu_power_w,
                "idle_gpu_power_w": 0.0,
            }
        )
    return found


def _applications(rules: JobRules, told: Iterable[JobRequest]) -> dict[str, Any]:
    used = {each.application for each in told}
    return {
        name: own.model_dump(exclude_none=True, exclude={"seconds_per_epoch"})
        for name, own in rules.file.applications.items()
        if name in used
    }
