"""What a request may hold: bad input is refused with its path, its value and what is allowed."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_env.workload import builtin_applications
from gpusched_operations.service.cluster import distribution_of
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.openapi import EXAMPLE
from gpusched_operations.service.pool import reply_to
from refusals import refused

DECIDER = Decider(PolicyCatalogue.of("edf,sts-x,fill"), b"a key", RequestLimits(request_bytes=100_000, jobs=5, nodes=4))


def changed(path: tuple[str | int, ...], value: Any) -> bytes:
    """Return the example with another value at a path; `...` takes the field away."""
    request: Any = deepcopy(EXAMPLE)
    place = request
    for part in path[:-1]:
        place = place[part]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(request).encode()


def refusal(body: bytes) -> dict[str, Any]:
    reply = reply_to(DECIDER, body)
    assert reply.status == 422, reply.body
    return json.loads(reply.body)


PROFILED = {
    "utilisation": [[0.5]], "overhead": 0.03, "filled": 0.85, "least_speed": 0.02, "idle_power_w": None,
    "fastest": True, "profile_s": 60.0,
}  # fmt: skip
BAD = [
    (("jobs", 0, "epochs_done"), -1, "jobs[0].epochs_done", "a number >= 0"),
    (("jobs", 0, "epochs_done"), 61.0, "jobs[0].epochs_done", "a number from 0 to max_epochs (60)"),
    (("jobs", 0, "epochs_done"), "12", "jobs[0].epochs_done", "a finite number"),
    (("jobs", 0, "epochs_done"), True, "jobs[0].epochs_done", "a finite number"),
    (("jobs", 0, "share_done"), 0.5, "jobs[0].share_done", "nothing beside epochs_done"),
    (("jobs", 0, "epochs_needed"), 30.0, "jobs[0].epochs_needed", "no such field"),
    (("jobs", 1, "id"), "4711", "jobs[1].id", "an id of its own: jobs[0] has it"),
    (("jobs", 1, "due_s"), 7000.0, "jobs[1].due_s", "a number not before submission_s"),
    (("jobs", 1, "due_s"), ..., "jobs[1].due_s", "a value: the field is missing"),
    (("jobs", 1, "submission_s"), 7300.0, "jobs[1].submission_s", "a time not after now_s (7200)"),
    (("jobs", 1, "application"), "other", "jobs[1].application", "an entry of applications or a built-in one"),
    (("jobs", 1, "seconds_per_epoch"), "other", "jobs[1].seconds_per_epoch", "an entry of times; there are none"),
    (("jobs", 1, "seconds_per_epoch"), 5, "jobs[1].seconds_per_epoch", "a name, or a JSON object"),
    (("jobs", 1, "seconds_per_epoch"), [1.0], "jobs[1].seconds_per_epoch", "6, one for each configuration"),
    (
        ("jobs", 1, "seconds_per_epoch"),
        {"V100x0.5": 1.0},
        "jobs[1].seconds_per_epoch.V100x0.5",
        "one of the configurations",
    ),
    (("jobs", 1, "seconds_per_epoch"), {"P1x1": 1.0}, "jobs[1].seconds_per_epoch.P1x1", "one of the configurations"),
    (("jobs", 1, "seconds_per_epoch"), {"V100x1": 0.0}, "jobs[1].seconds_per_epoch.V100x1", "a number > 0"),
    (("jobs", 1, "seconds_per_epoch"), {"V100": [9.0, 0.0]}, "jobs[1].seconds_per_epoch.V100x2", "a number > 0"),
    (("jobs", 1, "seconds_per_epoch"), {"P1": {"8": 9.0}}, "jobs[1].seconds_per_epoch.P1x8", "one of the config"),
    (("jobs", 1, "seconds_per_epoch"), {"V100": {"1*2*4": 9.0}}, "jobs[1].seconds_per_epoch.1*2*V100x4", "one of the"),
    (
        ("jobs", 1, "seconds_per_epoch"),
        {"V100": [9.0], "V100x1": 9.0},
        "jobs[1].seconds_per_epoch.V100x1",
        "each configuration once",
    ),
    (("jobs", 1, "distribution"), "other", "jobs[1].distribution", "an entry of distributions; there are none"),
    (("jobs", 1, "distribution"), {}, "jobs[1].distribution", "one of masses, survival, quantiles, history_epochs"),
    (("jobs", 1, "distribution"), {"masses": [0.0]}, "jobs[1].distribution.masses", "numbers >= 0 with a positive sum"),
    (
        ("jobs", 1, "distribution"),
        {"history_epochs": [60.0, 61.0]},
        "jobs[1].distribution.history_epochs[1]",
        "at most 60, the max_epochs of the application our-model; a history may have max_epochs of its own",
    ),
    (
        ("jobs", 1, "max_epochs"),
        50.0,
        "applications.our-model.distribution.history_epochs[5]",
        "at most 50, the max_epochs of jobs[1]; a history",
    ),
    (
        ("jobs", 1, "distribution"),
        {"history_epochs": [2.0], "max_epochs": 1.0},
        "jobs[1].distribution.history_epochs[0]",
        "at most 1, the max_epochs of the history; a history",
    ),
    (("jobs", 1, "tenant"), "me", "jobs[1].tenant", "one of the tenants"),
    (("jobs", 0, "running", "nodes"), ["h1"], "jobs[0].running.nodes", "nodes of V100"),
    (("jobs", 0, "running", "nodes"), ["v1", "v1"], "jobs[0].running.nodes", "1 different nodes"),
    (("jobs", 0, "running", "nodes"), ["v9"], "jobs[0].running.nodes[0]", "the name of one of cluster.nodes"),
    (("jobs", 0, "running", "gpu"), 0, "jobs[0].running.gpu", "the number of the GPU if it is shared, else null"),
    (("jobs", 0, "running", "since_s"), 7201.0, "jobs[0].running.since_s", "a time not after now_s (7200)"),
    (("jobs", 0, "running", "ready_s"), 59.0, "jobs[0].running.ready_s", "a time not before since_s (60)"),
    (("jobs", 0, "submission_s"), 61.0, "jobs[0].running.since_s", "a time not before submission_s (61)"),
    (("jobs", 1, "started_s"), 7100.0, "jobs[1].started_s", "a time not before submission_s (7200)"),
    (("jobs", 0, "running", "configuration"), "V100x8", "jobs[0].running.configuration", "one of V100x1"),
    (("cluster", "nodes", 0, "gpu_type"), "P1", "cluster.nodes[0].gpu_type", "one of V100, H100"),
    (("cluster", "nodes", 0, "name"), "h1", "cluster.nodes[1].name", "each name once"),
    (("cluster", "nodes", 0, "gpus"), 0, "cluster.nodes[0].gpus", "a number >= 1"),
    (("cluster", "gpu_types", 0), "P1", "cluster.gpu_types[0]", "one of the built-in GPU types"),
    (("cluster", "gpu_types", 1, "speed"), 0.0, "cluster.gpu_types[1].speed", "a finite number > 0"),
    (("cluster", "gpu_types", 1, "like"), "P1", "cluster.gpu_types[1].like", "one of the built-in GPU types"),
    (("cluster", "nodes", 0, "gpus"), 1_000, "configurations", "1,000 of these that jobs may be given"),
    (("cluster", "nodes", 0, "gpus"), 2**22, "cluster.nodes[0].gpus", "a whole number <= 1024"),
    (
        ("cluster", "gpu_types", 1),
        {"name": "H100", "node_power_w": [100.0], "memory_gib": 80.0},
        "cluster.nodes[1].gpus",
        "at most 1, for which H100 has",
    ),
    (("cluster", "tenants"), [{"name": "a", "cells": [["V100", 3, 0]]}], "cluster.tenants[0].cells[0][2]", ""),
    (("configurations",), ["V100x1", "P1x1"], "configurations[1].gpu_type", "one of V100, H100"),
    (("configurations",), ["V100"], "configurations[0]", "a name such as V100x4"),
    (("configurations",), ["V100x\u0661"], "configurations[0]", "a name such as V100x4"),
    (("applications", "unused"), {"like": "other"}, "applications.unused.like", "one of "),
    (("prices",), {"pue": 0.5}, "prices.pue", "a number >= 1"),
    (("prices",), {"energy_eur_per_kwh": 1e308}, "prices.energy_eur_per_kwh", "a number <= 1e+12"),
    (
        ("cluster", "gpu_types", 1, "gpu_power_w"),
        1e308,
        "cluster.gpu_types[1]",
        "a type whose nodes draw at most 1e+12",
    ),
    (("jobs", 1, "tardiness_weight_eur_per_s"), 1e308, "jobs[1].tardiness_weight_eur_per_s", "a number <= 1e+12"),
    (("now_s",), float("nan"), "now_s", "a finite number"),
    (("policy",), "sts", "policy", "one of edf, sts-x, fill"),
    (("policy",), "agent:/tmp/mine", "policy", "one of edf, sts-x, fill"),
    (("policy",), "agent:../mine", "policy", "one of edf, sts-x, fill"),
    (("memory",), "AAAA", "memory", "null, or the memory that a service with the same key"),
    (("memory",), {"rows": []}, "memory", "a text"),
    (("instance",), "mine.json", "instance", "no such field"),
    (("interference",), {"slowdown": 3}, "interference.slowdown", "a JSON list"),
    (("interference",), PROFILED, "interference.profile_s", "0: give jobs of applications that are not profiled"),
    (("jobs",), EXAMPLE["jobs"] * 3, "jobs", "at most 5 entries"),
    (("cluster", "nodes"), EXAMPLE["cluster"]["nodes"] * 3, "cluster.nodes", "at most 4 entries"),
]


@pytest.mark.parametrize(("path", "value", "field", "allowed"), BAD, ids=[f"{b[2]}-{i}" for i, b in enumerate(BAD)])
def test_bad_input_is_refused_with_field_value_and_what_is_allowed(path, value, field, allowed):
    said = refusal(changed(path, value))
    assert said["field"] == field
    assert said["allowed"].startswith(allowed)
    assert said["error"].startswith(f"{field} = ")
    assert len(said["error"]) < 600
    with pytest.raises(InputError) as of_objects:
        DECIDER.ask(json.loads(changed(path, value)))
    assert (of_objects.value.field, of_objects.value.allowed) == (field, said["allowed"])


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"policy": "edf"}', b"[" * 5000])
def test_what_is_no_request_is_refused(body: bytes):
    assert refusal(body)["allowed"]


def test_a_long_value_is_cut():
    said = refusal(changed(("policy",), "x" * 150))
    assert len(said["value"]) == 80


def test_a_request_that_is_too_large_is_refused_before_it_is_read():
    reply = reply_to(DECIDER, b" " * 100_001)
    assert (reply.status, json.loads(reply.body)["field"]) == (413, "body")


def test_gpus_are_held_once():
    jobs = [EXAMPLE["jobs"][0] | {"id": name} for name in "abc"]
    said = refusal(changed(("jobs",), jobs))
    assert said["field"] == "jobs[2].running"
    assert said["allowed"] == "GPUs that are free: v1 has 0 beside other jobs'"


def test_shares_of_a_gpu_are_held_once():
    half = {"configuration": "V100x0.6", "nodes": ["v1"], "gpu": 0, "since_s": 60.0}
    job = EXAMPLE["jobs"][0] | {"seconds_per_epoch": {"V100x0.6": 900.0}, "running": half}
    request = EXAMPLE | {"configurations": ["V100x1", "V100x0.6"], "jobs": [job, job | {"id": "b"}], "applications": {
        "our-model": EXAMPLE["applications"]["our-model"] | {"seconds_per_epoch": {"V100x1": 900.0}}
    }}  # fmt: skip
    said = refusal(json.dumps(request).encode())
    assert (said["field"], said["value"]) == ("jobs[1].running.gpu", 0)


def test_times_and_distributions_may_be_said_once_or_with_each_job():
    own = EXAMPLE["applications"]["our-model"]
    named = EXAMPLE | {"times": {"t": own["seconds_per_epoch"]}, "distributions": {"d": own["distribution"]}}
    named |= {"applications": {"our-model": {"max_epochs": 60.0, "seconds_per_epoch": "t", "distribution": "d"}}}
    inline = EXAMPLE | {"jobs": [own | job for job in EXAMPLE["jobs"]], "applications": {"our-model": {}}}
    first, *others = (json.loads(DECIDER(json.dumps(r).encode()))["jobs"] for r in (EXAMPLE, named, inline))
    assert others == [first, first]


def test_a_share_of_progress_is_as_good_as_epochs():
    job = {name: value for name, value in EXAMPLE["jobs"][0].items() if name != "epochs_done"} | {"share_done": 0.2}
    told = json.loads(DECIDER(changed(("jobs", 0), job)))
    assert told["jobs"] == json.loads(DECIDER(json.dumps(EXAMPLE).encode()))["jobs"]


@pytest.mark.parametrize(
    ("given", "edges", "survival"),
    [
        ({"masses": [1, 1, 2]}, [0, 1 / 3, 2 / 3, 1], [1, 0.75, 0.5]),
        ({"survival": [1, 0.5], "edges": [0, 0.1, 1]}, [0, 0.1, 1], [1, 0.5]),
        ({"quantiles": [[0.5, 0.2], [0.9, 0.6]]}, [0, 0.2, 0.6, 1], [1, 0.5, 0.1]),
        ({"history_epochs": [1, 2, 2, 4], "max_epochs": 4, "bins": 4}, [0, 0.25, 0.5, 0.75, 1], [1, 0.75, 0.25, 0.25]),
    ],
)
def test_a_distribution_may_be_told_in_four_ways(given, edges, survival):
    body = changed(("jobs", 1, "distribution"), given)
    request = DECIDER.request(json.loads(body))
    assert request == DECIDER.parse(body)
    made = distribution_of("d", request.jobs[1].distribution, (60.0, "the job"))
    np.testing.assert_allclose(made.edges, edges)
    np.testing.assert_allclose(made.survival, survival)


def test_built_in_applications_run_on_types_like_others_at_their_speed():
    request = {
        "policy": "edf", "now_s": 0.0,
        "cluster": {
            "gpu_types": ["V100", {"name": "F", "like": "V100", "speed": 2.0}],
            "nodes": [{"name": "a", "gpu_type": "F", "gpus": 1}],
        },
        "configurations": ["Fx1"],
        "jobs": [{"id": "1", "application": "resnet50-imagenet-bs64", "submission_s": 0.0, "due_s": 1e9,
                  "tardiness_weight_eur_per_s": 0.0}],
    }  # fmt: skip
    answer = json.loads(DECIDER(json.dumps(request).encode()))["jobs"][0]
    known = builtin_applications()["resnet50-imagenet-bs64"]
    assert answer["configuration"] == "Fx1"
    assert answer["expected_end_s"] == known.max_epochs * known.seconds_per_epoch["V100", 1] / 2.0


def test_a_paused_job_whose_return_is_cheaper_must_say_where_its_state_is():
    paused = EXAMPLE["jobs"][0] | {"running": None, "resume_s": 5.0}
    assert refusal(changed(("jobs", 0), paused))["field"] == "jobs[0].state_on"


def test_without_jobs_there_is_nothing_to_decide_and_memory_goes_on():
    before = json.loads(DECIDER(json.dumps(EXAMPLE).encode()))["memory"]
    answer = json.loads(DECIDER(json.dumps(EXAMPLE | {"jobs": [], "memory": before}).encode()))
    assert (answer["jobs"], answer["ask_again_at_s"], answer["memory"]) == ([], None, before)


@pytest.mark.parametrize("name", ["agent", "other"])
def test_only_what_the_operator_named_is_served(name: str):
    with refused("--policies", name):
        PolicyCatalogue.of(f"edf,{name}")


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List the paths of everything in a request."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, inner in items for place in places(inner, (*path, key))]


JUNK = [0, -1, 1, 1e-300, 1e12, 1e308, 10**30, 0.3, "x", "", "V100", None, True, [], {}, [1], ["a"], {"a": 1}, [[1, 2]]]


@settings(max_examples=150, deadline=None)
@given(path=st.sampled_from(places(EXAMPLE)), junk=st.sampled_from(JUNK))
def test_whatever_stands_in_a_field_is_answered_or_refused(path: tuple[str | int, ...], junk: Any):
    body = changed(("policy",), "edf") if path == ("policy",) else changed(path, junk)
    reply = reply_to(DECIDER, body)
    assert reply.status in {200, 422}, reply.body
    assert reply.status == 200 or json.loads(reply.body)["field"]
    if reply.status == 200:
        assert DECIDER.request(json.loads(body)) == DECIDER.parse(body)
    else:
        with pytest.raises(InputError):
            DECIDER.ask(json.loads(body))


def test_times_by_gpu_type_as_in_a_scenario_are_those_by_name_of_the_configuration():
    request = EXAMPLE | {"configurations": ["V100x1", "V100x2", "V100x4", "H100x1", "2*H100x2"]}
    request["cluster"] = EXAMPLE["cluster"] | {
        "nodes": [*EXAMPLE["cluster"]["nodes"], {"name": "h2", "gpu_type": "H100", "gpus": 2}]
    }
    forms = [
        {"V100x1": 900.0, "V100x2": 480.0, "V100x4": 260.0, "H100x1": 300.0, "2*H100x2": 165.0},
        {"V100": {"1": 900.0, "2": 480.0, "4": 260.0}, "H100": {"1": 300.0, "2*2": 165.0}},
        {"V100": {"1": 900.0, "2": 480.0, "4": 260.0}, "H100": [300.0], "2*H100x2": 165.0},
    ]
    jobs = [[job | {"seconds_per_epoch": times} for job in EXAMPLE["jobs"]] for times in forms]
    answers = [json.loads(reply_to(DECIDER, json.dumps(request | {"jobs": each}).encode()).body) for each in jobs]
    assert answers[0]["jobs"] == answers[1]["jobs"] == answers[2]["jobs"]
