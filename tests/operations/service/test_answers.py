"""What an answer says, on instances small enough to work it out by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpusched_env.version import VERSION
from gpusched_experiments.report.code_version import code_version
from gpusched_operations.service.decision import Decider, PolicyCatalogue

HOUR = 3600.0
DECIDER = Decider(PolicyCatalogue.of("edf,edf:preemptive,sts"), b"a key")
KILOWATT = {"name": "V", "gpu_power_w": 1000.0, "node_base_power_w": 0.0, "memory_gib": 16.0, "gpus_per_node": 2}
EVEN = {"survival": [1.0, 0.75, 0.5, 0.25]}  # one to four epochs, equally likely


def request_of(*jobs: dict[str, Any], policy: str = "edf", gpus: int = 2, **more: Any) -> dict[str, Any]:
    """Make a request in which a busy GPU costs 1 € an hour and an epoch takes an hour on one GPU."""
    job = {"submission_s": 0.0, "due_s": 100.0 * HOUR, "tardiness_weight_eur_per_s": 0.0, "max_epochs": 4.0}
    job |= {"seconds_per_epoch": {"Vx1": HOUR}, "distribution": EVEN}
    return {
        "policy": policy,
        "now_s": HOUR,
        "cluster": {"gpu_types": [KILOWATT], "nodes": [{"name": "a", "gpu_type": "V", "gpus": gpus}]},
        "prices": {"energy_eur_per_kwh": 1.0, "pue": 1.0},
        "jobs": [job | {"id": str(i)} | own for i, own in enumerate(jobs)],
    } | more


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    return json.loads(DECIDER(json.dumps(request).encode()))


RUNNING = {"configuration": "Vx1", "nodes": ["a"], "since_s": 0.0}


def test_the_expected_cost_of_a_job_that_goes_on_is_that_of_what_it_may_still_need():
    # One epoch is done; one, two or three more are equally likely, an hour each. Due after one and a half: late by
    # nothing, half an hour or one and a half, two thirds of an hour on average, at 9 € an hour.
    job = {"epochs_done": 1.0, "running": RUNNING, "due_s": 2.5 * HOUR, "tardiness_weight_eur_per_s": 9.0 / HOUR}
    answer = answer_to(request_of(job, gpus=1))
    assert answer["jobs"][0]["action"] == "keep"
    assert answer["jobs"][0]["expected_end_s"] == pytest.approx(3.0 * HOUR)
    assert answer["expected_energy_eur"] == pytest.approx(2.0)
    assert answer["expected_tardiness_eur"] == pytest.approx(6.0)
    assert answer["expected_cost_eur"] == pytest.approx(8.0)
    assert answer["energy_eur_per_h"] == pytest.approx(1.0)


def test_of_a_job_that_is_late_only_what_is_still_to_come_is_expected():
    job = {"epochs_done": 3.0, "running": RUNNING, "due_s": 0.5 * HOUR, "tardiness_weight_eur_per_s": 9.0 / HOUR}
    answer = answer_to(request_of(job))
    assert answer["expected_tardiness_eur"] == pytest.approx(9.0)  # the last epoch, an hour; not the half hour before


def test_a_restart_costs_energy_and_time():
    paused = {"epochs_done": 1.0, "started_s": 0.0, "state_on": ["a"], "due_s": HOUR, "restart_s": 0.5 * HOUR}
    answer = answer_to(request_of(paused | {"tardiness_weight_eur_per_s": 9.0 / HOUR}))
    assert answer["jobs"][0]["action"] == "start"
    assert answer["jobs"][0]["ready_s"] == 1.5 * HOUR
    assert answer["expected_energy_eur"] == pytest.approx(2.5)
    assert answer["expected_tardiness_eur"] == pytest.approx(9.0 * 2.5)


def test_two_jobs_share_the_cost_of_their_node():
    answer = answer_to(request_of({}, {}))
    assert sum(job["expected_energy_eur"] for job in answer["jobs"]) == pytest.approx(5.0)  # 2.5 epochs each
    assert answer["energy_eur_per_h"] == pytest.approx(2.0)


def test_who_waits_holds_nothing_and_costs_nothing_yet():
    answer = answer_to(request_of({"running": RUNNING}, {"due_s": 3.0 * HOUR}, gpus=1))
    assert [job["action"] for job in answer["jobs"]] == ["keep", "wait"]
    assert answer["jobs"][1] == {"id": "1", "ask_again_at_s": None, "action": "wait", "configuration": None}
    assert (answer["running"], answer["waiting"]) == (1, 1)


def test_a_job_that_gives_way_is_stopped():
    answer = answer_to(request_of({"running": RUNNING}, {"due_s": 6.0 * HOUR}, gpus=1, policy="edf:preemptive"))
    assert [job["action"] for job in answer["jobs"]] == ["stop", "start"]


def test_a_job_that_gets_other_gpus_is_changed_and_pays_its_restart():
    faster = {"Vx1": HOUR, "Vx2": 0.5 * HOUR}
    job = {"running": RUNNING, "due_s": 3.2 * HOUR, "seconds_per_epoch": faster, "epochs_done": 0.5, "restart_s": 60.0}
    answer = answer_to(request_of(job, policy="edf:preemptive"))
    assert answer["jobs"][0]["action"] == "change"
    assert (answer["jobs"][0]["configuration"], answer["jobs"][0]["ready_s"]) == ("Vx2", HOUR + 60.0)


def test_the_answer_says_when_to_ask_again_at_the_latest():
    # STS begins cheaply on one GPU, and speeds up to two if the job lives long enough to need it.
    two = {"Vx1": HOUR, "Vx2": 0.6 * HOUR}
    answer = answer_to(request_of({"seconds_per_epoch": two, "due_s": 4.5 * HOUR}, policy="sts"))
    assert answer["jobs"][0]["configuration"] == "Vx1"
    # x hours on one GPU, then (4 - x) · 0.6 on two: x + 2.4 - 0.6 x = 3.5.
    assert answer["ask_again_in_s"] == pytest.approx(2.75 * HOUR)
    assert answer["ask_again_at_s"] == answer["jobs"][0]["ask_again_at_s"] == pytest.approx(3.75 * HOUR)


def test_without_a_plan_the_next_event_is_the_next_time_to_ask():
    answer = answer_to(request_of({}))
    assert (answer["ask_again_in_s"], answer["ask_again_at_s"]) == (None, None)


def test_the_answer_names_the_policy_and_the_code_that_decided():
    answer = answer_to(request_of({}))
    assert (answer["policy"], answer["version"], answer["code"]) == ("edf", VERSION, code_version())


def test_jobs_are_answered_in_the_order_of_the_request_whatever_their_submission():
    answer = answer_to(request_of({"submission_s": 60.0}, {"submission_s": 0.0}, {"submission_s": 30.0}))
    assert [job["id"] for job in answer["jobs"]] == ["0", "1", "2"]
