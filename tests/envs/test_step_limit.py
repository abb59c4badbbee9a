"""The limit of steps and the reward scale of the track that `scenario` names, alone and in a vector environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_baselines import make_policy
from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, GpuClusterVectorEnv, load_scenario, rollout
from gpusched_env.envs.rollout import asking_of
from gpusched_env.workload import load_track
from refusals import refused
from vector_twins import Twins, assert_same

TRACK = """
base = "tiny"

[track]
hard = "episodes of five steps"
weights = "as in tiny"
reward_scale_eur = 7.0
max_episode_steps = 5

[jobs]
count = 3
"""
SCALE, STEPS = 7.0, 5


@pytest.fixture
def track(tmp_path: Path) -> str:
    path = tmp_path / "short.toml"
    path.write_text(TRACK, encoding="utf-8")
    return str(path)


def play(env: gymnasium.Env, steps: int, seed: int = 3) -> list[tuple]:
    """Take the last possible action in every step; return what the steps return until the end, at most `steps`."""
    rows, (_, info), over = [], env.reset(seed=seed), False
    while not over and len(rows) < steps:
        rows.append(env.step(int(np.flatnonzero(info["action_mask"])[-1])))
        over, info = rows[-1][2] or rows[-1][3], rows[-1][4]
    return rows


def arrays(value: Any) -> Any:
    """Return the parts of `value` as arrays, which `assert_same` compares bit for bit."""
    if isinstance(value, dict):
        return {key: arrays(each) for key, each in value.items()}
    return [arrays(each) for each in value] if isinstance(value, list | tuple) else np.asarray(value)


@pytest.mark.parametrize("flat", [False, True])
def test_an_episode_is_that_of_a_scenario_with_the_scale_and_the_limit_of_gymnasium(track, flat):
    own = gymnasium.make(ENVIRONMENT_ID, scenario=track, flat=flat)
    given = {"reward_scale": SCALE, "max_episode_steps": STEPS}
    rows = play(own, 100)
    before = gymnasium.make(ENVIRONMENT_ID, scenario=load_scenario(track), flat=flat, **given)
    assert_same(arrays(rows), arrays(play(before, 100)))
    assert [row[3] for row in rows] == [False] * (STEPS - 1) + [True]
    assert not rows[-1][4]["stalled"]
    with pytest.raises(gymnasium.error.ResetNeeded):
        own.step(0)
    assert_same(arrays(play(own, 100)), arrays(rows))


def test_a_track_of_the_suite_is_as_its_own_id_was():
    header, few = load_track("few-jobs"), {"jobs.count": 4}
    given = {"reward_scale": header.reward_scale_eur, "max_episode_steps": header.max_episode_steps}
    before = gymnasium.make(ENVIRONMENT_ID, scenario=header.scenario, settings=few, **given)
    env = gymnasium.make(ENVIRONMENT_ID, scenario="few-jobs", settings=few)
    rows = play(env, 1_000)
    assert rows[-1][2]
    assert_same(arrays(rows), arrays(play(before, 1_000)))
    assert env.unwrapped.step_limit == header.max_episode_steps
    assert env.spec.max_episode_steps is None


@pytest.mark.parametrize(
    ("mode", "more", "limits"),
    [
        ("NextStep", {}, [5, None, 5]), ("SameStep", {}, [5, None, 5]), ("Disabled", {}, [5, None, 5]),
        ("NextStep", {"max_episode_steps": 3}, [3, 3, 3]), ("SameStep", {"max_episode_steps": 7}, [5, 7, 5]),
        ("NextStep", {"step_limit": 4}, [4, 4, 4]),
    ],
)  # fmt: skip
def test_each_environment_of_several_has_the_limit_of_its_own_scenario(track, mode, more, limits):
    mode = AutoresetMode(mode)
    twins = Twins([track, load_scenario("tiny").replace({"jobs.count": 3})], 3, mode, **more)
    twins.reset(seed=0)
    truncated = []
    for _ in range(8):
        if mode is AutoresetMode.DISABLED and twins.ended.any():
            twins.reset(options={"reset_mask": twins.ended.copy()})
        twins.step(np.zeros(3, int))
        truncated.append(twins.truncated)
    first = [next((k + 1 for k, each in enumerate(truncated) if each[i]), None) for i in range(3)]
    assert first == limits


def test_vector_rewards_are_divided_by_the_scale_of_the_track(track):
    many = gymnasium.make_vec(ENVIRONMENT_ID, 2, scenario=[track, load_scenario(track)])
    same = gymnasium.make_vec(ENVIRONMENT_ID, 2, scenario=load_scenario(track))
    infos = [each.reset(seed=[1, 1])[1] for each in (many, same)]
    for _ in range(4):
        actions = [info["action_mask"].shape[1] - 1 - info["action_mask"][:, ::-1].argmax(axis=1) for info in infos]
        (_, rewards, *_, first), (_, plain, *_, second) = many.step(actions[0]), same.step(actions[1])
        assert rewards.tolist() == [plain[0] / SCALE, plain[1]]
        infos = [first, second]


def test_a_limit_can_be_lifted_lowered_and_set_later(track):
    assert len(play(GpuClusterEnv(track, step_limit=2), 100)) == 2
    env = GpuClusterEnv(track, step_limit=None)
    assert env.step_limit is None
    assert play(env, 1_000)[-1][2]
    env.step_limit = 3
    assert len(play(env, 100)) == 3
    for limit, steps in ((4, 4), (100, STEPS)):
        assert len(play(gymnasium.make(ENVIRONMENT_ID, scenario=track, max_episode_steps=limit), 100)) == steps


def test_a_rollout_has_no_limit(track):
    policy = make_policy("edf")
    env = GpuClusterEnv(track, milestones=0, job_order=policy.job_order, preemption=policy.preemption)
    assert asking_of(policy) == env.asking
    result, rewards = rollout(env, policy, seed=1)
    assert rewards == pytest.approx(-result.total_eur / SCALE)
    assert env.step_limit == STEPS


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "tracks"])
@pytest.mark.parametrize("make", [GpuClusterEnv, lambda **given: GpuClusterVectorEnv(2, **given)])
def test_a_step_limit_out_of_its_range_is_named(make, value):
    with refused("step_limit", value):
        make(scenario="tiny", step_limit=value)
