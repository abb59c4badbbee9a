"""The state of a cluster as a request of the decision service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
from gpusched_experiments.live.comment import opts_in
from gpusched_experiments.live.job_rules import DISTRIBUTIONS, JobDescription, JobRules
from gpusched_experiments.live.progress import Progress, Seen
from gpusched_experiments.live.state import LiveCluster, LiveJob, LiveNode
from gpusched_experiments.service.cluster import configuration_of

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
    jobs: dict[str, JobDescription]
    left_out: dict[str, str]
    nodes_left_out: dict[str, str]


def request_of(
    cluster: LiveCluster,
    rules: JobRules,
    policy: str,
    *,
    memory: str | None = None,
    progress: Mapping[str, Progress] = NONE,
    seen: Mapping[str, Seen] = NONE,
    fixed: frozenset[str] = frozenset(),
    partition: str | None = None,
    only_opted_in: bool = False,
) -> LiveRequest:
    """Make the request that asks a policy what to do now.

    Times of the request are those of `rules.clock`.

    Args:
        cluster: The state.
        rules: What its jobs are.
        policy: Name of the policy.
        memory: `memory` of the answer before.
        progress: What jobs reported last, by id.
        seen: What was seen of jobs, by id; of others Slurm's last start counts.
        fixed: Jobs that the policy is not told: their GPUs are not free.
        partition: The only partition whose nodes and jobs the policy is told; None: all.
        only_opted_in: Whether jobs that did not opt in are fixed.

    Raises:
        InputError: No node is left.
    """
    rules = rules.on(cluster)
    made = _Parts(cluster, rules, partition)
    for job in cluster.jobs:
        if job.phase == "ended":
            continue
        was = seen.get(job.id, Seen())
        job = job if was.submit_s is None else replace(job, submit_s=was.submit_s)
        try:
            why = made.why_not(job, fixed, only_opted_in=only_opted_in)
            why = why or made.add(job, rules.describe(job), progress.get(job.id), was)
        except InputError as error:
            why = str(error)
        if why:
            made.left_out[job.id] = why
    return made.request(policy, memory)


_NOT_OURS = ("Assoc", "QOS", "MaxJobs", "Partition", "Dependency", "Invalid", "Reservation", "Licenses", "Bad")
"""How reasons begin that are not about GPUs: Slurm would not start such a job on free ones."""

ALMOST = 0.999
"""Part of its maximum epochs that a job has done at most while it is not over."""


class _Parts:
    """The parts of a request, as jobs come to it."""

    def __init__(self, cluster: LiveCluster, rules: JobRules, partition: str | None) -> None:
        self.rules, self.partition, self.now_s = rules, partition, cluster.read_s
        self.left_out: dict[str, str] = {}
        self.nodes_left_out: dict[str, str] = {}
        self.nodes: dict[str, LiveNode] = {}
        for node in cluster.nodes:
            why = self._why_not_node(node)
            if why:
                self.nodes_left_out[node.name] = why
            elif node.gpus:
                self.nodes[node.name] = node
        self._told: dict[str, LiveJob] = {}
        self._jobs = cluster.jobs
        self.descriptions: dict[str, JobDescription] = {}
        self._entries: dict[str, dict[str, Any]] = {}
        self._seconds: dict[str, dict[str, float]] = {}
        self._times: dict[tuple[tuple[str, float], ...], str] = {}

    def _why_not_node(self, node: LiveNode) -> str:
        if not node.gpus:
            return ""
        if self.partition is not None and self.partition not in node.partitions:
            return f"not in {self.partition}"
        if not node.available:
            return f"no job may start there: {node.state}"
        if self.rules.gpu_type(node.gpu_type) is None:
            return f"no GPU type of the model stands for {node.gpu_type}: name one in [gpu_types]"
        return ""

    def why_not(self, job: LiveJob, fixed: frozenset[str], *, only_opted_in: bool) -> str:
        """Return why the policy is not told of a job; empty: it may be."""
        opted_in = opts_in(job.comment)
        if job.id in self._told:
            return "its id is there twice"
        if job.id in fixed:
            return "not the policy's to decide"
        if self.partition is not None and job.partition != self.partition:
            return f"not in {self.partition}"
        if only_opted_in and not opted_in:
            return "did not opt in"
        if job.unfit:
            return job.unfit
        if job.phase == "ending":
            return "is ending"
        if job.phase == "pending":
            if job.held and not opted_in:
                return f"held ({job.reason})"
            begins = job.reason.startswith("BeginTime") and not job.restarts
            if begins or job.reason.startswith(_NOT_OURS) or job.reason.startswith("JobArrayTaskLimit"):
                return f"waits for something else than GPUs: {job.reason}"
        elif not all(node in self.nodes for node, _ in job.holds):
            return "holds GPUs of a node that is left out"
        return ""

    def add(self, job: LiveJob, what: JobDescription, done: Progress | None, seen: Seen) -> str:
        """Add a job that the policy may be told; return why it cannot be, or nothing.

        Raises:
            InputError: It holds what no configuration stands for.
        """
        clock, application = self.rules.clock, what.application
        offered = [configuration_of(name) for name in what.configurations]
        held = None if job.phase == "pending" else self._held(job)
        if held is not None:
            if not what.checkpoints:
                return "runs, and did not say that it may be stopped and continued"
            offered = [*offered, held] if what.resizes else [held]
        seconds = {each.name: self.rules.seconds(application, each) for each in offered if self._exists(each)}
        seconds = {name: value for name, value in seconds.items() if value < float("inf")}
        if not seconds or (held is not None and held.name not in seconds):
            shown = ", ".join(what.configurations) if held is None else held.name
            allowed = f"some that nodes of the cluster have and {application} has times for"
            raise InputError(f"GPUs of job {job.id}", shown, allowed)
        now_s = clock.model_s(self.now_s)
        submission_s = min(clock.model_s(job.submit_s), now_s)

        def time_s(unix_s: float) -> float:
            return min(max(clock.model_s(unix_s), submission_s), now_s)

        entry: dict[str, Any] = {
            "id": job.id,
            "submission_s": submission_s,
            "due_s": max(0.0, clock.model_s(what.due_s)),
            "tardiness_weight_eur_per_s": what.weight_eur_per_s,
            "application": application,
            "max_epochs": what.max_epochs,
            "restart_s": self._restart_s(what),
        }
        if what.distribution:
            entry["distribution"] = what.distribution
        since_s = None
        if held is not None:
            since_s = seen.since_s if seen.since_s is not None else job.start_s
            since_s = self.now_s if since_s is None else since_s
            ready_s = since_s if seen.ready_s is None else max(seen.ready_s, since_s)
            entry["running"] = {
                "configuration": held.name,
                "nodes": [node for node, _ in job.holds],
                "since_s": time_s(since_s),
                "ready_s": max(time_s(since_s), clock.model_s(ready_s)),
            }
        epochs = self._epochs(job, what, done, None if held is None else seconds[held.name], entry.get("running"))
        if epochs > 0.0:
            entry["epochs_done"] = epochs
        first_s = seen.first_start_s if seen.first_start_s is not None else since_s
        if first_s is not None:
            entry["started_s"] = min(time_s(first_s), entry.get("running", {}).get("since_s", now_s))
        state_on = [node for node in seen.last_nodes if node in self.nodes]
        if state_on:
            entry["state_on"] = state_on
        self._told[job.id], self._entries[job.id], self._seconds[job.id] = job, entry, seconds
        self.descriptions[job.id] = what
        return ""

    def _held(self, job: LiveJob) -> Configuration:
        """Return the configuration that a job holds.

        Raises:
            InputError: None stands for it.
        """
        counts, types = {gpus for _, gpus in job.holds}, {self.nodes[node].gpu_type for node, _ in job.holds}
        if len(counts) != 1 or len(types) != 1:
            shown = ", ".join(f"{gpus} on {node}" for node, gpus in job.holds) or "no GPUs"
            raise InputError(f"GPUs of job {job.id}", shown, "the same number on every node, of one type")
        gpu_type = self.rules.gpu_type(types.pop())
        assert gpu_type is not None  # other nodes are left out
        return Configuration(gpu_type, counts.pop(), len(job.holds))

    def _exists(self, configuration: Configuration) -> bool:
        """Return whether nodes could hold a configuration if they were empty; several nodes only as whole ones."""
        sizes = [n.gpus for n in self.nodes.values() if self.rules.gpu_type(n.gpu_type) == configuration.gpu_type]
        if configuration.nodes == 1:
            return max(sizes, default=0) >= configuration.gpus_per_node
        return sizes.count(configuration.gpus_per_node) >= configuration.nodes and configuration.gpus_per_node == max(sizes)

    def _restart_s(self, what: JobDescription) -> float:
        own = self.rules.file.applications.get(what.application)
        if what.restart_s is not None:
            return what.restart_s
        if own is not None and own.restart_s is not None:
            return own.restart_s
        name = what.application if own is None or own.like is None else own.like
        built_in = self.rules.catalogue.applications.get(name)
        return 0.0 if built_in is None else built_in.restart_s

    def _epochs(
        self,
        job: LiveJob,
        what: JobDescription,
        done: Progress | None,
        each_s: float | None,
        running: Mapping[str, Any] | None,
    ) -> float:
        """Return the epochs that a job has done: reported, and what the model adds since then.

        A job that reports would have told the next epoch: less than one is added. Of one that never did, the time since
        its last start counts.
        """
        epochs = 0.0 if done is None else done.epochs
        if each_s is not None and running is not None:
            from_s = running["ready_s"] if done is None else max(running["ready_s"], self.rules.clock.model_s(done.at_s))
            more = max(0.0, self.rules.clock.model_s(self.now_s) - from_s) / each_s
            epochs += more if done is None else min(more, ALMOST)
        return min(epochs, ALMOST * what.max_epochs)

    def request(self, policy: str, memory: str | None) -> LiveRequest:
        """Return the request.

        Raises:
            InputError: No node is left.
        """
        taken: Counter[str] = Counter()
        for job in self._jobs:
            if job.id not in self._told and job.phase in ("running", "ending"):
                taken.update(dict(job.holds))
        nodes, types = [], {}
        for node in self.nodes.values():
            gpus = node.gpus - taken[node.name]
            if gpus <= 0:
                self.nodes_left_out[node.name] = "all its GPUs are held by jobs that the policy is not told"
                continue
            gpu_type = self.rules.gpu_type(node.gpu_type)
            nodes.append({"name": node.name, "gpu_type": gpu_type, "gpus": gpus})
            types[gpu_type] = max(types.get(gpu_type, 0), gpus)
        if not nodes:
            raise InputError("cluster.nodes", "none", "at least one node with GPUs where jobs may start")
        named = {name for seconds in self._seconds.values() for name in seconds}
        several = {configuration_of(name) for name in named}
        offered = [Configuration(v, g) for v in types for g in range(1, types[v] + 1)]
        offered += sorted((c for c in several if c.nodes > 1 and c.gpu_type in types), key=lambda c: (c.gpu_type, c.nodes))
        names = {each.name for each in offered}
        jobs, times = [], {}
        for key, entry in self._entries.items():
            seconds = {name: value for name, value in self._seconds[key].items() if name in names}
            if not seconds:
                self.left_out[key] = "other jobs hold the GPUs that it may use, which the policy is not told"
                self.descriptions.pop(key)
                continue
            place = tuple(sorted(seconds.items()))
            name = self._times.setdefault(place, f"{entry['application']} {len(self._times) + 1}")
            times[name] = seconds
            jobs.append(entry | {"seconds_per_epoch": name})
        used = {entry["application"] for entry in jobs}
        applications = {
            name: own_application.model_dump(exclude_none=True, exclude={"seconds_per_epoch"})
            for name, own_application in self.rules.file.applications.items()
            if name in used
        }
        fields: dict[str, Any] = {
            "policy": policy,
            "now_s": self.rules.clock.model_s(self.now_s),
            "cluster": {"gpu_types": [self._gpu_type(name, nodes) for name in types], "nodes": nodes},
            "configurations": [each.name for each in offered],
            "prices": self.rules.file.prices.model_dump(exclude_none=True),
            "applications": applications,
            "times": times,
            "distributions": {name: each for name, each in DISTRIBUTIONS.items()},
            "jobs": jobs,
            "memory": memory,
        }
        return LiveRequest(fields, self.descriptions, self.left_out, self.nodes_left_out)

    def _gpu_type(self, name: str, nodes: list[dict[str, Any]]) -> str | dict[str, Any]:
        """Return a GPU type of the request: its name, or figures where its nodes differ in size.

        Idle GPUs draw power, so that nodes of one type must be of one size. Where they are not, or where other jobs
        hold some of the GPUs, the base of a node takes what its GPUs draw while idle: the power is the same.
        """
        own = next((each for each in self.rules.own_gpu_types if each.name == name), None)
        made = self.rules.catalogue.gpu_types[name]
        told = {node["gpus"] for node in nodes if node["gpu_type"] == name}
        whole = {node.gpus for node in self.nodes.values() if self.rules.gpu_type(node.gpu_type) == name}
        if made.node_power_w is not None or made.idle_gpu_power_w == 0.0 or len(told | whole) == 1:
            return name if own is None else own.model_dump(exclude_none=True)
        return {
            "name": name,
            "memory_gib": made.memory_gib,
            "gpu_power_w": made.gpu_power_w - made.idle_gpu_power_w,
            "node_base_power_w": made.node_base_power_w + max(whole) * made.idle_gpu_power_w,
            "idle_gpu_power_w": 0.0,
        }
