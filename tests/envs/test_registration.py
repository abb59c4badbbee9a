"""An id for every track, and a flat twin of each: both checkers are silent, and make_vec is the compiled one."""

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
    track_id,
)
from gpusched_env.simulator import Asking
from gpusched_env.workload import list_environments, load_track, reward_scale_of
from refusals import refused
from vector_twins import check_made, random_actions

PAGE = Path(__file__).parents[2] / "docs" / "environment.md"
FLAT_ID = "gpusched_env/GpuClusterFlat-v0"
IDS = [ENVIRONMENT_ID, FLAT_ID, *(track_id(track, kind) for track, kind in product(list_environments(), ("", "Flat")))]
FEW = {"jobs.count": 5}


@pytest.mark.parametrize(
    ("track", "kind", "name"),
    [
        ("slack", "", "gpusched_env/Slack-v0"),
        ("two-point", "Flat", "gpusched_env/TwoPointFlat-v0"),
        ("published-1", "", "gpusched_env/Published1-v0"),
        ("restarts-600", "Flat", "gpusched_env/Restarts600Flat-v0"),
    ],
)
def test_the_id_of_a_track_is_its_name_in_capitals(track, kind, name):
    assert track_id(track, kind) == name


def test_registering_twice_does_nothing():
    before = dict(gymnasium.registry)
    register_envs()
    assert dict(gymnasium.registry) == before
    assert set(IDS) <= set(before)


COMPILED = [name for name in IDS if name not in ("gpusched_env/Failures-v0", "gpusched_env/FailuresFlat-v0")]
"""Those whose kernels `gpusched warm-up` compiles; the others are in the tests of their mechanisms."""


@pytest.mark.parametrize("name", COMPILED)
def test_both_checkers_are_silent(name):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(name, settings=FEW).unwrapped, skip_render_check=True)
        checker.check_env(gymnasium.make(f"gpusched_env:{name}", settings=FEW), warn=True)


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


def test_the_reward_scale_of_what_is_no_track_is_1():
    assert reward_scale_of("tiny") == reward_scale_of(load_scenario("slack")) == 1.0
    assert gymnasium.make(ENVIRONMENT_ID, scenario="slack", settings=FEW).unwrapped.reward_scale == 1.0


@pytest.mark.parametrize("track", ["slack", "lognormal", "whole-nodes", "pairs", "openb"])
def test_episodes_of_edf_return_about_minus_10(track):
    policy = make_policy("edf")
    asking = {"job_order": policy.job_order, "preemption": policy.preemption, "milestones": 0}
    env = gymnasium.make(track_id(track), **asking)
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


def test_the_page_lists_the_ids_scales_and_step_limits_of_all_tracks():
    rows = re.findall(r"^\| `(gpusched_env/\S+)` \| (\S+) \| (\S+) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    expected = []
    for name in list_environments():
        track = load_track(name)
        expected.append((track_id(name), f"{track.reward_scale_eur:g}", f"{track.max_episode_steps:,}"))
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
