"""Settings of training: bad values are named, and the settings can be written as JSON."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import (
    ALGORITHMS,
    A2cConfig,
    DqnConfig,
    EsConfig,
    MaskablePpoConfig,
    PpoConfig,
)
from gpusched_agents.training.config import ImitationConfig, TrainingConfig
from gpusched_baselines import make_policy
from gpusched_baselines.registry import expert_names
from gpusched_env import load_scenario
from gpusched_env.simulator import JobPolicy
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
        ("kind", ("transformer", "", None, 3)),
        ("hidden", (*WHOLE, 0, 1025)),
        ("distribution", ("yes", 1, None)),
    ],
)
def test_a_bad_setting_of_the_network_is_named(name: str, values: tuple[Any, ...]):
    all_refused(NetworkConfig, f"network.{name}", name, values)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("expert", ("greedy", "random-greedy", "", None)),
        ("steps", WHOLE),
        ("rollout", (*WHOLE, 0)),
        ("epochs", (*WHOLE, 0)),
        ("batch_size", (*WHOLE, 0)),
        ("learning_rate", (*NUMBERS, 0.0)),
        ("beta", (*NUMBERS, 1.01)),
        ("value_weight", NUMBERS),
        ("averaging", (*NUMBERS, 1.01)),
        ("inverse_temperature", (*NUMBERS, 0.0)),
    ],
)
def test_a_bad_setting_of_the_imitation_is_named(name: str, values: tuple[Any, ...]):
    all_refused(ImitationConfig, f"imitation.{name}", name, values)


COUNTS = {
    "n_steps", "batch_size", "n_epochs", "buffer_size", "learning_starts", "train_freq", "gradient_steps",
    "target_update_interval", "pairs", "workloads", "most_jobs",
}  # fmt: skip
SHARES = {
    "gamma", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps",
    "averaging", "randomised",
}  # fmt: skip
ABOVE_ZERO = {
    "learning_rate", "final_learning_rate", "clip_range", "max_grad_norm", "target_kl", "sigma", "clip",
    "horizon_s", "gae_horizon_s",
}  # fmt: skip
FROM_ZERO = {"ent_coef", "kl_coef", "vf_coef"}
OTHERS = {"begin": (None, 3), "only": (None, 3)}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_bad_setting_of_an_algorithm_is_named(algorithm: str):
    make = ALGORITHMS[algorithm]
    for each in fields(make):
        name = each.name
        if name in OTHERS:
            all_refused(make, f"agent.{name}", name, OTHERS[name])
            continue
        assert name in COUNTS | SHARES | ABOVE_ZERO | FROM_ZERO
        values = NUMBERS if name != "target_kl" else tuple(value for value in NUMBERS if value is not None)
        values = (*WHOLE, 0) if name in COUNTS else values
        values += (0.0,) if name in ABOVE_ZERO else ()
        values += (1.01,) if name in SHARES else ()
        all_refused(make, f"agent.{name}", name, values)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_what_is_at_the_edge_of_a_range_is_allowed(algorithm: str):
    make = ALGORITHMS[algorithm]
    names = {each.name for each in fields(make)}
    make(**dict.fromkeys(names & COUNTS, 1))
    make(**dict.fromkeys(names & FROM_ZERO, 0))
    for value in (0.0, 1, 1.0):
        make(**dict.fromkeys(names & SHARES, value))
    assert make().algorithm == algorithm


def test_an_update_may_be_as_large_as_it_likes():
    assert PpoConfig(target_kl=None).target_kl is None
    assert MaskablePpoConfig(target_kl=None).target_kl is None


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("scenarios", ((), "tiny", None)),
        ("steps", WHOLE),
        ("seed", WHOLE),
        ("envs", (*WHOLE, 0)),
        ("evaluate_every", (*WHOLE, 0)),
        ("patience", (*WHOLE, 0)),
        ("threads", (*WHOLE, 0)),
        ("validation_seeds", ((), 3, None)),
        ("agent", ("ppo", None, PpoConfig)),
        ("network", ("set", None)),
        ("imitation", ("sts-x", None)),
    ],
)
def test_a_bad_setting_of_the_training_is_named(name: str, values: tuple[Any, ...]):
    all_refused(TrainingConfig, name, name, values)


def test_a_bad_scenario_is_named():
    with refused("scenarios[1]", 3):
        TrainingConfig(scenarios=("tiny", 3))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, True, "500", None, 2**63])
def test_a_bad_seed_of_validation_is_named(seed: Any):
    with refused("validation_seeds[1]", seed):
        TrainingConfig(validation_seeds=(500, seed))


def test_workloads_that_training_may_draw_are_none_to_choose_by():
    with refused("validation_seeds[1]", 1000, "a seed below 1,000, or 20000 to 20019"):
        TrainingConfig(validation_seeds=(999, 1000))


@pytest.mark.parametrize("purpose", ["validation", "training", "test"])
def test_of_the_seeds_of_tracks_those_for_validation_are_there_to_choose_by(purpose: str):
    seeds = load_track("slack").seeds(purpose)
    if purpose == "validation":
        assert TrainingConfig(validation_seeds=seeds).validation_seeds == seeds
        return
    for seed in (seeds[0], seeds[-1]):
        with refused("validation_seeds[1]", seed, "a seed below 1,000"):
            TrainingConfig(validation_seeds=(999, seed))


def test_what_evolution_strategies_have_no_use_for_is_left_out_by_default():
    config = TrainingConfig(agent=EsConfig())
    assert config.network == NetworkConfig("control-set", layers=0)
    assert config.imitation.steps == 0
    own = NetworkConfig("control-set", hidden=5)
    assert TrainingConfig(agent=EsConfig(), network=own).network == own
    assert TrainingConfig().network == NetworkConfig()
    assert TrainingConfig().imitation == ImitationConfig()


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("network.kind", {"agent": EsConfig(), "network": NetworkConfig("set", hidden=8)}),
        ("network.kind", {"agent": EsConfig(), "network": NetworkConfig("mlp")}),
        ("network.kind", {"network": NetworkConfig("control-set")}),
        ("network.kind", {"agent": DqnConfig(), "network": NetworkConfig("control-set")}),
        ("imitation.steps", {"agent": EsConfig(), "imitation": ImitationConfig(steps=1)}),
    ],
)
def test_a_network_or_a_warm_start_that_does_not_fit_the_algorithm_is_named(field: str, settings: dict[str, Any]):
    with refused(field):
        TrainingConfig(**settings)


def test_numbers_of_numpy_are_written_down_like_others():
    config = TrainingConfig(
        seed=np.int64(3),
        validation_seeds=(np.int64(7),),
        agent=PpoConfig(n_steps=np.int32(8), kl_coef=np.float64(0.5)),
    )
    plain = TrainingConfig(seed=3, validation_seeds=(7,), agent=PpoConfig(n_steps=8, kl_coef=0.5))
    assert json.dumps(config.as_dict()) == json.dumps(plain.as_dict())


def test_a_run_must_have_something_to_do():
    with refused("steps", 0):
        TrainingConfig(steps=0, imitation=ImitationConfig(steps=0))
    TrainingConfig(steps=0, imitation=ImitationConfig(steps=1))
    TrainingConfig(steps=1, imitation=ImitationConfig(steps=0))


@pytest.mark.parametrize(
    "agent", [PpoConfig(n_steps=8), MaskablePpoConfig(), A2cConfig(), DqnConfig(buffer_size=9), EsConfig(pairs=2)]
)
def test_settings_can_be_written_down_and_read_again(agent: Any):
    network = NetworkConfig("controls" if isinstance(agent, EsConfig) else "mlp", 16)
    config = TrainingConfig(agent=agent, scenarios=("tiny", "default"), network=network)
    document = json.loads(json.dumps(config.as_dict(), allow_nan=False))
    sections = {"network": NetworkConfig, "imitation": ImitationConfig}
    values = {name: sections[name](**entry) if name in sections else entry for name, entry in document.items()}
    values["agent"] = ALGORITHMS[values["agent"].pop("algorithm")](**values["agent"])
    values |= {name: tuple(values[name]) for name in ("scenarios", "validation_seeds")}
    assert TrainingConfig(**values) == config


def test_settings_do_not_change():
    with pytest.raises(FrozenInstanceError):
        TrainingConfig().steps = 3  # type: ignore[misc]


@pytest.mark.parametrize("expert", expert_names())
def test_every_expert_is_a_policy_that_decides_job_by_job(expert: str):
    assert isinstance(make_policy(expert), JobPolicy)


@pytest.mark.parametrize("settings", [None, 3, ["cluster.nodes"], {3: 4}])
def test_settings_of_scenarios_are_a_mapping_of_names(settings: Any):
    with refused("scenario_settings", settings):
        TrainingConfig(scenario_settings=settings)


def test_a_setting_of_scenarios_that_no_file_holds_is_named():
    with refused("scenario_settings['trace']"):
        TrainingConfig(scenario_settings={"trace": object()})


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
