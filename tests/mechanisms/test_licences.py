"""A mechanism of another package, `toys.licences`: every part of the core uses it, and none knows of it."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import (
    GpuClusterEnv,
    GpuClusterVectorEnv,
    InputError,
    Scenario,
    load_instance,
    load_scenario,
    make_instance,
    simulate,
)
from gpusched_env.audit import audit
from gpusched_env.formats.instance_file import instance_json
from gpusched_env.formats.run_folder import read_result
from gpusched_env.model import own_state
from gpusched_env.model.own_state import drawn_future, new_job_rows
from gpusched_env.simulator import State
from gpusched_env.simulator.builds import FORCED
from gpusched_env.workload import scenario_toml
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from instances import random_instance
from run_files import audited, edited, loaded_again
from toys.licences.model import Licences

NAME = "toys.licences"
KINDS = [{}, *({kind: True} for kind in ("kinds", "interference") if numba.config.DISABLE_JIT)]
ROOT = Path(__file__).parents[2]
SCENARIO = f'base = "tiny"\nmechanisms = ["{NAME}"]\n\n[licences]\neur_per_h = [2.0, 3.0]\n'


@pytest.fixture(autouse=True)
def _smallest_build(monkeypatch):
    """Use the smallest builds, since no other test has one with this mechanism."""
    monkeypatch.setenv(FORCED, "")


def licensed(seed: int = 1, **kinds: bool):
    instance = random_instance(seed, jobs=12, **kinds)
    return instance.with_mechanisms(Licences(tuple(1.0 + a for a in range(len(instance.jobs.applications)))))


def paid_eur(result) -> np.ndarray:
    """Return the licences of every job, from the intervals: each holding is paid once, on however many nodes."""
    rows = result.intervals().unique(["job", "start_s"])
    prices = np.array(result.instance.of(Licences).eur_per_h)[result.instance.jobs.application[rows["job"].to_numpy()]]
    hours = (rows["end_s"] - rows["start_s"]).to_numpy() / 3600.0
    return np.bincount(rows["job"].to_numpy(), prices * hours, len(result.instance.jobs))


@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_every_job_pays_its_licence_and_the_audit_agrees(kinds, tmp_path):
    instance = licensed(**kinds)
    with_, without = (simulate(each, make_policy("edf")) for each in (instance, replace(instance, mechanisms=())))
    np.testing.assert_array_equal(with_.completion_s, without.completion_s)
    np.testing.assert_allclose(with_.job_energy_eur - without.job_energy_eur, paid_eur(with_), rtol=1e-9)
    assert with_.energy_eur - without.energy_eur == pytest.approx(with_.gpu_eur) == paid_eur(with_).sum()
    assert with_.energy_kwh == pytest.approx(without.energy_kwh)
    assert audited(with_, tmp_path / "run") == []
    assert read_result(tmp_path / "run").gpu_eur == with_.gpu_eur


def test_the_audit_finds_another_price(tmp_path):
    assert audited(simulate(licensed(), make_policy("edf")), tmp_path / "run") == []
    with edited(tmp_path / "run" / "instance.json") as document:
        document["mechanisms"][NAME]["eur_per_h"][0] *= 2.0
    assert {"energy_eur", "gpu_eur", "total_eur"} <= {difference.what for difference in audit(tmp_path / "run")}


def test_an_instance_has_at_most_one_model_of_a_mechanism_and_returns_it():
    instance = licensed()
    assert isinstance(instance.of(Licences), Licences)
    assert replace(instance, mechanisms=()).of(Licences) is None
    own = instance.of(Licences)
    with pytest.raises(InputError, match=r"mechanisms = .*at most one model"):
        replace(instance, mechanisms=(own, own))
    with pytest.raises(InputError, match=r"mechanisms\[0\] = .*a model of a mechanism"):
        replace(instance, mechanisms=(NAME,))
    with pytest.raises(InputError, match=r"licences.eur_per_h = .*prices, one for each application"):
        instance.with_mechanisms(Licences((1.0,) * 100))


def test_instance_files_keep_it_and_refuse_wrong_fields(tmp_path):
    instance = licensed()
    assert loaded_again(instance, tmp_path) == instance != replace(instance, mechanisms=())
    document = json.loads(instance_json(instance))
    for entry, field in (
        ({NAME: {"eur_per_h": "1"}}, f"mechanisms.{NAME}.eur_per_h"),
        ({NAME: {}}, f"mechanisms.{NAME}.eur_per_h"),
        ({NAME: {"eur_per_h": [1.0] * 100}}, "licences.eur_per_h"),
        ({"toys.unknown": {}}, "mechanisms"),
        ({"cap": {}}, "mechanisms"),
        ([NAME], "mechanisms"),
    ):
        path = tmp_path / "wrong.json"
        path.write_text(json.dumps(document | {"mechanisms": entry}), encoding="utf-8")
        with pytest.raises(InputError) as error:
            load_instance(path)
        assert error.value.field == f"{path}: {field}"


def test_a_scenario_has_a_table_for_it(tmp_path):
    path = tmp_path / "licensed.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    scenario = load_scenario(path)
    own = make_instance(scenario, 3).of(Licences)
    assert all(2.0 <= price <= 3.0 for price in own.eur_per_h)
    assert own == make_instance(scenario, 3).of(Licences) != make_instance(scenario, 4).of(Licences)
    other = replace(make_instance(scenario, 3), mechanisms=(), name="tiny")
    assert other == make_instance(load_scenario("tiny"), 3)
    for made in (copy.deepcopy(scenario), Scenario(**scenario.model_dump())):
        assert made == scenario
    path.write_text(scenario_toml(scenario), encoding="utf-8")
    assert load_scenario(path) == scenario
    cheap = scenario.replace({"licences.eur_per_h": (0.5, 0.5)})
    assert set(make_instance(cheap, 3).of(Licences).eur_per_h) == {0.5}


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"licences": {}}, "licences"),
        ({"mechanisms": [NAME], "licences": {"eur_per_h": -1.0}}, "licences.eur_per_h"),
        ({"mechanisms": [NAME], "licences": {"price": 1.0}}, "licences.price"),
        ({"mechanisms": [NAME], "licences": 2.0}, "licences"),
        ({"mechanisms": [NAME, NAME]}, "mechanisms"),
        ({"mechanisms": ["toys.unknown"]}, "mechanisms"),
        ({"mechanisms": ["own.prices"]}, "mechanisms"),
        ({"mechanisms": NAME}, "mechanisms"),
    ],
)
def test_a_scenario_refuses_what_is_wrong_with_it(settings, field):
    with pytest.raises(InputError) as error:
        Scenario(**settings)
    assert error.value.field == field


def test_environments_observe_it_and_pay_it_alone_and_side_by_side():
    instances = [licensed(seed) for seed in (1, 1)]
    parameters = {"features": (NAME,), "flat": True}
    env, plain = GpuClusterEnv(instance=instances[0], **parameters), GpuClusterEnv(instance=instances[0])
    vector = GpuClusterVectorEnv(2, instance=instances, **parameters)
    assert env.feature_names[: len(plain.feature_names)] == plain.feature_names
    assert [name.partition(":")[0] for name in env.feature_names[len(plain.feature_names) :]] == ["licences"] * 2
    seen, info = env.reset()
    many, _ = vector.reset()
    prices, cost, over = instances[0].of(Licences).eur_per_h, 0.0, False
    while not over:
        np.testing.assert_array_equal(many[0], seen)
        price = prices[instances[0].jobs.application[info["job"]]]
        assert seen[-2] == np.float32(price / (1.0 + price))
        action = int(np.flatnonzero(info["action_mask"])[-1])
        seen, reward, over, _, info = env.step(action)
        many, rewards, *_ = vector.step([action, action])
        cost -= reward
        assert rewards[0] == reward
    result = env.result()
    assert result.gpu_eur == pytest.approx(paid_eur(result).sum())
    assert cost == pytest.approx(result.total_eur)
    assert seen[-2:].tolist() == [0.0, 0.0]


def test_an_environment_with_its_features_runs_instances_without_it():
    env = GpuClusterEnv("tiny", features=[NAME])
    seen, _ = env.reset(seed=1)
    assert seen["licences"].tolist() == [0.0, 0.0]
    for wrong in ("licences", ["prices"], [NAME, NAME], ["toys.unknown"], [1]):
        with pytest.raises(InputError, match=r"features|mechanisms"):
            GpuClusterEnv("tiny", features=wrong)


def test_requests_of_the_service_have_it():
    instance, decider = licensed(), Decider(PolicyCatalogue.of("edf"), b"a key")
    bodies = []

    def post(_: str, body: bytes) -> bytes:
        bodies.append(json.loads(body))
        return decider(body)

    asked = simulate(instance, ServicePolicy("", "edf", instance, post=post))
    assert asked.gpu_eur == simulate(instance, make_policy("edf")).gpu_eur
    assert bodies[0]["mechanisms"] == {NAME: {"eur_per_h": list(instance.of(Licences).eur_per_h)}}
    for wrong in ({"toys.unknown": {}}, {"json": {}}):
        with pytest.raises(InputError, match=r"mechanisms = .*a mechanism of a package that is imported here"):
            decider(json.dumps(bodies[0] | {"mechanisms": wrong}).encode())


def test_no_file_of_the_packages_names_it():
    paths = [path for folder in ("gpusched_env", "baselines", "experiments") for path in (ROOT / folder).rglob("*.py")]
    assert [path for path in paths if "licences" in path.read_text(encoding="utf-8").lower()] == []


def test_a_mechanism_with_state_of_its_own_needs_a_module_for_simulations_of_the_future(monkeypatch):
    board = State(licensed()).board
    assert drawn_future(board, np.inf, np.random.default_rng(0)) == new_job_rows(board, 1) == {}
    monkeypatch.setattr(own_state, "model_of", lambda name: SimpleNamespace(keeps_state=name == NAME))
    for refuse in (lambda: drawn_future(board, np.inf, np.random.default_rng(0)), lambda: new_job_rows(board, 1)):
        with pytest.raises(InputError, match=f"{NAME}.*or has a module futures"):
            refuse()
