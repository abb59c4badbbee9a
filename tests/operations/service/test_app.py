"""The door: paths, statuses, one form of errors, and pages that need no network."""

from __future__ import annotations

import asyncio
import json
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from gpusched_agents.any_policy import known_policies
from gpusched_env.version import VERSION
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.openapi import EXAMPLE
from gpusched_operations.service.pool import Reply, reply_to

if TYPE_CHECKING:
    from collections.abc import Iterator

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra `serve`, and httpx")
from gpusched_operations.service.server import create_app  # noqa: E402 - after the check that fastapi is there

LIMITS = RequestLimits(request_bytes=20_000)
POLICIES = PolicyCatalogue.of("edf,sts-x,agent:default")


@pytest.fixture(scope="module")
def client() -> Iterator[testclient.TestClient]:
    answer = partial(reply_to, Decider(POLICIES, b"a key", LIMITS))
    with testclient.TestClient(create_app(answer, POLICIES, LIMITS), raise_server_exceptions=False) as made:
        yield made


@pytest.mark.parametrize("name", POLICIES.names)
def test_a_decision_is_answered(client: testclient.TestClient, name: str):
    answer = client.post("/v1/decide", json=EXAMPLE | {"policy": name})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert {job["id"] for job in answer.json()["jobs"]} == {"4711", "4712"}
    assert set(answer.json()["milliseconds"]) == {"parse", "decide", "answer"}


def test_bad_input_has_status_422_and_the_one_form_of_errors(client: testclient.TestClient):
    answer = client.post("/v1/decide", json=EXAMPLE | {"now_s": -1.0})
    assert answer.status_code == 422
    assert answer.json() == {
        "error": "now_s = -1.0; allowed: a number >= 0",
        "field": "now_s",
        "value": -1.0,
        "allowed": "a number >= 0",
    }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/v1/decide", 405), ("POST", "/healthz", 405), ("GET", "/v2/decide", 404)],
)
def test_other_paths_and_methods_have_the_same_form(client: testclient.TestClient, method: str, path: str, status: int):
    answer = client.request(method, path)
    assert answer.status_code == status
    assert (answer.json()["field"], answer.json()["value"]) == ("path", f"{method} {path}")


def test_a_body_beyond_the_limit_is_not_read_to_its_end(client: testclient.TestClient):
    sent = []

    def chunks() -> Iterator[bytes]:
        for _ in range(50):
            sent.append(1)
            yield b" " * 1_000

    answer = client.post("/v1/decide", content=chunks())
    assert answer.status_code == 413
    assert answer.json()["allowed"] == "at most 20,000 bytes"


def test_every_shipped_policy_is_listed_with_what_it_does():
    with testclient.TestClient(create_app(lambda _: Reply(200, b"{}"), PolicyCatalogue.of("all"), LIMITS)) as client:
        listed = client.get("/v1/policies").json()
    left_out = ("as-traced", "gavel:las-packed", "gandiva")
    assert [submission["name"] for submission in listed["policies"]] == [
        n for n in known_policies() if n not in left_out
    ]
    assert all(submission["line"] and len(submission["version"]) >= 16 for submission in listed["policies"])


def test_health_says_the_version(client: testclient.TestClient):
    assert client.get("/healthz").json() == {"status": "ok", "version": VERSION}


def test_health_is_503_when_nobody_is_there_who_decides():
    door = create_app(lambda _: Reply(200, b"{}"), POLICIES, LIMITS, alive=lambda: False)
    with testclient.TestClient(door) as client:
        answer = client.get("/healthz")
    assert (answer.status_code, answer.json()["error"]) == (503, "no worker is there; they are started again")


class Client:
    """A client that sends the chunks given it, and then no more until it is let go, when it leaves."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks, self.gone, self.sent = list(chunks), asyncio.Event(), []

    async def receive(self) -> dict[str, Any]:
        if self.chunks:
            return {"type": "http.request", "body": self.chunks.pop(0), "more_body": True}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def ask(self, door: Any) -> tuple[int, dict[str, str]]:
        """Ask, and give status and headers of the answer."""
        scope = {"type": "http", "method": "POST", "path": "/v1/decide", "headers": [], "query_string": b""}
        await door(scope, self.receive, self.send)
        headers = {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}
        return self.sent[0]["status"], headers


def door(**limits: float) -> Any:
    return create_app(lambda _: Reply(200, b"{}"), POLICIES, RequestLimits(**limits))


def test_a_client_that_leaves_in_the_middle_of_a_request_is_no_failure():
    client = Client(b"{")
    client.gone.set()
    assert asyncio.run(client.ask(door()))[0] == 400


def test_a_body_that_does_not_end_is_given_up_after_the_time_limit():
    status, headers = asyncio.run(asyncio.wait_for(Client(b"{", b" ").ask(door(receiving_s=0.2)), 300.0))
    assert (status, headers["connection"]) == (408, "close")


def test_of_unfinished_bodies_only_so_much_is_kept_and_more_is_taken_once_they_have_ended():
    async def ask() -> list[int]:
        asked, slow = door(request_bytes=100), [Client(b" " * 100) for _ in range(8)]
        waiting = [asyncio.create_task(client.ask(asked)) for client in slow]
        while any(client.chunks for client in slow):  # all are read
            await asyncio.sleep(0.0)
        too_many, headers = await Client(b"{").ask(asked)
        assert headers["retry-after"] == "1"
        for client in slow:
            client.gone.set()
        statuses = [(await each)[0] for each in waiting]
        again = Client(*[b" " * 50] * 2)
        again.gone.set()
        return [too_many, *statuses, (await again.ask(asked))[0]]

    assert asyncio.run(asyncio.wait_for(ask(), 300.0)) == [503, *[400] * 8, 400]


def test_the_page_needs_no_network_and_names_every_field(client: testclient.TestClient):
    page = client.get("/docs").text
    assert re.findall(r"(?:src|href)=\S*//", page) == []
    assert "<script" not in page
    for field in ("epochs_done", "history_epochs", "ask_again_at_s", "tardiness_weight_eur_per_s", "POST /v1/decide"):
        assert field in page


def test_the_description_has_an_example_that_is_answered(client: testclient.TestClient):
    described = client.get("/openapi.json").json()
    decide = described["paths"]["/v1/decide"]["post"]
    assert {"200", "413", "422", "500", "503", "504"} <= set(decide["responses"])
    example = decide["requestBody"]["content"]["application/json"]["example"]
    assert client.post("/v1/decide", json=example).status_code == 200
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(described)))
    assert names <= set(described["components"]["schemas"])


def test_a_service_that_is_busy_says_when_to_come_again():
    with testclient.TestClient(create_app(lambda _: Reply(503, b"{}"), POLICIES, LIMITS)) as client:
        answer = client.post("/v1/decide", json=EXAMPLE)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


def test_a_policy_that_fails_is_an_answer_too(monkeypatch: pytest.MonkeyPatch, client: testclient.TestClient):
    def fail(*_: object) -> None:
        raise RuntimeError("no solution")

    monkeypatch.setattr("gpusched_operations.service.decision._decide", fail)
    answer = client.post("/v1/decide", json=EXAMPLE)
    assert answer.status_code == 500
    assert answer.json()["error"] == "the decision failed: RuntimeError: no solution"
