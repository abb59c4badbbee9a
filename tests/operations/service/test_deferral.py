"""STS-X in live decisions: jobs wait while GPUs are idle only for what that saves, and the answer says until when."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gpusched_env import simulate
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import NO_WAITING, WAITING
from instances import random_instance

HOUR = 3600.0
DECIDER = Decider(PolicyCatalogue.of(f"edf,{WAITING},{NO_WAITING},agent:default"), b"a key")
CHEAP = {"name": "C", "memory_gib": 16.0, "node_eur_per_h": [1.0, 1.6]}
FAST = {"name": "F", "memory_gib": 16.0, "node_eur_per_h": [6.0, 10.0]}
TIMES = {"Cx1": HOUR, "Fx1": 0.5 * HOUR}


def job(name: str, **own: Any) -> dict[str, Any]:
    """Make a job of four epochs of an hour on a cheap GPU, or half of one on a fast one, due after 1,000 hours."""
    plain = {"submission_s": 0.0, "due_s": 1000.0 * HOUR, "tardiness_weight_eur_per_s": 0.001, "max_epochs": 4.0}
    return plain | {"id": name, "seconds_per_epoch": TIMES} | own


def on(configuration: str, node: str) -> dict[str, Any]:
    return {"running": {"configuration": configuration, "nodes": [node], "since_s": 0.0}}


def answer_to(*jobs: dict[str, Any], nodes: tuple[str, ...] = ("c1", "f1"), **more: Any) -> dict[str, Any]:
    kinds = {"c": ("C", 1), "f": ("F", 2)}
    there = [{"name": name, "gpu_type": kinds[name[0]][0], "gpus": kinds[name[0]][1]} for name in nodes]
    cluster = {"gpu_types": [CHEAP, FAST], "nodes": there}
    prices = {"energy_eur_per_kwh": 1.0, "pue": 1.0} | more.pop("prices", {})
    request = {"policy": WAITING, "now_s": 0.0, "cluster": cluster, "prices": prices, "jobs": list(jobs)} | more
    return json.loads(DECIDER(json.dumps(request).encode()))


def actions(answer: dict[str, Any]) -> list[str]:
    return [each["action"] for each in answer["jobs"]]


@pytest.mark.parametrize("policy", [WAITING, NO_WAITING, "agent:default"])
@pytest.mark.parametrize("restart_s", [0.0, 120.0])
@pytest.mark.parametrize("held", ["Cx1", "Fx1"])
def test_a_job_that_runs_beside_idle_gpus_goes_on(policy: str, restart_s: float, held: str):
    node = "c1" if held == "Cx1" else "f1"
    asked = answer_to(job("a", **on(held, node)), nodes=("c1", "c2", "f1"), policy=policy, restart_s=restart_s)
    assert actions(asked) in (["keep"], ["change"])
    assert asked["jobs"][0]["configuration"] is not None


def test_a_job_that_comes_to_an_idle_cluster_starts_where_it_costs_least():
    (told,) = answer_to(job("a"))["jobs"]
    assert (told["action"], told["configuration"]) == ("start", "Cx1")


def test_a_job_waits_for_a_cheaper_gpu_if_that_saves_a_cent_and_says_until_when():
    """The cheap GPU is free in an hour: four hours of 1 € there, or two of 6 € now."""
    asked = answer_to(job("a", epochs_done=3.0, **on("Cx1", "c1")), job("b"), restart_s=60.0)
    assert actions(asked) == ["keep", "wait"]
    told = asked["jobs"][1]
    assert (told["waits_until_s"], told["saves_eur"]) == (HOUR, pytest.approx(8.0))
    assert told["why"] == "waits until 3600 s, in 1.0 h, to save 8.00 EUR"
    assert asked["ask_again_in_s"] == HOUR
    assert (told["expected_energy_eur"], told["expected_tardiness_eur"]) == (pytest.approx(4.0), 0.0)
    assert asked["expected_cost_eur"] == pytest.approx(1.0 + 4.0)
    assert (asked["running"], asked["waiting"]) == (1, 1)


def test_jobs_that_wait_for_one_gpu_wait_for_each_other():
    """Each needs it for four hours, so the second can have it after five; who is due before runs on a fast GPU."""
    holds = job("a", epochs_done=3.0, **on("Cx1", "c1"))
    late = job("d", due_s=8.0 * HOUR, tardiness_weight_eur_per_s=20.0 / HOUR)
    asked = answer_to(holds, job("b"), job("c", due_s=900.0 * HOUR), late, restart_s=60.0)
    assert actions(asked)[:3] == ["keep", "wait", "wait"]
    assert [each["waits_until_s"] for each in asked["jobs"][1:3]] == [HOUR, 5.0 * HOUR]
    assert asked["jobs"][3]["action"] == "start"


def test_a_job_does_not_wait_for_a_gpu_that_is_free_too_late():
    """It is due after five hours: on the cheap GPU it would be 98 hours late, at 3.6 € an hour."""
    long = job("a", max_epochs=99.0, due_s=99.0 * HOUR, tardiness_weight_eur_per_s=1.0, **on("Cx1", "c1"))
    asked = answer_to(long, job("b", due_s=5.0 * HOUR), restart_s=60.0)
    assert actions(asked) == ["keep", "start"]
    assert asked["jobs"][1]["configuration"] == "Fx1"


def priced(*prices: float) -> dict[str, Any]:
    return {"series": {"start_s": [HOUR * k for k in range(len(prices))], "eur_per_kwh": list(prices)}}


def test_a_job_waits_for_cheaper_hours_and_says_what_they_save():
    """Four hours at 3 times the reference, or at 1 from the third on: 1 € an hour at the reference."""
    asked = answer_to(job("a"), nodes=("c1",), prices=priced(3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 3.0))
    assert actions(asked) == ["wait"]
    told = asked["jobs"][0]
    assert (told["waits_until_s"], told["saves_eur"]) == (2.0 * HOUR, pytest.approx((3.0 + 3.0 + 1.0 + 1.0) - 4.0))
    assert asked["expected_cost_eur"] == pytest.approx(4.0)  # at the reference, as of jobs that run


@pytest.mark.parametrize("prices", [(1.0, 1.0, 1.0), (1.0, 3.0, 3.0), (1.002, 1.0, 1.0, 1.0, 1.0, 1.0)])
def test_a_job_does_not_wait_for_prices_that_save_less_than_a_cent(prices: tuple[float, ...]):
    assert actions(answer_to(job("a"), nodes=("c1",), prices=priced(*prices))) == ["start"]


def test_the_restart_that_a_stop_costs_is_counted():
    """Half an epoch is left; the next hour is cheaper by 0.06 €, and a restart of six minutes there costs 0.1 €."""
    left = {"epochs_done": 3.5, "restart_s": 0.1 * HOUR, **on("Cx1", "c1")}
    prices = priced(1.12, 1.0, 1.0, 1.0)
    assert actions(answer_to(job("a", **left), nodes=("c1",), prices=prices)) == ["keep"]
    assert actions(answer_to(job("a", **left | {"restart_s": 0.0}), nodes=("c1",), prices=prices)) == ["stop"]


def test_a_job_that_nothing_is_free_for_waits_without_a_reason_or_a_cost():
    asked = answer_to(job("a", **on("Cx1", "c1")), job("b", seconds_per_epoch={"Cx1": HOUR}), nodes=("c1",))
    (told,) = (each for each in asked["jobs"] if each["action"] != "keep")
    assert told.keys() == {"id", "ask_again_at_s", "action", "configuration"}


def beside_idle_gpus(request: dict[str, Any], answer: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs that hold nothing though a configuration that they have a time for is free on a node."""
    free = {node["name"]: node["gpus"] for node in request["cluster"]["nodes"]}
    kinds = {node["name"]: node["gpu_type"] for node in request["cluster"]["nodes"]}
    names = request["configurations"]
    for given in answer["jobs"]:
        for node in given.get("nodes") or ():
            free[node] -= given["gpus_per_node"]
    found = []
    for entry, given in zip(request["jobs"], answer["jobs"], strict=True):
        times = request["times"][entry["seconds_per_epoch"]]
        able = [c for c, seconds in zip(names, times, strict=True) if seconds is not None]
        fits = any(kinds[node] == c["gpu_type"] and free[node] >= c["gpus_per_node"] for c in able for node in free)
        if given["configuration"] is None and fits:
            found.append(given)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_in_all_rounds_of_a_run_who_holds_nothing_beside_idle_gpus_says_why(seed: int):
    """Jobs come and go; every request is asked once as it was simulated, and once as a live one."""
    instance = random_instance(seed, jobs=12, span_s=40_000.0, restart_s=[0.0, 60.0][seed % 2])
    instance = replace(instance, jobs=replace(instance.jobs, due_s=instance.jobs.due_s + 50_000.0))
    seen = {"simulated": 0, "live": 0}

    def post(_: str, body: bytes) -> bytes:
        request = json.loads(body)
        live = json.loads(DECIDER(json.dumps(request | {"as_simulated": False}).encode()))
        told = DECIDER(body)
        for each in beside_idle_gpus(request, live):
            assert each["saves_eur"] >= 0.01
            assert each["waits_until_s"] > request["now_s"]
            assert each["why"].startswith("waits until")
            seen["live"] += 1
        seen["simulated"] += len(beside_idle_gpus(request, json.loads(told)))
        return told

    simulate(instance, ServicePolicy("", WAITING, instance, post=post), seed=0)
    assert seen["live"] <= seen["simulated"]


@pytest.mark.parametrize(
    ("prices", "policy"),
    [
        ({}, NO_WAITING),
        (priced(1.0, 1.0, 1.0), NO_WAITING),
        (priced(1.0, 2.0), WAITING),
    ],
)
def test_without_a_policy_the_request_is_decided_by_sts_x_that_waits_only_for_prices(prices: Any, policy: str):
    made = {"energy_eur_per_kwh": 1.0, "pue": 1.0} | prices
    nodes = {"gpu_types": [CHEAP, FAST], "nodes": [{"name": "c1", "gpu_type": "C", "gpus": 1}]}
    request = {"now_s": 0.0, "cluster": nodes, "prices": made, "jobs": [job("a")]}
    assert json.loads(DECIDER(json.dumps(request).encode()))["policy"] == policy
