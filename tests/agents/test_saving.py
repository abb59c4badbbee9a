"""Rewards of agents that decide job by job: what they save against STS-X."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sb3_contrib", reason="needs the extra `agents`")

import numpy as np

from gpusched_agents.training.algorithms import SlottedVecEnv, make_env
from gpusched_agents.training.config import TrainingConfig
from gpusched_agents.training.imitation import Expert
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.run import full_cluster_eur_per_h
from gpusched_env import load_scenario, make_instance, simulate

SEEDS = [1_000, 1_001]


def begin(scenario: str = "tiny") -> SlottedVecEnv:
    env = make_env(TrainingConfig(scenarios=(scenario,), envs=2))
    env.seed_each(SEEDS)
    env.reset()
    return env


def episodes(env: SlottedVecEnv, act: Any) -> list[tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    """Return rewards, times passed [s] and last info of the first episode of each environment."""
    rewards, passed_s, found = [], [], {}
    while len(found) < env.num_envs:
        _, reward, ended, infos = env.step(act(env))
        rewards.append(reward)
        passed_s.append(env.passed_s)
        for i in np.flatnonzero(ended).tolist():
            found.setdefault(i, (np.array(rewards)[:, i], np.array(passed_s)[:, i], infos[i]))
    return [found[i] for i in range(env.num_envs)]


def first_that_fits(env: SlottedVecEnv) -> np.ndarray:
    return env.action_masks()[:, ::-1].argmax(axis=1) * -1 + env.action_masks().shape[1] - 1


def by_edf(env: SlottedVecEnv) -> np.ndarray:
    return env.to_slots(Expert("edf").actions(env.views, env.jobs))


@pytest.mark.parametrize("scenario", ["tiny", "sharing", "published-high"])
@pytest.mark.parametrize("act", [first_that_fits, by_edf])
def test_the_rewards_of_an_episode_sum_to_the_cost_of_sts_x_less_its_own(scenario: str, act: Any):
    env = begin(scenario)
    scales = [full_cluster_eur_per_h(state.board) for state in env.states]
    for (rewards, _, info), seed, scale in zip(episodes(env, act), SEEDS, scales, strict=True):
        base_eur = simulate(make_instance(load_scenario(scenario), seed), StsX()).total_eur
        own_eur = info["total_energy_eur"] + info["total_tardiness_eur"]
        assert own_eur != pytest.approx(base_eur, rel=1e-3)
        assert float(rewards.sum(dtype=float)) * scale == pytest.approx(base_eur - own_eur, rel=1e-4, abs=1e-3)
        assert info["episode"]["r"] == pytest.approx(float(rewards.sum(dtype=float)), rel=1e-4, abs=1e-5)


def test_a_step_within_a_round_takes_no_time_and_has_no_reward():
    env = begin()
    first_s = [state.board.clock[0] for state in env.states]
    for (rewards, passed_s, info), begun_s in zip(episodes(env, by_edf), first_s, strict=True):
        assert 0.0 < np.mean(passed_s > 0.0) < 1.0
        assert (rewards[passed_s == 0.0] == 0.0).all()
        assert passed_s.sum() + begun_s == pytest.approx(info["time_s"])


def test_tardiness_counts_in_full_and_waiting_earns_nothing_back_for_work_that_was_not_done():
    """An episode in which all jobs wait until it is truncated: the last step has its costs, not the rest of the work.

    STS-X, whose waste counts against it, wastes much less than that tardiness.
    """
    env = begin()
    scale = full_cluster_eur_per_h(env.states[0].board)
    (rewards, _, info), _ = episodes(env, lambda env: np.zeros(env.num_envs, np.int64))
    assert info["stalled"]
    assert rewards[-1] < 0.0
    assert -1.2 < float(rewards.sum()) * scale / info["total_tardiness_eur"] < -0.9


def test_rewards_go_on_after_a_checkpoint():
    one, other = begin(), begin()
    for _ in range(30):
        one.step(by_edf(one))
    other.set_state(one.get_state())
    for _ in range(60):
        actions = by_edf(one)
        np.testing.assert_array_equal(one.step(actions)[1], other.step(actions)[1])
        np.testing.assert_array_equal(one.passed_s, other.passed_s)
