"""Names that cluster managers have for GPU types mean built-in ones, in requests and in those of the published form."""

import json
from functools import partial
from typing import Any

import pytest

from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.forecasting import ForecastRequest, WhatIfFields, _changed
from gpusched_operations.service.gpu_names import suggestion
from gpusched_operations.service.pool import reply_to
from gpusched_operations.service.published_form import reply_in_form
from gpusched_operations.service.published_request import request_of
from refusals import refused

DECIDER = Decider(PolicyCatalogue.of("edf"), b"a key")
SXM, PCIE = "NVIDIA-A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB"
APPLICATION = "resnet50-imagenet-bs64"


def request(types: list[Any], nodes: list[str], **job: Any) -> dict[str, Any]:
    """Ask about one job on nodes of 8 GPUs of some types."""
    plain = {"id": "1", "submission_s": 0.0, "due_s": 1e6, "tardiness_weight_eur_per_s": 0.002}
    return {
        "policy": "edf",
        "now_s": 100.0,
        "cluster": {
            "gpu_types": types,
            "nodes": [{"name": f"n{k}", "gpu_type": name, "gpus": 8} for k, name in enumerate(nodes)],
        },
        "jobs": [{**plain, "application": APPLICATION, **job}],
    }


def decided(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of the one job."""
    return json.loads(DECIDER(json.dumps(fields).encode()))["jobs"][0]


def as_on_a100(given: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an answer about A100 with another name of them."""
    return json.loads(json.dumps(given).replace("A100", name))


@pytest.mark.parametrize("name", [SXM, PCIE, "nvidia_a100-sxm4-80gb", "a100", "gpu:a100"])
def test_a_type_with_the_name_of_a_manager_is_like_the_built_in_one(name: str) -> None:
    plain = decided(request(["A100"], ["A100"]))
    assert plain["gpu_type"] == "A100"
    assert plain["action"] == "start"
    assert decided(request([name], [name])) == as_on_a100(plain, name)
    assert decided(request(["A100"], [name])) == plain
    assert decided(request([name], ["A100"])) == as_on_a100(plain, name)


def test_two_names_of_one_built_in_type_are_two_types() -> None:
    answer = decided(request([SXM, PCIE], [SXM, PCIE], running=None, seconds_per_epoch={PCIE: [9.0]}, max_epochs=2.0))
    assert (answer["configuration"], answer["nodes"]) == (f"{PCIE}x1", ["n1"])
    with refused("cluster.nodes[0].gpu_type", "A100", f"one of {SXM}, {PCIE}"):
        DECIDER(json.dumps(request([SXM, PCIE], ["A100"])).encode())


@pytest.mark.parametrize("name", ["A100", SXM])
def test_times_configurations_and_what_jobs_hold_may_have_another_name(name: str) -> None:
    own = {"seconds_per_epoch": {"A100x2": 9.0}, "max_epochs": 5.0, "epochs_done": 1.0}
    running = {"configuration": "A100x2", "nodes": ["n0"], "since_s": 50.0}
    plain, named = (request([each], [each], **own, running=running) for each in ("A100", SXM))
    answer = decided(plain | {"configurations": ["A100x2"]})
    assert answer["configuration"] == "A100x2"
    assert decided(named | {"configurations": [f"{name}x2"]}) == as_on_a100(answer, SXM)
    twice = request([SXM], [SXM], seconds_per_epoch={"A100x2": 9.0, f"{SXM}x2": 8.0}, max_epochs=5.0)
    with refused(f"jobs[0].seconds_per_epoch.{SXM}x2", 8.0, "each configuration once"):
        decided(twice)


def test_promises_to_tenants_and_nodes_of_a_forecast_may_have_another_name() -> None:
    fields = request([SXM], [SXM], tenant="t")
    fields["cluster"] |= {"tenancy": "quota", "tenants": [{"name": "t", "cells": [["A100", 4, 1]]}]}
    answer = decided(fields)
    assert (answer["action"], answer["gpu_type"]) == ("start", SXM)
    assert answer["gpus_per_node"] <= 4
    what = WhatIfFields(name="more", nodes_more=[{"gpu_type": "A100", "count": 1}])
    changed = _changed(ForecastRequest.model_validate(fields), what, 10)
    assert [(node.gpu_type, node.gpus) for node in changed.cluster.nodes] == [(SXM, 8), (SXM, 8)]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("NVIDIA-A100X", '{"name": "NVIDIA-A100X", "like": "A100"}'),
        ("NVIDIA-A100-MIG-1g.5gb", '{"name": "NVIDIA-A100-MIG-1g.5gb", "part_of": "A100"}'),
        ("TPU", '{"name": "TPU", "like": "..."}'),
        ("2*A100", '{"name": "2*A100", "like": "A100"}'),
    ],
)
def test_a_name_that_means_no_built_in_type_is_refused_with_what_to_give(name: str, given: str) -> None:
    assert suggestion(name) == given
    reply = reply_to(DECIDER, json.dumps(request([name], [name])).encode())
    error = json.loads(reply.body)
    assert (reply.status, error["field"], error["value"]) == (422, "cluster.gpu_types[0]", name)
    assert error["allowed"].endswith(f"a name with one of these as a word, or {given}")


def form(node: str, profile: str, costs: str, held: str | None = None) -> dict[str, Any]:
    """Make a request in the published form about a job on two of four GPUs."""
    job = {
        "SubmissionTime": "Tue 21 Jul 2020, 17.56.59", "Deadline": "Thu 23 Jul 2020, 19.34.15", "Priority": 5,
        "Epochs": "1000", "ProfilingData": {profile: {"2": 60.0}},
    }  # fmt: skip
    scheduled = {} if held is None else {"j": {"node": "n", "nGPUs": 2, "GPUtype": held}}
    return {
        "jobs": {"j": job}, "nodes": {"n": {"GPUtype": node, "free_nGPUs": 4 - 2 * len(scheduled), "total_nGPUs": 4}},
        "GPUcosts": {costs: {"1": 1.0, "4": 4.0}}, "currentTime": "Wed 22 Jul 2020, 14.34.39", "method": "EDF",
        "currentScheduling": scheduled,
    }  # fmt: skip


IN_FORM = partial(reply_in_form, decide=partial(reply_to, DECIDER))


@pytest.mark.parametrize("names", [(SXM, "A100", "A100"), ("A100", SXM, PCIE), (SXM, SXM, "a100")])
def test_nodes_times_and_costs_of_the_published_form_may_name_a_type_differently(names: tuple[str, str, str]) -> None:
    plain, named = (IN_FORM(json.dumps(form(*each)).encode()) for each in (("A100",) * 3, names))
    assert plain.status == 201
    assert json.loads(plain.body)["jobs"]["j"]["nGPUs"] == 2
    assert (named.status, named.body) == (plain.status, plain.body)
    (job,) = request_of(form(*names, held="A100"))["jobs"]
    assert job["running"]["configuration"] == f"{names[0]}x2"


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        ((SXM, "V100", "A100"), 454, f"the job j has no time on a GPU type of the nodes ({SXM}); it has times on V100"),
        ((SXM, "A100", "V100"), 484, f"GPUcosts has no costs of {SXM}; it has those of V100"),
    ],
)
def test_what_names_another_type_in_the_published_form_is_refused_with_the_names_there(
    names: tuple[str, str, str], code: int, said: str
) -> None:
    reply = IN_FORM(json.dumps(form(*names)).encode())
    assert (reply.status, json.loads(reply.body)["error"]) == (code, said)
