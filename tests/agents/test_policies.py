"""The networks as policies of Stable-Baselines3: all four algorithms learn with them; their weights are exported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import numpy as np
import torch
from stable_baselines3 import PPO

from agent_networks import any_of, policy, seen
from gpusched_agents.network.policies import NETWORKS, SetNetwork, actor_of, export_model
from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import A2cConfig, DqnConfig, MaskablePpoConfig, PpoConfig
from gpusched_agents.training.algorithms import CLASSES, make_env, make_model
from gpusched_agents.training.config import ImitationConfig, TrainingConfig
from gpusched_env import GpuClusterEnv, simulate
from refusals import refused

ENVS, HIDDEN, ACTIONS = 4, 8, 21
AGENTS = {
    "maskable-ppo": MaskablePpoConfig(n_steps=16, batch_size=32, learning_rate=0.01),
    "ppo": PpoConfig(n_steps=16, batch_size=32, learning_rate=0.01),
    "a2c": A2cConfig(n_steps=16, learning_rate=0.01),
    "dqn": DqnConfig(buffer_size=400, learning_starts=40, batch_size=16, learning_rate=0.01, target_update_interval=40),
}
WITH_A_CRITIC = ("maskable-ppo", "ppo", "a2c")
PAIRS = pytest.mark.parametrize(("algorithm", "kind"), [(a, k) for a in AGENTS for k in NETWORKS])


pytestmark = pytest.mark.usefixtures("one_thread")


def model_of(algorithm: str, kind: str = "set", **changes: Any) -> Any:
    """Make an untrained model on `tiny`."""
    settings = {
        "agent": AGENTS[algorithm],
        "scenarios": ("tiny",),
        "envs": ENVS,
        "network": NetworkConfig(kind, HIDDEN),
        "imitation": ImitationConfig(steps=0),
    }
    config = TrainingConfig(**(settings | changes))
    return make_model(config, make_env(config))


def tiny_rounds() -> tuple[dict[str, torch.Tensor], np.ndarray]:
    return seen(any_of("tiny"), steps=80)


def arrays(module: torch.nn.Module) -> dict[str, np.ndarray]:
    return {name: tensor.numpy().copy() for name, tensor in module.state_dict().items()}


def changed(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> set[str]:
    return {name for name, array in before.items() if not np.array_equal(array, after[name])}


@pytest.mark.parametrize("algorithm", ["ppo", "maskable-ppo"])
def test_the_learning_rate_of_ppo_falls_in_a_line(algorithm: str):
    model = model_of(algorithm, agent=replace(AGENTS[algorithm], final_learning_rate=0.002))
    assert [model.lr_schedule(left) for left in (1.0, 0.75, 0.0)] == pytest.approx([0.01, 0.008, 0.002])
    model.learn(4 * 16 * ENVS)
    assert model.policy.optimizer.param_groups[0]["lr"] == pytest.approx(0.002)


@PAIRS
def test_every_algorithm_learns_with_every_network(algorithm: str, kind: str):
    model = model_of(algorithm, kind)
    assert type(model) is CLASSES[algorithm][0]
    before = arrays(actor_of(model))
    model.learn(3 * 16 * ENVS)
    after = arrays(actor_of(model))
    assert changed(before, after) == set(before)
    assert all(np.isfinite(array).all() for array in after.values())


@pytest.mark.parametrize("algorithm", AGENTS)
def test_the_settings_reach_the_algorithm(algorithm: str):
    model = model_of(algorithm, agent=replace(AGENTS[algorithm], max_grad_norm=0.25))
    assert (model.max_grad_norm, model.n_envs, model.lr_schedule(1.0)) == (0.25, ENVS, 0.01)
    assert model.policy.optimizer.param_groups[0]["lr"] == 0.01
    everything = {id(parameter) for parameter in model.policy.parameters() if parameter.requires_grad}
    optimized = {id(parameter) for parameter in model.policy.optimizer.param_groups[0]["params"]}
    assert optimized <= everything
    assert {id(parameter) for parameter in actor_of(model).parameters()} <= optimized


@pytest.mark.parametrize("algorithm", AGENTS)
def test_a_model_that_stays_near_its_imitation_is_saved_without_it(algorithm: str, tmp_path: Path):
    model = model_of(algorithm)
    expected = export_model(model)[2]
    model.policy.imitated = (actor_of(model_of(algorithm)).network,)
    model.save(tmp_path / "model.zip")
    found = export_model(CLASSES[algorithm][0].load(tmp_path / "model.zip", device="cpu"))[2]
    assert not changed(expected, found)


@pytest.mark.parametrize("algorithm", WITH_A_CRITIC)
def test_the_divergence_from_the_imitation_has_a_weight_of_its_own_after_a_warm_start(algorithm: str):
    agent = replace(AGENTS[algorithm], ent_coef=0.25, kl_coef=0.75)
    assert model_of(algorithm, agent=agent).ent_coef == 0.25
    assert model_of(algorithm, agent=agent, imitation=ImitationConfig()).ent_coef == 0.75


@pytest.mark.parametrize("algorithm", WITH_A_CRITIC)
def test_a_policy_near_its_imitation_has_the_divergence_in_place_of_the_entropy(algorithm: str):
    """It is 0 at the imitation, elsewhere Σ p log(p / q), and values and chances are the same as without one."""
    model, other = model_of(algorithm), model_of(algorithm).learn(4 * 16 * ENVS)
    observation, allowed = tiny_rounds()
    actions = torch.from_numpy(allowed.argmax(axis=1))
    masks = {"action_masks": torch.from_numpy(allowed)} if algorithm == "maskable-ppo" else {}
    with torch.no_grad():
        plain = model.policy.evaluate_actions(observation, actions, **masks)
        model.policy.imitated = (actor_of(model).network,)
        at_it = model.policy.evaluate_actions(observation, actions, **masks)
        model.policy.imitated = (actor_of(other).network,)
        elsewhere = model.policy.evaluate_actions(observation, actions, **masks)
        p, q = (torch.softmax(actor_of(one).network(observation)[0], dim=1) for one in (model, other))
        summed = torch.where(p > 0.0, p * (p.log() - q.log()), torch.zeros(1)).sum(dim=1)
    for found in (at_it, elsewhere):
        torch.testing.assert_close(found[0].reshape(-1), plain[0].reshape(-1))
        torch.testing.assert_close(found[1], plain[1])
    assert (at_it[2] == 0.0).all()
    torch.testing.assert_close(elsewhere[2], -summed, rtol=1e-3, atol=1e-5)
    assert elsewhere[2].max() < 0.0


def test_the_gradient_of_the_divergence_leads_to_the_imitation():
    model, other = model_of("ppo"), model_of("ppo")
    model.policy.imitated = (actor_of(other.learn(4 * 16 * ENVS)).network,)
    observation, allowed = tiny_rounds()
    divergences = []
    for _ in range(100):
        divergence = -model.policy.evaluate_actions(observation, torch.zeros(len(allowed)))[2].mean()
        model.policy.optimizer.zero_grad()
        divergence.backward()
        model.policy.optimizer.step()
        divergences.append(divergence.item())
    assert divergences[-1] < 0.2 * divergences[0]


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("algorithm", WITH_A_CRITIC)
def test_what_cannot_be_placed_is_never_chosen(algorithm: str, kind: str):
    """Neither with the best action nor with a sampled one, and without masks as arguments."""
    model = model_of(algorithm, kind).learn(2 * 16 * ENVS)
    observation, allowed = tiny_rounds()
    rows = np.arange(len(allowed))
    numbers = {part: values.numpy() for part, values in observation.items()}
    for deterministic in (True, False):
        actions, _ = model.predict(numbers, deterministic=deterministic)
        assert allowed[rows, actions].all()
    assert len(set(actions.tolist())) > 1
    assert not allowed.all()


@pytest.mark.parametrize("algorithm", WITH_A_CRITIC)
def test_at_first_all_that_can_be_placed_is_about_equally_likely(algorithm: str):
    model = model_of(algorithm)
    observation, allowed = tiny_rounds()
    with torch.no_grad():
        chances = model.policy.get_distribution(observation).distribution.probs.numpy()
    even = allowed / allowed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances, even, atol=0.02 * even.max())


@pytest.mark.parametrize("algorithm", WITH_A_CRITIC)
def test_chances_are_those_that_the_scores_give(algorithm: str):
    model = model_of(algorithm).learn(2 * 16 * ENVS)
    observation, _ = tiny_rounds()
    with torch.no_grad():
        chances = model.policy.get_distribution(observation).distribution.probs
        scores = actor_of(model).network(observation)[0]
    torch.testing.assert_close(chances, torch.softmax(scores, dim=1))


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("algorithm", WITH_A_CRITIC)
def test_the_critic_has_a_network_of_its_own_that_scores_nothing(algorithm: str, kind: str):
    model = model_of(algorithm, kind)
    policy_ = model.policy
    observation, _ = tiny_rounds()
    with torch.no_grad():
        values = policy_.predict_values(observation)
    before = arrays(policy_.vf_features_extractor)
    model.learn(2 * 16 * ENVS)
    moved = changed(before, arrays(policy_.vf_features_extractor))
    assert moved
    assert not any(name.startswith(("network.score", "network.wait", "network.out")) for name in moved)
    with torch.no_grad():
        features = policy_.vf_features_extractor(observation)
        assert (features[:, :ACTIONS] == 0.0).all()
        assert features.shape == (80, ACTIONS + HIDDEN)
        assert not torch.allclose(policy_.predict_values(observation), values)
        own = policy_.vf_features_extractor.network.summary(observation)
        torch.testing.assert_close(policy_.predict_values(observation), policy_.value_net(own))


@pytest.mark.parametrize("kind", NETWORKS)
def test_values_of_dqn_are_the_scores_of_its_network_and_finite(kind: str):
    model = model_of("dqn", kind).learn(3 * 16 * ENVS)
    observation, allowed = tiny_rounds()
    with torch.no_grad():
        values = model.policy.q_net(observation)
        torch.testing.assert_close(values, actor_of(model).network(observation)[0])
    assert values.shape == (80, ACTIONS)
    assert (values.abs() < 1e4).all()
    assert not allowed.all()
    assert model.policy.q_net_target.features_extractor is not model.policy.q_net.features_extractor


@PAIRS
def test_what_is_exported_and_loaded_again_scores_alike(algorithm: str, kind: str):
    model = model_of(algorithm, kind).learn(2 * 16 * ENVS)
    exported_kind, config, weights = export_model(model)
    assert (exported_kind, config) == (kind, {"network": {"kind": kind, "hidden": HIDDEN, "distribution": True}})
    assert all(array.dtype == np.float32 for array in weights.values())
    instance = any_of("tiny")
    made = NETWORKS[kind](instance.type_of_configuration.tolist(), HIDDEN, masks=algorithm != "dqn")
    made.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    observation, _ = tiny_rounds()
    with torch.no_grad():
        assert torch.equal(made(observation)[0], actor_of(model).network(observation)[0])


def test_what_is_exported_is_a_copy():
    model = model_of("ppo")
    before = arrays(actor_of(model))
    for array in export_model(model)[2].values():
        array[...] = 7.0
    assert not changed(before, arrays(actor_of(model)))


@pytest.mark.parametrize("kind", NETWORKS)
def test_what_a_network_may_not_see_is_forgotten_when_it_is_exported(kind: str):
    """An exported network has no list of its features: the scores are the same without one."""
    model = model_of("ppo", network=NetworkConfig(kind, HIDDEN, distribution=False)).learn(16 * ENVS)
    _, config, weights = export_model(model)
    assert config["network"]["distribution"] is False
    made = NETWORKS[kind](any_of("tiny").type_of_configuration.tolist(), HIDDEN, distribution=True)
    made.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    observation, _ = tiny_rounds()
    with torch.no_grad():
        torch.testing.assert_close(made(observation)[0], actor_of(model).network(observation)[0])
        made.load_state_dict(actor_of(model).network.state_dict())
        assert not torch.allclose(made(observation)[0], actor_of(model).network(observation)[0])


def test_an_exported_model_decides_as_the_model_predicts():
    model = model_of("maskable-ppo").learn(2 * 16 * ENVS)
    instance = any_of("tiny")
    network = actor_of(model).network
    assert isinstance(network, SetNetwork)
    observation, allowed = tiny_rounds()
    actions, _ = model.predict({part: values.numpy() for part, values in observation.items()}, deterministic=True)
    with torch.no_grad():
        np.testing.assert_array_equal(actions, network(observation)[0].argmax(dim=1))
    assert allowed[np.arange(len(actions)), actions].all()
    assert np.isfinite(simulate(instance, policy(instance, network)).completion_s).all()


def test_a_policy_of_another_kind_cannot_be_exported():
    model = PPO("MultiInputPolicy", GpuClusterEnv("tiny"), n_steps=8, batch_size=8, device="cpu")
    with refused("model.policy", "MultiInputActorCriticPolicy"):
        export_model(model)


def test_the_same_seed_makes_the_same_model():
    first, second, other = (arrays(model_of("ppo", seed=seed).policy) for seed in (3, 3, 4))
    assert not changed(first, second)
    assert changed(first, other)
