"""Networks that set controls with the same weights for every GPU type, and that fade far from their training."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from adapted import InThisProcess
from gpusched_agents import EsConfig, NetworkConfig, TrainingConfig, load_policy, make_training
from gpusched_agents.files.storage import load_agent
from gpusched_agents.network.actors import MlpActor
from gpusched_agents.network.control_policy import ControlPolicy
from gpusched_agents.network.type_set import CONTEXT, TypeSetActor, choose_known
from gpusched_agents.training import constants as module
from gpusched_agents.training.adaptation_training import spec_of
from gpusched_agents.training.evolved import EvolvedNetwork
from gpusched_baselines import StsX
from gpusched_baselines.adaptation_env.controls import control_count, control_names
from gpusched_baselines.adaptation_env.features import TYPES
from gpusched_baselines.adaptation_env.observation import WHOLE, feature_count
from gpusched_baselines.tuned import TunedStsX
from gpusched_env import make_instance, simulate
from gpusched_env.workload import draw_scenario, load_scenario
from refusals import refused

NAMES = ("A100", "T4")


def network(seed: int, known: int = 0, hidden: int = 0) -> TypeSetActor:
    rng = np.random.default_rng(seed)

    def head(inputs: int, outputs: int) -> MlpActor:
        sizes = [inputs, hidden, outputs] if hidden else [inputs, outputs]
        layers = [(rng.normal(0, 0.1, (n, m)).astype(np.float32), np.zeros(n, np.float32)) for m, n in pairwise(sizes)]
        return MlpActor(tuple(layers))

    price, common = head(TYPES + CONTEXT + len(NAMES), 2), head(CONTEXT, control_count(0))
    return TypeSetActor(price, common, NAMES, rng.uniform(-1, 1, (known, CONTEXT)).astype(np.float32))


def observation(types: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, feature_count(types)).astype(np.float32)


@pytest.mark.parametrize("types", [1, 2, 5])
def test_it_sets_the_controls_of_any_number_of_gpu_types(types):
    actor = network(0, hidden=4).for_types([f"V{v}" for v in range(types)])
    assert (actor.inputs, actor.outputs) == (feature_count(types), control_count(types))
    said = actor.act(observation(types))
    assert said.shape == (control_count(types),)
    assert np.abs(said).max() <= 1.0


def test_the_prices_of_gpu_types_change_places_with_them_and_only_the_names_of_its_training_count():
    actor, seen = network(1), observation(3)
    swapped = seen.copy()
    swapped[WHOLE:] = seen[WHOLE:].reshape(3, TYPES)[[2, 0, 1]].ravel()
    said = actor.for_types(["A100", "other", "T4"]).act(seen)
    moved = actor.for_types(["T4", "A100", "other"]).act(swapped)
    np.testing.assert_allclose(moved[:6].reshape(2, 3), said[:6].reshape(2, 3)[:, [2, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(moved[6:], said[6:], atol=1e-6)
    actor, seen = network(2), observation(2)
    assert (actor.for_types(["A100", "x"]).act(seen) != actor.for_types(["x", "x"]).act(seen)).any()
    assert actor.for_types(["y", "z"]).act(seen).tolist() == actor.for_types(["x", "x"]).act(seen).tolist()


def test_the_context_has_what_belongs_to_no_type_then_mean_and_largest_of_the_types():
    seen = observation(3)
    context, types = network(1).for_types(["A100", "x", "T4"])._inputs(seen[None])
    rows = seen[WHOLE:].reshape(3, TYPES)
    np.testing.assert_allclose(
        context[0], np.concatenate([seen[:WHOLE], rows.mean(axis=0), rows.max(axis=0)]), rtol=1e-6
    )
    assert types[0, :, :TYPES].tolist() == rows.tolist()
    assert types[0, :, -2:].tolist() == [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]


def test_controls_fade_in_the_last_tenth_of_the_radius():
    context = np.zeros(CONTEXT, np.float32)
    actor = replace(network(3), known=context[None], radius=0.2)
    for away, factor in ((0.0, 1.0), (0.18, 1.0), (0.19, 0.5), (0.2, 0.0), (0.9, 0.0)):
        assert actor.fade(context + np.float32(away)) == pytest.approx(factor, abs=1e-5)
    assert network(3).fade(context) == 1.0
    seen = np.zeros(feature_count(2), np.float32)
    inside, outside = replace(actor, radius=10.0).for_types(NAMES), actor.for_types(NAMES)
    seen[:] = 0.19
    assert outside.act(seen) == pytest.approx(0.5 * inside.act(seen), abs=1e-5)
    assert not outside.act(np.full_like(seen, 0.9)).any()


def test_known_contexts_are_far_from_each_other_and_cover_the_others():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.eye(3, CONTEXT), 20, axis=0) + rng.uniform(0, 0.01, (60, CONTEXT))
    known, radius = choose_known(groups.astype(np.float32), 3)
    assert sorted(known.argmax(axis=1).tolist()) == [0, 1, 2]
    assert radius <= 0.01
    assert choose_known(groups[:1].astype(np.float32), 2) == (pytest.approx(np.repeat(groups[:1], 2, axis=0)), 1e-3)
    assert choose_known(groups.astype(np.float32), 0)[0].shape == (0, CONTEXT)


@pytest.mark.parametrize("known", [0, 4])
def test_its_arrays_make_it_again(known):
    actor = replace(network(4, known, hidden=3), radius=0.5)
    arrays = actor.arrays()
    assert ("known" in arrays) == bool(known)
    again = TypeSetActor.of(arrays, NAMES)
    seen = observation(2)
    assert again.for_types(NAMES).act(seen).tolist() == actor.for_types(NAMES).act(seen).tolist()
    with refused("price"):
        TypeSetActor.of(arrays, ("A100",))


def test_fitted_it_says_what_each_cluster_wants():
    rng, actor = np.random.default_rng(5), network(5, known=8)
    clusters = (("A100", "T4"), ("T4",), ("x", "T4", "A100"))
    seen = [rng.uniform(-1, 1, (30, feature_count(len(types)))).astype(np.float32) for types in clusters]
    wanted = [rng.uniform(-0.8, 0.8, control_count(len(types))) for types in clusters]
    for k, rows in enumerate(seen):
        rows[:, 0] = (-0.9, 0.0, 0.9)[k]  # by which it tells them apart
    fitted = actor.fitted(seen, wanted, clusters)
    for types, rows, said in zip(clusters, seen, wanted, strict=True):
        acting = fitted.for_types(types)
        fades = [acting.fade(acting._inputs(rows[k : k + 1])[0][0]) for k in range(30)]
        assert max(fades) == 1.0
        acting = replace(acting, radius=10.0)
        error = np.abs(np.mean([acting.act(row) for row in rows], axis=0) - said).mean()
        assert error < 0.75 * np.abs(said).mean()


def test_a_constant_network_costs_what_constants_cost():
    instance = make_instance(load_scenario("tiny"), 3)
    types = [v.name for v in instance.gpu_types]
    rng = np.random.default_rng(6)
    constants = rng.uniform(-1, 1, control_count(len(types))).astype(np.float32)
    zeros = np.zeros((2, TYPES + CONTEXT + len(types)), np.float32)
    zeros[:, TYPES + CONTEXT :] = constants[: 2 * len(types)].reshape(2, -1)
    price = MlpActor(((zeros, np.zeros(2, np.float32)),))
    common = MlpActor(((np.zeros((control_count(0), CONTEXT), np.float32), constants[2 * len(types) :]),))
    policy = ControlPolicy(actor=TypeSetActor(price, common, tuple(types), np.zeros((0, CONTEXT), np.float32)))
    tuned = TunedStsX(constants=tuple(zip(control_names(types), constants.astype(float).tolist(), strict=True)))
    assert simulate(instance, policy).total_eur == pytest.approx(simulate(instance, tuned).total_eur, rel=1e-9)


SMALL = TrainingConfig(
    agent=EsConfig(begin="constants", pairs=1, sigma=0.05, most_jobs=6, randomised=0.3),
    scenarios=("tiny", "published-low"),
    scenario_settings={"jobs.count": 6},
    network=NetworkConfig("control-set", hidden=4, contexts=8),
    steps=60,
    validation_seeds=(500, 501),
    evaluate_every=30,
)


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusched_env.child_processes.ProcessPoolExecutor", InThisProcess)
    monkeypatch.setattr("gpusched_agents.training.workloads.RANDOMISED_VALIDATION", range(20_000, 20_001))
    for name, number in (("EVALUATIONS", 5), ("WORKLOADS", 2), ("EACH", 1), ("SCENARIOS", 1)):
        monkeypatch.setattr(module, name, number)


@pytest.mark.usefixtures("_quick")
def test_an_agent_of_clusters_with_different_gpu_types_is_a_policy_on_any(tmp_path):
    description = make_training(SMALL, tmp_path / "run").run()
    assert (description.network.kind, description.network.contexts) == ("control-set", 8)
    loaded, weights = load_agent(tmp_path / "run" / "agent")
    assert loaded == description
    assert weights["known"].shape == (8, CONTEXT)
    policy = load_policy(f"agent:{tmp_path / 'run' / 'agent'}")
    for scenario in (load_scenario("tiny"), load_scenario("published-low"), draw_scenario(3, 0, 10)):
        instance = make_instance(scenario.replace({"jobs.count": 6}), 500)
        assert simulate(instance, policy).total_eur > 0.0


def test_it_has_the_kinds_of_configurations_of_scenarios_whose_constants_are_searched():
    kinds = [spec_of(replace(SMALL, network=replace(SMALL.network, contexts=n))).kinds for n in (8, 0)]
    assert kinds == [("single-node",), ("single-node", "multi-node", "shared")]


@pytest.mark.usefixtures("_quick")
def test_evolution_changes_weights_and_not_the_known_contexts(tmp_path):
    training = make_training(replace(SMALL, agent=replace(SMALL.agent, randomised=0.0)), tmp_path / "run")
    network = EvolvedNetwork(training._network.spec, SMALL.network)
    free = network.arrays(network.changes(""))
    assert {name for name, array in free.items() if not array.all()} == {"known", "radius"}
    assert {name for name, array in free.items() if array.any()} == free.keys() - {"known", "radius"}
    instance = make_instance(load_scenario("tiny"), 3)
    assert simulate(instance, network.policy(network.first(0))).total_eur == simulate(instance, StsX()).total_eur


def test_contexts_are_those_of_an_imitation(tmp_path):
    with refused("network.contexts", 8, "0, where there is no agent.begin"):
        make_training(replace(SMALL, agent=EsConfig()), tmp_path / "run")
    with refused("network.contexts", 8, "0, for controls"):
        NetworkConfig("controls", contexts=8)
    with refused("network.job_features", 2, "0, for control-set"):
        NetworkConfig("control-set", job_features=2)
    assert not list(tmp_path.iterdir())
