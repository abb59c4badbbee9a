"""A request in the published form, read, and as a request to our service."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpusched_env.errors import InputError
from gpusched_operations.service.gpu_names import known_type, under

TIME = "%a %d %b %Y, %H.%M.%S"
"""Times on the clock of the sender, such as Tue 21 Jul 2020, 17.56.59."""
WEIGHTS_EUR_PER_S = {1: 0.00025371, 2: 0.00030128, 3: 0.00034885, 4: 0.00039642, 5: 0.00044399}
"""What a second of tardiness costs, by `Priority`."""
POLICIES = {
    "FIFO": "fifo", "EDF": "edf", "PS": "priority", "G": "greedy", "RG": "random-greedy", "LS": "local-search",
    "PR": "path-relinking", "STS": "sts:published",
}  # fmt: skip
"""Our policy for each published `method`; without one RG. Others name policies."""
METHODS = f"one of {', '.join(POLICIES)}, or a policy of the service such as sts-x"
USUAL_METHOD, USUAL_SEED = "RG", 4010
FIELDS = {"jobs": 414, "nodes": 424, "GPUcosts": 474, "currentTime": 434}
"""The fields that a request must have, and the error codes where one is missing, in the order of their checks."""
NO_COSTS, NO_WEIGHT, NO_TIMES, FAILED = 484, 444, 454, 464
MEMORY_GIB = 1.0  # the form has none, and no job asks for any


class PublishedFormError(ValueError):
    """A request that the published service refuses.

    Args:
        code: Its error code, from 414 to 484.
        said: The reason.
    """

    def __init__(self, code: int, said: str) -> None:
        self.code, self.said = code, said
        super().__init__(f"{code}: {said}")


@dataclass(frozen=True, slots=True)
class _Held:
    """What a job holds: `gpus` GPUs of one node."""

    node: str
    gpu_type: str
    gpus: int


def request_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """Make the request to our service.

    A node offers its free GPUs and those that the request's own jobs hold there; a node without any is left out. So is
    a job that has no epochs left, or no time on a GPU type of the nodes. One that has no time on what it holds waits.

    Raises:
        PublishedFormError: A field is missing, a job has no weight, no job has a time on a GPU type of the nodes, or
            one of these types has no costs.
        InputError: A value is of another form.
    """
    for field, code in FIELDS.items():
        if field not in table_of("body", data):
            raise PublishedFormError(code, f"the field {field} is missing")
    for field in ("jobs", "nodes", "GPUcosts", "currentScheduling"):
        for name, each in table_of(field, data.get(field, {})).items():
            table_of(f"{field}.{name}", each)
    now_s, held = seconds_of("currentTime", data["currentTime"]), _held(data)
    jobs = [_job(name, job, data, held.get(name), now_s) for name, job in data["jobs"].items()]
    if jobs and not any(job["seconds_per_epoch"] for job in jobs):
        raise PublishedFormError(NO_TIMES, _no_times(data, jobs[0]["id"]))
    jobs = [job for job in jobs if job["seconds_per_epoch"] and job["max_epochs"] > 0.0]
    nodes, used = _nodes(data, held), {kind for job in jobs for kind in job["seconds_per_epoch"]}
    return {
        "policy": _policy(data),
        "now_s": now_s,
        "seed": whole_of("seed", data.get("seed", USUAL_SEED)),
        "cluster": {
            "gpu_types": _gpu_types(data, used, max((node["gpus"] for node in nodes), default=1)),
            "nodes": [node for node in nodes if node["gpu_type"] in used],
        },
        "prices": {"energy_eur_per_kwh": 1.0, "pue": 1.0},
        "jobs": jobs,
    }


def _no_times(data: Mapping[str, Any], job: str) -> str:
    nodes, times = ", ".join(_types_of_nodes(data)), ", ".join(data["jobs"][job]["ProfilingData"])
    return f"the job {job} has no time on a GPU type of the nodes ({nodes}); it has times on {times or 'none'}"


def _policy(data: Mapping[str, Any]) -> str:
    method = data.get("method", USUAL_METHOD)
    if not isinstance(method, str) or method.endswith("_sim"):
        raise InputError("method", method, f"{METHODS}, without simulation")
    return POLICIES.get(method, method.lower() if method.isupper() else method)


def _held(data: Mapping[str, Any]) -> dict[str, _Held]:
    """Read what the jobs of a request hold on its nodes; the node of a job that waits is `nan`."""
    held = {}
    for name, own in data.get("currentScheduling", {}).items():
        place = f"currentScheduling.{name}"
        node = str(value_of(place, own, "node"))
        if name in data["jobs"] and node in data["nodes"]:
            kind = own.get("GPUtype", data["nodes"][node].get("GPUtype"))
            held[name] = _Held(node, str(kind), whole_of(f"{place}.nGPUs", value_of(place, own, "nGPUs")))
    return held


def _gpu_types(data: Mapping[str, Any], used: Collection[str], largest: int) -> list[dict[str, Any]]:
    """List the GPU types of the nodes that jobs have times on, with what a node costs by its busy GPUs, 1 to `largest`.

    Costs are in €/h: the form has $, taken as €. Numbers of GPUs without a cost are on the line between those that have
    one, or beyond them.
    """
    types = []
    for name in _types_of_nodes(data):
        if name not in used:
            continue
        given = by_gpus(f"GPUcosts.{name}", under(data["GPUcosts"], name) or {})
        costs = {0: 0.0} | {gpus: cost for gpus, cost in sorted(given.items()) if gpus > 0}
        if len(costs) == 1:
            there = ", ".join(data["GPUcosts"]) or "none"
            raise PublishedFormError(NO_COSTS, f"GPUcosts has no costs of {name}; it has those of {there}")
        known = list(costs)
        each = []
        for gpus in range(1, max(largest, known[-1]) + 1):
            high = min(bisect_left(known, gpus), len(known) - 1)
            before, then = known[high - 1], known[high]
            each.append(costs[before] + (costs[then] - costs[before]) * (gpus - before) / (then - before))
        types.append({"name": name, "memory_gib": MEMORY_GIB, "node_eur_per_h": each})
    return types


def _types_of_nodes(data: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(text_of(f"nodes.{name}", node, "GPUtype") for name, node in data["nodes"].items()))


def _nodes(data: Mapping[str, Any], held: Mapping[str, _Held]) -> list[dict[str, Any]]:
    nodes = []
    for name, node in data["nodes"].items():
        own = sum(max(each.gpus, 0) for each in held.values() if each.node == name)
        gpus = whole_of(f"nodes.{name}.free_nGPUs", value_of(f"nodes.{name}", node, "free_nGPUs")) + own
        if gpus > 0:
            nodes.append({"name": name, "gpu_type": node["GPUtype"], "gpus": gpus})
    return nodes


def _job(
    name: str, job: Mapping[str, Any], data: Mapping[str, Any], held: _Held | None, now_s: float
) -> dict[str, Any]:
    place, known = f"jobs.{name}", _types_of_nodes(data)
    weight = WEIGHTS_EUR_PER_S.get(whole_of(f"{place}.Priority", value_of(place, job, "Priority")))
    if weight is None:
        raise PublishedFormError(NO_WEIGHT, f"the priority of the job {name} is none of 1 to 5")
    profiles = table_of(f"{place}.ProfilingData", value_of(place, job, "ProfilingData"))
    times = {
        kind: {str(gpus): time for gpus, time in by_gpus(f"{place}.ProfilingData.{kind}", profile).items()}
        for kind in known
        if (profile := under(profiles, kind)) is not None
    }
    times = {kind: profile for kind, profile in times.items() if profile}
    submission_s, due_s = (
        seconds_of(f"{place}.{field}", value_of(place, job, field)) for field in ("SubmissionTime", "Deadline")
    )
    running = None
    kind = data["nodes"][held.node]["GPUtype"] if held else ""
    if held and known_type(held.gpu_type, [kind]) == kind and str(held.gpus) in times.get(kind, {}):
        running = {"configuration": f"{kind}x{held.gpus}", "nodes": [held.node], "since_s": now_s}
    return {
        "id": name,
        "submission_s": submission_s,
        "due_s": max(due_s, submission_s),  # due before that, it is late by a constant more, which decides nothing
        "tardiness_weight_eur_per_s": weight,
        "max_epochs": number_of(f"{place}.Epochs", value_of(place, job, "Epochs")),
        "seconds_per_epoch": times,
        "running": running,
    }


def seconds_of(field: str, text: Any) -> float:
    try:
        return datetime.strptime(str(text), TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise InputError(field, text, "a time such as Tue 21 Jul 2020, 17.56.59") from None


def number_of(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(field, value, "a number")
    return number


def whole_of(field: str, value: Any) -> int:
    return int(number_of(field, value))


def table_of(field: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(field, value, "an object")
    return value


def value_of(place: str, table: Mapping[str, Any], name: str) -> Any:
    if name not in table:
        raise InputError(f"{place}.{name}", None, "a value; it is missing")
    return table[name]


def text_of(place: str, table: Mapping[str, Any], name: str) -> str:
    value = value_of(place, table, name)
    if not isinstance(value, str):
        raise InputError(f"{place}.{name}", value, "a text")
    return value


def by_gpus(field: str, value: Any) -> dict[int, float]:
    """Return numbers by number of GPUs; what is null or no number is missing."""
    return {
        whole_of(field, gpus): number_of(f"{field}.{gpus}", each)
        for gpus, each in table_of(field, value).items()
        if each is not None and each == each  # noqa: PLR0124 - of NaN this is false
    }
