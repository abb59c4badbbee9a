"""Requests in the form of the web service that the authors of STS published, GPUspb (`/optimizer/v5`).

Our service takes them at the same path. There is also a client, for a service that is asked by another path:

    python -m gpusched_operations.service.published_form request.json --url http://127.0.0.1:8000

reads such a request (or `-`, the standard input), asks `/v1/decide`, and prints the answer in the same form. The form:
`run_webService.py` of github.com/ai-sprint-eu-project/GPUScheduler, branch STochasticScheduler. It has no distribution
of epochs, so every job counts as needing all of `Epochs`, those left; and nothing is kept between two requests.
Costs in answers are those of `proxy_function_min` there.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import MAXYEAR, UTC, datetime
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.parsing import parse_json
from gpusched_operations.service.client import ServiceError, post
from gpusched_operations.service.fields import error_body
from gpusched_operations.service.gpu_names import under
from gpusched_operations.service.pool import BUSY, NOT_ALLOWED, OK, Reply
from gpusched_operations.service.published_request import (
    FAILED,
    METHODS,
    POLICIES,
    TIME,
    USUAL_METHOD,
    WEIGHTS_EUR_PER_S,
    PublishedFormError,
    by_gpus,
    request_of,
    seconds_of,
)

PATH = "/optimizer/v5"
"""Where the published service, and ours, takes such requests."""
CREATED = 201
"""The status of its answers."""
HOUR_S = 3600.0
LATEST_S = datetime(MAXYEAR, 12, 31, tzinfo=UTC).timestamp()
"""The last day that can be written [s]."""


def answer_of(data: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Put our service's answer into the published form.

    Returns:
        `estimated_rescheduling_time`: the earliest end of a job that runs, `inf` if none does; `jobs`: of each that
        runs its node, number of GPUs and tardiness at that time [h]; `estimated_cost`: that of the nodes until then,
        and of this tardiness. Beside these ours, which go to the end of each job if it keeps its GPUs: of jobs
        `expected_tardiness_at_end` [h], and `estimated_cost_to_ends`.
    """
    now_s, given = seconds_of("currentTime", data["currentTime"]), {}
    for each in answer["jobs"]:
        if each["configuration"] is not None:
            job = data["jobs"][each["id"]]
            times = by_gpus("ProfilingData", under(job["ProfilingData"], each["gpu_type"]))
            given[each["id"]] = each, now_s + times[each["gpus_per_node"]] * float(job["Epochs"])
    first_s = min((end_s for _, end_s in given.values()), default=math.inf)
    cost = answer["energy_eur_per_h"] * (first_s - now_s) / HOUR_S if given else 0.0
    to_ends, jobs = 0.0, {}
    for name, (each, end_s) in given.items():
        due_s, weight = seconds_of("Deadline", data["jobs"][name]["Deadline"]), int(data["jobs"][name]["Priority"])
        late_s, late_at_end_s = (max(at_s - due_s, 0.0) for at_s in (first_s, end_s))
        cost += late_s * WEIGHTS_EUR_PER_S[weight]
        to_ends += each["expected_energy_eur"] + late_at_end_s * WEIGHTS_EUR_PER_S[weight]
        jobs[name] = {
            "expected_tardiness": late_s / HOUR_S, "expected_tardiness_at_end": late_at_end_s / HOUR_S,
            "nGPUs": each["gpus_per_node"], "node": each["nodes"][0],
        }  # fmt: skip
    return {
        "estimated_cost": cost,
        "estimated_cost_to_ends": to_ends,
        "estimated_rescheduling_time": datetime.fromtimestamp(round(min(first_s, LATEST_S)), UTC).strftime(TIME)
        if jobs
        else "inf",
        "jobs": jobs,
    }


def answer_to(data: Mapping[str, Any], decide: Callable[[bytes], bytes]) -> dict[str, Any]:
    """Answer a request in the published form; as `request_of` and `answer_of`. Without GPUs or jobs none is asked."""
    asked = request_of(data)
    if not (asked["cluster"]["nodes"] and asked["jobs"]):
        return answer_of(data, {"jobs": [], "energy_eur_per_h": 0.0})
    try:
        body = decide(json.dumps(asked).encode())
    except ServiceError as error:
        raise _refused(data, error) from error
    try:
        return answer_of(data, parse_json(body))
    except (LookupError, TypeError) as error:
        raise PublishedFormError(FAILED, f"no answer of a decision service ({error!r})") from error


def _refused(data: Mapping[str, Any], error: ServiceError) -> InputError | PublishedFormError:
    """Return what a service says is wrong with a request that was made of one in the published form."""
    with suppress(ValueError, TypeError, KeyError):
        body = json.loads(error.said)
        if body["field"] == "policy" and data.get("method", USUAL_METHOD) not in POLICIES:
            return InputError("method", data["method"], f"{METHODS}; {body['allowed']}")
        return PublishedFormError(FAILED, str(body["error"]))
    return PublishedFormError(FAILED, error.said)


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
            raise ServiceError(reply.status, reply.body.decode())
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
