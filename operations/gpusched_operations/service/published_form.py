"""Requests in the form of the web service that the authors of STS published, GPUspb (`/optimizer/v5`).

Our service takes them at the same path. There is also a client, for a service that is asked by another path:

    python -m gpusched_operations.service.published_form request.json --url http://127.0.0.1:8000

reads such a request (or `-`, the standard input), asks `/v1/decide`, and prints the answer in the same form. The form:
`run_webService.py` of github.com/ai-sprint-eu-project/GPUScheduler, branch STochasticScheduler. It has no distribution
of epochs, so every job counts as needing all of `Epochs`, those left; and nothing is kept between two requests.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, datetime
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_operations.service.client import ServiceError, post
from gpusched_operations.service.fields import error_body
from gpusched_operations.service.pool import BUSY, NOT_ALLOWED, OK, Reply

PATH = "/optimizer/v5"
"""Where the published service, and ours, takes such requests."""
CREATED = 201
"""The status of its answers."""
TIME = "%a %d %b %Y, %H.%M.%S"
"""Times on the clock of the sender, such as Tue 21 Jul 2020, 17.56.59."""
WEIGHTS_EUR_PER_S = {1: 0.00025371, 2: 0.00030128, 3: 0.00034885, 4: 0.00039642, 5: 0.00044399}
"""What a second of tardiness costs, by `Priority`."""
POLICIES = {
    "FIFO": "fifo", "EDF": "edf", "PS": "priority", "G": "greedy", "RG": "random-greedy", "LS": "local-search",
    "PR": "path-relinking", "STS": "sts-published",
}  # fmt: skip
"""Our policy for each `method`; without one RG."""
USUAL_METHOD, USUAL_SEED = "RG", 4010
FIELDS = {"jobs": 414, "nodes": 424, "GPUcosts": 474, "currentTime": 434}
"""The fields that a request must have, and the error codes where one is missing, in the order of their checks."""
NO_COSTS, NO_WEIGHT, NO_TIMES, FAILED = 484, 444, 454, 464
MEMORY_GIB = 1.0  # the form has none, and no job asks for any
HOUR_S = 3600.0
LATEST_S = datetime(MAXYEAR, 12, 31, tzinfo=UTC).timestamp()
"""The last day that can be written [s]."""


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

    A node offers its free GPUs and those that the request's own jobs hold there; a node without any is left out.

    Raises:
        PublishedFormError: A field is missing, or a job has no weight or no time on a GPU type of the nodes.
    """
    for field, code in FIELDS.items():
        if field not in _table("body", data):
            raise PublishedFormError(code, f"the field {field} is missing")
    for field in ("jobs", "nodes", "GPUcosts", "currentScheduling"):
        for name, each in _table(field, data.get(field, {})).items():
            _table(f"{field}.{name}", each)
    method = data.get("method", USUAL_METHOD)
    if str(method) not in POLICIES:
        raise InputError("method", method, f"one of {', '.join(POLICIES)}, without simulation")
    now_s, held = _seconds("currentTime", data["currentTime"]), _held(data)
    return {
        "policy": POLICIES[method],
        "now_s": now_s,
        "seed": _whole("seed", data.get("seed", USUAL_SEED)),
        "cluster": {"gpu_types": _gpu_types(data), "nodes": _nodes(data, held)},
        "prices": {"energy_eur_per_kwh": 1.0, "pue": 1.0},
        "jobs": [_job(name, job, data, held.get(name), now_s) for name, job in data["jobs"].items()],
    }


def _held(data: Mapping[str, Any]) -> dict[str, _Held]:
    """Read what the jobs of a request hold; the node of a job that waits is `nan`."""
    held = {}
    for name, own in data.get("currentScheduling", {}).items():
        place = f"currentScheduling.{name}"
        node, kind, gpus = (_of(place, own, field) for field in ("node", "GPUtype", "nGPUs"))
        if name in data["jobs"] and node != "nan":
            held[name] = _Held(str(node), str(kind), _whole(f"{place}.nGPUs", gpus))
    return held


def _gpu_types(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """List the GPU types of the nodes with what a node costs by busy GPUs [€/h]: the form has $, taken as €."""
    types = []
    for name in _types_of_nodes(data):
        costs = _by_gpus(f"GPUcosts.{name}", data["GPUcosts"].get(name, {}))
        if not costs or sorted(costs) != list(range(1, len(costs) + 1)):
            raise PublishedFormError(NO_COSTS, f"GPUcosts has no costs of 1, 2, ... GPUs of {name}")
        each = [_number(f"GPUcosts.{name}.{gpus}", costs[gpus]) for gpus in sorted(costs)]
        types.append({"name": name, "memory_gib": MEMORY_GIB, "node_eur_per_h": each})
    return types


def _types_of_nodes(data: Mapping[str, Any]) -> list[str]:
    types = (str(_of(f"nodes.{name}", node, "GPUtype")) for name, node in data["nodes"].items())
    return list(dict.fromkeys(types))


def _nodes(data: Mapping[str, Any], held: Mapping[str, _Held]) -> list[dict[str, Any]]:
    nodes = []
    for name, node in data["nodes"].items():
        own = sum(each.gpus for each in held.values() if each.node == name)
        gpus = _whole(f"nodes.{name}.free_nGPUs", _of(f"nodes.{name}", node, "free_nGPUs")) + own
        if gpus > 0:
            nodes.append({"name": name, "gpu_type": str(node["GPUtype"]), "gpus": gpus})
    return nodes


def _job(
    name: str, job: Mapping[str, Any], data: Mapping[str, Any], held: _Held | None, now_s: float
) -> dict[str, Any]:
    place, known = f"jobs.{name}", _types_of_nodes(data)
    weight = WEIGHTS_EUR_PER_S.get(_whole(f"{place}.Priority", _of(place, job, "Priority")))
    if weight is None:
        raise PublishedFormError(NO_WEIGHT, f"the priority of the job {name} is none of 1 to 5")
    times = {
        kind: {
            str(gpus): _number(f"{place}.ProfilingData.{kind}", time)
            for gpus, time in _by_gpus(f"{place}.ProfilingData.{kind}", profile).items()
        }
        for kind, profile in _table(f"{place}.ProfilingData", _of(place, job, "ProfilingData")).items()
        if kind in known and profile
    }
    if not times:
        raise PublishedFormError(NO_TIMES, f"the job {name} has no time on a GPU type of the nodes")
    submission_s, due_s = (
        _seconds(f"{place}.{field}", _of(place, job, field)) for field in ("SubmissionTime", "Deadline")
    )
    running = held and {"configuration": f"{held.gpu_type}x{held.gpus}", "nodes": [held.node], "since_s": now_s}
    return {
        "id": name,
        "submission_s": submission_s,
        "due_s": max(due_s, submission_s),  # due before that, it is late by a constant more, which decides nothing
        "tardiness_weight_eur_per_s": weight,
        "max_epochs": _number(f"{place}.Epochs", _of(place, job, "Epochs")),
        "seconds_per_epoch": times,
        "running": running,
    }


def answer_of(data: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Put our service's answer into the published form.

    Returns:
        `jobs`: of each job that runs its node, number of GPUs and tardiness if it keeps them to its end [h];
        `estimated_rescheduling_time`: the earliest of these ends, `inf` if none runs; `estimated_cost`: that of the
        nodes until then, and of the tardiness.
    """
    now_s, first_s, tardiness_eur = _seconds("currentTime", data["currentTime"]), float("inf"), 0.0
    jobs: dict[str, Any] = {}
    for given in answer["jobs"]:
        if given["configuration"] is not None:
            job = data["jobs"][given["id"]]
            times = _by_gpus("ProfilingData", job["ProfilingData"][given["gpu_type"]])
            per_epoch = float(times[given["gpus_per_node"]])
            end_s = now_s + per_epoch * float(job["Epochs"])
            late_s = max(end_s - _seconds("Deadline", job["Deadline"]), 0.0)
            tardiness_eur += late_s * WEIGHTS_EUR_PER_S[int(job["Priority"])]
            first_s = min(first_s, end_s)
            jobs[given["id"]] = {
                "expected_tardiness": late_s / HOUR_S, "nGPUs": given["gpus_per_node"], "node": given["nodes"][0],
            }  # fmt: skip
    hours = (first_s - now_s) / HOUR_S if jobs else 0.0
    return {
        "estimated_cost": answer["energy_eur_per_h"] * hours + tardiness_eur,
        "estimated_rescheduling_time": datetime.fromtimestamp(round(min(first_s, LATEST_S)), UTC).strftime(TIME)
        if jobs
        else "inf",
        "jobs": jobs,
    }


def _seconds(field: str, text: Any) -> float:
    try:
        return datetime.strptime(str(text), TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise InputError(field, text, "a time such as Tue 21 Jul 2020, 17.56.59") from None


def _number(field: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(field, value, "a number")
    return number


def _whole(field: str, value: Any) -> int:
    return int(_number(field, value))


def _table(field: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(field, value, "an object")
    return value


def _of(place: str, table: Mapping[str, Any], name: str) -> Any:
    if name not in table:
        raise InputError(f"{place}.{name}", None, "a value; it is missing")
    return table[name]


def _by_gpus(field: str, value: Any) -> dict[int, Any]:
    return {_whole(field, gpus): each for gpus, each in _table(field, value).items()}


def answer_to(data: Mapping[str, Any], decide: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Answer a request in the published form; as `request_of` and `answer_of`."""
    asked = json.dumps(request_of(data)).encode()
    try:
        body = decide(asked)
    except ServiceError as error:
        raise PublishedFormError(FAILED, error.said) from error
    try:
        return answer_of(data, parse_json(body))
    except (LookupError, TypeError) as error:
        raise PublishedFormError(FAILED, f"no answer of a decision service ({error!r})") from error


def reply_in_form(body: bytes, decide: Callable[[bytes], Reply]) -> Reply:
    """Return the reply of a service to a request in the published form: 201, or what is wrong with the published code.

    Returns:
        Also 422, for a value that is not of the form, and 503, for a service that is busy, which are not published.
    """
    facts = None

    def decided(asked: bytes) -> bytes:
        nonlocal facts
        reply = decide(asked)
        facts = reply.facts
        if reply.status != OK:
            raise ServiceError(reply.status, str(json.loads(reply.body)["error"]))
        return reply.body

    try:
        return Reply(CREATED, json.dumps(answer_to(parse_json(body), decided)).encode(), facts)
    except PublishedFormError as error:
        busy = isinstance(error.__cause__, ServiceError) and error.__cause__.status == BUSY
        return Reply(BUSY if busy else error.code, error_body(None, None, error.said))
    except InputError as error:
        return Reply(NOT_ALLOWED, error_body(error.field, error.value, error.allowed))
    except ValueError as error:
        return Reply(NOT_ALLOWED, error_body("body", None, f"JSON ({error})"))


def ask(data: Mapping[str, Any], url: str) -> dict[str, Any]:
    """Ask the service at `url` with a request in the published form; as `answer_to`."""
    return answer_to(data, lambda body: post(f"{url}/v1/decide", body))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the answer to the request of a file; an error goes to the standard error, and ends in 1."""
    parser = argparse.ArgumentParser(description="Ask the service with a request in the form of GPUspb.")
    parser.add_argument("file", help="file with the request as JSON; -: the standard input")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="where the service is")
    given = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
        answer = ask(parse_json(text), given.url)
    except (InputError, PublishedFormError, ValueError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
    else:
        sys.stdout.write(f"{json.dumps(answer, indent=1)}\n")
        return 0
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
