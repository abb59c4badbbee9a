"""The state of a Slurm cluster, from `squeue --json` and `scontrol show nodes` of versions 22.05 to 24.11."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpusched_env.errors import InputError
from gpusched_experiments.live.comment import opts_in
from gpusched_experiments.live.gpu_names import built_in_gpu_type
from gpusched_experiments.live.slurm_nodes import nodes_of
from gpusched_experiments.live.slurm_text import Gpus, gpus_of, hosts_of, number_of, numbers_of
from gpusched_experiments.live.state import HeldBy, LiveCluster, LiveJob, LiveNode, Outcome, Phase

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


def cluster_of(squeue_json: str, nodes_text: str, read_s: float) -> LiveCluster:
    """Read the state of a Slurm cluster.

    Args:
        squeue_json: What `squeue --json` writes.
        nodes_text: What `scontrol show nodes` writes, with or without `--oneliner` or `--json`.
        read_s: When both were read, a Unix time [s].

    Raises:
        InputError: A text is not of this form, or a value is not what Slurm writes.
    """
    try:
        found = json.loads(squeue_json)["jobs"]
    except (ValueError, KeyError, TypeError):
        raise InputError("jobs", squeue_json, "what `squeue --json` writes") from None
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError("jobs", squeue_json, "what `squeue --json` writes")
    nodes = nodes_of(nodes_text)
    jobs = tuple(replace(job, unfit=_unfit(record, job, nodes)) for record in found for job in _jobs(record))
    return LiveCluster("slurm", read_s, tuple(nodes), jobs)


def _jobs(record: Mapping[str, Any]) -> Iterator[LiveJob]:
    """Return the jobs of a record: one, or all tasks of an array that were not started yet."""
    number = _whole(record, "job_id") or 0
    array, task = _whole(record, "array_job_id"), number_of(record.get("array_task_id"), "array_task_id")
    waiting = str(record.get("array_task_string") or "").partition("%")[0]
    whole = _whole(record, "het_job_id")
    if whole:
        yield _job(record, f"{whole}+{_whole(record, 'het_job_offset') or 0}")
    elif not array:
        yield _job(record, str(number))
    elif task is not None:
        yield _job(record, f"{array}_{int(task)}")
    elif waiting:
        for each in numbers_of(waiting.strip("[]"), "array_task_string"):
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


def _whole(record: Mapping[str, Any], field: str) -> int | None:
    value = number_of(record.get(field), field)
    return None if value is None else int(value)


def _words(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field) or ""
    return [str(each) for each in value] if isinstance(value, list) else str(value).split("+")


def _phase(states: list[str]) -> tuple[Phase, Outcome]:
    """Return the phase of a state and its flags."""
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


def _asked(record: Mapping[str, Any], nodes: int) -> tuple[Gpus, ...]:
    """Return the GPUs that a job asks for, in all."""
    tasks, sockets = _whole(record, "tasks") or 1, _whole(record, "sockets_per_node") or 1
    of_each = {"tres_per_node": nodes, "tres_per_job": 1, "tres_per_task": tasks, "tres_per_socket": nodes * sockets}
    for field, many in of_each.items():
        found = gpus_of(str(record.get(field) or ""))
        if found:
            return tuple(gpus._replace(many=many * gpus.many) for gpus in found)
    return gpus_of(str(record.get("tres_req_str") or "")) or gpus_of(str(record.get("tres_alloc_str") or ""))


def _holds(
    record: Mapping[str, Any], placed: tuple[str, ...], asked: tuple[Gpus, ...]
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


def _gpu_type(record: Mapping[str, Any], asked: tuple[Gpus, ...]) -> str | None:
    """Return the GPU type that a job asks for, by its GPUs or by features."""
    types = sorted({gpus.gpu_type for gpus in asked if gpus.gpu_type is not None})
    return "+".join(types) or "|".join(word for word in _features(record) if built_in_gpu_type(word)) or None


def _features(record: Mapping[str, Any]) -> list[str]:
    return re.findall(r"[^\s&|()\[\]*,:]+", re.sub(r"\*\d+", "", str(record.get("features") or "")))


def _unfit(record: Mapping[str, Any], job: LiveJob, nodes: Mapping[LiveNode, frozenset[str]]) -> str:
    """Return why no policy can be told of a job."""
    own = [node for node in nodes if node.gpus and (job.partition in node.partitions or not node.partitions)]
    others = [word for word in _features(record) if not built_in_gpu_type(word)]
    wanted = [word for word in others if any(word not in nodes[node] for node in own)]
    pending, states = job.phase == "pending", {word.upper() for word in _words(record, "job_state")}
    named = [field for field in ("required_nodes", "excluded_nodes") if record.get(field) and not opts_in(job.comment)]
    alone = {"none", "NONE", "true"} & {*_words(record, "shared"), *_words(record, "exclusive")}
    shares = any(node.gpus * job.nodes > job.gpus for node in own)
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
