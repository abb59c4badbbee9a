"""A policy that asks a service: at every event of a run it sends what a policy may see, and does what is answered."""

from __future__ import annotations

import http.client
import json
import re
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import numpy as np

from gpusched_env.errors import InputError, RunError
from gpusched_env.formats.instance_file import JOB_LABELS
from gpusched_env.formats.mechanism_fields import mechanism_fields, own_fields
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.mechanisms.tenants.model import Tenants
from gpusched_env.model.own_state import check_no_state
from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.parsing import parse_json
from gpusched_env.simulator import View
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.holdings import apply_holding
from gpusched_env.simulator.placement.held_nodes import mark_of, places_of
from gpusched_operations.service.access import authorization
from gpusched_operations.service.fields import ConfigurationFields
from gpusched_operations.service.listening import UNIX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.model import GpuType, Instance

_FIGURES = ("gpu_power_w", "node_base_power_w", "idle_gpu_power_w")


def cluster_part(instance: Instance) -> dict[str, Any]:
    """Return the fields that are the same at every event of a run.

    Raises:
        InputError: The instance has cells, a host memory or a mechanism with state, which requests do not have.
    """
    shared = Tenants.of(instance)
    check_no_state((own.mechanism for own in instance.mechanisms), "a request")
    if shared.hosts:
        raise InputError("tenancy", shared.tenancy, "none, quota or private")
    if instance.find("switching") is not None:
        raise InputError("host_memory", "...", "None: requests do not tell what host memory keeps")
    jobs = instance.jobs
    applications: dict[str, Any] = {name or "none": {} for name in jobs.applications}
    for index, name in enumerate(jobs.applications if instance.find("shares") is not None else ()):  # may share GPUs
        least = jobs.seconds_per_epoch[jobs.application == index].min(axis=0, initial=np.inf)
        applications[name or "none"] = {"seconds_per_epoch": _times(least)} if len(least) else {}
    saved = own_fields(instance).get("saved_kw", ())
    for name, row in zip(jobs.applications, saved, strict=False):
        applications[name or "none"]["saved_kw"] = list(row)
    return {
        "cluster": {
            "gpu_types": [_gpu_type(v) for v in instance.gpu_types],
            "nodes": [{"name": f"node-{n}", **asdict(node)} for n, node in enumerate(instance.nodes)],
            "tenants": [
                {"name": tenant.name, "cells": [[c.gpu_type, c.gpus, c.count] for c in tenant.cells]}
                for tenant in shared.tenants
            ],
            "tenancy": shared.tenancy,
        },
        "configurations": [
            {name: getattr(c, name) for name in ConfigurationFields.model_fields} for c in instance.configurations
        ],
        "prices": _reference(instance),
        "interference": own_fields(instance).get("interference"),
        "synchronisation": own_fields(instance).get("synchronisation"),
        "applications": applications,
        **mechanism_fields(instance),
    }


def _times(seconds: NDArray[np.float64]) -> list[float | None]:
    return [None if s == np.inf else s for s in seconds.tolist()]


def jobs_part(view: View, instance: Instance, seen: dict[int, list[str]]) -> dict[str, Any]:
    """Return the fields that tell the present time, the jobs and the schedule; times and distributions are said once.

    Args:
        seen: The sets of nodes that jobs of the run have held, by their mark; those held now are added.
    """
    board = view.board
    times: dict[bytes, str] = {}
    curves: dict[tuple[int, int], str] = {}
    jobs = [_job(view, instance, job, times, curves, seen) for job in view.active.tolist()]
    known, peak_kw = int(view.count[at.PUBLISHED]), float(view.clock[at.PEAK_KW])
    series = instance.of(PriceSeries)
    prices = {} if series is None else {"prices": prices_part(instance, series, known, peak_kw)}
    return {
        "now_s": view.now_s,
        "jobs": jobs,
        "times": {name: _times(np.frombuffer(row)) for row, name in times.items()},
        "distributions": {name: _curve(board.edges[bins], board.survival[row]) for (bins, row), name in curves.items()},
        "idle_rounds": int(board.count[at.IDLE]),
        **_site(view, instance),
        **prices,
    }


def _reference(instance: Instance) -> dict[str, float]:
    own = {"energy_eur_per_kwh": instance.energy_price_eur_per_kwh, "pue": instance.pue}
    return own | ({"gpu_hour_eur": rent} if (rent := rent_eur_per_h(instance)) else {})


def _site(view: View, instance: Instance) -> dict[str, Any]:
    cap = instance.of(PowerCap)
    if cap is None:
        return {}
    soft, clock = cap.soft_eur_per_kwh, view.clock
    told = {"cap_kw": float(clock[at.CAP_KW]), "soft_eur_per_kwh": soft}
    if clock[at.NEXT_CAP_S] < np.inf:
        told |= {"next_cap_s": float(clock[at.NEXT_CAP_S]), "next_cap_kw": float(clock[at.NEXT_CAP_KW])}
    return {"site": told}


def prices_part(instance: Instance, series: PriceSeries, known: int, peak_kw: float) -> dict[str, Any]:
    """Return the field `prices`: of a series what is published, and 0, or 1 of the PUE, for all else."""
    fields = series.fields()
    for name, unknown in (("eur_per_kwh", 0.0), ("g_per_kwh", 0.0), ("pue", 1.0)):
        if name in fields:
            fields[name][known:] = [unknown] * (len(series.start_s) - known)
    return _reference(instance) | {"series": fields, "peak_kw": peak_kw}


def _gpu_type(v: GpuType) -> dict[str, Any]:
    names = _FIGURES if v.node_power_w is None else ("gpu_power_w", "node_power_w")
    figures = {name: getattr(v, name) for name in names}
    return {"name": v.name, "memory_gib": v.memory_gib, "gpus_per_node": v.max_gpus_per_node, **figures}


def _job(
    view: View,
    instance: Instance,
    job: int,
    times: dict[bytes, str],
    curves: dict[tuple[int, int], str],
    seen: dict[int, list[str]],
) -> dict[str, Any]:
    row, table = view.jobs[job], instance.jobs
    # `view.tau` is these seconds with the slow-down that is planned for; the service makes that of them itself.
    seconds = times.setdefault(table.seconds_per_epoch[job].tobytes(), f"t{len(times)}")
    curve = curves.setdefault((int(row[at.EDGES]), int(row[at.DISTRIBUTION])), f"d{len(curves)}")
    resume = {} if table.resume_s is None else {"resume_s": float(row[at.RESUMING_S])}
    tenants = Tenants.of(instance).tenants
    tenant = {"tenant": tenants[int(row[at.TENANT])].name} if tenants else {}
    running = _running(view, job)
    if running is not None:
        seen[mark_of(view.board, job, True)] = list(dict.fromkeys(running["nodes"]))
    state_on = {"state_on": seen[int(row[at.LAST_NODES])]} if row[at.LAST_NODE] >= 0 else {}
    return {
        "id": f"job-{job}",
        "submission_s": float(row[at.SUBMISSION]),
        "due_s": float(row[at.DUE]),
        "tardiness_weight_eur_per_s": float(row[at.WEIGHT]),
        "application": table.applications[int(row[at.APPLICATION])] or "none",
        "max_epochs": float(row[at.MAX_EPOCHS]),
        "epochs_done": float(row[at.EPOCHS]),
        "seconds_per_epoch": seconds,
        "distribution": curve,
        "restart_s": float(row[at.RESTART_S]),
        "start_s": float(row[at.STARTING_S]),
        **{name: getattr(table, name)[job].item() for name in JOB_LABELS},
        "running": running,
        "started_s": None if np.isnan(row[at.START_S]) else float(row[at.START_S]),
        **resume,
        **tenant,
        **state_on,
    }


def _running(view: View, job: int) -> dict[str, Any] | None:
    row = view.jobs[job]
    config = int(row[at.OLD_CONFIG])
    if config < 0:
        return None
    slot, nodes = int(row[at.OLD_SLOT]), [f"node-{n}" for n in places_of(view.board, job, old=True)]
    return {
        "configuration": view.configurations[config].name,
        "nodes": nodes,
        "gpu": None if slot < 0 else slot,
        "since_s": float(row[at.BASE_S]),
        "ready_s": float(row[at.READY_S]),
    }


def _curve(edges: Any, survival: Any) -> dict[str, list[float]]:
    """Return a distribution without the bins of no length that pad it."""
    last = int(np.argmax(edges >= 1.0))
    return {"edges": edges[: last + 1].tolist(), "survival": survival[:last].tolist()}


PORTS = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}
LONGEST_S = 60.0
ADDRESS = "an address such as http://127.0.0.1:8000, one with https, or unix:PATH of a socket"
_UNIX_ADDRESS = re.compile(rf"{UNIX}(/.+?)(/(?:v1|optimizer)/\w+|)")
"""A Unix socket, and after its path that of the request."""


class ServiceError(RunError):
    """A service did not decide: gives the status of its answer, 0 where there is no whole one, and what it said."""

    def __init__(self, status: int, said: str) -> None:
        self.status, self.said = status, said
        super().__init__(" ".join((f"the service answered {status}: {said}" if status else said).split()))

    def __reduce__(self) -> tuple[type[ServiceError], tuple[int, str]]:
        return type(self), (self.status, self.said)


@dataclass
class _Run:
    """What a run keeps: what the service wants back, and the sets of nodes that its jobs have held, by their mark."""

    memory: str | None = None
    seen: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ServicePolicy:
    """Decides by asking a service for the decisions of the policy `name`.

    It drives runs of one instance, from which it takes what never changes. Of every run it keeps what the service wants
    back, by the run's view; so one object may serve many runs, and threads.

    Args:
        url: Where the service is, such as http://127.0.0.1:8000.
        name: Name of the policy there.
        instance: The instance that is run.
        post: Sends a request and gives the answer; by default over HTTP.
    """

    url: str
    name: str
    instance: Instance
    post: Callable[[str, bytes], bytes] | None = None
    preemption: bool = True  # the service says of every job what it gets
    _runs: WeakKeyDictionary[View, _Run] = field(init=False, repr=False, default_factory=WeakKeyDictionary)
    _fixed: dict[str, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_fixed", cluster_part(self.instance))

    def check(self, instance: Instance) -> None:
        """Check that the instance is the one whose jobs the requests tell."""
        if instance is not self.instance:
            raise InputError("instance", instance.name, "the instance that the policy was made with")

    def decide(self, view: View, rng: Generator) -> None:
        seed = rng.bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
        run = self._runs.setdefault(view, _Run())
        request = self._fixed | jobs_part(view, self.instance, run.seen)
        request |= {"policy": self.name, "seed": seed, "memory": run.memory, "as_simulated": True}
        send = post if self.post is None else self.post
        url = f"{self.url}/v1/decide"
        told = send(url, json.dumps(request).encode())
        answer = _answer_of(url, told, ("memory",), ("configuration", "ask_again_at_s"))
        run.memory = answer["memory"]
        apply_answer(view, answer)


def apply_answer(view: View, answer: dict[str, Any]) -> None:
    """Give every active job what an answer says, in exactly those places; the round began from an empty cluster."""
    index = {c.name: i for i, c in enumerate(view.configurations)}
    for job, given in zip(view.active.tolist(), answer["jobs"], strict=True):
        timer = given["ask_again_at_s"]
        view.set_timer(job, np.inf if timer is None else timer)
        if given["configuration"] is None:
            continue
        nodes = [int(name.removeprefix("node-")) for name in given["nodes"]]
        if apply_holding(view.board, job, index[given["configuration"]], nodes, given["gpu"]):
            raise ServiceError(http.client.OK, f"{given['configuration']} on {given['nodes']}, which is not free there")


def post(url: str, body: bytes) -> bytes:
    """Send a request over HTTP, HTTPS or a Unix socket, once, with the key of the environment if there is one.

    Args:
        url: Address of the service and path there, such as http://127.0.0.1:8000/v1/decide, or
            unix:/run/gpusched/serve.sock/v1/decide.

    Raises:
        InputError: The address is none.
        ServiceError: The service is not there, breaks off, speaks no HTTP, or answers with a status that is not 2xx.
    """
    connection, path = _connection(url)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"} | authorization())
        response = connection.getresponse()
        answer = response.read()
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: a path that no request may have
        raise ServiceError(0, f"{url}: no whole answer ({error or type(error).__name__})") from error
    finally:
        connection.close()
    if not http.client.OK <= response.status < http.client.MULTIPLE_CHOICES:
        raise ServiceError(response.status, answer.decode(errors="replace"))
    return answer


def asked(url: str, fields: Mapping[str, Any], names: Collection[str], of_jobs: Collection[str]) -> dict[str, Any]:
    """Send a request as JSON over HTTP, and return the answer.

    Args:
        url: As of `post`.
        names: Fields that an answer has beside `jobs`; `of_jobs`: those that each of its jobs has.

    Raises:
        InputError: The service names a field of the request that is not allowed; or the address is none.
        ServiceError: As of `post`; or the answer is none of a decision service.
    """
    try:
        answer = post(url, json.dumps(fields, allow_nan=False).encode())
    except ServiceError as error:
        raise _of_field(error.said) or error from error
    return _answer_of(url, answer, names, of_jobs)


def _answer_of(url: str, answer: bytes, names: Collection[str], of_jobs: Collection[str]) -> dict[str, Any]:
    try:
        found = parse_json(answer)
    except ValueError as error:
        raise ServiceError(0, f"{url}: no answer of a decision service ({error})") from error
    jobs = found.get("jobs") if isinstance(found, dict) else None
    whole = isinstance(jobs, list) and all(isinstance(job, dict) and job.keys() >= set(of_jobs) for job in jobs)
    if not whole or not found.keys() >= set(names):
        raise ServiceError(0, f"{url}: no answer of a decision service")
    return dict(found)


def _of_field(said: str) -> InputError | None:
    """Return the error of a field of the request, where a service tells one."""
    with suppress(ValueError, KeyError, TypeError):
        told = parse_json(said)
        return InputError(str(told["field"]), told["value"], str(told["allowed"])) if told["field"] else None
    return None


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, socket_path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._socket_path = socket_path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._socket_path)


def _connection(url: str) -> tuple[http.client.HTTPConnection, str]:
    """Return a connection that is not open yet, and the path there."""
    if url.startswith(UNIX):
        found = _UNIX_ADDRESS.fullmatch(url)
        if not found or not hasattr(socket, "AF_UNIX"):
            raise InputError("url", url, ADDRESS)
        return _UnixConnection(found[1], LONGEST_S), found[2] or "/"
    try:
        place = urlsplit(url)
        port = place.port
    except ValueError:
        raise InputError("url", url, ADDRESS) from None
    if place.scheme not in PORTS or not place.hostname:
        raise InputError("url", url, ADDRESS)
    make = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    return make(place.hostname, port or PORTS[place.scheme], timeout=LONGEST_S), place.path
