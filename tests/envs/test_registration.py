"""A dozen ids, and every track by `scenario`: both checkers are silent, and make_vec is the compiled one."""

from __future__ import annotations

import re
import warnings
from dataclasses import fields
from inspect import signature
from itertools import product
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from gpusched_baselines import make_policy
from gpusched_baselines.adaptation_env import GpuAdaptationEnv, GpuAdaptationVectorEnv
from gpusched_env import (
    ENVIRONMENT_ID,
    GpuClusterEnv,
    GpuClusterVectorEnv,
    load_scenario,
    register_envs,
    rollout,
)
from gpusched_env.simulator import Asking
from gpusched_env.workload import list_environments, load_track, reward_scale_of, step_limit_of
from refusals import refused
from vector_twins import check_made, random_actions

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"
FLAT_ID, LIVE = "gpusched_env/GpuClusterFlat-v0", "gpusched_env/LiveSlurm-v0"
FEW = {"jobs.count": 5}
NAMED = {"Slack": "slack", "Busy": "busy", "Published1": "published-1"}


def test_a_dozen_ids_are_registered_and_registering_twice_does_nothing():
    before = dict(gymnasium.registry)
    register_envs()
    assert dict(gymnasium.registry) == before
    general = {ENVIRONMENT_ID, FLAT_ID, "gpusched_env/GpuAdaptation-v0"}
    named = {f"gpusched_env/{name}{kind}-v0" for name, kind in product(NAMED, ("", "Flat", "Adaptation"))}
    assert {name for name in before if name.startswith("gpusched_env/")} - {LIVE} == general | named
    with pytest.raises(gymnasium.error.NameNotFound):
        gymnasium.make("gpusched_env/Full-v0")


@pytest.mark.parametrize(("name", "track"), NAMED.items())
def test_the_id_of_a_track_is_the_general_one_with_its_scenario(name, track):
    for kind, general in (("", ENVIRONMENT_ID), ("Flat", FLAT_ID), ("Adaptation", "gpusched_env/GpuAdaptation-v0")):
        own, same = gymnasium.make(f"gpusched_env/{name}{kind}-v0"), gymnasium.make(general, scenario=track)
        assert own.unwrapped.source.identity() == same.unwrapped.source.identity()
        assert own.observation_space == same.observation_space
        assert own.action_space == same.action_space
        if kind != "Adaptation":
            wanted = reward_scale_of(track), step_limit_of(track)
            assert [(each.unwrapped.reward_scale, each.unwrapped.step_limit) for each in (own, same)] == [wanted] * 2


COMPILED = [track for track in ("default", *list_environments()) if track != "failures"]
"""Those whose kernels `gpusched warm-up` compiles; the others are in the tests of their mechanisms."""


@pytest.mark.parametrize("track", COMPILED)
@pytest.mark.parametrize("name", [ENVIRONMENT_ID, FLAT_ID])
def test_both_checkers_are_silent(name, track):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, scenario=track, settings=FEW).unwrapped, skip_render_check=True)
        checker.check_env(gymnasium.make(f"gpusched_env:{name}", scenario=track, settings=FEW), warn=True)


@pytest.mark.parametrize("track", [track for track in list_environments() if not load_track(track).scenario.mechanisms])
def test_make_vec_of_a_track_is_the_compiled_environment_and_ends_as_the_single_one(track):
    check_made(track, FEW)


def test_options_are_keyword_arguments_and_win_over_those_of_the_track():
    settings = {"settings": FEW, "reward_scale": 3.0, "job_order": "due", "max_episode_steps": 7}
    env = gymnasium.make("gpusched_env/BusyFlat-v0", **settings)
    assert (env.unwrapped.reward_scale, env.unwrapped.asking.job_order) == (3.0, "due")
    many = gymnasium.make_vec("gpusched_env/BusyFlat-v0", 2, **settings, autoreset_mode=AutoresetMode.DISABLED)
    env.reset(seed=1)
    many.reset(seed=1)
    cut_off = [(env.step(0)[3], many.step(np.zeros(2, int))[3].tolist()) for _ in range(7)]
    assert cut_off == [(False, [False, False])] * 6 + [(True, [True, True])]


def test_what_is_no_track_has_a_reward_scale_of_1_and_no_limit_of_steps():
    for scenario in ("tiny", load_scenario("slack")):
        assert (reward_scale_of(scenario), step_limit_of(scenario)) == (1.0, None)
        env = gymnasium.make(ENVIRONMENT_ID, scenario=scenario, settings=FEW).unwrapped
        assert (env.reward_scale, env.step_limit) == (1.0, None)
    own = gymnasium.make(
        ENVIRONMENT_ID, scenario="slack", reward=lambda energy_eur, tardiness_eur: energy_eur + tardiness_eur
    )
    assert (own.unwrapped.reward_scale, own.unwrapped.step_limit) == (1.0, 50_000)


@pytest.mark.parametrize("track", ["slack", "lognormal", "whole-nodes", "pairs", "openb"])
def test_episodes_of_edf_return_about_minus_10(track):
    policy = make_policy("edf")
    asking = {"job_order": policy.job_order, "preemption": policy.preemption, "milestones": 0}
    env = gymnasium.make(ENVIRONMENT_ID, scenario=track, **asking)
    seeds = load_track(track).seeds("training")[:5]
    returns = [rollout(env.unwrapped, policy, seed=seed)[1] for seed in seeds]
    assert -13.0 < np.mean(returns) < -7.0


def test_a_random_agent_is_not_cut_off_on_a_track():
    env = gymnasium.make_vec("gpusched_env/Slack-v0", 2)
    rng, ended = np.random.default_rng(0), np.zeros(2, bool)
    infos = env.reset(seed=[100_000, 100_001])[1]
    while not ended.any():
        _, _, ended, truncated, infos = env.step(random_actions(infos["action_mask"], rng, invalid=0.0))
        assert not truncated.any()


def test_the_page_lists_the_scales_and_step_limits_of_all_tracks():
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([\d.]+) \| ([\d,]+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    expected = []
    for name in list_environments():
        track = load_track(name)
        expected.append((name, f"{track.reward_scale_eur:g}", f"{track.max_episode_steps:,}"))
    assert rows == expected


@pytest.mark.parametrize(
    ("name", "wrong", "near"),
    [(ENVIRONMENT_ID, "job_ordr", "job_order"), ("gpusched_env/SlackAdaptation-v0", "round", "rounds"),
     ("gpusched_env/SlackFlat-v0", "reward_scal", "reward_scale")],
)  # fmt: skip
def test_a_misspelt_parameter_is_named_with_the_nearest_one_and_signatures_show_all(name, wrong, near):
    for make in (gymnasium.make, lambda *given, **more: gymnasium.make_vec(*given, 2, **more)):
        with refused(wrong, 3) as caught:
            make(name, **{wrong: 3})
        assert f"did you mean {near}?" in str(caught.value)
    asked = {field.name for field in fields(Asking)}
    single, many = (signature(kind).parameters for kind in (GpuClusterEnv, GpuClusterVectorEnv))
    assert asked <= set(single) - {"asking"}
    assert set(single) - {"render_mode"} <= set(many)
    adapted = set(signature(GpuAdaptationEnv).parameters)
    assert adapted <= set(signature(GpuAdaptationVectorEnv).parameters) - {"keywords", "self"}
