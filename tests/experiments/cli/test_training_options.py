"""The options of `gpusched train` become the settings that they name."""

import pytest

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import AdaptationConfig, EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_env.workload import list_environments
from gpusched_experiments.cli.training_options import HELP, SETTINGS, training_config
from refusals import refused


def config(settings=(), **options):
    return training_config(options, settings)


def with_settings(*settings):
    return config(settings=settings)


@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "sac", "td3", "tqc"])
def test_an_algorithm_is_chosen_by_its_name(algorithm):
    assert config(agent=algorithm) == TrainingConfig(agent=AdaptationConfig(algorithm))
    assert config(agent=algorithm, network="controls") == TrainingConfig(agent=AdaptationConfig(algorithm))


def test_settings_of_an_algorithm_that_sets_controls():
    settings = ("agent.learning_rate=1e-2", "agent.target_kl=none", "agent.workloads=7", "network.rounds=4")
    made = config(settings, agent="ppo", hidden=16, steps=500)
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
        network="controls",
        hidden=32,
        validation_seeds="600-602,700",
        evaluate_every=250,
        patience=3,
    )
    assert made == TrainingConfig(
        scenarios=("tiny", "high"),
        steps=1_000,
        seed=7,
        envs=16,
        network=NetworkConfig("controls", 32, layers=0),
        validation_seeds=(600, 601, 602, 700),
        evaluate_every=250,
        patience=3,
    )


def test_options_name_settings_that_exist():
    assert set(HELP) - set(SETTINGS) == {"agent", "track"}
    for setting in SETTINGS.values():
        section, _, name = setting.rpartition(".")
        owner = getattr(TrainingConfig(), section) if section else TrainingConfig()
        assert hasattr(owner, name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent.learning_rate=3e-4", TrainingConfig(agent=EsConfig(learning_rate=3e-4))),
        ("agent.sigma = 0.5", TrainingConfig(agent=EsConfig(sigma=0.5))),
        ("agent.begin=constants", TrainingConfig(agent=EsConfig(begin="constants"))),
        ("network.rounds=4", TrainingConfig(network=NetworkConfig(layers=0, rounds=4))),
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


def test_without_options_everything_has_its_default_and_a_setting_is_of_one_algorithm():
    made = config(agent="sac", settings=("agent.buffer_size=900",)).agent
    assert made == AdaptationConfig("sac", {"buffer_size": 900})
    with refused("--set", "agent.buffer_size=900"):
        with_settings("agent.buffer_size=900")
    assert config(steps=5, settings=("steps=6",)).steps == 6
    assert config() == TrainingConfig()
    assert config(agent="es") == TrainingConfig(agent=EsConfig())


def test_tracks_stand_for_their_scenarios_and_their_seeds_for_validation():
    seeds = tuple(range(20_000, 20_005))
    expected = TrainingConfig(agent=EsConfig(), scenarios=("track:slack",), validation_seeds=seeds)
    assert config(agent="es", track="slack") == expected
    assert config(track="slack, busy").scenarios == ("track:slack", "track:busy")
    assert config(track="all").scenarios == tuple(f"track:{name}" for name in list_environments())
    assert config(track="slack", validation_seeds="20010").validation_seeds == (20_010,)
    assert config().validation_seeds == TrainingConfig().validation_seeds


def test_settings_of_evolution_strategies_leave_the_others_as_they_are_by_default():
    made = config(agent="es", hidden=5, settings=("agent.pairs=2", "agent.randomised=0.5"))
    assert made == TrainingConfig(
        agent=EsConfig(pairs=2, randomised=0.5), network=NetworkConfig("control-set", hidden=5, layers=0)
    )
    assert config(agent="es", network="control-set") == TrainingConfig(agent=EsConfig())


@pytest.mark.parametrize(
    ("options", "field", "words"),
    [
        ({"agent": "trpo"}, "--agent", "es, ppo, a2c, sac, td3, tqc"),
        ({"agent": "recurrent-ppo"}, "--agent", "train it with sb3-contrib"),
        ({"agent": "maskable-ppo"}, "--agent", "examples/train_maskable_ppo.py, and named sb3:FILE.zip"),
        ({"agent": "dqn"}, "--agent", "examples/train_maskable_ppo.py, and named sb3:FILE.zip"),
        ({"agent": "sac", "network": "set"}, "--network", "examples/train_maskable_ppo.py, and named sb3:FILE.zip"),
        ({"agent": "ppo", "network": "control-set"}, "--network", "controls, for ppo"),
        ({"agent": "ppo", "settings": ("agent.gamma=2",)}, "--set agent.gamma", "0 to 1"),
        ({"agent": "ppo", "settings": ("agent.buffer_size=9",)}, "--set", "agent.reward, agent.workloads"),
        ({"agent": "ppo", "settings": ("network.layers=-1",)}, "--set network.layers", ">= 0"),
        ({"track": "slack", "scenario": "tiny"}, "--track", "nothing beside --scenario"),
        ({"track": "slack", "validation_seeds": "30000"}, "validation_seeds[0]", "20000 to 20019 of tracks"),
        ({"agent": "es", "network": "mlp"}, "--network", "control-set or controls; what decides job by job"),
        ({"track": "mine/own.toml"}, "scenario", "exists"),
        ({"agent": "es", "settings": ("agent.gamma=1",)}, "--set", "agent.pairs, agent.workloads, agent.sigma"),
        ({"agent": "es", "settings": ("agent.randomised=1.5",)}, "--set agent.randomised", "0 to 1"),
        ({"steps": 0}, "--steps", ">= 1"),
        ({"seed": -1}, "--seed", ">= 0"),
        ({"envs": 0}, "--envs", ">= 1"),
        ({"network": "cnn"}, "--network", "control-set or controls"),
        ({"hidden": 5_000}, "--hidden", "1024"),
        ({"validation_seeds": "5-1"}, "--validation-seeds", "upwards"),
        ({"evaluate_every": 0}, "--evaluate-every", ">= 1"),
        ({"patience": 0}, "--patience", ">= 1"),
        ({"settings": ("agent.learning_rate",)}, "--set", "agent.learning_rate=1e-4"),
        ({"settings": ("agent.lr=1",)}, "--set", "agent.learning_rate, agent.final_learning_rate, agent.averaging"),
        ({"settings": ("agent=ppo",)}, "--set", "patience"),
        ({"settings": ("agent.learning_rate=fast",)}, "--set agent.learning_rate", "> 0"),
        ({"settings": ("agent.learning_rate=none",)}, "--set agent.learning_rate", "> 0"),
        (
            {"agent": "ppo", "settings": ("agent.normalize_advantage=maybe",)},
            "--set agent.normalize_advantage",
            "True or",
        ),
        ({"settings": ("network.kind=[1]",)}, "--set network.kind", "a text"),
        ({"settings": ("agent.pairs=1.5",)}, "--set agent.pairs", ">= 1"),
        ({"settings": ("validation_seeds=x",)}, "--set validation_seeds", "whole numbers"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_by_its_option(options, field, words):
    with refused(field, allowed=words):
        config(**options)
