"""The state of a cluster as a request of the decision service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration
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
        try:
            why = made.why_not(job, fixed, only_opted_in=only_opted_in)
            if not why:
                made.add(job, rules.describe(job), progress.get(job.id), seen.get(job.id, Seen()))
        except InputError as error:
            why = str(error)
        if why:
            made.left_out[job.id] = why
    return made.request(policy, memory)
