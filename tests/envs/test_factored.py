"""Actions of two numbers, the GPUs and their power limit: what they mean, their masks, and vector environments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from gpusched_env import GpuClusterEnv, Instance
from gpusched_env.envs.factored import FactoredActions
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.model import Configuration
from gpusched_env.simulator import layout as at
from instances import HOUR, three_jobs
from refusals import refused
from vector_twins import Twins

CONFIGURATIONS = tuple(
    Configuration(name, gpus, power_limit=limit)
    for name, limits in (("V", (1.0, 0.85, 0.7)), ("W", (1.0, 0.7)))
    for gpus in (1, 2)
    for limit in limits
)
NAMES = [c.name for c in CONFIGURATIONS]


def limited(limits: tuple[float, ...] = (1.0, 0.7, 0.5)) -> Instance:
    """Return the three jobs with power limits that make them slower."""
    plain = three_jobs()
    configurations = tuple(replace(c, power_limit=limit) for c in plain.configurations for limit in limits)
    seconds = plain.jobs.seconds_per_epoch
    factors = np.tile([1.5 - 0.5 * limit for limit in limits], seconds.shape[1])
    slower = np.repeat(seconds, len(limits), axis=1) * factors
    jobs = replace(plain.jobs, seconds_per_epoch=slower)
    return replace(plain, configurations=configurations, jobs=jobs)


def chosen(action: tuple[int, int], allowed: list[str]) -> str:
    """Return the name of the configuration of an action when only some can be placed; empty for wait."""
    mask = np.array([True, *(name in allowed for name in NAMES)])
    index = FactoredActions(CONFIGURATIONS).indices([action], mask[None], np.ones(1, dtype=bool))[0]
    return NAMES[index - 1] if index else ""


def test_the_first_number_is_the_gpus_and_the_second_the_limit():
    actions = FactoredActions(CONFIGURATIONS)
    assert [each.name for each in actions.placements] == ["Vx1", "Vx2", "Wx1", "Wx2"]
    assert actions.limits == (1.0, 0.85, 0.7)
    assert actions.space == spaces.MultiDiscrete([5, 3])
    assert chosen((1, 0), NAMES) == "Vx1"
    assert chosen((2, 1), NAMES) == "Vx2@0.85"
    assert chosen((4, 2), NAMES) == "Wx2@0.7"
    assert chosen((0, 2), NAMES) == ""


def test_the_limit_is_the_largest_up_to_the_chosen_one_that_can_be_placed_else_the_least_above():
    assert chosen((3, 1), NAMES) == "Wx1@0.7"  # W has no limit of 0.85
    assert chosen((1, 0), ["Vx1@0.85", "Vx1@0.7"]) == "Vx1@0.85"  # as under a cap
    assert chosen((1, 1), ["Vx1@0.7", "Vx1"]) == "Vx1@0.7"
    assert chosen((1, 2), ["Vx1@0.85", "Vx1"]) == "Vx1@0.85"


@pytest.mark.parametrize("seed", range(5))
def test_whatever_both_masks_allow_can_be_placed_and_nothing_else(seed):
    actions, rng = FactoredActions(CONFIGURATIONS), np.random.default_rng(seed)
    mask = np.array([True, *(rng.random(len(NAMES)) < 0.3)])
    both = actions.masks(mask)
    assert both.shape == (5 + 3,)
    for first in range(5):
        for second in range(3):
            index = actions.indices([[first, second]], mask[None], np.ones(1, dtype=bool))[0]
            assert mask[index] == bool(both[first] and both[5 + second])
            assert (index == 0) == (first == 0)


def test_an_episode_takes_both_numbers_and_shows_both_masks():
    env = GpuClusterEnv(instance=limited(), factored=True)
    _, info = env.reset(seed=0)
    names = [c.name for c in env.configurations]
    assert env.action_space == spaces.MultiDiscrete([3, 3])
    assert info["action_mask"].tolist() == env.action_masks().tolist() == [1] * 6
    job = env.job
    env.step(np.array([1, 2]))
    assert names[int(env.view.jobs[job, at.CONFIG])] == "Vx1@0.5"


def test_a_cap_leaves_a_lower_limit_in_place_of_the_chosen_one():
    """1 kW for one GPU of 900 W in full, 0.73 kW at 0.7, 0.55 kW at 0.5: under 1.6 kW a second job gets at most 0.5."""
    env = GpuClusterEnv(instance=limited().with_mechanisms(PowerCap((0.0,), (1.6,))), factored=True)
    env.reset(seed=0)
    names, jobs = [c.name for c in env.configurations], [env.job]
    env.step([1, 0])
    jobs.append(env.job)
    _, _, _, _, info = env.step([1, 0])
    held = [names[int(env.view.jobs[job, at.CONFIG])] for job in jobs]
    assert held[0] == "Vx1"
    assert held[1] in {"Vx1@0.7", "Vx1@0.5"}
    assert info["invalid_actions"] == 0


def test_a_vector_environment_takes_pairs_as_single_ones_do():
    twins, rng = Twins(None, 3, instance=limited(), factored=True, limit_features=True), np.random.default_rng(0)
    twins.reset(seed=1)
    for _ in range(60):
        twins.step(rng.integers(0, [3, 3], (3, 2)))


@pytest.mark.parametrize("action", [3, [0], [0, 3], [-1, 0], [0.0, 1.0], "01"])
def test_an_action_outside_the_space_is_refused(action):
    env = GpuClusterEnv(instance=limited(), factored=True)
    env.reset(seed=0)
    with refused("action", action):
        env.step(action)


def test_maskable_ppo_learns_on_both_masks():
    sb3_contrib = pytest.importorskip("sb3_contrib", reason='pip install "gpusched-env[agents]"')
    sb3 = pytest.importorskip("gpusched_agents.sb3")
    env = sb3.make_sb3_vec_env(n_envs=2, instance=limited(), factored=True, flat=True, seed=0)
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
    model.learn(64)
    observation = env.reset()
    action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
    assert action.shape == (2, 2)
    env.step(action)


def test_limit_features_show_what_limits_save_and_that_a_change_of_limit_alone_is_free():
    """At 0.7 a GPU saves 270 W of the 1 kW that it draws alone on a node; two save 540 W of 1.9 kW."""
    env = GpuClusterEnv(instance=limited(), limit_features=True, milestones=2)
    seen = env.reset(seed=0)[0]["limits"].reshape(-1, 2)
    assert seen[:, 0] == pytest.approx([0.0, 0.27, 0.45, 0.0, 0.54 / 1.9, 0.9 / 1.9])
    assert not seen[:, 1].any()
    first, over, rows = env.job, False, {}
    while not over and env.view.now_s < 0.1 * HOUR:
        observation, _, over, _, _ = env.step(1 if env.job == first else 0)
    for _ in range(3):
        rows[env.job] = observation["limits"].reshape(-1, 2)[:, 1].tolist()
        observation, _, over, _, _ = env.step(1 if env.job == first else 0)
    assert rows[first] == [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert {sum(row) for job, row in rows.items() if job != first} == {0.0}
