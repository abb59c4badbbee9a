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
from gpusched_operations.live.gpu_names import built_in_gpu_type
from gpusched_operations.live.slurm_commands import SlurmControl
from gpusched_operations.live.slurm_nodes import nodes_of
from gpusched_operations.live.slurm_requests import SubmittedRequest
from gpusched_operations.live.slurm_text import GresGpus, gpus_of, hosts_of, number_of, numbers_of
from gpusched_operations.live.state import HeldBy, LiveCluster, LiveJob, LiveNode, Outcome, Phase, opts_in

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
        jobs += [replace(job, unfit=why or _unfit(known, job, partitions(job.partition)), request=asked) for job in own]
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
    number = _whole(record, "job_id") or 0
    array, task = _whole(record, "array_job_id"), number_of(record.get("array_task_id"), "array_task_id")
    whole = _whole(record, "het_job_id")
    waiting = _waiting(record) if array and task is None and not whole else []
    if whole:
        yield _job(record, f"{whole}+{_whole(record, 'het_job_offset') or 0}")
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
    phase, outcome = _phase(_words(record, "job_state"))
    nodes = max(1, _whole(record, "node_count") or 1)
    asked = _asked(record, nodes)
    placed = hosts_of(str(record.get("nodes") or "")) if phase in ("running", "ending") else ()
    holds, numbers = _holds(record, placed, asked)
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
        held=_held(record, reason) if phase == "pending" else "",
        reason="" if reason == "None" else reason,
        outcome=outcome,
        submit_s=number_of(record.get("submit_time"), "submit_time") or 0.0,
        start_s=start_s if phase != "pending" else None,
        end_s=end_s if phase != "pending" else None,
        time_limit_s=None if limit_min is None else 60.0 * limit_min,
        gpus=sum(gpus.many for gpus in asked),
        gpu_type=_gpu_type(record, asked),
        holds=holds,
        gpu_numbers=numbers,
        restarts=_whole(record, "restart_cnt") or 0,
        can_requeue=bool(record.get("requeue")),
        nodes=nodes,
    )


def _waiting(record: Mapping[str, Any]) -> list[str]:
    text = str(record.get("array_task_string") or "").partition("%")[0].strip("[]")
    return numbers_of(text, "array_task_string") if text else []


def _gres(record: Mapping[str, Any], field: str) -> tuple[GresGpus, ...]:
    return gpus_of(str(record.get(field) or ""))


def _whole(record: Mapping[str, Any], field: str) -> int | None:
    value = number_of(record.get(field), field)
    return None if value is None else int(value)


def _words(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field) or ""
    return [str(each) for each in value] if isinstance(value, list) else str(value).split("+")


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


def _held(record: Mapping[str, Any], reason: str) -> HeldBy:
    words = set(_words(record, "job_state")) | {str(record.get("state_reason"))}
    launch_failed = "launch failed" in reason.replace("_", " ")
    if "requeued" in reason and "held" in reason:
        return "admin" if launch_failed else "requeue"
    if "REQUEUE_HOLD" in words:
        return "requeue"
    if words & {"JobHeldAdmin", "JobHoldMaxRequeue", "SPECIAL_EXIT", "RESV_DEL_HOLD"}:
        return "admin"
    return "user" if "JobHeldUser" in words or record.get("hold") is True else ""


def _asked(record: Mapping[str, Any], nodes: int) -> tuple[GresGpus, ...]:
    tasks, sockets = _whole(record, "tasks") or 1, _whole(record, "sockets_per_node") or 1
    of_each = {"tres_per_node": nodes, "tres_per_job": 1, "tres_per_task": tasks, "tres_per_socket": nodes * sockets}
    for field, many in of_each.items():
        found = _gres(record, field)
        if found:
            return tuple(gpus._replace(many=many * gpus.many) for gpus in found)
    return _gres(record, "tres_req_str") or _gres(record, "tres_alloc_str")


def _holds(
    record: Mapping[str, Any], placed: tuple[str, ...], asked: tuple[GresGpus, ...]
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, tuple[int, ...]], ...]]:
    """Return the GPUs that a job holds on each of its nodes, and their numbers where Slurm tells them."""
    details = [gpus_of(str(each)) for each in record.get("gres_detail") or ()]
    if placed and len(details) == len(placed):
        counts = [sum(gpus.many for gpus in each) for each in details]
        numbers = [tuple(sorted(n for gpus in each for n in gpus.numbers)) for each in details]
    else:  # Slurm no longer tells: they are asked for on all nodes alike
        total = sum(gpus.many for gpus in asked)
        counts = [-(-total // max(1, len(placed)))] * len(placed)
        numbers = [()] * len(placed)
    return (
        tuple((node, count) for node, count in zip(placed, counts, strict=True) if count),
        tuple((node, each) for node, each in zip(placed, numbers, strict=True) if each),
    )


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
    *("start_time", "end_time", "submit_time", "restart_cnt", "tasks", "sockets_per_node"),
)
_GRES = ("tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "tres_req_str", "tres_alloc_str")
_OF_GPUS = ("job_state", "nodes", "gres_detail", "node_count", "tasks", "sockets_per_node", *_GRES)
"""Fields that say which GPUs a job holds."""
_READ: dict[str, Callable[[Mapping[str, Any]], object]] = {
    **{field: partial(_whole, field=field) for field in _NUMBERS},
    **{field: partial(_gres, field=field) for field in _GRES},
    "array_task_string": _waiting,
    "job_state": lambda record: _phase(_words(record, "job_state")),
    "nodes": lambda record: hosts_of(str(record.get("nodes") or "")),
    "gres_detail": lambda record: [gpus_of(str(each)) for each in record.get("gres_detail") or ()],
}
"""Reads each field that may be unreadable."""


def _unfit(record: Mapping[str, Any], job: LiveJob, partition: _Partition) -> str:
    wanted = [word for word in _features(record) if not built_in_gpu_type(word) and word not in partition.features]
    pending, states = job.phase == "pending", {word.upper() for word in _words(record, "job_state")}
    named = [field for field in ("required_nodes", "excluded_nodes") if record.get(field) and not opts_in(job.comment)]
    alone = {"none", "NONE", "true"} & {*_words(record, "shared"), *_words(record, "exclusive")}
    shares = partition.gpus * job.nodes > job.gpus
    reasons = (
        ("a part of a heterogeneous job", bool(_whole(record, "het_job_id"))),
        (f"asks for GPUs of several types: {job.gpu_type}", "+" in (job.gpu_type or "")),
        ("is suspended", bool(states & {"SUSPENDED", "STOPPED", "RESIZING"})),
        (f"asks for nodes with {', '.join(wanted)}", pending and bool(wanted)),
        (f"says which nodes it may have ({', '.join(named)})", pending and bool(named)),
        ("asks for nodes of its own, with fewer GPUs than they have", pending and bool(alone) and shares),
        (f"uses the reservation {record.get('resv_name')}", bool(record.get("resv_name"))),
    )
    return next((why for why, so in reasons if so), "")
