"""The state of a Slurm cluster, from `squeue --json` and `scontrol show nodes` of versions 22.05 to 24.11.

Version 22.05 was tried. The form of later ones is that of `src/plugins/data_parser` of github.com/SchedMD/slurm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.live.slurm_holdings import (
    GRES_FIELDS,
    asked_by,
    asks_besides,
    devices_of,
    gres_in,
    holdings,
    is_whole,
    whole_number,
)
from gpusched_operations.live.slurm_nodes import nodes_of
from gpusched_operations.live.slurm_requests import SubmittedRequest
from gpusched_operations.live.slurm_text import GresGpus, hosts_of, number_of, numbers_of
from gpusched_operations.live.slurm_waits import Array, at_once, holder_of, waits_for, words_in
from gpusched_operations.live.state import LiveCluster, LiveJob, LiveNode, Outcome, Phase, opts_in
from gpusched_operations.service.gpu_names import built_in_gpu_type

_RUNNING = {"RUNNING", "CONFIGURING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING"}
_ENDING = {"COMPLETING", "STAGE_OUT"}
_PENDING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_NO_LIMIT_MIN = 365 * 24 * 60  # what jobs without a limit have once they run
_OUTCOMES: dict[str, Outcome] = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "OUT_OF_MEMORY": "failed",
    "LAUNCH_FAILED": "failed",
    "RECONFIG_FAIL": "failed",
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "NODE_FAIL": "node-fail",
    "BOOT_FAIL": "node-fail",
}


def read_cluster(commands: SlurmControl, now_s: float, nodes: str | None = None) -> LiveCluster:
    """Read Slurm; `nodes`: what `scontrol show nodes` wrote; None: it is asked for."""
    jobs = commands.jobs()
    return cluster_of(jobs, commands.nodes() if nodes is None else nodes, now_s)


def cluster_of(squeue_json: str, nodes_text: str, read_s: float) -> LiveCluster:
    """Read the state of a Slurm cluster.

    A job of which something cannot be read is unfit. Where it is not known which GPUs it holds, no job may start on the
    nodes that they may be on.
    """
    try:
        found = parse_json(squeue_json)["jobs"]
    except (ValueError, KeyError, TypeError):
        raise InputError("jobs", squeue_json, "what `squeue --json` writes") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError("jobs", squeue_json, "what `squeue --json` writes")
    nodes = nodes_of(nodes_text)
    partitions = cache(partial(_Partition.of, nodes))
    jobs: list[LiveJob] = []
    arrays: dict[int, Array] = {}
    unknown: dict[str, str] = {}
    for record in found:
        why, known = "", record
        try:
            own = list(_jobs(record))
        except _UNREADABLE:
            known, why = _readable(record)
            own = list(_jobs(known))
            for job in own:
                unknown |= dict.fromkeys(_may_hold(job, record, known, nodes), f"job {job.id}: {why}")
        asked = SubmittedRequest.of(record)
        own = [replace(job, unfit=why or _unfit(known, job, partitions(job.partition)), request=asked) for job in own]
        own = [replace(job, waits_for=_not_yet(job, read_s)) for job in own]
        unknown |= {name: f"job {job.id} has it alone" for job in own for name in _alone_on(known, job, nodes)}
        Array.add(arrays, known, own)
        jobs += own
    over = {name: array.most for array in arrays.values() for name in array.over()}
    jobs = [_limited(job, over[job.id]) if job.id in over else job for job in jobs]
    told = (
        replace(node, available=False, state=f"{node.state} ({unknown[node.name]})") if node.name in unknown else node
        for node in nodes
    )
    names = frozenset(name for record in found if isinstance(name := record.get("cluster"), str) and name)
    return LiveCluster("slurm", read_s, tuple(told), tuple(jobs), names)


def _readable(record: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the fields of a job that can be read, and what is wrong with the first that cannot."""
    known, why = dict(record), ""
    for field, read in _READ.items():
        try:
            read(record)
        except _UNREADABLE as error:
            why = why or (str(error) if isinstance(error, InputError) else f"{field} is not what Slurm writes")
            known.pop(field, None)
    if "job_state" not in known:
        known["job_state"] = "RUNNING" if record.get("nodes") else "PENDING"
    return known, why


def _may_hold(
    job: LiveJob, record: Mapping[str, Any], known: Mapping[str, Any], nodes: Iterable[LiveNode]
) -> Iterable[str]:
    """Return the nodes on which a job that cannot be read holds GPUs of an unknown number."""
    if job.phase not in ("running", "ending") or all(known.get(field) == record.get(field) for field in _OF_GPUS):
        return ()
    placed = hosts_of(str(known.get("nodes") or ""))
    return placed or [node.name for node in nodes if job.partition in node.partitions or not node.partitions]


def _jobs(record: Mapping[str, Any]) -> Iterator[LiveJob]:
    """Return the jobs of a record: one, or all tasks of an array that were not started yet."""
    number = whole_number(record, "job_id") or 0
    array, task = whole_number(record, "array_job_id"), number_of(record.get("array_task_id"), "array_task_id")
    whole = whole_number(record, "het_job_id")
    waiting = _waiting(record) if array and task is None and not whole else []
    if whole:
        yield _job(record, f"{whole}+{whole_number(record, 'het_job_offset') or 0}")
    elif not array:
        yield _job(record, str(number))
    elif task is not None:
        yield _job(record, f"{array}_{int(task)}")
    elif waiting:
        for each in waiting:
            yield _job(record, f"{array}_{each}")
    else:
        yield _job(record, str(number))


def _job(record: Mapping[str, Any], name: str) -> LiveJob:
    phase, outcome = _phase(words_in(record, "job_state"))
    nodes = max(1, whole_number(record, "node_count") or 1)
    asked = asked_by(record, nodes)
    placed = hosts_of(str(record.get("nodes") or "")) if phase in ("running", "ending") else ()
    holds, numbers, parts = holdings(record, placed, asked, name)
    limit_min = number_of(record.get("time_limit"), "time_limit")
    limit_min = None if limit_min is not None and limit_min >= _NO_LIMIT_MIN else limit_min
    start_s, end_s = (number_of(record.get(field), field) or None for field in ("start_time", "end_time"))
    reason = str(record.get("state_description") or record.get("state_reason") or "")
    return LiveJob(
        id=name,
        name=str(record.get("name") or ""),
        user=str(record.get("user_name") or ""),
        account=str(record.get("account") or ""),
        partition=str(record.get("partition") or ""),
        comment=str(record.get("comment") or ""),
        script=str(record.get("command") or "").split(" ")[0],
        phase=phase,
        held=holder_of(record, reason) if phase == "pending" else "",
        reason="" if reason == "None" else reason,
        waits_for=waits_for(record, reason) if phase == "pending" else "",
        outcome=outcome,
        submit_s=number_of(record.get("submit_time"), "submit_time") or 0.0,
        start_s=start_s if phase != "pending" else None,
        end_s=end_s if phase != "pending" else None,
        time_limit_s=None if limit_min is None else 60.0 * limit_min,
        gpus=sum(many for _, many in holds) or sum(gpus.many for gpus in asked if is_whole(gpus)),
        gpu_type=_gpu_type(record, asked),
        holds=holds,
        parts=parts,
        asks=asks_besides(record, asked),
        gpu_numbers=numbers,
        restarts=whole_number(record, "restart_cnt") or 0,
        can_requeue=bool(record.get("requeue")),
        nodes=nodes,
    )


def _waiting(record: Mapping[str, Any]) -> list[str]:
    at_once(record)
    text = str(record.get("array_task_string") or "").partition("%")[0].strip("[]")
    return numbers_of(text, "array_task_string") if text else []


def _phase(states: list[str]) -> tuple[Phase, Outcome]:
    words = {state.upper() for state in states}
    ended = next((outcome for word, outcome in _OUTCOMES.items() if word in words), None)
    if words & _ENDING:
        return "ending", ended or ""
    if words & _PENDING:
        return "pending", ""
    if words & _RUNNING:
        return "running", ""
    if ended is None:
        raise InputError("job_state", states, f"a state of Slurm, such as {', '.join(sorted(_RUNNING | _PENDING))}")
    return "ended", ended


def _not_yet(job: LiveJob, read_s: float) -> str:
    """Return what a job waits for besides GPUs, also where its reason does not name that yet."""
    if job.waits_for or job.held or job.phase != "pending":
        return job.waits_for
    if job.request.priority == 0.0:
        return "a priority above 0"
    return "BeginTime" if job.request.eligible_s > read_s and not job.restarts else ""


def _limited(job: LiveJob, most: int) -> LiveJob:
    return replace(job, waits_for=f"JobArrayTaskLimit: at most {most} tasks of its array run at once")


def _is_alone(record: Mapping[str, Any]) -> bool:
    words = {word.lower() for field in ("shared", "exclusive") for word in words_in(record, field)}
    return bool(words & {"none", "true", "user", "mcs", "topo"})


def _alone_on(record: Mapping[str, Any], job: LiveJob, nodes: Iterable[LiveNode]) -> list[str]:
    """Return the nodes with more GPUs than a job holds on which no other may start beside it."""
    if job.phase not in ("running", "ending") or not _is_alone(record):
        return []
    holds, placed = dict(job.holds), hosts_of(str(record.get("nodes") or ""))
    return [node.name for node in nodes if node.name in placed and node.gpus > holds.get(node.name, 0)]


def _gpu_type(record: Mapping[str, Any], asked: tuple[GresGpus, ...]) -> str | None:
    types = sorted({gpus.gpu_type for gpus in asked if gpus.gpu_type is not None})
    return "+".join(types) or "|".join(word for word in _features(record) if built_in_gpu_type(word)) or None


def _features(record: Mapping[str, Any]) -> list[str]:
    return re.findall(r"[^\s&|()\[\]*,:]+", re.sub(r"\*\d+", "", str(record.get("features") or "")))


class _Partition(NamedTuple):
    """What a partition's nodes with GPUs have: features that all of them have, and the most GPUs of one."""

    features: frozenset[str]
    gpus: int

    @classmethod
    def of(cls, nodes: Mapping[LiveNode, frozenset[str]], name: str) -> _Partition:
        own = {
            node: has for node, has in nodes.items() if node.gpus and (name in node.partitions or not node.partitions)
        }
        features = frozenset.intersection(*own.values()) if own else frozenset()
        return cls(features, max((node.gpus for node in own), default=0))


_UNREADABLE = (InputError, ValueError, TypeError, AttributeError, OverflowError)
_NUMBERS = (
    *("job_id", "array_job_id", "array_task_id", "het_job_id", "het_job_offset", "node_count", "time_limit"),
    *("start_time", "end_time", "submit_time", "restart_cnt", "tasks", "sockets_per_node", "array_max_tasks"),
)
_OF_GPUS = ("job_state", "nodes", "gres_detail", "node_count", "tasks", "sockets_per_node", *GRES_FIELDS)
"""Fields that say which GPUs a job holds."""
_READ: dict[str, Callable[[Mapping[str, Any]], object]] = {
    **{field: partial(whole_number, field=field) for field in _NUMBERS},
    **{field: partial(gres_in, field=field) for field in GRES_FIELDS},
    "array_task_string": _waiting,
    "job_state": lambda record: _phase(words_in(record, "job_state")),
    "nodes": lambda record: hosts_of(str(record.get("nodes") or "")),
    "gres_detail": lambda record: [devices_of(str(each)) for each in record.get("gres_detail") or ()],
}
"""Reads each field that may be unreadable."""


def _unfit(record: Mapping[str, Any], job: LiveJob, partition: _Partition) -> str:
    wanted = [word for word in _features(record) if not built_in_gpu_type(word) and word not in partition.features]
    pending, states = job.phase == "pending", {word.upper() for word in words_in(record, "job_state")}
    named = [field for field in ("required_nodes", "excluded_nodes") if record.get(field) and not opts_in(job.comment)]
    alone = _is_alone(record)
    shares = partition.gpus * job.nodes > job.gpus
    reasons = (
        ("a part of a heterogeneous job", bool(whole_number(record, "het_job_id"))),
        (f"asks for GPUs of several types: {job.gpu_type}", "+" in (job.gpu_type or "")),
        ("is suspended", bool(states & {"SUSPENDED", "STOPPED", "RESIZING"})),
        (f"asks for nodes with {', '.join(wanted)}", pending and bool(wanted)),
        (f"says which nodes it may have ({', '.join(named)})", pending and bool(named)),
        ("asks for nodes of its own, with fewer GPUs than they have", pending and alone and shares),
        (f"uses the reservation {record.get('resv_name')}", bool(record.get("resv_name"))),
    )
    return next((why for why, so in reasons if so), "")
