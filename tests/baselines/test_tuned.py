"""STS-X with constant controls, their file, and the search for good ones."""

import json

import gymnasium
import numpy as np
import pytest

from gpusched_agents.any_policy import make_any_policy
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_names
from gpusched_baselines.tuned import TunedStsX, action_of, load_tuned, save_tuned, search
from gpusched_env import simulate
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report.code_version import agent_version
from refusals import refused

SOME = (("price of V100, critical", 0.6), ("price of T4, deferrable", -0.8), ("patience", 0.5), ("restart", -1.0))


def test_without_constants_it_is_sts_x_to_the_last_bit():
    instance = make_instance(load_scenario("tiny"), 3)
    assert simulate(instance, TunedStsX()).log.tobytes() == simulate(instance, StsX()).log.tobytes()


@pytest.mark.parametrize("scenario", ["tiny", "slack", "tenants"])
def test_it_costs_what_the_same_action_costs_at_every_step_of_the_adaptation_environment(scenario):
    settings = {"jobs.count": 30}
    instance = make_instance(load_scenario(scenario).replace(settings), 2)
    action = action_of(dict(SOME), [v.name for v in instance.gpu_types])
    env = gymnasium.make("gpusched_env/GpuAdaptation-v0", scenario=scenario, settings=settings).unwrapped
    env.reset(seed=2)
    ended = False
    while not ended:
        _, _, ended, _, info = env.step(action.astype(np.float32))
    tuned = simulate(instance, TunedStsX(constants=tuple(zip(*_single(action, instance), strict=True))))
    assert tuned.total_eur == pytest.approx(info["total_eur"], rel=1e-12)
    assert tuned.total_eur != simulate(instance, StsX()).total_eur


def _single(action, instance):
    """The names and the values of an action in single precision, as the environment takes it."""
    return control_names([v.name for v in instance.gpu_types]), action.astype(np.float32).astype(np.float64).tolist()


def test_constants_of_gpu_types_that_are_not_there_are_not_used():
    assert action_of({"price of H100, critical": 1.0}, ["V100"]).tolist() == [0.0] * 10
    assert action_of({"price of V100, deferrable": 0.5}, ["A100", "V100"])[3] == 0.5


def test_what_is_written_loads_as_a_policy_and_its_content_is_its_version(tmp_path):
    path = tmp_path / "mine.json"
    save_tuned(path, dict(SOME), seed=3)
    policy = make_any_policy(f"tuned:{path}")
    assert (policy.constants, policy.name) == (SOME, f"tuned:{path}")
    assert json.loads(path.read_text(encoding="utf-8"))["provenance"]["facts"]["seed"] == 3
    before = agent_version(f"tuned:{path}")
    save_tuned(path, {"patience": 0.1})
    assert agent_version(f"tuned:{path}") != before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"constants": 3}', '{"constants": {"patience": "much"}}'])
def test_a_file_of_another_form_is_one_clear_error(tmp_path, text):
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")
    with refused("tuned", str(path), "gpusched tune"):
        load_tuned(path)
    with refused("tuned", str(tmp_path / "none.json")):
        load_tuned(tmp_path / "none.json")


def test_a_constant_and_a_number_of_the_search_out_of_range_are_named(tmp_path):
    path = tmp_path / "mine.json"
    save_tuned(path, {"patience": 1.5})
    with refused(f"{path}: patience", 1.5, "from -1 to 1"):
        load_tuned(path)
    with refused("evaluations", -1):
        search(lambda _: 1.0, 2, -1, 0)
    with refused("seed", -1):
        search(lambda _: 1.0, 2, 1, -1)


def test_the_search_comes_near_the_minimum_and_asks_as_often_as_it_may():
    asked = []

    def cost(x):
        asked.append(x)
        return float(((x - np.array([0.5, -0.9, 0.0])) ** 2).sum())

    best, least = search(cost, 3, 200, 1)
    assert len(asked) == 200
    assert not asked[0].any()
    assert least == cost(best) < 0.01
    assert all(np.abs(x).max() <= 1.0 for x in asked)
    again, _ = search(cost, 3, 199, 1, first=cost(np.zeros(3)))
    assert np.array_equal(again, best)
    assert search(cost, 3, 1, 1)[1] == cost(np.zeros(3))
