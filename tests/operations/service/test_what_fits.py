"""A node type that is drained, or a job that fits nothing now, stops no decision on the others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpusched_env import InputError
from gpusched_operations.service.client import cluster_part
from gpusched_operations.service.cluster import ClusterNames, usable
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.fields import DecideRequest
from gpusched_operations.service.openapi import EXAMPLE
from mixed import mixed_instance
from refusals import refused

DECIDER = Decider(PolicyCatalogue.of("edf"), b"a key")
REQUEST = EXAMPLE | {"policy": "edf"}
WAITS = {
    "id": "b",
    "ask_again_at_s": None,
    "action": "wait",
    "configuration": None,
    "why": "no node that is there can hold what it may use",
}


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    return json.loads(DECIDER(json.dumps(request).encode()))


def on_nodes(*nodes: dict[str, Any]) -> dict[str, Any]:
    """Return the example on other nodes."""
    return REQUEST | {"cluster": REQUEST["cluster"] | {"nodes": list(nodes)}}


def with_second(**own: Any) -> dict[str, Any]:
    """Return the example with another second job."""
    return REQUEST | {"jobs": [REQUEST["jobs"][0], REQUEST["jobs"][1] | {"id": "b"} | own]}


V1, H1 = REQUEST["cluster"]["nodes"]


def test_times_on_a_node_type_that_is_drained_are_no_matter():
    answer = answer_to(on_nodes(V1))
    assert [job["action"] for job in answer["jobs"]] == ["keep", "start"]
    assert {job["gpu_type"] for job in answer["jobs"]} == {"V100"}


def test_times_on_more_gpus_than_the_nodes_that_are_left_have_are_no_matter():
    answer = answer_to(on_nodes(V1 | {"gpus": 2}, H1))  # times tell V100x4 too
    assert [job["action"] for job in answer["jobs"]] == ["keep", "start"]


@pytest.mark.parametrize(
    "own",
    [{"seconds_per_epoch": {"H100x1": 300.0}}, {"memory_gib": 1000.0}, {"seconds_per_epoch": {}}],
    ids=["drained", "memory", "none"],
)
def test_a_job_that_fits_nothing_now_waits_and_the_others_go_on(own: dict[str, Any]):
    request = with_second(**own) | {"cluster": on_nodes(V1)["cluster"]}
    alone = answer_to(request | {"jobs": request["jobs"][:1]})
    answer = answer_to(request)
    assert answer["jobs"] == [*alone["jobs"], WAITS]
    assert (answer["running"], answer["waiting"]) == (1, 1)


def test_a_job_beyond_the_quota_of_its_tenant_waits():
    request = with_second(tenant="small", seconds_per_epoch={"V100x2": 480.0})
    request["jobs"][0] = request["jobs"][0] | {"tenant": "large"}
    tenants = [{"name": "large", "cells": [["V100", 4, 1]]}, {"name": "small", "cells": [["V100", 1, 1]]}]
    request["cluster"] = request["cluster"] | {"tenants": tenants, "tenancy": "quota"}
    assert answer_to(request)["jobs"][1] == WAITS


def test_if_none_fits_all_wait_and_memory_goes_on():
    before = answer_to(REQUEST)["memory"]
    jobs = [with_second(seconds_per_epoch={"H100x1": 300.0})["jobs"][1]]
    answer = answer_to(on_nodes(V1) | {"jobs": jobs, "memory": before})
    assert (answer["jobs"], answer["running"], answer["waiting"], answer["memory"]) == ([WAITS], 0, 1, before)


def test_what_a_job_holds_must_be_there():
    first = REQUEST["jobs"][0] | {"seconds_per_epoch": {"H100x1": 300.0}}
    with refused("jobs[0].running.configuration", "V100x2"):
        answer_to(on_nodes(V1) | {"jobs": [first]})


@settings(max_examples=30, deadline=None)
@example(seed=3647)  # memory of shared GPUs that moves
@given(seed=st.integers(0, 10_000))
def test_what_fits_is_what_an_instance_leaves_open(seed: int):
    instance, rng = mixed_instance(seed), np.random.default_rng(seed)
    request = cluster_part(instance) | {"policy": "edf", "now_s": 0.0, "jobs": []}
    request = DecideRequest.model_validate_json(json.dumps(request))
    shape = instance.jobs.seconds_per_epoch.shape
    seconds = np.where(rng.random(shape) < 0.3, 1.0, np.inf)
    seconds[:, 0] = 1.0
    jobs = replace(instance.jobs, seconds_per_epoch=seconds, memory_gib=rng.choice([1.0, 5.0, 9.0, 17.0], shape[0]))
    found = usable(request, ClusterNames.of(request), seconds, jobs.memory_gib, instance.jobs.tenant)
    try:
        made = replace(instance, jobs=jobs)
    except InputError:
        assert not found.any(axis=1).all()
    else:
        np.testing.assert_array_equal(found, np.isfinite(made.jobs.seconds_per_epoch))
