"""Evaluation of a model, with models whose actions are known."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from gpusched_agents import evaluate
from gpusched_baselines import edf
from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, load_scenario, make_instance, simulate
from gpusched_env.observation import OPTION_FEATURES
from refusals import refused

EDFS_WAY = {"job_order": "due", "preemption": False, "milestones": 0}


class Waits:
    """A model with which every job waits for ever."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.array(0), None


class FollowsEdf:
    """A model that takes EDF's choice from the environment."""

    def __init__(self, env: GpuClusterEnv) -> None:
        self.env = env

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.array(edf().choose(self.env.view, self.env.job).config + 1), None


class Greediest:
    """A model that always chooses the last configuration, whether it fits or not; it waits if it may sample."""

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        return np.array(len(observation["options"].reshape(-1, len(OPTION_FEATURES))) if deterministic else 0), None


class Masked:
    """A model that takes the last action that the mask allows, and keeps the masks."""

    def __init__(self) -> None:
        self.masks: list[Any] = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
        self.masks.append(action_masks)
        return np.array(np.flatnonzero(action_masks)[-1]), None


class Counts:
    """A model with a recurrent state: it counts its steps in it, and keeps episode starts; it acts like `Masked`."""

    def __init__(self) -> None:
        self.states: list[Any] = []
        self.starts: list[bool] = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False, action_masks=None):
        self.states.append(state)
        self.starts.append(bool(episode_start[0]))
        return np.array(np.flatnonzero(action_masks)[-1]), (0 if state is None else state) + 1


def make(**settings: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(f"gpusched_env:{ENVIRONMENT_ID}", scenario="tiny", **settings)


def test_a_model_runs_the_workload_that_policies_run_and_pays_the_same_for_the_same_choices():
    env = make(**EDFS_WAY)
    runs = evaluate(FollowsEdf(env.unwrapped), env, [3, 1], name="follower")
    for seed, run in zip([3, 1], runs, strict=True):
        direct = simulate(make_instance(load_scenario("tiny"), seed), edf())
        assert (run.result.policy, run.result.seed) == ("follower", seed)
        np.testing.assert_array_equal(run.result.log, direct.log)
        assert run.result.total_eur == direct.total_eur
        assert (run.invalid_actions, run.forced) == (0, 0)
        assert run.steps >= len(direct.completion_s)


def test_a_rule_decides_for_a_model_that_waits_for_ever_after_its_idle_reviews_which_cost_time():
    env = make(**EDFS_WAY, idle_review_s=600.0)
    run = evaluate(Waits(), env, [0], patience=5)[0]
    last_submission_s = run.result.instance.jobs.submission_s[-1]
    # Idle reviews come every 600 s after the last submission; at the fifth, the rule starts what fits.
    assert run.result.start_s.min() == pytest.approx(last_submission_s + 5 * 600.0)
    # The rule decides in every idle round, and in no round in which a job runs.
    assert 0 < run.forced < run.steps
    assert np.isfinite(run.result.completion_s).all()
    env = make(**EDFS_WAY)
    short, long = (evaluate(Waits(), env, [0], patience=p)[0].result for p in (1, 30))
    assert long.tardiness_eur > short.tardiness_eur + 1.0


def test_actions_that_do_not_fit_are_counted_and_drawing_is_handed_on():
    env = make()
    certain = evaluate(Greediest(), env, [0])[0]
    randomised = evaluate(Greediest(), env, [0], deterministic=False)[0]
    assert certain.invalid_actions > 0
    assert certain.forced == 0
    assert randomised.invalid_actions == 0
    assert randomised.forced > 0


def test_a_model_that_takes_masks_gets_them_and_makes_no_invalid_action():
    model, env = Masked(), make()
    run = evaluate(model, env, [0])[0]
    assert len(model.masks) == run.steps
    assert all(mask.dtype == np.bool_ and mask.shape == (env.action_space.n,) and mask[0] for mask in model.masks)
    assert run.invalid_actions == 0


def test_a_model_with_a_memory_keeps_it_within_an_episode_only():
    model = Counts()
    first, second = evaluate(model, make(), [0, 1])
    assert model.states == [None, *range(1, first.steps), None, *range(1, second.steps)]
    assert [i for i, start in enumerate(model.starts) if start] == [0, first.steps]


def test_wrappers_of_the_environment_are_used():
    class Blind(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return {name: np.zeros_like(values) for name, values in observation.items()}

    class Looks(Masked):
        def predict(self, observation, *arguments, action_masks=None, **named):
            assert not any(values.any() for values in observation.values())
            return super().predict(observation, *arguments, action_masks=action_masks, **named)

    assert evaluate(Looks(), Blind(make()), [0])[0].steps > 0


@pytest.mark.parametrize("patience", [0, -1, 1.5, True])
def test_a_patience_that_is_not_a_count_is_refused(patience):
    with refused("patience", patience):
        evaluate(Waits(), make(), [0], patience=patience)


def test_another_environment_and_one_that_truncates_are_refused():
    with refused("env", "CartPoleEnv"):
        evaluate(Waits(), gymnasium.make("CartPole-v1"), [0])
    with refused("env", "truncates after 3 steps"):
        evaluate(Masked(), make(max_episode_steps=3), [0])


def test_the_step_limit_of_the_environment_is_not_used():
    limited = make(step_limit=3)
    assert evaluate(Masked(), limited, [0])[0].steps == evaluate(Masked(), make(), [0])[0].steps > 3
    assert limited.unwrapped.step_limit == 3


@pytest.mark.parametrize("space", ["observation_space", "action_space"])
def test_a_model_made_for_other_spaces_is_refused(space):
    model = Waits()
    setattr(model, space, gymnasium.spaces.Discrete(3))
    with refused(f"model.{space}"):
        evaluate(model, make(), [0])
