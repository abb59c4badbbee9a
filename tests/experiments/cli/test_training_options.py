"""The options of `gpusched train` become the settings that they name."""

from __future__ import annotations

import pytest

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import (
    A2cConfig,
    AdaptationConfig,
    DqnConfig,
    EsConfig,
    MaskablePpoConfig,
    PpoConfig,
)
from gpusched_agents.training.config import ImitationConfig, TrainingConfig
from gpusched_env.workload import list_environments
from gpusched_experiments.cli.training_options import HELP, SETTINGS, training_config
from refusals import refused


def config(settings=(), **options):
    return training_config(options, settings)


def with_settings(*settings):
    return config(settings=settings)


def test_without_options_everything_has_its_default():
    assert config() == TrainingConfig()
    assert config(agent="es") == TrainingConfig(agent=EsConfig())


@pytest.mark.parametrize("algorithm", [MaskablePpoConfig, PpoConfig, A2cConfig, DqnConfig, EsConfig])
def test_an_algorithm_is_chosen_by_its_name(algorithm):
    by_job = {"network": "set"} if algorithm in {PpoConfig, A2cConfig} else {}
    assert config(agent=algorithm.algorithm, **by_job) == TrainingConfig(agent=algorithm())


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "sac", "td3", "tqc"])
def test_algorithms_of_stable_baselines3_set_controls_unless_a_network_decides_job_by_job(algorithm):
    assert config(agent=algorithm) == TrainingConfig(agent=AdaptationConfig(algorithm))
    assert config(agent=algorithm, network="controls") == TrainingConfig(agent=AdaptationConfig(algorithm))
    if algorithm in {"ppo", "a2c"}:
        assert config(agent=algorithm, network="mlp").agent == {"ppo": PpoConfig, "a2c": A2cConfig}[algorithm]()
        assert config(("network.kind=set",), agent=algorithm).network.kind == "set"


def test_settings_of_an_algorithm_that_sets_controls():
    settings = ("agent.learning_rate=1e-2", "agent.target_kl=none", "agent.workloads=7", "network.rounds=4")
    made = config(settings, agent="ppo", hidden=16, steps=500, imitate="none")
    assert made == TrainingConfig(
        agent=AdaptationConfig("ppo", {"learning_rate": 0.01, "target_kl": None}, workloads=7),
        steps=500,
        network=NetworkConfig("controls", hidden=16, rounds=4),
    )
    assert config(("agent.ent_coef=auto_0.5", "agent.reward=waste"), agent="sac").agent == AdaptationConfig(
        "sac", {"ent_coef": "auto_0.5"}, reward="waste"
    )


def test_every_option_sets_what_it_names():
    made = config(
        scenario="tiny, high",
        steps=1_000,
        seed=7,
        envs=16,
        network="mlp",
        hidden=32,
        distribution=False,
        imitate="edf",
        imitation_steps=500,
        validation_seeds="600-602,700",
        evaluate_every=250,
        patience=3,
    )
    assert made == TrainingConfig(
        scenarios=("tiny", "high"),
        steps=1_000,
        seed=7,
        envs=16,
        network=NetworkConfig("mlp", 32, distribution=False),
        imitation=ImitationConfig("edf", 500),
        validation_seeds=(600, 601, 602, 700),
        evaluate_every=250,
        patience=3,
    )


def test_options_name_settings_that_exist():
    assert set(HELP) - set(SETTINGS) == {"agent", "imitate", "track"}
    for setting in SETTINGS.values():
        section, _, name = setting.rpartition(".")
        owner = getattr(TrainingConfig(), section) if section else TrainingConfig()
        assert hasattr(owner, name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent.learning_rate=3e-4", TrainingConfig(agent=MaskablePpoConfig(learning_rate=3e-4))),
        ("agent.target_kl=none", TrainingConfig(agent=MaskablePpoConfig(target_kl=None))),
        ("imitation.beta = 0.5", TrainingConfig(imitation=ImitationConfig(beta=0.5))),
        ("imitation.expert=sts", TrainingConfig(imitation=ImitationConfig("sts"))),
        ("network.distribution=false", TrainingConfig(network=NetworkConfig(distribution=False))),
        ("threads=2", TrainingConfig(threads=2)),
        ("validation_seeds=10-11", TrainingConfig(validation_seeds=(10, 11))),
        ("validation_seeds=10", TrainingConfig(validation_seeds=(10,))),
        ("validation_seeds=[10, 12]", TrainingConfig(validation_seeds=(10, 12))),
        ('scenarios=["tiny", "high"]', TrainingConfig(scenarios=("tiny", "high"))),
        ("scenarios=tiny,high", TrainingConfig(scenarios=("tiny", "high"))),
    ],
)
def test_any_setting_is_set_by_its_dotted_name(text, expected):
    assert with_settings(text) == expected


def test_a_setting_of_one_algorithm_is_unknown_to_another():
    assert config(agent="dqn", settings=("agent.buffer_size=900",)).agent == DqnConfig(buffer_size=900)
    with refused("--set", "agent.buffer_size=900"):
        with_settings("agent.buffer_size=900")


def test_set_wins_over_the_other_options():
    assert config(steps=5, settings=("steps=6",)).steps == 6


def test_tracks_stand_for_their_scenarios_and_their_seeds_for_validation():
    seeds = tuple(range(20_000, 20_005))
    expected = TrainingConfig(agent=EsConfig(), scenarios=("track:slack",), validation_seeds=seeds)
    assert config(agent="es", track="slack") == expected
    assert config(track="slack, busy").scenarios == ("track:slack", "track:busy")
    assert config(track="all").scenarios == tuple(f"track:{name}" for name in list_environments())
    assert config(track="slack", validation_seeds="20010").validation_seeds == (20_010,)
    assert config().validation_seeds == TrainingConfig().validation_seeds


def test_settings_of_evolution_strategies_leave_the_others_as_they_are_by_default():
    made = config(agent="es", hidden=5, imitate="none", settings=("agent.pairs=2", "agent.randomised=0.5"))
    assert made == TrainingConfig(
        agent=EsConfig(pairs=2, randomised=0.5), network=NetworkConfig("control-set", hidden=5, layers=0)
    )
    assert config(agent="es", network="control-set", imitation_steps=0) == TrainingConfig(agent=EsConfig())


def test_nobody_to_imitate_means_no_warm_start():
    assert config(imitate="none") == TrainingConfig(imitation=ImitationConfig(steps=0))
    assert config(imitate="none", imitation_steps=0).imitation.steps == 0


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"agent": "trpo"}, "--agent", "maskable-ppo, ppo, a2c, dqn, es, sac, td3, tqc"),
        ({"agent": "recurrent-ppo"}, "--agent", "train it with sb3-contrib"),
        ({"agent": "ppo", "imitate": "sts-x"}, "--imitate", "for ppo: it begins as STS-X; with --network set or mlp"),
        ({"agent": "sac", "imitation_steps": 5}, "--imitation-steps", "none, or 0 steps, for sac"),
        ({"agent": "sac", "network": "set"}, "--network", "controls, for sac"),
        ({"agent": "ppo", "network": "control-set"}, "--network", "controls, for ppo"),
        ({"agent": "maskable-ppo", "network": "controls"}, "--network", "set or mlp, for maskable-ppo"),
        ({"agent": "ppo", "settings": ("agent.gamma=2",)}, "--set agent.gamma", "0 to 1"),
        ({"agent": "ppo", "settings": ("agent.buffer_size=9",)}, "--set", "agent.reward, agent.workloads"),
        ({"agent": "ppo", "settings": ("network.layers=-1",)}, "--set network.layers", ">= 0"),
        ({"track": "slack", "scenario": "tiny"}, "--track", "nothing beside --scenario"),
        ({"track": "slack", "validation_seeds": "30000"}, "validation_seeds[0]", "20000 to 20019 of tracks"),
        ({"agent": "es", "network": "set"}, "--network", "control-set or controls, for es"),
        ({"agent": "es", "network": "set", "hidden": 64}, "--network", "control-set or controls, for es"),
        ({"agent": "es", "network": "mlp"}, "--network", "control-set or controls, for es"),
        ({"network": "control-set"}, "--network", "set or mlp, for maskable-ppo"),
        ({"track": "mine/own.toml"}, "scenario", "exists"),
        ({"agent": "es", "imitate": "sts-x"}, "--imitate", "none, or 0 steps, for es: it begins as STS-X"),
        ({"agent": "es", "imitate": "edf"}, "--imitate", "for es"),
        ({"agent": "es", "imitation_steps": 5}, "--imitation-steps", "0 steps, for es"),
        ({"agent": "es", "imitation_steps": 500_000}, "--imitation-steps", "0 steps, for es"),
        ({"agent": "es", "settings": ("imitation.beta=0.5",)}, "--set imitation.beta", "for es"),
        ({"agent": "es", "settings": ("agent.gamma=1",)}, "--set", "agent.pairs, agent.workloads, agent.sigma"),
        ({"agent": "es", "settings": ("agent.randomised=1.5",)}, "--set agent.randomised", "0 to 1"),
        ({"imitate": "random-greedy"}, "--imitate", "sts-x"),
        ({"imitate": "none", "imitation_steps": 5}, "--imitation-steps", "--imitate none"),
        ({"imitate": "none", "steps": 0}, "--steps", "more than 0"),
        ({"steps": -1}, "--steps", ">= 0"),
        ({"seed": -1}, "--seed", ">= 0"),
        ({"envs": 0}, "--envs", ">= 1"),
        ({"network": "cnn"}, "--network", "set or mlp"),
        ({"hidden": 5_000}, "--hidden", "1024"),
        ({"imitation_steps": -1}, "--imitation-steps", ">= 0"),
        ({"validation_seeds": "5-1"}, "--validation-seeds", "upwards"),
        ({"evaluate_every": 0}, "--evaluate-every", ">= 1"),
        ({"patience": 0}, "--patience", ">= 1"),
        ({"settings": ("agent.learning_rate",)}, "--set", "agent.learning_rate=1e-4"),
        ({"settings": ("agent.lr=1",)}, "--set", "agent.learning_rate, agent.final_learning_rate, agent.n_steps"),
        ({"settings": ("agent=ppo",)}, "--set", "patience"),
        ({"settings": ("agent.learning_rate=fast",)}, "--set agent.learning_rate", "> 0"),
        ({"settings": ("agent.learning_rate=none",)}, "--set agent.learning_rate", "> 0"),
        ({"settings": ("agent.kl_coef=-1",)}, "--set agent.kl_coef", ">= 0"),
        ({"settings": ("agent.gamma=0.9",)}, "--set", "agent.horizon_s"),
        ({"settings": ("network.distribution=maybe",)}, "--set network.distribution", "true or false"),
        ({"settings": ("network.kind=[1]",)}, "--set network.kind", "a text"),
        ({"settings": ("imitation.rollout=1.5",)}, "--set imitation.rollout", ">= 1"),
        ({"settings": ("validation_seeds=x",)}, "--set validation_seeds", "whole numbers"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_by_its_option(options, field, words):
    with refused(field, allowed=words):
        config(**options)
