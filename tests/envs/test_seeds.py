"""The seeds that episodes go round in place of drawn ones: named ones, or a list."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from gpusched_baselines.adaptation_env import GpuAdaptationEnv, GpuAdaptationVectorEnv
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, Instance, load_scenario, make_instance
from gpusched_env.workload import Scenario, load_track
from refusals import refused
from vector_twins import few_jobs, random_actions

FEW = {"jobs.count": 2}
SINGLE = pytest.mark.parametrize("kind", [GpuClusterEnv, GpuAdaptationEnv])
VECTOR = pytest.mark.parametrize("kind", [GpuClusterVectorEnv, GpuAdaptationVectorEnv])


def seed_of(env: gymnasium.Env[Any, Any], among: Any = range(40)) -> int:
    """Return the seed of the workload that an environment runs now."""
    inner: Any = env.unwrapped
    return next(seed for seed in among if make_instance(inner.scenario_of_test, seed) == inner.instance)


def made(kind: type, scenario: Scenario, **keywords: Any) -> Any:
    env = kind(scenario, **keywords)
    env.scenario_of_test = scenario
    return env


@SINGLE
def test_resets_without_a_seed_go_round_the_list_and_a_seed_chooses_where(kind: type):
    env = made(kind, few_jobs(), seeds=[7, 3, 9])
    assert [(env.reset(), seed_of(env))[1] for _ in range(5)] == [7, 3, 9, 7, 3]
    for seed, expected in ((3, [3, 9, 7]), (5, [9, 7, 3]), (20_000, [9, 7, 3]), (20_001, [7, 3, 9])):
        first, *rest = expected
        env.reset(seed=seed)
        assert seed_of(env) == first
        assert [(env.reset(), seed_of(env))[1] for _ in rest] == rest
    env.reset(options={"instance": make_instance(few_jobs(), 20)})
    assert seed_of(env) == 20
    env.reset()
    assert seed_of(env) == 7
    check_env(kind(few_jobs(), seeds=[7, 3]), skip_render_check=True)


@pytest.mark.parametrize(
    ("scenario", "name", "expected"),
    [
        ("slack", "validation", range(20_000, 20_005)), ("track:slack", "test", range(30_000, 30_020)),
        ("slack", "training", range(100_000, 110_000)), (load_scenario("busy"), "test", range(30_000, 30_020)),
        ("published-1", "test", range(30_000, 30_100)), ("tiny", "validation", range(500, 505)),
        ("tiny", "test", range(40)), ("tiny", "training", range(100_000, 110_000)),
        (few_jobs(**{"compare.seeds": "3,1"}), "test", (3, 1)),
    ],
)  # fmt: skip
def test_names_stand_for_the_seeds_of_the_track_or_of_scenarios(scenario, name, expected):
    assert GpuClusterEnv(scenario, seeds=name).seeds.seeds == tuple(expected)


@pytest.mark.parametrize("kind", ["", "Flat", "Adaptation"])
def test_every_id_of_a_track_takes_them(kind: str):
    env = gymnasium.make(f"gpusched_env/Slack{kind}-v0", settings=FEW, seeds="validation")
    track = load_track("slack")
    for seed in (*track.seeds("validation")[:5], 20_000):
        env.reset()
        assert env.unwrapped.instance == make_instance(track.scenario.replace(FEW), seed)


@cache
def known(jobs: int) -> dict[bytes, int]:
    """Return the seeds of the first workloads by their times of submission and due dates."""
    return {mark(make_instance(few_jobs(jobs), seed)): seed for seed in range(5)}


def mark(instance: Instance) -> bytes:
    return instance.jobs.submission_s.tobytes() + instance.jobs.due_s.tobytes()


def seeds_of(envs: Any, steps: int, rng: np.random.Generator) -> list[list[int]]:
    """Return the seeds of the first episodes of each environment, of those that begin within so many steps."""
    found: list[list[int]] = [[] for _ in range(envs.num_envs)]
    for _ in range(steps):
        inner = envs.instances if isinstance(envs, GpuClusterVectorEnv) else [e.unwrapped.instance for e in envs.envs]
        for i, (seeds, instance) in enumerate(zip(found, inner, strict=True)):
            seed = known(2 + i % envs.kinds)[mark(instance)]
            if seeds[-1:] != [seed]:
                seeds.append(seed)
        actions = envs.action_space.sample()
        if isinstance(envs, GpuClusterVectorEnv):
            actions = random_actions(envs.action_masks(), rng)
        envs.step(actions)
    return found


@VECTOR
@pytest.mark.parametrize(("size", "kinds"), [(2, 1), (4, 2)])
def test_environments_share_the_list_and_go_on_from_a_state(kind: type, size: int, kinds: int):
    scenarios = [few_jobs(2 + k) for k in range(kinds)]
    steps, more = (80, {}) if kind is GpuClusterVectorEnv else (24, {"reward": "cost", "rounds": 4})
    mode = AutoresetMode.SAME_STEP
    envs, other = (kind(size, scenarios, seeds=range(5), autoreset_mode=mode, **more) for _ in range(2))
    envs.kinds = other.kinds = kinds
    envs.reset()
    rng = np.random.default_rng(0)
    found = seeds_of(envs, steps, rng)
    for i, seeds in enumerate(found):
        place, step = i // kinds, size // kinds
        assert len(seeds) > 3
        assert seeds == [(place + k * step) % 5 for k in range(len(seeds))]
    other.reset(seed=3)
    other.set_state(envs.get_state())
    for env in (envs, other):
        env.action_space.seed(0)
    one, two = (seeds_of(env, steps, copy.deepcopy(rng)) for env in (envs, other))
    assert one == two
    envs.reset(seed=4)
    assert [seeds[0] for seeds in seeds_of(envs, 1, rng)] == [(4 + i) % 5 for i in range(size)]


@pytest.mark.parametrize("kind", [GpuClusterEnv, GpuAdaptationEnv, GpuClusterVectorEnv, GpuAdaptationVectorEnv])
@pytest.mark.parametrize("seeds", ["valid", [], 3, [1, 1]])
def test_what_are_no_seeds_is_named(kind: type, seeds: Any):
    with refused("seeds", seeds, "training, validation, test"):
        kind(scenario="tiny", seeds=seeds)


@SINGLE
def test_a_seed_out_of_its_range_an_instance_and_a_number_of_workloads_are_refused(kind: type):
    with refused("seeds[1]", -1):
        kind("tiny", seeds=[0, -1])
    with refused("seeds", "test", "none together with an instance"):
        kind(instance=make_instance(few_jobs(), 0), seeds="test")
    if kind is GpuAdaptationEnv:
        with refused("workloads", 3, "not given together with seeds"):
            kind("tiny", seeds="test", workloads=3)
