"""The set of controls `energy`: neutral at 0, to the last bit, and its features of prices and of the cap."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_agents.network.control_policy import ControlPolicy, control_set
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env import GpuAdaptationEnv
from gpusched_baselines.adaptation_env.controls import (
    MOST_OF_ENERGY,
    OF_ENERGY,
    control_count,
    control_names,
    controls_of,
)
from gpusched_baselines.adaptation_env.observation import ENERGY, ENERGY_FEATURES, feature_count, rows_of
from gpusched_baselines.sts_x.plan import ENERGY_CONTROLS, energy_factor, unadapted
from gpusched_baselines.tuned import TunedStsX, action_of
from gpusched_env import GpuClusterEnv, Instance, simulate
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.cap.names import FEATURES as CAP_FEATURES
from gpusched_env.mechanisms.prices.model import PriceSeries
from gpusched_env.mechanisms.prices.names import FEATURES as PRICE_FEATURES
from gpusched_env.model import peak_kw
from instances import HOUR, random_instance
from limited import with_power_limits


def priced(seed: int = 3) -> Instance:
    """Make an instance whose price changes every hour; the price of the next day is known from noon on."""
    rng, hours = np.random.default_rng(seed), np.arange(-48.0, 120.0)
    published = np.where(hours < 24, -np.inf, np.floor(hours / 24.0) * 24.0 - 12.0) * HOUR
    series = PriceSeries(hours * HOUR, rng.lognormal(-2.0, 0.7, len(hours)), published_s=published)
    return random_instance(seed, jobs=8, span_s=1e5).with_mechanisms(series)


class Said:
    """An actor that always says the same."""

    state_size = 0

    def __init__(self, said: np.ndarray, inputs: int) -> None:
        self.said, self.inputs, self.outputs, self.seen = said, inputs, len(said), []

    def for_types(self, gpu_types: object) -> Said:
        return self

    def act(self, observation: np.ndarray, state: object = None) -> np.ndarray:
        self.seen.append(observation)
        return self.said


def capped(seed: int = 3) -> Instance:
    """Make an instance with power limits whose cap falls after some time."""
    made = with_power_limits(random_instance(seed, jobs=8), seed)
    peak = peak_kw(made)
    return made.with_mechanisms(PowerCap((0.0, 3000.0), (0.7 * peak, 0.5 * peak), soft_eur_per_kwh=0.5))


@pytest.mark.parametrize("make", [priced, capped])
def test_an_action_of_0_is_sts_x_to_the_last_bit(make):
    instance = make()
    env = GpuAdaptationEnv(instance=instance, controls="energy", rounds=3)
    env.reset(seed=0)
    over = False
    while not over:
        observation, _, over, _, info = env.step(np.zeros(env.action_space.shape))
        assert env.observation_space.contains(observation)
    assert info["total_eur"] == info["base_total_eur"] == simulate(instance, StsX()).total_eur


def test_five_controls_and_their_features_come_behind_those_of_a_round():
    env = GpuAdaptationEnv(instance=priced(), controls="energy", job_features=2)
    types = len(env.instance.gpu_types)
    assert env.controls[-ENERGY_CONTROLS:] == OF_ENERGY
    assert len(env.controls) == control_count(types, "energy") == control_count(types) + ENERGY_CONTROLS
    assert len(set(env.features)) == len(env.features) == feature_count(types, 2, "energy")
    assert len(env.features) == feature_count(types, 2) + ENERGY
    assert rows_of(len(env.features), types, "energy") == 2
    assert control_set(len(env.features), len(env.controls)) == "energy"
    assert control_set(feature_count(types), control_count(types)) == "round"
    assert control_set(feature_count(types), control_count(types, "jobs")) == "jobs"
    assert len(action_of({"price differences": 0.5}, ["V"])) == control_count(1, "energy")
    assert len(action_of({"restart": 0.5}, ["V"])) == control_count(1)
    assert len(action_of({}, ["V"], "energy")) == control_count(1, "energy")


def test_the_features_are_those_of_the_environment_with_the_hours_by_six():
    instance = priced()
    plain = GpuClusterEnv(instance=instance, price_features=True, cap_features=True, milestones=0)
    seen = plain.reset(seed=0)[0]
    env = GpuAdaptationEnv(instance=instance, controls="energy")
    first = feature_count(len(instance.gpu_types))
    energy = dict(zip(ENERGY_FEATURES, env.reset(seed=0)[0][first:].tolist(), strict=True))
    prices = dict(zip(PRICE_FEATURES, seen["prices"].tolist(), strict=True))
    caps = dict(zip(CAP_FEATURES, seen["cap"].tolist(), strict=True))
    for name, value in (prices | caps).items():
        if name in energy:
            assert energy[name] == pytest.approx(value, abs=1e-6), name
    hours = [value for name, value in prices.items() if name.startswith("squash(price from")]
    means = [value for name, value in energy.items() if name.startswith("mean of the same")]
    assert means == pytest.approx(np.reshape(hours, (6, 6)).mean(axis=1), abs=1e-6)


def test_controls_are_logarithms_of_factors_and_0_is_a_factor_of_exactly_1():
    names = control_names(["V"], "energy")
    assert names[:-ENERGY_CONTROLS] == control_names(["V"])
    configs = np.zeros((1, 16), dtype=np.int64)
    action = np.zeros(len(names))
    action[-ENERGY_CONTROLS:] = np.linspace(-1.0, 1.0, ENERGY_CONTROLS)
    controls = controls_of(action, configs, 1)
    assert controls.energy.tolist() == (action[-ENERGY_CONTROLS:] * MOST_OF_ENERGY).tolist()
    assert controls.by_feature.shape[0] == 0
    adaptation = unadapted(2, np.ones((1, 1)))
    assert [energy_factor(adaptation, k) for k in range(ENERGY_CONTROLS)] == [1.0] * ENERGY_CONTROLS
    changed = adaptation._replace(energy=np.full(ENERGY_CONTROLS, 0.5))
    assert energy_factor(changed, 0) == pytest.approx(np.exp(0.5))


@pytest.mark.parametrize("make", [priced, capped])
def test_a_policy_of_such_an_actor_sees_and_decides_as_in_the_environment(make):
    instance = make(5)
    types = [v.name for v in instance.gpu_types]
    said = np.random.default_rng(1).uniform(-0.6, 0.6, control_count(len(types), "energy"))
    env = GpuAdaptationEnv(instance=instance, controls="energy", rounds=4)
    observation, _ = env.reset(seed=0)
    seen, over = [observation], False
    while not over:
        observation, _, over, _, info = env.step(said)
        seen.append(observation)
    actor = Said(said, len(env.features))
    result = simulate(instance, ControlPolicy(name="said", actor=actor, rounds=4, controls="energy"))
    assert result.total_eur == info["total_eur"]
    np.testing.assert_array_equal(np.array(actor.seen), np.array(seen[:-1]))
    constants = tuple(zip(control_names(types, "energy"), said.tolist(), strict=True))
    assert simulate(instance, TunedStsX(constants=constants)).total_eur == info["total_eur"]
