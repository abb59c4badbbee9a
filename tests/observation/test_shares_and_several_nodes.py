"""Observations where GPUs can be shared and jobs can take two nodes; `test_observation_by_hand.py` has their values."""

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from gpusched_env import GpuClusterEnv, Scenario, load_scenario


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
