"""Settings of algorithms on the adaptation environment: names, ranges, and defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from refusals import refused

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import (
    ALL_ALGORITHMS,
    CLASSES,
    A2cConfig,
    AdaptationConfig,
    DqnConfig,
    EsConfig,
    MaskablePpoConfig,
    PpoConfig,
    agent_config,
    known_settings,
)
from gpusched_agents.training.config import ImitationConfig, TrainingConfig


@pytest.mark.parametrize("algorithm", CLASSES)
def test_settings_that_are_left_out_have_defaults_and_all_defaults_are_allowed(algorithm: str):
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
def test_a_bad_setting_is_named(algorithm: str, name: str, values: tuple[Any, ...]):
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
def test_another_bad_value_is_named(field: str, changes: dict[str, Any]):
    with refused(field):
        AdaptationConfig(**changes)


def test_what_may_be_none_or_auto():
    assert AdaptationConfig("ppo", {"target_kl": None, "final_learning_rate": None}).settings["target_kl"] is None
    assert AdaptationConfig("sac", {"ent_coef": 0.1}).settings["ent_coef"] == 0.1
    assert AdaptationConfig("sac", {"ent_coef": "auto_0.1", "target_entropy": -3}).settings["ent_coef"] == "auto_0.1"
    assert AdaptationConfig("td3", {"action_noise": None}).settings["action_noise"] is None


@pytest.mark.parametrize(
    ("algorithm", "network", "kind"),
    [
        ("ppo", None, AdaptationConfig),
        ("ppo", "controls", AdaptationConfig),
        ("ppo", "set", PpoConfig),
        ("ppo", "mlp", PpoConfig),
        ("a2c", None, AdaptationConfig),
        ("a2c", "set", A2cConfig),
        ("sac", None, AdaptationConfig),
        ("sac", "set", AdaptationConfig),
        ("maskable-ppo", None, MaskablePpoConfig),
        ("dqn", None, DqnConfig),
        ("dqn", "controls", DqnConfig),
        ("es", None, EsConfig),
    ],
)
def test_one_rule_tells_trainings_of_the_same_name_apart(algorithm: str, network: str | None, kind: type):
    made = agent_config(algorithm, network)()
    assert type(made) is kind
    assert made.algorithm == algorithm
    assert algorithm in ALL_ALGORITHMS


def test_a_training_has_the_defaults_that_suit_the_environment():
    config = TrainingConfig(agent=AdaptationConfig())
    assert (config.steps, config.envs, config.evaluate_every) == (20_000, 8, 2_048)
    assert config.network == NetworkConfig("controls", hidden=32)
    assert config.imitation.steps == 0
    own = TrainingConfig(agent=AdaptationConfig(), steps=500_000, envs=32, evaluate_every=50_000)
    assert (own.steps, own.envs, own.evaluate_every) == (500_000, 32, 50_000)
    assert (TrainingConfig().steps, TrainingConfig().envs, TrainingConfig().evaluate_every) == (500_000, 32, 50_000)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("network.kind", {"network": NetworkConfig("set", hidden=8)}),
        ("imitation.steps", {"imitation": ImitationConfig(steps=1)}),
        ("network.kind", {"agent": PpoConfig(), "network": NetworkConfig("controls")}),
    ],
)
def test_a_network_or_a_warm_start_that_does_not_fit_is_named(field: str, changes: dict[str, Any]):
    with refused(field):
        TrainingConfig(**({"agent": AdaptationConfig()} | changes))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("layers", {"layers": -1}),
        ("rounds", {"rounds": 0}),
        ("controls", {"controls": "all"}),
        ("guard", {"guard": True}),
        ("distribution", {"distribution": False}),
    ],
)
def test_a_bad_setting_of_its_network_is_named(name: str, changes: dict[str, Any]):
    with refused(f"network.{name}"):
        NetworkConfig("controls", **changes)


def test_only_networks_that_set_controls_write_down_how():
    written = json.loads(json.dumps(TrainingConfig(agent=AdaptationConfig("sac", {"gamma": 0.8})).as_dict()))
    assert written["network"] | {"layers": 1, "rounds": 16, "controls": "round"} == written["network"]
    assert (written["agent"]["algorithm"], written["agent"]["settings"]["gamma"]) == ("sac", 0.8)
    assert set(TrainingConfig().as_dict()["network"]) == {"kind", "hidden", "distribution", "guard"}
