"""Archives with the parameters of their environment beside them, and the environments that make them."""

import json
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward

from gpusched_baselines.adaptation_env import GpuAdaptationVectorEnv
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, load_scenario, make_instance, simulate
from refusals import refused
from vector_twins import few_jobs

sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra `agents`")
contrib = pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")
callbacks = pytest.importorskip("stable_baselines3.common.callbacks", reason="needs the extra `agents`")
env_util = pytest.importorskip("stable_baselines3.common.env_util", reason="needs the extra `agents`")

from gpusched_agents import SaveSb3, evaluate, load_sb3, make_sb3_vec_env, save_sb3  # noqa: E402 - needs the extra
from gpusched_agents.sb3_models import UnsafeLoadWarning  # noqa: E402 - needs the extra

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::gpusched_agents.sb3_models.UnsafeLoadWarning"),
]
SETTINGS = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 0, "device": "cpu"}
TWELVE = {"jobs.count": 12}
OTHER = {"settings": TWELVE, "preemption": False, "job_order": "due", "due_date_timers": True, "milestones": 0}


def loaded(path):
    """Load an archive that has its parameters beside it: then there is one warning only."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnsafeLoadWarning)
        return load_sb3(str(path))


@pytest.mark.parametrize("make", [make_sb3_vec_env, env_util.make_vec_env])
def test_a_model_of_other_parameters_costs_as_a_policy_what_it_costs_in_its_environment(make, tmp_path):
    envs = make("gpusched_env/SlackFlat-v0", 2, env_kwargs=OTHER)
    model = contrib.MaskablePPO("MlpPolicy", envs, **SETTINGS)
    save_sb3(model, tmp_path / "model")
    described = json.loads((tmp_path / "model.zip.env.json").read_text(encoding="utf-8"))
    assert described["id"] == "gpusched_env/SlackFlat-v0"
    assert described["parameters"].items() >= OTHER.items()
    policy = loaded(tmp_path / "model.zip")
    assert (policy.preemption, policy.job_order, policy.asking.milestones) == (False, "due", 0)
    instance = make_instance(load_scenario("slack").replace(TWELVE), 30_000)
    env = gymnasium.make("gpusched_env/SlackFlat-v0", **OTHER)
    expected, slow = evaluate(model, env, [30_000])[0], evaluate(model, TransformReward(env, float), [30_000])[0]
    assert simulate(instance, policy).total_eur == expected.result.total_eur
    assert expected.result.total_eur == pytest.approx(slow.result.total_eur, rel=1e-9)
    assert (expected.steps, expected.forced) == (slow.steps, slow.forced)
    assert expected.invalid_actions == slow.invalid_actions == 0
    next(model.policy.parameters()).data.zero_()
    model.save(tmp_path / "model.zip")  # the parameters are then those of another archive
    with pytest.warns(UserWarning, match="those of another archive; defaults are assumed"):
        assert load_sb3(str(tmp_path / "model.zip")).preemption
    (tmp_path / "model.zip.env.json").unlink()
    with pytest.warns(UserWarning, match=r"no environment parameters beside .*; defaults are assumed"):
        assert load_sb3(str(tmp_path / "model.zip")).preemption


def test_a_model_that_adapts_keeps_its_rounds_and_a_callback_saves_it(tmp_path):
    """A `Scenario` is kept as its settings."""
    given = {"scenario": few_jobs(), "rounds": 3, "seeds": range(2)}
    envs = make_sb3_vec_env("gpusched_env/GpuAdaptation-v0", 2, **given)
    assert isinstance(envs.vector, GpuAdaptationVectorEnv)
    saving = callbacks.EveryNTimesteps(16, SaveSb3(tmp_path / "best.zip"))
    sb3.PPO("MlpPolicy", envs, **SETTINGS).learn(32, callback=saving)
    assert loaded(tmp_path / "best.zip").rounds == 3
    kept = json.loads((tmp_path / "best.zip.env.json").read_text(encoding="utf-8"))["parameters"]
    assert load_scenario("tiny").replace(TWELVE) != few_jobs()
    assert type(few_jobs())(**kept["scenario"]) == few_jobs()
    assert kept["seeds"] == [0, 1]
    (tmp_path / "best.zip.env.json").write_text("{}", encoding="utf-8")
    with refused(str(tmp_path / "best.zip.env.json"), allowed="save_sb3 wrote"):
        load_sb3(str(tmp_path / "best.zip"))


def test_what_json_cannot_hold_and_environments_without_an_id_are_refused_before_anything_is_written(tmp_path):
    envs = make_sb3_vec_env("tiny", reward=lambda energy_eur, tardiness_eur: -energy_eur - tardiness_eur)
    with refused("reward", allowed="what JSON can hold"):
        save_sb3(sb3.PPO("MultiInputPolicy", envs, **SETTINGS), tmp_path / "model")
    without = sb3.PPO("MultiInputPolicy", GpuClusterEnv("tiny"), **SETTINGS)
    with refused("model.env", allowed="make_sb3_vec_env"):
        without.learn(16, callback=callbacks.EveryNTimesteps(16, SaveSb3(tmp_path / "model")))
    assert not list(tmp_path.iterdir())


def test_environments_are_made_by_ids_and_scenarios_in_the_order_of_make_vec_env():
    for first in ("gpusched_env/SlackFlat-v0", "gpusched_env:gpusched_env/SlackFlat-v0"):
        ours = make_sb3_vec_env(first, 3, 7, env_kwargs={"settings": TWELVE})
        theirs = env_util.make_vec_env(first, 3, 7, env_kwargs={"settings": TWELVE})
        assert isinstance(ours.vector, GpuClusterVectorEnv)
        np.testing.assert_array_equal(ours.reset(), theirs.reset())
        assert ours.vector.spec.max_episode_steps == theirs.get_attr("spec")[0].max_episode_steps
    assert make_sb3_vec_env("tiny").num_envs == make_sb3_vec_env().num_envs == 1
    assert make_sb3_vec_env([few_jobs(), few_jobs(4)], 2).num_envs == 2
    plain = make_sb3_vec_env("CartPole-v1", 2)
    assert plain.reset().shape == (2, 4)
    with refused("env_id", 8, "an id such as"):
        make_sb3_vec_env(8, "slack")
    with refused("env_id", "gpusched_env/Slak-v0", "registered"):
        make_sb3_vec_env("gpusched_env/Slak-v0")
    with refused("scenario", "slak"):
        make_sb3_vec_env("slak", 2)
    with refused("n_envs", 0):
        make_sb3_vec_env("tiny", 0)


@pytest.mark.parametrize(("name", "value"), [("num_envs", 2), ("autoreset_mode", "NextStep")])
def test_parameters_of_the_vector_environment_that_it_sets_itself_are_refused(name, value):
    with refused(name, value):
        make_sb3_vec_env("tiny", **{name: value})
