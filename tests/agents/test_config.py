"""Settings of training: bad values are named, and the settings can be written as JSON."""

import json
import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import EsConfig
from gpusched_agents.training.config import TrainingConfig
from gpusched_env import load_scenario
from gpusched_env.workload import load_track
from refusals import refused

NUMBERS: tuple[Any, ...] = (-1, math.nan, math.inf, "1", None, True)
WHOLE: tuple[Any, ...] = (*NUMBERS, 1.5)


def all_refused(make: type, field: str, name: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with refused(field, value):
            make(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kind", ("transformer", "set", "mlp", "", None, 3)),
        ("hidden", (*WHOLE, 0, 1025)),
        ("layers", WHOLE),
        ("rounds", (*WHOLE, 0)),
        ("controls", ("all", None)),
    ],
)
def test_a_bad_setting_of_the_network_is_named(name, values):
    all_refused(NetworkConfig, f"network.{name}", name, values)


COUNTS = {"pairs", "workloads", "most_jobs"}
SHARES = {"averaging", "randomised"}
ABOVE_ZERO = {"learning_rate", "final_learning_rate", "sigma", "clip"}
OTHERS = {"begin": (None, 3), "only": (None, 3)}


def test_a_bad_setting_of_evolution_strategies_is_named():
    for each in fields(EsConfig):
        name = each.name
        if name in OTHERS:
            all_refused(EsConfig, f"agent.{name}", name, OTHERS[name])
            continue
        assert name in COUNTS | SHARES | ABOVE_ZERO
        values = (*WHOLE, 0) if name in COUNTS else NUMBERS
        values += (0.0,) if name in ABOVE_ZERO else ()
        values += (1.01,) if name in SHARES else ()
        all_refused(EsConfig, f"agent.{name}", name, values)


def test_by_default_it_is_evolution_strategies_with_a_linear_network_and_the_edge_of_a_range_is_allowed():
    EsConfig(**dict.fromkeys(COUNTS, 1))
    for value in (0.0, 1, 1.0):
        EsConfig(**dict.fromkeys(SHARES, value))
    assert EsConfig().algorithm == "es"
    config = TrainingConfig()
    assert config.agent == EsConfig()
    assert config.network == NetworkConfig("control-set", layers=0)
    for own in (NetworkConfig(), NetworkConfig("control-set", hidden=5), NetworkConfig("controls")):
        assert TrainingConfig(network=own).network == own


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("scenarios", ((), "tiny", None)),
        ("steps", (*WHOLE, 0)),
        ("seed", WHOLE),
        ("envs", (*WHOLE, 0)),
        ("evaluate_every", (*WHOLE, 0)),
        ("patience", (*WHOLE, 0)),
        ("threads", (*WHOLE, 0)),
        ("validation_seeds", ((), 3, None)),
        ("agent", ("ppo", None, EsConfig)),
        ("network", ("controls", None)),
    ],
)
def test_a_bad_setting_of_the_training_is_named(name, values):
    all_refused(TrainingConfig, name, name, values)


def test_what_training_may_not_have_is_named():
    with refused("scenarios[1]", 3):
        TrainingConfig(scenarios=("tiny", 3))  # type: ignore[arg-type]
    with refused("validation_seeds[1]", 1000, "a seed below 1,000, or 20000 to 20019"):
        TrainingConfig(validation_seeds=(999, 1000))
    with refused("scenario_settings['trace']"):
        TrainingConfig(scenario_settings={"trace": object()})
    with pytest.raises(FrozenInstanceError):
        TrainingConfig().steps = 3  # type: ignore[misc]


@pytest.mark.parametrize("seed", [-1, 1.5, True, "500", None, 2**63])
def test_a_bad_seed_of_validation_is_named(seed):
    with refused("validation_seeds[1]", seed):
        TrainingConfig(validation_seeds=(500, seed))


@pytest.mark.parametrize("purpose", ["validation", "training", "test"])
def test_of_the_seeds_of_tracks_those_for_validation_are_there_to_choose_by(purpose):
    seeds = load_track("slack").seeds(purpose)
    if purpose == "validation":
        assert TrainingConfig(validation_seeds=seeds).validation_seeds == seeds
        return
    for seed in (seeds[0], seeds[-1]):
        with refused("validation_seeds[1]", seed, "a seed below 1,000"):
            TrainingConfig(validation_seeds=(999, seed))


def test_settings_can_be_written_down_and_read_again_also_numbers_of_numpy():
    config = TrainingConfig(
        seed=np.int64(3), validation_seeds=(np.int64(7),), agent=EsConfig(pairs=np.int32(8), sigma=np.float64(0.5))
    )
    plain = TrainingConfig(seed=3, validation_seeds=(7,), agent=EsConfig(pairs=8, sigma=0.5))
    assert json.dumps(config.as_dict()) == json.dumps(plain.as_dict())
    network = NetworkConfig("controls", 16)
    config = TrainingConfig(agent=EsConfig(pairs=2), scenarios=("tiny", "default"), network=network)
    values = json.loads(json.dumps(config.as_dict(), allow_nan=False))
    values["network"] = NetworkConfig(**values["network"])
    assert values["agent"].pop("algorithm") == "es"
    values["agent"] = EsConfig(**values["agent"])
    values |= {name: tuple(values[name]) for name in ("scenarios", "validation_seeds")}
    assert TrainingConfig(**values) == config


@pytest.mark.parametrize("settings", [None, 3, ["cluster.nodes"], {3: 4}])
def test_settings_of_scenarios_are_a_mapping_of_names(settings):
    with refused("scenario_settings", settings):
        TrainingConfig(scenario_settings=settings)


def test_settings_of_scenarios_go_to_each_and_are_written_down_plainly():
    given = {"cluster.gpu_types": ("T4", "V100"), "jobs.count": np.int64(7)}
    config = TrainingConfig(scenarios=("tiny", "low"), scenario_settings=given)
    given["jobs.count"] = np.int64(8)
    plain = {"cluster.gpu_types": ["T4", "V100"], "jobs.count": 7}
    assert json.loads(json.dumps(config.as_dict()))["scenario_settings"] == plain
    assert config.loaded_scenarios() == tuple(load_scenario(name).replace(plain) for name in ("tiny", "low"))
    assert hash(config) == hash(TrainingConfig(scenarios=("tiny", "low")))
    with refused("jobs.count", 0):
        TrainingConfig(scenario_settings={"jobs.count": 0}).loaded_scenarios()
