"""The spec of an agent, and the clusters that it refuses."""

import pytest

from agent_folders import GPU_TYPES, SEVERAL, SHARED, SINGLE, spec
from gpusched_agents.spec import FEATURES, AgentSpec
from gpusched_env import GpuClusterEnv
from gpusched_env.model import Configuration, GpuType
from refusals import refused

A_THIRD_TYPE = GpuType("A100", 400.0, 300.0, 40.0, 2)
A_FOURTH_TYPE = GpuType("H100", 700.0, 300.0, 80.0, 2)


def test_a_spec_is_taken_from_what_an_environment_has_and_takes_others_up_to_its_most():
    env = GpuClusterEnv("tiny")
    made = AgentSpec.of("controls", env.configurations, env.instance.gpu_types)
    made.check(env.configurations, env.instance.gpu_types)
    assert made.max_configurations == len(env.configurations) == env.action_space.n - 1
    assert made.kinds == ("single-node",)
    assert made.max_gpu_types == len(env.instance.gpu_types)
    assert spec().kinds == ("single-node",)
    assert AgentSpec.of("controls", (SHARED, *SINGLE, SEVERAL), GPU_TYPES).kinds == (
        "single-node",
        "multi-node",
        "shared",
    )
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
        (spec("controls"), SINGLE, GPU_TYPES[:1], ("instance.gpu_types", "1 of them", "exactly 2")),
        (spec("controls"), SINGLE, (*GPU_TYPES, A_THIRD_TYPE), ("instance.gpu_types", "3 of them", "exactly 2")),
    ],
)
def test_a_cluster_that_does_not_fit_is_refused_with_what_would(trained, configurations, gpu_types, error):
    with refused(*error):
        trained.check(configurations, gpu_types)


JOBS, OPTIONS = FEATURES["job_features"], FEATURES["option_features"]


@pytest.mark.parametrize(
    ("features", "value"),
    [
        ({"option_features": OPTIONS[:-1]}, f"without {OPTIONS[-1]!r}"),
        ({"job_features": (*JOBS, "the answer")}, "with 'the answer'"),
        ({"job_features": (JOBS[1], JOBS[0], *JOBS[2:])}, "in another order"),
    ],
)
def test_an_agent_of_another_version_of_the_observation_is_refused(features, value):
    with refused(f"agent's {next(iter(features))}", value, "train it again"):
        spec(**features).check(SINGLE, GPU_TYPES)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("network", "transformer"),
        ("network", "set"),
        ("configurations", ()),
        ("configurations", ("a", "a")),
        ("gpu_types", ("",)),
        ("gpu_types", "V100"),
        ("kinds", ("odd",)),
        ("max_configurations", 3),
        ("max_configurations", True),
        ("max_gpu_types", 2**31),
        ("queue_features", ("x", 3)),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_its_name(field, value):
    with refused(field):
        spec(**{field: value})


def test_controls_take_no_other_number_of_gpu_types_than_in_training():
    with refused("max_gpu_types", 3, "exactly 2"):
        spec("controls", max_gpu_types=3)
