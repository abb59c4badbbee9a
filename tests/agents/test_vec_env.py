"""The vector environment with Stable-Baselines3's interface, against a `DummyVecEnv` of single environments."""

from importlib import import_module
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from gpusched_baselines.adaptation_env import GpuAdaptationVectorEnv
from gpusched_env import GpuClusterEnv, load_scenario, make_instance
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.simulator import layout as at
from refusals import refused

sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")
contrib = pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

torch = pytest.importorskip("torch", reason="needs the extra `agents`")
masking = pytest.importorskip("sb3_contrib.common.maskable.utils", reason="needs the extra `agents`")
evaluation = pytest.importorskip("stable_baselines3.common.evaluation", reason="needs the extra `agents`")
monitor = pytest.importorskip("stable_baselines3.common.monitor", reason="needs the extra `agents`")
sb3_vec = pytest.importorskip("stable_baselines3.common.vec_env", reason="needs the extra `agents`")
vec_env = import_module("gpusched_agents.sb3")

pytestmark = pytest.mark.usefixtures("one_thread")
SETTINGS: dict[str, Any] = {"reward_scale": 100.0, "job_order": "due"}
ENVS = 3


def over_native(num_envs=ENVS, **settings):
    return vec_env.make_sb3_vec_env("tiny", num_envs, **{**SETTINGS, **settings})


def over_single(num_envs=ENVS, *, limit=None, **settings):
    makers = [lambda: single(limit, **settings)] * num_envs
    return vec_env.SchedulerVecEnv(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP))


def single(limit: int | None = None, **settings: Any) -> gymnasium.Env[Any, Any]:
    env = GpuClusterEnv("tiny", **{**SETTINGS, **settings})
    return TimeLimit(env, limit) if limit else env


def dummy(num_envs=ENVS, limit=None):
    return sb3_vec.DummyVecEnv(
        [lambda: monitor.Monitor(single(limit), info_keywords=vec_env.EPISODE_KEYWORDS)] * num_envs
    )


INTERFACES = pytest.mark.parametrize("make", [over_native, over_single])


def allowed(masks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])


def same(one: Any, other: Any) -> bool:
    """Return whether two infos or observations are equal, except for the time of day."""
    if isinstance(one, dict):
        keys = one.keys() - {"t"}
        return keys == other.keys() - {"t"} and all(same(one[key], other[key]) for key in keys)
    return type(one) is type(other) and np.array_equal(one, other)


def walk(ours, theirs, steps):
    """Take random allowed steps in both, compare all results, and return the infos of the episodes that ended."""
    rng, ended = np.random.default_rng(0), []
    ours.reset_infos = [{} for _ in range(ours.num_envs)]  # those of autoresets must be put there
    for _ in range(steps):
        masks = masking.get_action_masks(ours)
        np.testing.assert_array_equal(masks, masking.get_action_masks(theirs))
        actions = allowed(masks, rng)
        mine, expected = ours.step(actions), theirs.step(actions)
        assert same(mine[0], dict(expected[0]))
        for got, wanted in zip(mine[1:3], expected[1:3], strict=True):
            assert got.dtype == wanted.dtype
            np.testing.assert_array_equal(got, wanted)
        for i in np.flatnonzero(mine[2]):
            assert same(mine[3][i], expected[3][i])
            assert same(ours.reset_infos[i], theirs.reset_infos[i])
            ended.append(mine[3][i])
        assert all(not mine[3][i] for i in np.flatnonzero(~mine[2]))
    return ended


@INTERFACES
def test_it_gives_what_a_dummy_vec_env_of_monitored_environments_gives_step_by_step(make):
    ours, theirs = make(), dummy()
    for seed in (0, 50):
        assert ours.seed(seed) == theirs.seed(seed) == [seed, seed + 1, seed + 2]
        assert same(ours.reset(), dict(theirs.reset()))
        assert all(same(mine, expected) for mine, expected in zip(ours.reset_infos, theirs.reset_infos, strict=True))
        ended = walk(ours, theirs, 300)
        assert len(ended) >= 2 * ENVS
        for info in ended:
            cost = info["episode"]["total_energy_eur"] + info["episode"]["total_tardiness_eur"]
            assert info["episode"]["r"] == pytest.approx(-cost / SETTINGS["reward_scale"], abs=1e-6)
            assert info["TimeLimit.truncated"] is False


def test_an_episode_that_a_limit_ends_is_truncated_and_the_count_begins_again():
    ours, theirs = over_single(limit=7), dummy(limit=7)
    for env in (ours, theirs):
        env.seed(3)
        env.reset()
    ended = walk(ours, theirs, 15)
    assert [(info["episode"]["l"], info["TimeLimit.truncated"]) for info in ended] == [(7, True)] * (2 * ENVS)


@INTERFACES
def test_after_seeds_are_used_a_reset_draws_other_workloads(make):
    env, again = make(), make()
    for one in (env, again):
        one.seed(5)
    first, second = env.reset(), env.reset()
    assert not same(first, second)
    assert same(again.reset(), first)
    assert same(again.reset(), second)


@INTERFACES
def test_each_environment_can_be_given_its_own_seed(make):
    env, seeds = make(), [7, 2, 7]
    env.seed_each(seeds)
    first = env.reset()
    expected = [single().reset(seed=seed)[0] for seed in seeds]
    assert all(same({key: values[i] for key, values in first.items()}, expected[i]) for i in range(ENVS))
    with refused("seeds", 2, "3, one for each environment"):
        env.seed_each([1, 2])


@pytest.mark.parametrize("algorithm", [sb3.PPO, sb3.A2C, sb3.DQN, contrib.MaskablePPO])
def test_every_algorithm_learns_the_same_from_it_as_from_a_dummy_vec_env(algorithm):
    settings: dict[str, Any] = {"seed": 0, "device": "cpu", "policy_kwargs": {"net_arch": [8]}}
    if algorithm is sb3.DQN:
        settings |= {"learning_starts": 30, "train_freq": 4, "batch_size": 16, "buffer_size": 500}
    elif algorithm is not sb3.A2C:
        settings |= {"n_steps": 60, "batch_size": 90, "n_epochs": 1}
    models = [algorithm("MultiInputPolicy", env, **settings).learn(ENVS * 120) for env in (over_native(), dummy())]
    mine, expected = ([weights.detach().numpy() for weights in model.policy.parameters()] for model in models)
    assert all(np.array_equal(one, other) for one, other in zip(mine, expected, strict=True))
    untaught = algorithm("MultiInputPolicy", dummy(), **settings).policy.parameters()
    assert not all(np.array_equal(one, other.detach().numpy()) for one, other in zip(mine, untaught, strict=True))
    episodes = [[episode["r"] for episode in model.ep_info_buffer] for model in models]
    assert episodes[0]
    assert episodes[0] == episodes[1]


@INTERFACES
def test_masks_are_asked_for_as_sb3_contrib_does(make):
    env = make()
    assert masking.is_masking_supported(env)
    with pytest.raises(gymnasium.error.ResetNeeded, match="reset"):
        env.action_masks()
    env.seed(0)
    env.reset()
    masks = masking.get_action_masks(env)
    assert masks.dtype == np.bool_
    assert masks.shape == (ENVS, env.action_space.n)
    np.testing.assert_array_equal(env.action_masks(), masks)
    np.testing.assert_array_equal(env.env_method("action_masks", indices=[2, 0]), masks[[2, 0]])
    np.testing.assert_array_equal(env.get_attr("action_masks", indices=1)[0](), masks[1])


@INTERFACES
def test_what_a_caller_writes_into_a_result_changes_nothing_else(make):
    env, untouched = make(), make()
    for one in (env, untouched):
        one.seed(0)
        last = one.reset()
    rng = np.random.default_rng(1)
    for _ in range(150):
        actions = allowed(untouched.action_masks(), rng)
        kept = {key: values.copy() for key, values in last.items()}
        observations, rewards, dones, infos = untouched.step(actions)
        assert same(last, kept)
        scribbled = env.step(actions)
        for given, wanted in zip(scribbled[:3], (observations, rewards, dones), strict=True):
            assert same(given, wanted)
        assert same(scribbled[3][0], infos[0])
        last = {key: values.copy() for key, values in scribbled[0].items()}
        for i in range(1, ENVS):
            scribbled[3][i]["noted"] = i
        assert "noted" not in scribbled[3][0]
        for values in (*scribbled[0].values(), scribbled[1], env.action_masks(), *env.env_method("action_masks")):
            values[...] = 1
        assert same(env.action_masks(), untouched.action_masks())
        last = observations


def test_what_is_not_its_own_is_refused():
    vector = SyncVectorEnv([single])
    with refused("vector.metadata['autoreset_mode']", allowed="AutoresetMode.SAME_STEP"):
        vec_env.SchedulerVecEnv(vector)
    with refused("vector", allowed="a gymnasium.vector.VectorEnv"):
        vec_env.SchedulerVecEnv(single())
    env = over_native()
    with refused("state", allowed=f"episode_returns and episode_lengths, both ({ENVS},)"):
        env.set_state({})
    with refused("vector", "SyncVectorEnv", "a GpuClusterVectorEnv"):
        over_single().get_state()
    env = over_native()
    env.set_attr("spec", "of mine")
    assert env.get_attr("spec") == ["of mine"] * ENVS
    with refused("indices", [0]):
        env.set_attr("spec", None, indices=[0])
    for name in ("colour", "job"):
        with refused("attr_name", name):
            env.set_attr(name, 1)


@INTERFACES
def test_one_instance_can_be_replayed_everywhere_once(make):
    env, instance = make(), make_instance(load_scenario("tiny"), 9)
    env.seed(0)
    env.set_options({"instance": instance})
    first = env.reset()
    direct = single().reset(seed=9)[0]
    assert all(same({key: values[i] for key, values in first.items()}, direct) for i in range(ENVS))
    env.seed(0)
    assert not same(env.reset(), first)
    env.set_options([{}, {"instance": instance}, {}])
    with refused("options", allowed="the same for every environment"):
        env.reset()


def test_each_environment_has_its_own_job_view_and_instance():
    env = over_native()
    env.seed(0)
    env.reset()
    singles = [single() for _ in range(ENVS)]
    for i, one in enumerate(singles):
        one.reset(seed=i)
    assert env.get_attr("job") == [one.job for one in singles]
    for mine, one in zip(env.get_attr("instance"), singles, strict=True):
        np.testing.assert_array_equal(mine.jobs.submission_s, one.instance.jobs.submission_s)
    assert [now(env, i) for i in range(ENVS)] == [one.view.clock[at.NOW] for one in singles]
    assert env.get_attr("action_space") == [single().action_space] * ENVS
    assert env.get_attr("render_mode", indices=[0, 2]) == [None, None]
    assert not env.has_attr("colour")


def test_a_timer_is_for_one_environment():
    woken, other = over_native(), over_native()
    for env in (woken, other):
        env.seed(0)
        env.reset()
    begin_s = [now(woken, i) for i in range(ENVS)]
    woken.env_method("set_timer", woken.get_attr("job")[1], begin_s[1] + 0.5, indices=1)
    for env in (woken, other):
        env.step(np.zeros(ENVS, np.int64))
    assert now(woken, 1) == begin_s[1] + 0.5 < now(other, 1)
    assert [now(woken, i) for i in (0, 2)] == [now(other, i) for i in (0, 2)]


def now(env, i):
    return float(env.get_attr("view", indices=i)[0].clock[at.NOW])


def test_evaluation_takes_it_for_monitored_and_finds_the_costs():
    env = over_native()
    env.seed(0)
    model = contrib.MaskablePPO("MultiInputPolicy", env, n_steps=2, batch_size=2, device="cpu", seed=0)
    assert env.env_is_wrapped(monitor.Monitor) == [True] * ENVS
    assert env.env_is_wrapped(TimeLimit, indices=[1]) == [False]
    returns, lengths = evaluation.evaluate_policy(model, env, ENVS, deterministic=False, return_episode_rewards=True)
    assert len(returns) == len(lengths) == ENVS
    assert max(returns) < 0.0 < min(lengths)


def test_a_state_goes_on_exactly_where_it_was_kept():
    env, later = over_native(), over_native()
    env.seed(4)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        env.step(allowed(env.action_masks(), rng))
    state = env.get_state()
    assert all(isinstance(values, np.ndarray) and values.dtype != object for values in state.values())
    later.set_state(state)
    for _ in range(200):
        np.testing.assert_array_equal(env.action_masks(), later.action_masks())
        actions = allowed(env.action_masks(), rng)
        (*mine, infos), (*expected, their_infos) = later.step(actions), env.step(actions)
        assert all(same(*pair) for pair in zip([*mine, *infos], [*expected, *their_infos], strict=True))


def test_native_environments_stand_behind_the_maker():
    env = vec_env.make_sb3_vec_env("tiny", 2, seed=7, milestones=0)
    assert isinstance(env.vector, GpuClusterVectorEnv)
    expected = [single(job_order="pressure", reward_scale=1.0, milestones=0).reset(seed=7 + i)[0] for i in range(2)]
    first = env.reset()
    assert all(same({key: values[i] for key, values in first.items()}, expected[i]) for i in range(2))
    env.close()


def test_adaptation_environments_have_no_masks_and_tell_their_episodes():
    adaptation = GpuAdaptationVectorEnv(2, "tiny", rounds=3, workloads=2, autoreset_mode=AutoresetMode.SAME_STEP)
    env = vec_env.SchedulerVecEnv(adaptation)
    env.seed_each([100_000, 100_001])
    assert env.reset().shape == (2, *env.observation_space.shape)
    with pytest.raises(gymnasium.error.ResetNeeded, match="with action masks"):
        env.action_masks()
    returns, ended = np.zeros(2), []
    while not ended:
        observations, rewards, dones, infos = env.step(np.full((2, *env.action_space.shape), 0.3))
        returns += rewards
        ended = np.flatnonzero(dones).tolist()
    final = infos[ended[0]]
    assert final["episode"]["r"] == pytest.approx(returns[ended[0]], abs=1e-5)
    assert final["episode"]["total_energy_eur"] == final["total_energy_eur"]
    assert "invalid_actions" not in final["episode"]
    assert not final["terminal_observation"].any(), "all 0 at the end"
    assert observations[ended[0]].any(), "that of the next episode"
    assert "base_total_eur" in final
    env.close()
