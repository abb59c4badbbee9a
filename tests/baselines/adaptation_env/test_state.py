"""The state of adaptation environments: they continue from it exactly, single ones and vectors."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_baselines.adaptation_env import GpuAdaptationEnv, GpuAdaptationVectorEnv
from gpusched_env import load_scenario, make_instance
from refusals import refused

SMALL: dict[str, Any] = {"rounds": 2, "workloads": 3}


def single() -> GpuAdaptationEnv:
    return GpuAdaptationEnv("tiny", **SMALL)


def vector(
    mode: AutoresetMode = AutoresetMode.SAME_STEP, scenario: Any = "tiny", **more: Any
) -> GpuAdaptationVectorEnv:
    return GpuAdaptationVectorEnv(3, scenario, autoreset_mode=mode, **SMALL, **more)


def play(env: Any, steps: int, seed: int) -> list[Any]:
    """Take random actions; return the results of the steps as plain values, with a reset after an episode's end."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(steps):
        seen, reward, ended, _, info = env.step(rng.uniform(-1.0, 1.0, env.action_space.shape))
        plain = {name: value for name, value in info.items() if name not in {"final_obs", "final_info"}}
        found.append((seen.tolist(), np.asarray(reward).tolist(), np.asarray(ended).tolist(), repr(plain)))
        if isinstance(env, GpuAdaptationEnv) and ended:
            found.append(env.reset()[0].tolist())
    return found


@pytest.mark.parametrize("before", [0, 3])
def test_an_environment_goes_on_from_its_state_into_the_next_episodes(before):
    one, other = single(), single()
    one.reset(seed=7)
    play(one, before, 0)
    state = one.get_state()
    other.reset(seed=8)
    other.set_state(state)
    assert other.instance == one.instance
    expected = play(one, 30, 1)
    assert sum(isinstance(entry, list) for entry in expected) >= 2, "no other episode has begun"
    assert play(other, 30, 1) == expected


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
@pytest.mark.parametrize("limit", [None, 4])
def test_a_vector_environment_does_too(mode, limit):
    scenarios = ["tiny", load_scenario("tiny").replace({"jobs.count": 4})]
    one, other = (vector(mode, scenarios, max_episode_steps=limit) for _ in range(2))
    one.reset(seed=3)
    for steps in (2, 9):
        play(one, steps, steps)
        other.set_state(one.get_state())
        expected = play(one, 12, 5)
        assert play(other, 12, 5) == expected
    assert [env.unwrapped.instance for env in one.envs] == [env.unwrapped.instance for env in other.envs]
    one.close()
    other.close()


def test_scenarios_take_turns_and_must_have_equally_many_gpu_types():
    several = vector(scenario=["tiny", "default", "tiny"])
    several.reset(seed=0)
    names = [env.unwrapped.source.name for env in several.envs]
    assert names == ["tiny", "default", "tiny"]
    assert len({env.unwrapped.instance.jobs.submission_s[-1] for env in several.envs}) == 3
    several.close()
    other = load_scenario("tiny").replace({"cluster.gpu_types": ["T4"]})
    with refused("scenario", ["tiny", "tiny"], "equally many GPU types") as caught:
        vector(scenario=["tiny", other])
    assert caught.value.field == "scenario"
    with refused("scenario", []):
        vector(scenario=[])


def test_what_is_no_state_is_refused():
    env = single()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.get_state()
    env.reset(options={"instance": make_instance(load_scenario("tiny"), 3)})
    with refused("workload", -1, "a workload of a seed: an instance given to reset is not kept"):
        env.get_state()
    env.reset(seed=1)
    play(env, 1, 0)
    state = env.get_state()
    for wrong, field in (
        ({}, "state"),
        (state | {"generator": np.zeros(3, np.uint8)}, "state"),
        (state | {"actions": np.zeros((1, 3))}, "state['actions']"),
        (state | {"actions": np.zeros((10_000, len(env.controls)))}, "state['actions']"),
    ):
        with refused(field):
            env.set_state(wrong)
    many = vector()
    many.reset(seed=0)
    with refused("state", allowed="a state of get_state of as many environments"):
        many.set_state({name: array for name, array in many.get_state().items() if not name.startswith("2/")})
    many.close()
