"""The warm start: asking the expert changes nothing, and the agent learns its actions."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import numpy as np
import torch

from agent_networks import ENVIRONMENT, any_of
from any_instance import AnyInstance
from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training.algorithm_config import A2cConfig, MaskablePpoConfig, PpoConfig
from gpusched_agents.training.algorithms import discounting_of, make_env, make_model
from gpusched_agents.training.config import ImitationConfig, TrainingConfig
from gpusched_agents.training.imitation import Expert, Imitation
from gpusched_baselines.registry import expert_names
from gpusched_env import load_scenario, make_instance, simulate

ENVS, HIDDEN = 4, 8


pytestmark = pytest.mark.usefixtures("one_thread")


def imitation(agent: Any = None, *, seed: int = 0, **settings: Any) -> Imitation:
    """Make the warm start of an untrained agent on `tiny`, its episodes begun."""
    given = {"steps": 4000, "rollout": 50, "batch_size": 50, "learning_rate": 0.01, "epochs": 4, "beta": 0.0}
    config = TrainingConfig(
        agent=agent or MaskablePpoConfig(n_steps=16, batch_size=32),
        scenarios=("tiny",),
        envs=ENVS,
        network=NetworkConfig(hidden=HIDDEN),
        imitation=ImitationConfig(**(given | settings)),
        seed=seed,
    )
    env = make_env(config)
    model: Any = make_model(config, env)
    model._last_obs = env.reset()
    return Imitation(model, config.imitation, np.random.default_rng(seed), discounting_of(config.agent))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expert", "beta", "agent"),
    [
        ("fifo", 0.0, PpoConfig(n_steps=16, batch_size=32)),
        ("sts", 0.0, A2cConfig()),
        ("sts-x", 1.0, MaskablePpoConfig(n_steps=16, batch_size=32)),
    ],
)
def test_an_agent_learns_what_its_expert_does(expert: str, beta: float, agent: Any):
    warm_start = imitation(agent, expert=expert, beta=beta)
    measured = [warm_start.iterate() for _ in range(9)]
    agreement = [one["agreement"] for one in measured]
    assert np.mean(agreement[-3:]) > agreement[0] + 0.2
    assert np.mean([one["loss"] for one in measured[-3:]]) < 0.7 * measured[0]["loss"]
    assert warm_start.done == 9 * 50 * ENVS


def arrays_of(view: Any) -> dict[str, np.ndarray]:
    """Copy all arrays of the state that a policy sees, but its own memory."""
    arrays = view.board.__getstate__() | view.board.facts.__getstate__()
    return {name: array.copy() for name, array in arrays.items() if name not in {"memory", "facts"}}


@pytest.mark.slow
@pytest.mark.parametrize("expert", expert_names())
@pytest.mark.parametrize("name", ["tiny", "all kinds", "crowded"])
def test_asking_an_expert_changes_nothing(expert: str, name: str):
    """Only its own memory changes; so the run is the same as without asking.

    In the crowded scenario STS-X moves jobs from their nodes.
    """
    instance = any_of(name)
    asked, other = (AnyInstance(instance, **ENVIRONMENT) for _ in range(2))
    rng, over, outputs = np.random.default_rng(0), False, set()
    _, info = asked.reset()
    other.reset()
    master = Expert(expert)
    while not over:
        before = arrays_of(asked.view)
        (action,) = master.actions((asked.view,), np.array([asked.job]))
        after = arrays_of(asked.view)
        assert len(before) >= 20
        for part, array in before.items():
            np.testing.assert_array_equal(after[part], array, err_msg=part)
        assert info["action_mask"][action]
        outputs.add(int(action))
        chosen = int(action if rng.random() < 0.5 else rng.choice(np.flatnonzero(info["action_mask"])))
        _, _, over, _, info = asked.step(chosen)
        np.testing.assert_array_equal(info["action_mask"], other.step(chosen)[4]["action_mask"])
    np.testing.assert_array_equal(asked.result().log, other.result().log)
    assert len(outputs) > 2


@pytest.mark.slow
@pytest.mark.parametrize("expert", expert_names())
def test_an_expert_answers_what_it_does(expert: str):
    """With all actions of the expert the schedule is that of `simulate`."""
    instance, master = make_instance(load_scenario("tiny"), 1), Expert(expert)
    policy = master.policy
    env = AnyInstance(instance, job_order=policy.job_order, preemption=policy.preemption, milestones=0)
    env.reset()
    over = False
    while not over:
        memory = env.view.memory.copy()
        (action,) = master.actions((env.view,), np.array([env.job]))
        env.view.memory[:] = memory  # it plans again only without the memory of its plan
        choice = policy.choose(env.view, env.job)
        assert choice.config + 1 == action
        env.view.apply(env.job, choice)
        over = env.step(action)[2]
    np.testing.assert_array_equal(env.result().log, simulate(instance, policy).log)


@pytest.mark.slow
def test_the_critic_learns_those_returns_if_they_have_a_weight():
    values = {}
    for weight in (0.0, 0.5):
        warm_start = imitation(expert="fifo", value_weight=weight)
        policy = warm_start._model.policy
        before = [parameter.detach().clone() for parameter in policy.vf_features_extractor.parameters()]
        loss = warm_start.iterate()["value_loss"]  # over four epochs of the same decisions with both weights
        after = policy.vf_features_extractor.parameters()
        values[weight] = loss, all(torch.equal(*pair) for pair in zip(before, after, strict=True))
    assert values[0.0][1]
    assert not values[0.5][1]
    assert values[0.5][0] < values[0.0][0]


def test_the_learning_rate_falls_to_a_tenth():
    warm_start = imitation(expert="fifo", steps=4 * 50 * ENVS, learning_rate=0.01)
    rates = []
    for _ in range(4):
        warm_start.iterate()
        rates.append(warm_start._model.policy.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.01, 0.00775, 0.0055, 0.00325])


def test_the_expert_acts_in_half_of_the_decisions_with_beta_one_half(monkeypatch: pytest.MonkeyPatch):
    """It acts in the first half of 400 decisions; the agent alone rarely takes FIFO's actions."""
    outputs: list[np.ndarray] = []
    done: list[np.ndarray] = []
    ask = Expert.actions
    monkeypatch.setattr(Expert, "actions", lambda *given: outputs.append(ask(*given)) or outputs[-1])
    warm_start = imitation(expert="fifo", steps=400, beta=0.5, learning_rate=1e-9)
    env: Any = warm_start._model.env
    step = env.step
    monkeypatch.setattr(env, "step", lambda actions: done.append(actions) or step(actions))
    shares = []
    for _ in range(4):
        warm_start.iterate()
        shares.append(float(np.mean(np.concatenate(outputs[-50:]) == np.concatenate(done[-50:]))))
    assert warm_start.done == 4 * 50 * ENVS
    assert 0.4 < shares[0] < 0.8
    assert max(shares[1:]) < shares[0] - 0.2


def test_a_warm_start_is_a_function_of_its_seed():
    runs = [[imitation(expert="fifo", beta=1.0, seed=seed).iterate() for _ in range(2)] for seed in (0, 0, 1)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
