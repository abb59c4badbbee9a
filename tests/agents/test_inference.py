"""Agents as policies: the compiled network is that of PyTorch, and every interface has the same decisions."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import numpy as np
import torch

import agent_folders
from agent_networks import ENVIRONMENT, SCENARIOS, any_of, network, policy, seen, small_instance
from any_instance import AnyInstance
from gpusched_agents.files.storage import save_agent
from gpusched_agents.network.inference import PATIENCE, flat_weights, mlp_scores, set_scores
from gpusched_agents.network.policies import NETWORKS
from gpusched_agents.policy import AgentPolicy, load_policy
from gpusched_env import GpuClusterEnv, load_scenario, make_instance, rollout, simulate
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.simulator import layout as at
from instances import random_instance
from refusals import refused

if TYPE_CHECKING:
    from pathlib import Path

    from gpusched_env import Instance, Result

PLAIN = {"milestones": 0, "due_date_timers": False, "consolidation": False}
CASES = [*((name, 0) for name in (*SCENARIOS, "all kinds")), ("tiny", 2), ("all kinds", 1), ("crowded", 17)]


pytestmark = pytest.mark.usefixtures("one_thread")


def same_run(one: Result, other: Result) -> None:
    np.testing.assert_array_equal(one.log, other.log)
    assert one.total_eur == pytest.approx(other.total_eur, rel=1e-12)


@pytest.mark.parametrize("hidden", [1, 8, 64])
@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("name", [*SCENARIOS, "all kinds"])
def test_compiled_scores_are_those_of_torch(kind: str, name: str, hidden: int):
    instance = any_of(name)
    observation, _ = seen(instance)
    made = network(instance, kind, hidden=hidden, masks=False)
    with torch.no_grad():
        expected = made(observation)[0].numpy()
    flat = flat_weights(kind, {key: tensor.numpy() for key, tensor in made.state_dict().items()})
    out = np.full(1 + len(instance.configurations), np.nan, np.float32)
    for b, row in enumerate(expected):
        one = {part: values[b].numpy() for part, values in observation.items()}
        options = one["options"].reshape(len(instance.configurations), -1)
        parts = (one["job"], options, one["cluster"].reshape(len(instance.gpu_types), -1), one["queue"])
        if kind == "set":
            set_scores(*parts, instance.type_of_configuration, flat, hidden, out)
        else:
            mlp_scores(*parts, flat, hidden, out)
        np.testing.assert_allclose(out, row, rtol=0.0, atol=1e-5)
    assert expected.std() > 1e-3


def stepped(instance: Instance, made: Any, **settings: Any) -> tuple[Result, set[int]]:
    """Step the environment with the best action by torch; return the run and its set of actions.

    Where no job has run for so long that an agent may not wait, it is the best of the other actions, if any.
    """
    env, actions, over = AnyInstance(instance, **settings), set(), False
    observation, info = env.reset()
    while not over:
        with torch.no_grad():
            scores = made({part: torch.from_numpy(values[None]) for part, values in observation.items()})[0][0].tolist()
        allowed = np.flatnonzero(info["action_mask"])
        if env.view.count[at.IDLE] >= PATIENCE and len(allowed) > 1:
            allowed = allowed[1:]
        ranked = sorted(allowed, key=lambda action: scores[action], reverse=True)
        assert len(ranked) == 1 or scores[ranked[0]] > scores[ranked[1]] + 1e-6, "a tie: take another seed"
        actions.add(ranked[0])
        observation, _, over, _, info = env.step(ranked[0])
    return env.result(), actions


@pytest.mark.parametrize("settings", [ENVIRONMENT, PLAIN, PLAIN | {"preemption": False, "job_order": "due"}])
@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize(("name", "seed"), CASES)
def test_an_agent_decides_alike_through_every_interface(name: str, seed: int, kind: str, settings: dict[str, Any]):
    """Through `simulate`, through `rollout`, and by torch in the environment of its training."""
    instance = any_of(name)
    made = network(instance, kind, seed, waits=0.05)
    agent = policy(instance, made, kind, **settings)
    direct = simulate(instance, agent)
    env = AnyInstance(instance, job_order=agent.job_order, preemption=agent.preemption, **PLAIN)
    through, rewards = rollout(env, agent)
    same_run(through, direct)
    assert -rewards == pytest.approx(direct.total_eur, rel=1e-9)
    by_torch, actions = stepped(instance, made, **settings)
    same_run(by_torch, direct)
    assert len(actions) > 1


@pytest.mark.parametrize("kind", NETWORKS)
def test_an_agent_decides_alike_in_the_vector_environment(kind: str):
    instances = [make_instance(load_scenario("tiny"), seed) for seed in range(5)]
    made = network(instances[0], kind, waits=-1.0)
    env = GpuClusterVectorEnv(5, "tiny", **ENVIRONMENT)
    observation, _ = env.reset(options={"instance": instances})
    over = np.zeros(5, dtype=np.bool_)
    while not over.all():
        with torch.no_grad():
            scores = made({part: torch.from_numpy(values) for part, values in observation.items()})[0]
        observation, _, ended, _, infos = env.step(scores.argmax(dim=1).numpy())
        for i in np.flatnonzero(ended & ~over):
            result = simulate(instances[i], policy(instances[i], made, kind))
            total = infos["total_energy_eur"][i] + infos["total_tardiness_eur"][i]
            assert total == pytest.approx(result.total_eur, rel=1e-12)
        over |= ended


@pytest.mark.parametrize("setting", ["consolidation", "due_date_timers"])
def test_the_settings_of_its_environment_make_a_difference(setting: str):
    """The test of all interfaces includes them."""
    instance = any_of("crowded")
    made = network(instance, seed=17, waits=0.05)
    one, other = (policy(instance, made, **(ENVIRONMENT | {setting: flag})) for flag in (True, False))
    assert simulate(instance, one).total_eur != simulate(instance, other).total_eur


def test_a_best_action_that_cannot_be_placed_is_not_taken():
    """A network without masks, as DQN trains it, also chooses only among actions that can be placed."""
    instance = small_instance()
    free, masked = (policy(instance, network(instance, masks=masks)) for masks in (False, True))
    same_run(simulate(instance, free), simulate(instance, masked))


@pytest.mark.parametrize("settings", [ENVIRONMENT, PLAIN])
def test_an_agent_that_would_wait_for_ever_may_not_at_last(settings: dict[str, Any]):
    """After the last submission it may wait for at most a day of idle reviews."""
    instance = make_instance(load_scenario("tiny"), 0)
    made = network(instance, waits=1e6)
    result = simulate(instance, policy(instance, made, **settings))
    last = instance.jobs.submission_s.max()
    assert result.start_s.min() > last
    if settings is PLAIN:
        assert result.start_s.min() == pytest.approx(last + PATIENCE * 3600.0, abs=3600.0)
    same_run(stepped(instance, made, **settings)[0], result)


def test_an_agent_may_wait_for_jobs_to_come():
    """The first job is submitted long before the others, and waits for them."""
    instance = random_instance(0, span_s=4e7)
    agent = policy(instance, network(instance, waits=1e6))
    assert simulate(instance, agent).start_s.min() > instance.jobs.submission_s.max()


@pytest.mark.parametrize("types", [1, 2, 3])
@pytest.mark.parametrize(("nodes", "jobs"), [(3, 1), (9, 40), (120, 30)])
def test_a_set_network_decides_on_other_numbers_of_nodes_jobs_and_types(types: int, nodes: int, jobs: int):
    trained_on = small_instance()
    agent = policy(trained_on, network(trained_on, waits=-1.0))
    other = random_instance(5, nodes=nodes, jobs=jobs, types=types, kinds=True)
    agent.check(other)
    result = simulate(other, agent)
    assert np.isfinite(result.completion_s).all()


def test_an_agent_refuses_what_it_was_not_trained_for():
    tiny, mixed = make_instance(load_scenario("tiny"), 0), small_instance()
    single, exact = policy(tiny, network(tiny)), policy(tiny, network(tiny, "mlp"), "mlp")
    single.check(tiny)
    single.check(random_instance(0))
    exact.check(make_instance(load_scenario("default"), 3))
    with refused("instance.configurations", "T0x0.2 (shared)", "single-node configurations"):
        single.check(mixed)
    with refused("instance.configurations", allowed="those that the agent was trained with"):
        exact.check(random_instance(0))


@pytest.mark.parametrize("kind", NETWORKS)
def test_an_agent_can_be_sent_to_another_process(kind: str):
    instance = small_instance()
    agent = policy(instance, network(instance, kind), kind)
    copy = pickle.loads(pickle.dumps(agent))  # noqa: S301 - our own
    assert (copy.name, copy.spec, copy.width) == (agent.name, agent.spec, agent.width)
    same_run(simulate(instance, copy), simulate(instance, agent))


def test_an_agent_keeps_nothing_of_a_run():
    instance, other = small_instance(), small_instance(1)
    agent = policy(instance, network(instance))
    first = simulate(instance, agent)
    simulate(other, agent)
    same_run(simulate(instance, agent), first)


def saved(folder: Path, **changes: Any) -> str:
    """Save an agent for the configurations of `tiny`; return its name for `load_policy`."""
    env = GpuClusterEnv("tiny")
    spec = agent_folders.AgentSpec.of("set", env.configurations, env.instance.gpu_types, **changes)
    save_agent(folder, agent_folders.description(spec=spec), agent_folders.weights(of=spec))
    return f"agent:{folder}"


def test_a_saved_agent_decides_with_the_weights_and_settings_that_were_saved(tmp_path: Path):
    name = saved(tmp_path / "one", milestones=0, consolidation=True, job_order="due")
    loaded = load_policy(name)
    assert (loaded.name, loaded.job_order, loaded.preemption) == (name, "due", True)
    spec = loaded.spec
    flat = flat_weights("set", agent_folders.weights(of=spec))
    expected = AgentPolicy(name, spec, flat, agent_folders.HIDDEN)
    instance = make_instance(load_scenario("tiny"), 1)
    same_run(simulate(instance, loaded), simulate(instance, expected))


PROGRAM = """
import sys
from gpusched_agents.policy import load_policy
from gpusched_env import load_scenario, make_instance, simulate
result = simulate(make_instance(load_scenario("tiny"), 0), load_policy(sys.argv[1]))
print(result.total_eur, sorted({"torch", "stable_baselines3", "sb3_contrib"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_an_agent_is_loaded_and_decides_without_torch(tmp_path: Path):
    name = saved(tmp_path / "one", milestones=0)
    command = [sys.executable, "-c", PROGRAM, name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    total, modules = done.stdout.split(maxsplit=1)
    assert modules.strip() == "[]"
    assert float(total) == simulate(make_instance(load_scenario("tiny"), 0), load_policy(name)).total_eur
