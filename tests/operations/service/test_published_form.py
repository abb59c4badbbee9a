"""Requests in the form of the published web service: what is asked, what is answered, and what is refused."""

from __future__ import annotations

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpusched_operations.service import published_form
from gpusched_operations.service.client import ServiceError
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.pool import error_reply, reply_to
from gpusched_operations.service.published_form import PublishedFormError, answer_of, ask, request_of
from refusals import refused

WEDNESDAY, THURSDAY = "Wed 22 Jul 2020, 14.34.39", "Thu 23 Jul 2020, 08.54.39"
MONDAY_H, WEDNESDAY_H = 17 + 56 / 60 + 59 / 3600, 48 + 14 + 34 / 60 + 39 / 3600  # since Monday
EMPTY = {"estimated_cost": 0.0, "estimated_cost_to_ends": 0.0, "estimated_rescheduling_time": "inf", "jobs": {}}
M60 = {"1": 0.62, "2": 1.24, "3": 1.86, "4": 2.48}


def job(seconds: float = 75.48717436, **changes: Any) -> dict[str, Any]:
    """Make a job of 1,000 epochs that are slower on two GPUs than on one."""
    times = {"M60": {"1": seconds, "2": seconds + 5.0}, "K80": {"1": 1.0}}
    plain = {"SubmissionTime": "Tue 21 Jul 2020, 17.56.59", "Deadline": "Thu 23 Jul 2020, 19.34.15"}
    return {**plain, "Priority": 5, "Epochs": "1000", "ProfilingData": times, **changes}


def node(free: int, total: int = 4) -> dict[str, Any]:
    return {"GPUtype": "M60", "free_nGPUs": free, "total_nGPUs": total, "cost": 4.48}


def form(**changes: Any) -> dict[str, Any]:
    """Make a request about one job on a node with one free GPU."""
    plain = {"jobs": {"JJ4": job()}, "nodes": {"n1": node(1)}, "GPUcosts": {"M60": M60, "K80": {"2": 1.0}}}
    return {**plain, "currentTime": WEDNESDAY, "method": "EDF", **changes}


@pytest.fixture(scope="module")
def service():
    pytest.importorskip("fastapi", reason="needs the extra `serve`")
    limits = RequestLimits()
    return partial(reply_to, Decider(PolicyCatalogue.of("edf,random-greedy"), b"a key", limits))


@pytest.fixture
def by_service(service, monkeypatch: pytest.MonkeyPatch):
    def post(url: str, body: bytes) -> bytes:
        assert url == "http://there/v1/decide"
        reply = service(body)
        if reply.status != 200:
            raise ServiceError(reply.status, reply.body.decode())
        return reply.body

    monkeypatch.setattr(published_form, "post", post)
    return lambda data: ask(data, "http://there")


def test_an_answer_of_the_published_service_is_answered(by_service):
    """Request 6 of their `post_request.py`: 20.97 h at 0.62 an hour."""
    answer = by_service(form())
    in_time = {"expected_tardiness": 0.0, "expected_tardiness_at_end": 0.0}
    assert answer["jobs"] == {"JJ4": {**in_time, "nGPUs": 1, "node": "n1"}}
    assert answer["estimated_rescheduling_time"] == "Thu 23 Jul 2020, 11.32.46"
    assert answer["estimated_cost"] == pytest.approx(13.0006, abs=1e-4)


def test_tardiness_costs_by_priority(by_service):
    """Request 4 of theirs, by another method: the same job, later."""
    answer = by_service(form(currentTime=THURSDAY, jobs={"JJ4": job(Priority=1)}))
    assert answer["estimated_rescheduling_time"] == "Fri 24 Jul 2020, 05.52.46"
    assert answer["jobs"]["JJ4"]["expected_tardiness"] == pytest.approx(10.308666, abs=3e-4)
    assert answer["estimated_cost"] == pytest.approx(22.416, abs=1e-3)


def test_a_job_that_runs_keeps_its_gpus_and_the_earliest_end_is_the_time_to_ask_again(by_service):
    jobs = {"a": job(100.0), "b": job(50.0), "c": job(10.0)}
    current = {"a": {"node": "n1", "GPUtype": "M60", "nGPUs": 1}, "gone": {"node": "n1", "GPUtype": "M60", "nGPUs": 2}}
    waits = {"b": {"node": "nan", "GPUtype": "nan", "nGPUs": 0}}
    answer = by_service(form(jobs=jobs, nodes={"n1": node(1), "n2": node(0)}, currentScheduling=current | waits))
    assert {name: given["node"] for name, given in answer["jobs"].items()} == {"a": "n1", "b": "n1"}
    assert answer["estimated_rescheduling_time"] == "Thu 23 Jul 2020, 04.27.59"  # 50,000 s, that of b
    assert answer["estimated_cost"] == pytest.approx(50_000 / 3600 * 1.24)


def test_a_job_that_was_due_before_it_was_submitted_is_late_by_its_due_date(by_service):
    answer = by_service(form(jobs={"JJ4": job(Deadline="Mon 20 Jul 2020, 17.56.59")}))
    assert answer["jobs"]["JJ4"]["expected_tardiness"] == pytest.approx(
        (WEDNESDAY_H - MONDAY_H) + 75_487 / 3600, abs=1e-3
    )


def test_nobody_runs_without_free_gpus():
    answer = answer_of(form(), {"jobs": [{"id": "JJ4", "configuration": None}], "energy_eur_per_h": 0.0})
    assert answer == EMPTY


def test_times_are_of_the_nearest_second():
    """Request 1 of theirs: 73,837.996 s."""
    data = form(jobs={"JJ4": job(73.83799561)}, currentTime="Tue 21 Jul 2020, 17.56.59")
    given = {"id": "JJ4", "configuration": "M60x1", "gpu_type": "M60", "gpus_per_node": 1, "nodes": ["n1"]}
    given["expected_energy_eur"] = 50.866
    answer = answer_of(data, {"jobs": [given], "energy_eur_per_h": 2.48})
    assert answer["estimated_rescheduling_time"] == "Wed 22 Jul 2020, 14.27.37"
    assert answer["estimated_cost"] == pytest.approx(50.866, abs=1e-3)


def test_a_node_offers_what_is_free_and_what_its_own_jobs_hold():
    current = {"JJ4": {"node": "n1", "GPUtype": "M60", "nGPUs": 2}}
    asked = request_of(form(nodes={"n1": node(1), "n2": node(0)}, currentScheduling=current))
    assert asked["cluster"]["nodes"] == [{"name": "n1", "gpu_type": "M60", "gpus": 3}]
    assert asked["jobs"][0]["running"]["configuration"] == "M60x2"
    assert asked["jobs"][0]["seconds_per_epoch"] == {"M60": {"1": 75.48717436, "2": 80.48717436}}


def test_without_a_method_random_greedy_is_asked(by_service):
    data = {name: value for name, value in form(seed=7).items() if name != "method"}
    assert (request_of(data)["policy"], request_of(data)["seed"]) == ("random-greedy", 7)
    assert by_service(data)["jobs"]["JJ4"]["node"] == "n1"


def test_what_the_service_refuses_has_the_code_of_a_failure(by_service):
    with pytest.raises(PublishedFormError, match=r"464: .*policy"):
        by_service(form(method="FIFO"))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"method": "G_sim"}, "method"),
        ({"currentTime": "2020-07-22"}, "currentTime"),
        ({"jobs": {"JJ4": job(Epochs="many")}}, "jobs.JJ4.Epochs"),
    ],
)
def test_a_value_of_another_form_is_refused(change: dict[str, Any], field: str):
    with refused(field):
        request_of(form(**change))


def test_the_program_prints_the_answer_of_a_file_or_an_error(by_service, tmp_path: Path, capsys, monkeypatch):
    file = tmp_path / "request.json"
    file.write_text(json.dumps(form()), encoding="utf-8")
    assert published_form.main([str(file), "--url", "http://there"]) == 0
    assert json.loads(capsys.readouterr().out) == by_service(form())
    monkeypatch.setattr("sys.stdin", io.StringIO("{}"))
    assert published_form.main(["-"]) == 1
    assert capsys.readouterr() == ("", "error: 414: the field jobs is missing\n")


@pytest.fixture(scope="module")
def door(service):
    testclient = pytest.importorskip("starlette.testclient", reason="needs httpx")
    from gpusched_operations.service.server import create_app  # noqa: PLC0415 - only with the extra `serve`

    app = create_app(service, PolicyCatalogue.of("edf,random-greedy"), RequestLimits())
    with testclient.TestClient(app, raise_server_exceptions=False) as made:
        yield made


def test_the_service_answers_at_the_published_path_with_the_published_status(door, by_service):
    answer = door.post("/optimizer/v5", json=form())
    assert (answer.status_code, answer.json()) == (201, by_service(form()))
    figures = door.get("/metrics").text
    assert 'gpusched_service_requests_total{path="/optimizer/v5",policy="edf",status="201"} 1.0' in figures
    assert 'gpusched_service_jobs_total{action="start",policy="edf"} 1.0' in figures


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"jobs": None}, 414),
        ({"nodes": None}, 424),
        ({"currentTime": None}, 434),
        ({"GPUcosts": None}, 474),
        ({"GPUcosts": {"K80": M60}}, 484),
        ({"jobs": {"JJ4": job(Priority=0)}}, 444),
        ({"jobs": {"JJ4": job(ProfilingData={"K80": {"1": 1.0}})}}, 454),
        ({"method": "FIFO"}, 464),  # not served
        ({"method": "G_sim"}, 422),
        ({"jobs": []}, 422),
        ({"jobs": {"JJ4": 5}}, 422),
        ({"jobs": {"JJ4": {}}}, 422),
        ({"jobs": {"JJ4": job(ProfilingData={"M60": [1.0]})}}, 422),
        ({"jobs": {"JJ4": job(Epochs=float("inf"))}}, 422),
        ({"jobs": {"JJ4": job(Epochs=1e300)}}, 464),
        ({"nodes": {"n1": node(1) | {"GPUtype": ["M60"]}}}, 422),
        ({"method": "STS-Y"}, 422),
        ({"nodes": {"n1": {"free_nGPUs": 1}}}, 422),
        ({"method": ["EDF"]}, 422),
    ],
)
def test_the_service_says_what_is_wrong_with_the_published_codes(door, change: dict[str, Any], status: int):
    body = json.dumps({name: value for name, value in form(**change).items() if value is not None})
    answer = door.post("/optimizer/v5", content=body)
    assert answer.status_code == status
    assert answer.json()["error"]


@pytest.mark.parametrize("body", [b"", b"[1]", b"[" * 100_000, b"\xff"])
def test_no_request_in_the_published_form_is_no_failure(door, body: bytes):
    assert door.post("/optimizer/v5", content=body).status_code in (414, 422)


def test_a_job_that_ends_after_the_last_year_of_the_calendar_is_answered(door):
    answer = door.post("/optimizer/v5", json=form(jobs={"JJ4": job(seconds=1e9)}))
    assert answer.status_code == 201
    assert answer.json()["estimated_rescheduling_time"].endswith("Dec 9999, 00.00.00")


def test_a_service_that_is_busy_says_so_in_the_published_form_too():
    busy = published_form.reply_in_form(json.dumps(form()).encode(), lambda _: error_reply(503, "later"))
    assert (busy.status, json.loads(busy.body)["allowed"]) == (503, "later")
