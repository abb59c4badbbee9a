"""A policy that asks a service: at every event of a run it sends what a policy may see, and does what is answered."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.placement import put_back
from gpusched_experiments.service.request_of import cluster_part, jobs_part

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from gpusched_env.model import Instance
    from gpusched_env.simulator import View


PORTS = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}
ADDRESS = "an address such as http://127.0.0.1:8000, or one with https"


class ServiceError(RuntimeError):
    """A service did not decide: gives the status of its answer, and what it said."""

    def __init__(self, status: int, said: str) -> None:
        self.status, self.said = status, said
        super().__init__(f"the service answered {status}: {said}")


@dataclass
class _Run:
    """What a run keeps: what the service wants back, and the sets of nodes that its jobs have held, by their mark."""

    memory: str | None = None
    seen: dict[int, list[int]] = field(default_factory=dict)


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
        """Check that the instance is the one whose jobs the requests tell.

        Raises:
            InputError: It is another one.
        """
        if instance is not self.instance:
            raise InputError("instance", instance.name, "the instance that the policy was made with")

    def decide(self, view: View, rng: Generator) -> None:
        """Ask the service, and give every job what it says.

        Raises:
            InputError: `url` is no address of HTTP or HTTPS.
            ServiceError: The service did not decide.
        """
        seed = rng.bit_generator.seed_seq.entropy  # type: ignore[attr-defined]
        run = self._runs.setdefault(view, _Run())
        request = self._fixed | jobs_part(view, self.instance, run.seen)
        request |= {"policy": self.name, "seed": seed, "memory": run.memory}
        send = post if self.post is None else self.post
        answer = json.loads(send(f"{self.url}/v1/decide", json.dumps(request).encode()))
        run.memory = answer["memory"]
        apply_answer(view, answer)


def apply_answer(view: View, answer: dict[str, Any]) -> None:
    """Give every active job what an answer says, in exactly those places; the round began from an empty cluster."""
    index = {c.name: i for i, c in enumerate(view.configurations)}
    for job, given in zip(view.active.tolist(), answer["jobs"], strict=True):
        wake = given["ask_again_at_s"]
        view.wake_up(job, np.inf if wake is None else wake)
        if given["configuration"] is None:
            continue
        nodes = [int(name.removeprefix("node-")) for name in given["nodes"]]
        chain = view.board.nodes[:, at.NEXT].copy()
        if len(nodes) > 1:
            chain[nodes] = [*nodes[1:], -1]
        gpu = -1 if given["gpu"] is None else given["gpu"]
        put_back(view.board, job, index[given["configuration"]], nodes[0], gpu, chain)


def post(url: str, body: bytes) -> bytes:
    """Send a request over HTTP or HTTPS, once.

    Raises:
        InputError: The address is of another kind.
        ServiceError: The service refused it.
        OSError: There is no service.
    """
    connection, path = _connection(url)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise ServiceError(response.status, answer.decode(errors="replace"))
    return answer


def _connection(url: str) -> tuple[http.client.HTTPConnection, str]:
    """Give a connection that is not open yet, and the path there."""
    try:
        place = urlsplit(url)
        port = place.port
    except ValueError:
        raise InputError("url", url, ADDRESS) from None
    if place.scheme not in PORTS or not place.hostname:
        raise InputError("url", url, ADDRESS)
    make = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
    return make(place.hostname, port or PORTS[place.scheme], timeout=60.0), place.path
