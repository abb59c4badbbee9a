"""What is counted of requests, and what is logged of them: by hand, for a few requests."""

from __future__ import annotations

import json
import logging
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpusched_operations.service.access import API_KEY, ApiKeys
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.facts import DecisionFacts, policy_in
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.logs import log_event, logging_to_stderr
from gpusched_operations.service.openapi import EXAMPLE
from gpusched_operations.service.pool import Reply, _read, _written, reply_to
from refusals import refused

if TYPE_CHECKING:
    from collections.abc import Iterator

testclient = pytest.importorskip("starlette.testclient", reason="needs the extra `serve`, and httpx")
parser = pytest.importorskip("prometheus_client.parser", reason="needs the extra `serve`")
from gpusched_operations.service.metrics import Figure  # noqa: E402
from gpusched_operations.service.server import create_app  # noqa: E402

LIMITS = RequestLimits(request_bytes=20_000)
POLICIES = PolicyCatalogue.of("edf,greedy")
DECIDE = {"path": "/v1/decide"}


@pytest.fixture
def client() -> Iterator[Any]:
    answer = partial(reply_to, Decider(POLICIES, b"a key", LIMITS))
    figures = (Figure("waiting_requests", "Waiting.", lambda: 3), Figure("replaced_total", "Replaced.", lambda: 2))
    with testclient.TestClient(create_app(answer, POLICIES, LIMITS, figures=figures)) as made:
        yield made


def figures_of(client: Any) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return every figure by its name and labels, as Prometheus would read them."""
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name.removeprefix("gpusched_service_"), frozenset(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


def test_requests_are_counted_by_path_policy_and_status(client: Any):
    client.post("/v1/decide", json=EXAMPLE | {"policy": "edf"})
    client.post("/v1/decide", json=EXAMPLE | {"policy": "edf"})
    client.post("/v1/decide", json=EXAMPLE | {"policy": "edf", "now_s": -1.0})
    client.post("/v1/decide", json=EXAMPLE | {"policy": "mine"})
    client.get("/healthz")
    for path in ("/x", "/y"):
        client.get(path)
    counted = figures_of(client)
    requests = {labels: value for (name, labels), value in counted.items() if name == "requests_total"}
    assert requests == {
        key("", path="/v1/decide", policy="edf", status="200")[1]: 2.0,
        key("", path="/v1/decide", policy="edf", status="422")[1]: 1.0,
        key("", path="/v1/decide", policy="other", status="422")[1]: 1.0,
        key("", path="/healthz", policy="", status="200")[1]: 1.0,
        key("", path="other", policy="", status="404")[1]: 2.0,
    }
    assert counted[key("request_seconds_count", **DECIDE)] == 4.0
    assert counted[key("request_bytes_count", **DECIDE)] == 4.0


def test_a_decision_is_counted_with_its_jobs_nodes_and_steps(client: Any):
    answer = client.post("/v1/decide", json=EXAMPLE | {"policy": "edf"}).json()
    counted = figures_of(client)
    assert (counted[key("nodes")], counted[key("gpus")]) == (2.0, 6.0)
    actions = [job["action"] for job in answer["jobs"]]
    for action in set(actions):
        assert counted[key("jobs_total", policy="edf", action=action)] == actions.count(action)
    assert counted[key("request_jobs_sum")] == 2.0
    for step, milliseconds in answer["milliseconds"].items():
        spent = counted[key("decision_seconds_sum", policy="edf", step=step)]
        assert spent == pytest.approx(milliseconds / 1000.0, abs=1e-6)


def test_figures_that_are_looked_up_are_there(client: Any):
    counted = figures_of(client)
    assert counted[key("waiting_requests")] == 3.0
    assert counted[key("replaced_total")] == 2.0


def test_what_is_counted_comes_from_the_worker_process_as_it_is():
    facts = DecisionFacts(2, 3, 12, {"start": 2}, {"decide": 0.25})
    for reply in (Reply(200, b'{"a": 1}', facts), Reply(422, b"{}")):
        assert _read(_written(reply)) == reply


@pytest.mark.parametrize(
    ("body", "policy"),
    [
        (b'{"policy": "edf"}', "edf"),
        (b'{"jobs": [{"id": "\\"policy\\": \\"greedy\\""}], "policy" :"edf"}', "edf"),
        (b'{"policy": "none of these"}', "other"),
        (b"no JSON", "other"),
    ],
)
def test_the_policy_is_found_in_a_request(body: bytes, policy: str):
    assert policy_in(body, POLICIES.names) == policy


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_every_request_has_one_line_as_json(client: Any, capsys: pytest.CaptureFixture[str]):
    with logging_to_stderr("info", "json"):
        answer = client.post("/v1/decide", json=EXAMPLE | {"policy": "edf"}, headers={"X-Request-Id": "round-7"})
        client.get("/healthz")  # asked every few seconds: only at `debug`
        client.post("/v1/decide", content=b"{", headers={"X-Request-Id": "two\twords"})
    first, second = (json.loads(line) for line in lines(capsys))
    assert answer.headers["x-request-id"] == "round-7"
    assert {name: first[name] for name in ("level", "event", "id", "policy", "status", "jobs", "nodes", "gpus")} == {
        "level": "info", "event": "request", "id": "round-7", "policy": "edf", "status": 200, "jobs": 2, "nodes": 2,
        "gpus": 6,
    }  # fmt: skip
    assert first["ms"] > 0.0
    assert (second["status"], second["policy"]) == (422, "other")
    assert len(second["id"]) == 16  # an id of our own in place of one that could break the line


def test_nothing_is_logged_of_requests_by_default(client: Any, capsys: pytest.CaptureFixture[str]):
    with logging_to_stderr():
        client.post("/v1/decide", json=EXAMPLE | {"policy": "edf"})
    assert lines(capsys) == []
    assert logging.getLogger("gpusched").handlers == []


def test_a_value_cannot_begin_a_line_of_its_own(capsys: pytest.CaptureFixture[str]):
    with logging_to_stderr("info", "text"):
        log_event("round", job='a\n2026 ERROR forged user=root"', seconds=0.25, jobs=3, empty="", none=None)
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    first, second = lines(capsys)
    assert first.split(" ", 1)[1] == (r'INFO round job="a\n2026 ERROR forged user=root\"" seconds=0.25 jobs=3 empty=""')
    assert second.endswith('WARNING message logger=uvicorn.error message="Invalid HTTP request received."')


@pytest.mark.parametrize(("level", "form", "field"), [("loud", "text", "--log-level"), ("info", "xml", "--log-format")])
def test_other_levels_and_forms_are_refused(level: str, form: str, field: str):
    with refused(field), logging_to_stderr(level, form):
        pass


GOOD, OTHER = "0123456789abcdef", "fedcba9876543210"


def test_the_key_that_asks_is_named(tmp_path: Path):
    file = tmp_path / "keys"
    file.write_text(f"\n# rotated in June\nslurm {OTHER}\n", encoding="utf-8")
    keys = ApiKeys.load(file, {API_KEY: GOOD})
    assert keys.name_of(f"Bearer {GOOD}") == "environment"
    assert keys.name_of(f"bearer {OTHER}") == "slurm"
    for wrong in (None, "", GOOD, f"Basic {GOOD}", f"Bearer {GOOD}0", "Bearer ", f"Bearer {GOOD[:-1]}é"):
        assert keys.name_of(wrong) is None
    assert ApiKeys.load(None, {}).digests == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [("name", 1), (f"name {GOOD} more", 1), ("\nname short", 2), (f"twice {GOOD}\ntwice {OTHER}", 2), (GOOD, 1)],
)
def test_a_file_of_keys_of_another_form_is_refused_and_no_key_is_shown(tmp_path: Path, text: str, line: int):
    file = tmp_path / "keys"
    file.write_text(text, encoding="utf-8")
    with refused(f"{file}, line {line}") as caught:
        ApiKeys.load(file, {})
    assert GOOD not in str(caught.value)


def test_a_short_key_or_no_file_is_refused(tmp_path: Path):
    with refused(API_KEY):
        ApiKeys.load(None, {API_KEY: "short"})
    with refused("--api-keys"):
        ApiKeys.load(tmp_path / "none", {})
    (tmp_path / "empty").touch()
    with refused("--api-keys"):
        ApiKeys.load(tmp_path / "empty", {})
