"""The spec of an agent, and the clusters that it refuses."""

from __future__ import annotations

import pytest

from agent_folders import GPU_TYPES, SEVERAL, SHARED, SINGLE, spec
from gpusched_agents.spec import AgentSpec
from gpusched_env import GpuClusterEnv
from gpusched_env.model import Configuration, GpuType
from gpusched_env.observation import JOB_FEATURES, OPTION_FEATURES
from refusals import ANY, refused

A_THIRD_TYPE = GpuType("A100", 400.0, 300.0, 40.0, 2)
A_FOURTH_TYPE = GpuType("H100", 700.0, 300.0, 80.0, 2)


def test_a_spec_is_taken_from_what_an_environment_has():
    env = GpuClusterEnv("tiny", job_order="due", preemption=False)
    made = AgentSpec.of("mlp", env.configurations, env.instance.gpu_types, job_order="due", preemption=False)
    made.check(env.configurations, env.instance.gpu_types)
    assert made.max_configurations == len(env.configurations) == env.action_space.n - 1
    assert made.kinds == ("single-node",)
    assert env.observation_space["options"].shape == (made.max_configurations * len(made.option_features),)
    assert (made.asking.job_order, made.asking.preemption) == ("due", False)


def test_kinds_are_those_of_the_configurations_in_training():
    assert spec().kinds == ("single-node",)
    assert AgentSpec.of("set", (SHARED, *SINGLE, SEVERAL), GPU_TYPES).kinds == ("single-node", "multi-node", "shared")


def test_a_set_takes_other_configurations_and_gpu_types_up_to_its_most():
    other = (GpuType("A", 1.0, 1.0, 1.0), GpuType("B", 1.0, 1.0, 1.0), A_THIRD_TYPE)
    spec().check([Configuration("A", gpus) for gpus in range(1, 7)], other)
    spec().check(SINGLE[:1], GPU_TYPES[:1])


def seven() -> list[Configuration]:
    return [Configuration("V100", gpus) for gpus in range(1, 8)]


@pytest.mark.parametrize(
    ("trained", "configurations", "gpu_types", "error"),
    [
        (spec(), seven(), GPU_TYPES, ("instance.configurations", "7 of them", "at most 6")),
        (spec(), SINGLE, (*GPU_TYPES, A_THIRD_TYPE, A_FOURTH_TYPE), ("instance.gpu_types", "4 of them", "at most 3")),
        (spec(), (*SINGLE, SHARED), GPU_TYPES, ("instance.configurations", "V100x0.5 (shared)", "single-node")),
        (spec(), (*SINGLE, SEVERAL), GPU_TYPES, ("instance.configurations", "2*T4x2 (multi-node)", "single-node")),
        (spec("mlp"), SINGLE[:3], GPU_TYPES, ("instance.configurations", ANY, "T4x1, T4x2, V100x1, V100x2")),
        (spec("mlp"), SINGLE[::-1], GPU_TYPES, ("instance.configurations", ANY, "in their order")),
        (spec("mlp"), SINGLE, GPU_TYPES[::-1], ("instance.gpu_types", ["V100", "T4"], "T4, V100")),
    ],
)
def test_a_cluster_that_does_not_fit_is_refused_with_what_would(trained, configurations, gpu_types, error):
    with refused(*error):
        trained.check(configurations, gpu_types)


@pytest.mark.parametrize(
    ("features", "value"),
    [
        ({"option_features": OPTION_FEATURES[:-1]}, f"without {OPTION_FEATURES[-1]!r}"),
        ({"job_features": (*JOB_FEATURES, "the answer")}, "with 'the answer'"),
        ({"job_features": (JOB_FEATURES[1], JOB_FEATURES[0], *JOB_FEATURES[2:])}, "in another order"),
    ],
)
def test_an_agent_of_another_version_of_the_observation_is_refused(features, value):
    with refused(f"agent's {next(iter(features))}", value, "train it again"):
        spec(**features).check(SINGLE, GPU_TYPES)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("network", "transformer"),
        ("configurations", ()),
        ("configurations", ("a", "a")),
        ("gpu_types", ("",)),
        ("gpu_types", "V100"),
        ("kinds", ("odd",)),
        ("max_configurations", 3),
        ("max_configurations", True),
        ("max_gpu_types", 2**31),
        ("job_order", "whim"),
        ("preemption", 1),
        ("due_date_timers", None),
        ("milestones", -1),
        ("asking", {"milestones": 0}),
        ("idle_review_s", 0.0),
        ("idle_review_s", float("nan")),
        ("queue_features", ("x", 3)),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_name(field, value):
    with refused(field):
        spec(**{field: value})


def test_an_mlp_takes_no_more_than_in_training():
    with refused("max_configurations", 5, "exactly 4"):
        spec("mlp", max_configurations=5)
