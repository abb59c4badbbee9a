"""Trainings on the adaptation environment: their first agents, their workloads, and the agents that they keep."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")


from stable_baselines3.common.callbacks import BaseCallback

from gpusched_agents import AdaptationConfig, ControlTraining, EsConfig, NetworkConfig, TrainingConfig, make_training
from gpusched_agents.files.storage import load_agent, save_agent
from gpusched_agents.network.control_policy import ControlPolicy
from gpusched_agents.policy import load_policy
from gpusched_agents.training.algorithm_config import CLASSES
from gpusched_agents.training.control_training import first_workloads
from gpusched_agents.training.references import first_agent
from gpusched_baselines import make_policy
from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_env import load_scenario, make_instance, simulate
from refusals import refused

SMALL: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 8, "batch_size": 16, "learning_rate": 0.02},
    "a2c": {"n_steps": 8, "learning_rate": 0.02},
}
BUFFER = {"learning_starts": 16, "batch_size": 16, "buffer_size": 200}
SEEDS = (500, 501)


def config_of(algorithm: str = "ppo", **changes: Any) -> TrainingConfig:
    usual = {
        "agent": AdaptationConfig(algorithm, SMALL.get(algorithm, BUFFER), workloads=4),
        "scenarios": ("tiny",),
        "steps": 64,
        "envs": 4,
        "network": NetworkConfig("controls", hidden=8, layers=2, rounds=3),
        "validation_seeds": SEEDS,
        "evaluate_every": 32,
    }
    return TrainingConfig(**(usual | changes))


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("algorithm", CLASSES)
def test_an_agent_begins_as_sts_x_and_decides_as_its_model_does_in_the_environment(algorithm, tmp_path):
    config = config_of(algorithm)
    training = make_training(config, tmp_path / "run")
    assert isinstance(training, ControlTraining)
    training.run()
    first, *_, last = training.progress.curve
    costs = [simulate(make_instance(load_scenario("tiny"), seed), make_policy("sts-x")).total_eur for seed in SEEDS]
    assert (first["total_eur"], first["relative"]) == (np.mean(costs), 1.0)
    env, costs = GpuAdaptationEnv("tiny", rounds=3), []
    for seed in SEEDS:
        observation, _ = env.reset(options={"workload": seed})
        ended = False
        while not ended:
            action, _ = training.model.predict(observation, deterministic=True)
            observation, _, ended, _, info = env.step(action)
        costs.append(info["total_eur"])
    assert last["total_eur"] == pytest.approx(np.mean(costs), rel=1e-9)
    assert last["total_eur"] != first["total_eur"]


def test_an_agent_comes_out_of_its_folder_as_it_went_in(tmp_path):
    config = config_of("sac", network=NetworkConfig("controls", hidden=5, layers=3, rounds=7, controls="jobs"))
    make_training(config, tmp_path / "run").run()
    description, weights = load_agent(tmp_path / "run" / "agent")
    assert (description.algorithm, description.spec.network, description.network) == ("sac", "controls", config.network)
    policy = load_policy(f"agent:{tmp_path / 'run' / 'agent'}")
    assert isinstance(policy, ControlPolicy)
    assert (policy.rounds, policy.controls, policy.spec) == (7, "jobs", description.spec)
    assert [weight.shape[0] for weight, _ in policy.actor.layers[:-1]] == [5, 5, 5]
    for name, array in policy.actor.arrays().items():
        np.testing.assert_array_equal(array, weights[name])
    fewer = load_scenario("tiny").replace({"cluster.gpu_types": ["T4"]})
    with refused(
        f"agent:{tmp_path}/run/agent: instance.gpu_types", "1 of them", "exactly 3, which the agent can take"
    ) as caught:
        simulate(make_instance(fewer, 0), policy)
    assert "instance.gpu_types = '1 of them'" in str(caught.value)
    with refused("weights.0.weight", "shape (5, 5)"):
        save_agent(tmp_path / "other", description, weights | {"0.weight": weights["1.weight"]})


def test_episodes_run_on_training_workloads_alone(tmp_path, monkeypatch):
    seeds: list[int] = []
    begin = GpuAdaptationEnv._begin

    def noting(env: GpuAdaptationEnv, *arguments: Any) -> None:
        begin(env, *arguments)
        seeds.append(env._workload)

    monkeypatch.setattr(GpuAdaptationEnv, "_begin", noting)
    make_training(config_of(seed=500), tmp_path / "run").run()
    assert set(seeds) == set(range(100_000, 100_004))
    agent = AdaptationConfig(workloads=5)
    assert len(set(first_workloads(config_of(envs=5), agent))) == 5
    assert len(first_workloads(config_of(envs=12), agent)) == 12
    assert first_workloads(config_of(seed=1), agent) != first_workloads(config_of(seed=2), agent)


def test_callbacks_watch_it_and_settings_of_another_training_are_refused(tmp_path):
    counts = []

    class Counts(BaseCallback):
        def _on_step(self) -> bool:
            counts.append(self.num_timesteps)
            return True

    make_training(config_of(), tmp_path / "run", callbacks=[Counts()]).run()
    assert counts == list(range(4, 68, 4))
    with refused("agent", "es", "an AdaptationConfig"):
        ControlTraining(TrainingConfig(agent=EsConfig()), tmp_path / "other")
    assert not (tmp_path / "other").exists()
    assert first_agent(config_of()) == "sts-x itself"


def test_scenarios_share_the_environments_and_count_alike(tmp_path):
    config = config_of(scenarios=("tiny", "default"), scenario_settings={"jobs.count": 6}, steps=32)
    training = ControlTraining(config, tmp_path / "run")
    names = [env.unwrapped.source.name for env in training._env.vector.envs]
    assert names == ["tiny", "default"] * 2
    training.run()
    each = np.array(training._run.record["base_eur_each"]).reshape(2, 2).mean(axis=1)
    assert training.references["sts-x"] == pytest.approx(each.mean())
    assert training.progress.curve[0]["relative"] == 1.0


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("envs", {"scenarios": ("tiny", "high"), "envs": 1}),
        ("scenario", {"scenarios": ("tiny", "published-high")}),
        ("agent", {"agent": AdaptationConfig("ppo", {"n_steps": 1}), "envs": 1}),
    ],
)
def test_what_does_not_fit_is_one_error_and_leaves_nothing(field, changes, tmp_path):
    with refused(field):
        ControlTraining(config_of(**changes), tmp_path / "run")
    assert not list(tmp_path.iterdir())
