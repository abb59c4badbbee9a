"""Flat observations are the parts end to end, bit for bit, in both environments."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv
from gpusched_env.observation import JOBS_FEATURES, PARTS
from refusals import refused
from vector_twins import Twins, assert_same, few_jobs


def flat_of(observation: dict[str, np.ndarray]) -> np.ndarray:
    return np.concatenate([observation[part] for part in PARTS if part in observation], axis=-1)


ROWS = {"job_features": 2}


@pytest.mark.parametrize("more", [{}, {"shared_features": True}, ROWS])
def test_a_flat_observation_is_the_parts_end_to_end(more):
    parts, flat = (GpuClusterEnv(few_jobs(4), flat=each, **more) for each in (False, True))
    one, info = parts.reset(seed=3)
    other, _ = flat.reset(seed=3)
    rng, over = np.random.default_rng(0), False
    while not over:
        assert_same(flat_of(one), other)
        assert flat.observation_space.contains(other)
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        one, reward, over, _, info = parts.step(action)
        other, other_reward, *_, other_info = flat.step(action)
        assert (reward, info["total_energy_eur"]) == (other_reward, other_info["total_energy_eur"])
    assert_same(flat_of(one), other)


@pytest.mark.parametrize("more", [{}, ROWS])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_compiled_vector_environment_is_flat_as_single_ones_are(mode, more):
    twins = Twins([few_jobs(3), few_jobs(5, 3)], 4, mode, flat=True, **more)
    twins.play(80, np.random.default_rng(1), twins.reset(seed=2))
    assert twins.episodes > 3
    assert_same(twins.native.observations(), np.stack([_present(env.unwrapped) for env in twins.sync.envs]))


def test_every_number_of_a_flat_observation_has_a_name():
    env = GpuClusterEnv("tiny", flat=True)
    names = env.feature_names
    assert env.observation_space.shape == (len(names),) == (len(set(names)),)
    env.reset(seed=0)
    observation, *_ = env.step(0)
    named = dict(zip(names, observation.tolist(), strict=True))
    assert named["job: epochs done / maximum epochs"] == 0.0
    placeable = [named[f"options[{c.name}]: 1 if it can be placed now"] for c in env.configurations]
    assert placeable == env.action_masks()[1:].tolist()
    assert named["cluster[V100]: free GPUs / GPUs of the type"] == 1.0
    shared = GpuClusterVectorEnv(2, "tiny", flat=True, shared_features=True)
    assert shared.single_observation_space.shape == (len(shared.feature_names),)
    assert len(shared.feature_names) == len(names) + 4 * len(env.configurations)
    rows = GpuClusterEnv("tiny", flat=True, job_features=2)
    assert rows.feature_names[: len(names)] == names
    assert rows.feature_names[len(names) :] == tuple(f"jobs[{k}]: {name}" for k in range(2) for name in JOBS_FEATURES)
    assert rows.observation_space.shape == (len(rows.feature_names),)


@pytest.mark.parametrize("make", [GpuClusterEnv, lambda **rest: GpuClusterVectorEnv(2, **rest)])
def test_flat_is_true_or_false(make):
    with refused("flat", 1):
        make(scenario="tiny", flat=1)


def _present(env: GpuClusterEnv) -> np.ndarray:
    return env._observe()[0]
