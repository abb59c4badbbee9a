"""Networks that begin as imitators of the best constants of each scenario."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adapted import InThisProcess
from gpusched_agents import make_training
from gpusched_agents.network.actors import MlpActor
from gpusched_agents.network.control_policy import ControlPolicy
from gpusched_agents.policy import load_policy
from gpusched_agents.spec import NetworkConfig
from gpusched_agents.training import constants as module
from gpusched_agents.training.adaptation_training import spec_of
from gpusched_agents.training.algorithm_config import AdaptationConfig, EsConfig
from gpusched_agents.training.config import LINEAR, TrainingConfig
from gpusched_agents.training.constants import Found, constants_of, imitate, observations
from gpusched_baselines.adaptation_env.controls import control_count, control_names
from gpusched_baselines.adaptation_env.observation import feature_count
from gpusched_baselines.tuned import TunedStsX
from gpusched_env import make_instance, simulate
from gpusched_env.child_processes import ProcessPool
from gpusched_env.workload import Scenario, draw_scenario, load_scenario
from refusals import refused

TINY = TrainingConfig(
    agent=EsConfig(begin="constants", pairs=1, sigma=0.05, most_jobs=6),
    scenarios=("tiny", "low"),
    scenario_settings={"jobs.count": 6},
    network=replace(LINEAR, kind="controls"),
    steps=60,
    validation_seeds=(500, 501),
    evaluate_every=30,
)
CONTROLS, FEATURES = control_count(3), feature_count(3)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusched_env.child_processes.ProcessPoolExecutor", InThisProcess)
    for name, number in (("EVALUATIONS", 10), ("WORKLOADS", 2), ("EACH", 1)):
        monkeypatch.setattr(module, name, number)


def _saves(groups: Any, pool: Any, seed: int, controls: str) -> dict[str, Any]:  # noqa: ARG001 - as the search
    names = control_names([v.name for v in groups[0][0].gpu_types])
    return {"constants": dict.fromkeys(names, 0.5), "unseen": [0.9, 0.01], "saves": True}


def linear(constants: np.ndarray) -> MlpActor:
    return MlpActor(((np.zeros((CONTROLS, FEATURES), np.float32), constants.astype(np.float32)),))


def found(config: TrainingConfig, folder: Path) -> list[Any]:
    with ProcessPool(1) as pool:
        return constants_of(config, pool, folder, lambda _text: None)


def test_every_scenario_has_constants_of_its_own_that_cost_no_more_than_none(tmp_path):
    folder = tmp_path / "run"
    each = found(TINY, folder)
    assert len(each) == 2
    kept = list(json.loads((folder / "constants.json").read_text("utf-8")).values())
    assert [one["of"] for one in kept] == ["tiny", "low"]
    for (constants, instances), one in zip(each, kept, strict=True):
        name, values = one["of"], one["constants"]
        assert one["saves"] == (sum(one["unseen"]) < 1.0)
        assert constants.tolist() == (list(values.values()) if one["saves"] else [0.0] * CONTROLS)
        assert [instance.seed for instance in instances] == [100_002, 100_003, 100_004]
        searched = [make_instance(load_scenario(name).replace({"jobs.count": 6}), seed) for seed in (100_000, 100_001)]
        costs = [
            sum(simulate(instance, TunedStsX(constants=tuple(said))).total_eur for instance in searched)
            for said in (values.items(), ())
        ]
        assert costs[0] <= costs[1]


def test_a_search_that_ended_is_not_made_again(tmp_path, monkeypatch):
    first = found(TINY, tmp_path / "run")
    monkeypatch.setattr(module, "search", None)
    for folder in ("run", "beside"):
        again = found(replace(TINY, steps=90), tmp_path / folder)
        assert [constants.tolist() for constants, _ in again] == [constants.tolist() for constants, _ in first]
    with pytest.raises(TypeError, match="not callable"):
        found(replace(TINY, seed=1), tmp_path / "run")


@pytest.mark.parametrize(("cheaper", "saves"), [(0.9, True), (1.1, False)])
def test_constants_that_do_not_surely_save_on_other_workloads_are_0(cheaper, saves, tmp_path, monkeypatch):
    def cost(policy: Any, instance: Any) -> float:
        if not getattr(policy, "constants", ()):
            return 100.0
        return 80.0 if instance.seed < 100_002 else 100.0 * cheaper + 0.1 * (instance.seed % 2)

    monkeypatch.setattr(module, "cost_of", cost)
    (one, _) = found(TINY, tmp_path / "run")
    assert (np.abs(one.constants).max() > 0.0) == saves
    kept = next(iter(json.loads((tmp_path / "run" / "constants.json").read_text("utf-8")).values()))
    assert max(np.abs(list(kept["constants"].values()))) > 0.0
    assert kept["unseen"][0] == pytest.approx(cheaper, abs=0.01)


def test_with_randomised_workloads_drawn_scenarios_are_imitated_without_constants(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SCENARIOS", 2)
    network = NetworkConfig("control-set", layers=0)
    config = replace(TINY, agent=replace(TINY.agent, randomised=0.5), network=network)
    *_, first, second = found(config, tmp_path / "run")
    for one, number in ((first, 0), (second, 1)):
        types = [v.name for v in one.workloads[0].gpu_types]
        assert types == [v.name for v in make_instance(draw_scenario(100_000, number, 200), 0).gpu_types]
        assert one.constants.tolist() == [0.0] * control_count(len(types))


def test_constants_in_common_are_searched_once_for_all_scenarios(tmp_path):
    each = found(replace(TINY, agent=replace(TINY.agent, begin="common-constants")), tmp_path / "run")
    (kept,) = json.loads((tmp_path / "run" / "constants.json").read_text("utf-8")).values()
    assert kept["of"] == "tiny, low"
    expected = np.array(list(kept["constants"].values())) * kept["saves"]
    assert [one.constants.tolist() for one in each] == [expected.tolist()] * 2
    assert [len(one.workloads[0].jobs) for one in each] == [6, 6]


def test_every_scenario_of_a_mixture_is_searched_on_its_own_workloads(tmp_path):
    text = 'base = "tiny"\n[[mixture]]\n[[mixture]]\nsettings = { "jobs.count" = 3 }\n[[mixture]]\n'
    path = tmp_path / "mixed.toml"
    path.write_text(text, encoding="utf-8")
    config = replace(TINY, scenarios=(str(path),), scenario_settings={})
    each = found(config, tmp_path / "run")
    assert [[instance.seed % 3 for instance in instances] for _, instances in each] == [[0] * 3, [1] * 3, [2] * 3]
    assert [{len(instance.jobs) for instance in instances} for _, instances in each] == [{10}, {3}, {10}]
    kept = json.loads((tmp_path / "run" / "constants.json").read_text("utf-8"))
    assert [one["of"] for one in kept.values()] == [f"{path} {k}" for k in range(3)]


@pytest.mark.parametrize(("squash", "hidden"), [(False, 0), (True, 0), (False, 64)])
def test_an_imitator_says_the_constants_of_the_scenario_that_it_sees(squash, hidden):
    rng = np.random.default_rng(0)
    wanted = [rng.uniform(-0.8, 0.8, CONTROLS) for _ in range(2)]
    scenarios: list[Scenario] = [load_scenario(name).replace({"jobs.count": 8}) for name in ("tiny", "sharing")]
    pairs = [Found(c, [make_instance(s, seed) for seed in range(3)]) for c, s in zip(wanted, scenarios, strict=True)]
    sizes = [FEATURES, *([hidden] if hidden else []), CONTROLS]
    layers = [(rng.normal(size=(n, m)).astype(np.float32), np.zeros(n, np.float32)) for m, n in pairwise(sizes)]
    with ProcessPool(1) as pool:
        actor = imitate(pairs, MlpActor(tuple(layers), squash=squash), 4, pool)
    assert [layer[0].tolist() for layer in actor.layers[:-1]] == [layer[0].tolist() for layer in layers[:-1]]
    for constants, instances in pairs:
        said = [actor.act(seen) for seen in observations(instances[0], linear(constants), 4)]
        np.testing.assert_allclose(np.mean(said, axis=0), constants, atol=0.15)


def test_evolution_begins_as_the_imitator_and_its_agent_is_a_policy(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_search", _saves)
    description = make_training(TINY, tmp_path / "run").run()
    assert (description.algorithm, description.network.kind) == ("es", "controls")
    policy = load_policy(f"agent:{tmp_path / 'run' / 'agent'}")
    assert isinstance(policy, ControlPolicy)
    instance = make_instance(load_scenario("tiny").replace({"jobs.count": 6}), 500)
    assert simulate(instance, policy).total_eur > 0.0
    first = description.curve[0]
    assert first["steps"] == 0
    assert first["relative"] != 1.0  # not STS-X


def test_evolution_of_controls_without_constants_begins_as_sts_x(tmp_path):
    config = replace(TINY, agent=replace(TINY.agent, begin=""), network=NetworkConfig("controls", hidden=4))
    description = make_training(config, tmp_path / "run").run()
    assert description.curve[0]["relative"] == 1.0
    assert not (tmp_path / "run" / "constants.json").exists()


def test_an_agent_continues_from_one_of_the_same_size(tmp_path):
    first = make_training(TINY, tmp_path / "run").run()
    begin = f"agent:{tmp_path / 'run' / 'agent'}"
    config = replace(TINY, agent=replace(TINY.agent, begin=begin))
    again = make_training(config, tmp_path / "again").run()
    assert again.curve[0]["relative"] == min(point["relative"] for point in first.curve)
    other = replace(config, network=NetworkConfig("controls", hidden=4))
    with refused("agent.begin", allowed="of the same size"):
        make_training(other, tmp_path / "other")


def test_ppo_begins_as_the_imitator_and_continues_from_no_agent(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(module, "_search", _saves)
    agent = AdaptationConfig("ppo", {"n_steps": 8, "batch_size": 8}, begin="constants")
    config = replace(TINY, agent=agent, network=NetworkConfig("controls", hidden=8), envs=2, steps=16)
    training = make_training(config, tmp_path / "run")
    description = training.run()
    assert description.curve[0]["steps"] == 0
    assert description.curve[0]["relative"] != 1.0
    with refused("agent.begin", "agent:default"):
        AdaptationConfig("ppo", begin="agent:default")


def test_the_spec_has_the_configurations_of_every_scenario_of_a_mixture():
    config = replace(TINY, scenarios=("track:mixture",), scenario_settings={"jobs.count": 2})
    spec = spec_of(config)
    made = [make_instance(config.loaded_scenario(0), seed) for seed in range(6)]
    assert set(spec.configurations) == {each.name for instance in made for each in instance.configurations}
    for instance in made:
        spec.check(instance.configurations, instance.gpu_types)
    with refused("network.kind", "controls", r"\[2, 3\]"):
        spec_of(replace(config, scenarios=("tiny", "published-low")))
