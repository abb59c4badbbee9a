"""The further features for shared clusters: what they say, and that they change nothing else, in both environments."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_env import (
    ENVIRONMENT_ID,
    GpuClusterEnv,
    GpuClusterVectorEnv,
    Scenario,
    Synchronisation,
    load_scenario,
)
from gpusched_env.observation import CO_RUNNER_FEATURES, OPTION_FEATURES
from gpusched_env.simulator import layout as at
from helpers import helped_instance
from instances import by_utilisation, random_instance
from refusals import refused

WIDE, NARROW = len(OPTION_FEATURES) + len(CO_RUNNER_FEATURES), len(OPTION_FEATURES)
SPEED_NOW, PRIORITY, SWITCH, OPPORTUNISTIC = range(NARROW, WIDE)


def shared_instance(seed: int):
    instance = by_utilisation(random_instance(seed, jobs=15, kinds=True, span_s=200.0))
    rng = np.random.default_rng(seed)
    start, resume = rng.uniform(0.0, 5.0, (2, len(instance.jobs)))
    jobs = replace(instance.jobs, start_s=start, resume_s=resume, opportunistic=rng.random(len(start)) < 0.5)
    return replace(instance, jobs=jobs)


@pytest.mark.parametrize("seed", range(3))
def test_they_stand_behind_the_others_and_say_what_would_happen_now(seed):
    instance = shared_instance(seed)
    plain, wide = GpuClusterEnv(instance=instance), GpuClusterEnv(instance=instance, shared_features=True)
    (seen, info), (more, _) = plain.reset(seed=0), wide.reset(seed=0)
    rng, done, paces = np.random.default_rng(seed), False, set()
    while not done:
        rows = more["options"].reshape(-1, WIDE)
        np.testing.assert_array_equal(rows[:, :NARROW], seen["options"].reshape(-1, NARROW))
        assert wide.observation_space.contains(more)
        for c in np.flatnonzero(info["action_mask"][1:]):
            assert rows[c, SPEED_NOW] == np.float32(wide.view.speed_now(info["job"], int(c)))
            assert rows[c, PRIORITY] == np.float32(instance.configurations[c].priority / 9)
            assert rows[c, OPPORTUNISTIC] == instance.jobs.opportunistic[info["job"]]
            paces.add(float(rows[c, SPEED_NOW]))
        if np.isnan(
            wide.view.jobs[info["job"], at.START_S]
        ):  # it has not started: a start costs the same wherever it is
            assert len(set(rows[np.isfinite(wide.view.tau[info["job"]]), SWITCH])) == 1
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        seen, *_, info = plain.step(action)
        more, _, done, _, _ = wide.step(action)
    assert len(paces) > 2


def test_on_several_nodes_the_speed_says_what_the_network_gives_now():
    instance = helped_instance(1, jobs=15, span_s=200.0)
    own = replace(instance.of(Synchronisation), core_nodes=4.0, cpu_machines=2)
    instance, types = instance.with_mechanisms(own), instance.type_of_configuration.tolist()
    least = own.least_slowdowns(instance.configurations, types, len(instance.nodes))
    env = GpuClusterEnv(instance=instance, shared_features=True)
    seen, info = env.reset(seed=0)
    rng, done, speeds = np.random.default_rng(0), False, set()
    while not done:
        rows, application = seen["options"].reshape(-1, WIDE), int(env.view.jobs[info["job"], at.APPLICATION])
        assert env.observation_space.contains(seen)
        for c in np.flatnonzero(info["action_mask"][1:]):
            if instance.configurations[c].nodes > 1:
                expected = env.view.speed_now(info["job"], int(c)) * least[application, c]
                assert rows[c, SPEED_NOW] == pytest.approx(expected, rel=1e-6)
                speeds.add(float(rows[c, SPEED_NOW]))
        seen, _, done, _, info = env.step(int(rng.choice(np.flatnonzero(info["action_mask"]))))
    assert len(speeds) > 5


def test_the_vector_environment_shows_the_same():
    instances = [shared_instance(0)] * 3
    envs = GpuClusterVectorEnv(3, instance=instances, shared_features=True, autoreset_mode="Disabled")
    single = GpuClusterEnv(instance=instances[0], shared_features=True)
    (seen, infos), (one, _) = envs.reset(seed=0), single.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        assert seen["options"].shape == (3, len(instances[0].configurations) * WIDE)
        np.testing.assert_array_equal(seen["options"][1], one["options"])
        action = int(rng.choice(np.flatnonzero(infos["action_mask"][0])))
        seen, _, ended, _, infos = envs.step([action] * 3)
        one, *_ = single.step(action)
        if ended.any():
            break
    state = envs.get_state()
    envs.set_state(state)
    np.testing.assert_array_equal(envs.observations()["options"], seen["options"])


def test_they_are_asked_for_by_gym_make_and_are_true_or_false():
    env = gymnasium.make(f"gpusched_env:{ENVIRONMENT_ID}", scenario="tiny", shared_features=True)
    assert env.observation_space["options"].shape[0] % WIDE == 0
    with refused("shared_features", 1):
        GpuClusterEnv("tiny", shared_features=1)


def scenario() -> Scenario:
    settings = {
        "cluster.gpu_types": ("T4",),
        "cluster.nodes": 3,
        "jobs.gpu_counts": (1, 2),
        "jobs.node_counts": (1, 2),
        "sharing.fractions": (0.5, 0.25),
    }
    return load_scenario("tiny").replace(settings)


@pytest.mark.parametrize("preemption", [True, False])
def test_observations_stay_in_their_space_whatever_is_shared_and_taken(preemption):
    kinds = {"cluster.nodes": 6, "jobs.count": 25, "jobs.node_counts": (1, 2)}
    shares = {"sharing.fractions": (0.5, 0.25), "due_dates.slack": 0.1}
    env = GpuClusterEnv(load_scenario("tiny").replace(kinds | shares), preemption=preemption)
    chosen = set()
    for seed in range(4):
        rng = np.random.default_rng(seed)
        observation, info = env.reset(seed=seed)
        over = False
        while not over:
            assert env.observation_space.contains(observation)
            action = any_action(env, info["action_mask"], rng)
            if info["action_mask"][action]:
                chosen.add(env.configurations[action - 1].kind if action > 0 else "wait")
            observation, _, over, _, info = env.step(action)
        assert env.observation_space.contains(observation)
    assert chosen == {"wait", "single-node", "shared", "multi-node"}


def any_action(env: GpuClusterEnv, mask: np.ndarray, rng: np.random.Generator) -> int:
    """Choose a kind and then one of its configurations; one time in four any action, allowed or not."""
    by_kind: dict[str, list[int]] = {}
    for action in np.flatnonzero(mask).tolist():
        by_kind.setdefault(env.configurations[action - 1].kind if action > 0 else "wait", []).append(action)
    if rng.random() < 0.25:
        return int(rng.integers(len(mask)))
    return int(rng.choice(by_kind[rng.choice(sorted(by_kind))]))


def test_the_checker_of_gymnasium_finds_nothing():
    check_env(GpuClusterEnv(scenario(), render_mode="ansi"), skip_render_check=True)
