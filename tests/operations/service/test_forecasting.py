"""Requests for forecasts: in Python, over HTTP and from the shell the same numbers; what-ifs; bad input by its path."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

from commands import gpusched, succeeds
from gpusched_experiments.cli.app import app
from gpusched_operations.service import client
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.forecasting import FORECAST, Forecaster
from gpusched_operations.service.openapi import EXAMPLE, FORECAST_EXAMPLE
from gpusched_operations.service.pool import reply_to
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = PolicyCatalogue.of("fifo,edf,sts")
DECIDER = Decider(POLICIES, b"a key")
TENTHS = {"masses": [1.0] * 10}


def job(name: str, **fields: Any) -> dict[str, Any]:
    """Make a job that needs 1 to 10 epochs, each as likely, of 100 s each on a GPU."""
    return {"id": name, "application": "tenths", "submission_s": 0.0, "due_s": 1650.0} | fields


def request(*jobs: dict[str, Any], nodes: int = 1, now_s: float = 1000.0, **forecast: Any) -> dict[str, Any]:
    return {
        "policy": "fifo",
        "now_s": now_s,
        "cluster": {
            "gpu_types": ["V100"],
            "nodes": [{"name": f"n{i}", "gpu_type": "V100", "gpus": 1} for i in range(nodes)],
        },
        "applications": {
            "tenths": {"seconds_per_epoch": {"V100x1": 100.0}, "max_epochs": 10.0, "distribution": TENTHS}
        },
        "jobs": [{"tardiness_weight_eur_per_s": 0.01} | each for each in jobs],
        "forecast": {"samples": 100} | forecast,
    }


def answer_to(body: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(Forecaster(DECIDER)(json.dumps(body).encode()))
    return told


def without_time(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name != "seconds"}


def test_a_job_that_waits_begins_now():
    told = answer_to(request(job("a")))
    assert told["samples"] == 100
    np.testing.assert_allclose(told["jobs"][0]["end_s"], [1100.0, 1550.0, 2000.0])
    assert told["jobs"][0]["start_s"] == [1000.0] * 3
    assert told["jobs"][0]["late"] == 0.4


def test_what_a_running_job_has_done_is_told_of_the_present():
    running = {"configuration": "V100x1", "nodes": ["n0"], "since_s": 100.0}
    told = answer_to(request(job("a", epochs_done=5.0, running=running, started_s=100.0), job("b")))
    first, second = told["jobs"]
    np.testing.assert_allclose(first["end_s"], [1100.0, 1300.0, 1500.0])  # 1 to 5 epochs more, each as likely
    assert first["start_s"] == [100.0] * 3
    np.testing.assert_allclose(second["start_s"], [1100.0, 1300.0, 1500.0])


def test_one_more_node_makes_no_job_later_with_edf():
    jobs = [job(f"j{i}", due_s=1500.0 + 200.0 * i) for i in range(6)]
    more = [{"name": "more", "nodes_more": [{"gpu_type": "V100"}]}]
    told = answer_to(request(*jobs, nodes=2, what_if=more) | {"policy": "edf"})
    other = told["what_if"][0]
    for one, two in zip(told["jobs"], other["jobs"], strict=True):
        assert two["late"] <= one["late"]
        assert two["end_s"] <= one["end_s"]
        assert two["start_s"] <= one["start_s"]
    assert other["cluster"]["expected_late_jobs"] < told["cluster"]["expected_late_jobs"]
    assert other["difference"]["expected_late_jobs"] == pytest.approx(
        other["cluster"]["expected_late_jobs"] - told["cluster"]["expected_late_jobs"]
    )


def test_another_policy_and_a_cap_are_told_beside_the_forecast_with_the_same_draws():
    jobs = [job(f"j{i}", due_s=3000.0 - 100.0 * i) for i in range(4)]
    cap = {"cap_kw": 0.9}  # one of two nodes at a time
    whats = [{"name": "edf", "policy": "edf"}, {"name": "cap", "site": cap}, {"name": "as it is"}]
    told = answer_to(request(*jobs, nodes=2, what_if=whats))
    edf, capped, same = told["what_if"]
    assert (edf["policy"], capped["policy"]) == ("edf", "fifo")
    assert [each["start_s"][1] > 1000.0 for each in told["jobs"]] == [False, False, True, True]
    assert [each["start_s"][1] > 1000.0 for each in edf["jobs"]] == [True, True, False, False]
    assert capped["cluster"]["end_s"][1] > told["cluster"]["end_s"][1]
    assert same["jobs"] == told["jobs"]
    assert same["difference"]["total_eur"] == [0.0] * 3


def test_a_job_that_fits_nothing_has_a_reason_in_place_of_a_forecast():
    too_large = job("b", application=None, seconds_per_epoch={"V100x4": 1.0}, max_epochs=1.0)
    told = answer_to(request(job("a"), too_large))
    assert "end_s" in told["jobs"][0]
    assert told["jobs"][1]["why"]
    assert answer_to(request(too_large))["cluster"] is None


def test_jobs_to_come_are_like_those_that_are_named():
    jobs = [job("a", due_s=9000.0), job("b", due_s=9000.0), job("c", due_s=1001.0)]
    edf = {"policy": "edf"}
    alone = answer_to(request(*jobs) | edf)
    among = answer_to(request(*jobs, arrivals={"per_hour": 6.0, "like": ["c"]}) | edf)
    assert among["coming"] > 0
    assert among["jobs"][1]["end_s"][1] > alone["jobs"][1]["end_s"][1]
    assert among["jobs"][2]["end_s"] == alone["jobs"][2]["end_s"]


def test_the_numbers_are_the_same_through_python_http_and_the_shell(tmp_path: Path):
    testclient = pytest.importorskip("starlette.testclient", reason="needs the extra `serve`, and httpx")
    from gpusched_operations.service.server import create_app  # noqa: PLC0415 - needs fastapi

    body = request(job("a"), job("b"), job("c"), nodes=2)
    (tmp_path / "request.json").write_text(json.dumps(body))
    options = ["--policy", "sts", "--samples", "20", "--what-if", "nodes+1:V100", "--arrivals", "2"]
    out = tmp_path / "answer.json"
    succeeds("forecast", str(tmp_path), *options, "--out", str(out))
    asked = body | {"policy": "sts"}
    what = [{"name": "nodes+1:V100", "nodes_more": [{"gpu_type": "V100", "count": 1}]}]
    asked["forecast"] = {"samples": 20, "what_if": what, "arrivals": {"per_hour": 2.0}}
    own = without_time(answer_to(asked))
    assert without_time(json.loads(out.read_text())) == own
    with testclient.TestClient(create_app(partial(reply_to, DECIDER), POLICIES, RequestLimits())) as client:
        over_http = client.post("/v1/forecast", json=asked)
    assert over_http.status_code == 200
    assert without_time(over_http.json()) == own


def test_the_shell_asks_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = []

    def post(url: str, body: bytes) -> bytes:
        asked.append(url)
        return Forecaster(DECIDER)(body)

    monkeypatch.setattr(client, "post", post)
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(request(job("a"))))
    shell = succeeds("forecast", str(file), "--url", "http://there:8000/", "--horizon", "0.1")
    assert asked == ["http://there:8000/v1/forecast"]
    assert "after the horizon" in shell.output


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("forecast.samples", {"samples": 0}),
        ("forecast.samples", {"samples": 5_000_000}),
        ("quantiles", {"quantiles": [0.9, 0.1]}),
        ("forecast.quantiles[0]", {"quantiles": [1.0]}),
        ("forecast.arrivals.per_hour", {"arrivals": {"per_hour": 0.0}}),
        ("forecast.arrivals.like[0]", {"arrivals": {"per_hour": 1.0, "like": ["nobody"]}}),
        ("forecast.arrivals.like", {"arrivals": {"per_hour": 1.0, "like": []}}),
        ("forecast.what_if[0]: policy", {"what_if": [{"name": "x", "policy": "none"}]}),
        (
            "forecast.what_if[0]: nodes_more[0].gpu_type",
            {"what_if": [{"name": "x", "nodes_more": [{"gpu_type": "T9"}]}]},
        ),
        ("forecast.what_if[0].name", {"what_if": [{}]}),
        ("forecast.sample", {"sample": 10}),
    ],
)
def test_bad_input_is_refused_by_its_path(field: str, changes: dict[str, Any]):
    with refused(field):
        answer_to(request(job("a"), **changes))


def test_a_what_if_has_no_more_nodes_than_a_request_may_have():
    decider = Decider(POLICIES, b"a key", limits=RequestLimits(nodes=4))
    more = [{"gpu_type": "V100", "count": 1}, {"gpu_type": "V100", "count": 1}]
    asked = request(job("a"), nodes=2, what_if=[{"name": "x", "nodes_more": more}])
    told = Forecaster(decider)(json.dumps(asked).encode())
    assert json.loads(told)["what_if"]
    asked = request(job("a"), nodes=3, what_if=[{"name": "x", "nodes_more": more}])
    with refused("forecast.what_if[0]: nodes_more[1].count"):
        Forecaster(decider)(json.dumps(asked).encode())


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (["--what-if", "nodes+2"], "--what-if"),
        (["--what-if", "cap=much"], "--what-if"),
        (["--samples", "0"], "forecast.samples"),
        (["--policy", "nobody"], "--policies"),
    ],
)
def test_bad_input_of_the_shell_ends_in_exit_code_2(tmp_path: Path, options: list[str], field: str):
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(request(job("a"))))
    shell = CliRunner().invoke(app, ["forecast", str(file), *options], standalone_mode=True)
    assert shell.exit_code == 2
    assert field in shell.output


def test_a_file_that_is_no_request_is_refused(tmp_path: Path):
    for text in ("", "[1]"):
        (tmp_path / "request.json").write_text(text)
        shell = gpusched("forecast", str(tmp_path))
        assert shell.exit_code == 2
        assert "FILE" in shell.output


def test_a_service_stops_in_time_and_says_how_many_roll_outs_there_were():
    body = json.dumps(request(job("a"), job("b"))).encode()
    told = json.loads(Forecaster(DECIDER, longest_s=1e-9)(body))
    assert 1 <= told["samples"] < 100
    bad = reply_to(DECIDER, FORECAST + b"{}")
    assert bad.status == 422


def test_the_interface_describes_forecasts_with_an_example_that_is_answered():
    told = answer_to(FORECAST_EXAMPLE | {"policy": "edf"})
    assert [each["id"] for each in told["jobs"]] == [each["id"] for each in EXAMPLE["jobs"]]
    assert told["what_if"][0]["samples"] == 200
