"""Old names work, do the same as the new ones, and warn."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

import gpusched_baselines
import gpusched_env
from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, renamed
from gpusched_env.formats.instance_file import interference_of
from gpusched_env.simulator import Asking, State


def old_name(name: str):
    return pytest.warns(DeprecationWarning, match=f"'{name}' is now")


@pytest.mark.parametrize(("old", "new"), renamed.POLICIES.items())
def test_policies(old, new):
    with old_name(old):
        assert make_policy(old) == make_policy(new)


@pytest.mark.parametrize(("old", "new"), renamed.SCENARIOS.items())
def test_scenarios(old, new):
    with old_name(old):
        assert load_scenario(old) == load_scenario(new)


def test_objects_of_packages():
    with old_name("Duty"):
        assert gpusched_env.Duty is gpusched_env.UtilisationModel
    with pytest.raises(AttributeError, match="Dutie"):
        _ = gpusched_env.Dutie
    with old_name("atc_company"):
        assert gpusched_baselines.atc_company is gpusched_baselines.atc_co_located


def test_modules_of_packages():
    from gpusched_baselines import look_ahead, steering_env  # noqa: PLC0415
    from gpusched_baselines.adaptation_env import GpuAdaptationEnv  # noqa: PLC0415

    with old_name("gpusched_baselines.steering_env"):
        assert steering_env.GpuSteeringEnv is GpuAdaptationEnv
    with old_name("gpusched_baselines.look_ahead"):
        assert look_ahead.LookAhead.__name__ == "RolloutPolicy"


def test_settings_of_scenarios():
    scenario = load_scenario("guaranteed-and-opportunistic")
    with pytest.warns(DeprecationWarning, match="is now"):
        old = scenario.replace({"sharing.duty": [0.2, 0.3], "sharing.least_pace": 0.01, "sharing.power": "duty"})
    new = {"sharing.utilisation": [0.2, 0.3], "sharing.least_speed": 0.01, "sharing.power": "utilisation"}
    assert old == scenario.replace(new)


def test_arguments():
    with old_name("deadline_wake_ups"):
        assert Asking(deadline_wake_ups=True) == Asking(due_date_timers=True)
    with old_name("duty"):
        assert gpusched_env.UtilisationModel(duty=np.array([[0.5]])).utilisation.tolist() == [[0.5]]


def test_fields_of_instances():
    fields = {
        "duty": [[0.5]],
        "overhead": 0.03,
        "filled": 0.85,
        "least_pace": 0.02,
        "idle_power_w": None,
        "fastest": True,
    }
    with pytest.warns(DeprecationWarning, match="is now"):
        assert interference_of(fields) == gpusched_env.UtilisationModel(np.array([[0.5]]))


def test_methods_of_views_and_environments():
    state = State(make_instance(load_scenario("tiny"), 0))
    state.advance()
    with old_name("room"):
        assert state.view.room is state.view.capacity
    with old_name("wake_up"):
        state.view.wake_up(0, 1e6)
    env = gymnasium.make("gpusched_env/GpuCluster-v0", scenario="tiny").unwrapped
    env.reset(seed=0)
    with old_name("wake_up"):
        env.wake_up(0, 1e6)


def test_ids_of_environments():
    env = gymnasium.make("gpusched_env/SlackAdaptation-v0")
    with old_name("gpusched_env/SlackSteering-v0"):
        old = gymnasium.make("gpusched_env/SlackSteering-v0")
    assert type(old.unwrapped) is type(env.unwrapped)
    assert old.observation_space == env.observation_space
