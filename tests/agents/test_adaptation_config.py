"""Settings of algorithms on the adaptation environment: names, ranges, and defaults."""

import json

import pytest

from refusals import refused

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import (
    ALGORITHMS,
    CLASSES,
    AdaptationConfig,
    EsConfig,
    agent_config,
    known_settings,
)
from gpusched_agents.training.config import TrainingConfig


@pytest.mark.parametrize("algorithm", CLASSES)
def test_settings_that_are_left_out_have_defaults_and_all_defaults_are_allowed(algorithm):
    known = known_settings(algorithm)
    assert {"learning_rate", "gamma", "critic_hidden", "final_learning_rate"} <= known.keys()
    assert not {"env", "policy", "seed", "use_sde", "replay_buffer_class"} & known.keys()
    made = AdaptationConfig(algorithm, known)
    assert made.settings == known
    assert AdaptationConfig(algorithm).settings.items() <= known.items()
    assert AdaptationConfig(algorithm, {"gamma": 0.5}).settings["gamma"] == 0.5


@pytest.mark.parametrize(
    ("algorithm", "name", "values"),
    [
        ("ppo", "learning_rate", (0.0, -1.0, "1e-3", None, float("nan"))),
        ("ppo", "gamma", (1.1, -0.1, None)),
        ("ppo", "n_steps", (0, 1.5, True, "8")),
        ("ppo", "target_kl", (0.0, "none")),
        ("ppo", "normalize_advantage", (1, "yes", None)),
        ("ppo", "log_std_init", ("low", None)),
        ("ppo", "ent_coef", (-0.1, "auto")),
        ("ppo", "use_sde", (True,)),
        ("ppo", "buffer_size", (100,)),
        ("sac", "ent_coef", ("best", -1.0, None)),
        ("sac", "learning_starts", (-1,)),
        ("sac", "gradient_steps", (-2,)),
        ("sac", "log_std_init", (-1.0,)),
        ("td3", "action_noise", (-0.1, "normal")),
        ("td3", "tau", (1.5,)),
        ("tqc", "critic_hidden", (0, 2.5)),
    ],
)
def test_a_bad_setting_is_named(algorithm, name, values):
    for value in values:
        with refused(f"agent.{name}"):
            AdaptationConfig(algorithm, {name: value})


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("agent.algorithm", {"algorithm": "dqn"}),
        ("agent.reward", {"reward": "profit"}),
        ("agent.workloads", {"workloads": 0}),
        ("agent.workloads", {"workloads": 10_001}),
        ("agent.settings", {"settings": None}),
    ],
)
def test_another_bad_value_is_named(field, changes):
    with refused(field):
        AdaptationConfig(**changes)


def test_a_training_has_the_defaults_that_suit_the_environment_and_writes_them_down():
    assert AdaptationConfig("ppo", {"target_kl": None, "final_learning_rate": None}).settings["target_kl"] is None
    assert AdaptationConfig("sac", {"ent_coef": 0.1}).settings["ent_coef"] == 0.1
    assert AdaptationConfig("sac", {"ent_coef": "auto_0.1", "target_entropy": -3}).settings["ent_coef"] == "auto_0.1"
    assert AdaptationConfig("td3", {"action_noise": None}).settings["action_noise"] is None
    written = json.loads(json.dumps(TrainingConfig(agent=AdaptationConfig("sac", {"gamma": 0.8})).as_dict()))
    assert written["network"] | {"layers": 1, "rounds": 16, "controls": "round"} == written["network"]
    assert (written["agent"]["algorithm"], written["agent"]["settings"]["gamma"]) == ("sac", 0.8)
    config = TrainingConfig(agent=AdaptationConfig())
    assert (config.steps, config.envs, config.evaluate_every) == (20_000, 8, 2_048)
    assert config.network == NetworkConfig("controls", hidden=32)
    own = TrainingConfig(agent=AdaptationConfig(), steps=500_000, envs=32, evaluate_every=50_000)
    assert (own.steps, own.envs, own.evaluate_every) == (500_000, 32, 50_000)
    assert (TrainingConfig().steps, TrainingConfig().evaluate_every) == (500_000, 50_000)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_has_its_settings(algorithm):
    made = agent_config(algorithm)()
    assert type(made) is (EsConfig if algorithm == "es" else AdaptationConfig)
    assert made.algorithm == algorithm


@pytest.mark.parametrize(
    ("agent", "kind"), [(AdaptationConfig(), "control-set"), (AdaptationConfig("sac"), "control-set")]
)
def test_a_network_that_does_not_fit_is_named(agent, kind):
    with refused("network.kind", kind, "controls, for "):
        TrainingConfig(agent=agent, network=NetworkConfig(kind))
