"""Mixtures: each workload of one of several scenarios."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import gymnasium

from gpusched_env.formats.instance_file import instance_json
from gpusched_env.workload import (
    InstanceMaker,
    Scenario,
    draw_scenario,
    list_environments,
    list_tracks,
    load_scenario,
    load_track,
    make_instance,
)
from gpusched_env.workload.mixture import variant_of, variants_of
from gpusched_experiments.report.metrics import Billing
from refusals import refused

TWO = """
base = "tiny"

[[mixture]]

[[mixture]]
settings = { "jobs.count" = 3, "due_dates.slack" = 0.5 }
"""
DRAWN, ADAPTATION_ID = "3608", "gpusched_env/GpuAdaptation-v0"


def write(folder: Path, text: str = TWO) -> Path:
    path = folder / "two.toml"
    path.write_text(text, encoding="utf-8")
    return path


def mixture(*variants: dict[str, object], **values: object) -> Scenario:
    return Scenario(name="mine", mixture=variants, **values)


def test_the_seed_chooses_among_the_scenarios_in_turn(tmp_path):
    scenario = load_scenario(write(tmp_path))
    maker = InstanceMaker(scenario)
    tiny = load_scenario("tiny").replace({"name": "two"})
    other = tiny.replace({"jobs.count": 3, "due_dates.slack": 0.5})
    for seed in range(6):
        expected = instance_json(make_instance((tiny, other)[seed % 2], seed))
        assert instance_json(make_instance(scenario, seed)) == instance_json(maker.make(seed)) == expected


def test_a_scenario_of_its_own_has_at_most_as_many_jobs_as_the_mixture():
    scenario = mixture({"scenario": "tiny"}, {"scenario": "slack"}, jobs={"count": 20})
    assert [each.jobs.count for each in variants_of(scenario)] == [10, 20]
    assert [each.name for each in variants_of(scenario)] == ["mine", "mine"]
    assert [each.jobs.count for each in variants_of(scenario.replace({"jobs.count": 4}))] == [4, 4]
    made, alone = make_instance(scenario, 1), make_instance(load_scenario("slack").replace({"jobs.count": 20}), 1)
    assert instance_json(replace(made, name="slack")) == instance_json(alone)


def test_a_scenario_that_is_none_is_its_only_variant():
    tiny = load_scenario("tiny")
    assert variants_of(tiny) == (tiny,)
    assert variant_of(tiny, 7) is tiny


def test_a_path_is_taken_from_the_folder_of_the_file(tmp_path):
    (tmp_path / "other.toml").write_text('base = "tiny"\n[jobs]\ncount = 2\n', encoding="utf-8")
    scenario = load_scenario(write(tmp_path, '[[mixture]]\nscenario = "other.toml"\n[[mixture]]\nscenario = "tiny"\n'))
    assert [len(make_instance(scenario, seed).jobs) for seed in range(2)] == [2, 10]


def test_bad_mixtures_are_one_clear_error(tmp_path):
    with refused("mixture[1].colour", "red"):
        mixture({"scenario": "tiny"}, {"colour": "red"})
    with refused("mixture[1].scenario: scenario", "tinny"):
        variants_of(mixture({"scenario": "tiny"}, {"scenario": "tinny"}))
    with refused("mixture[0].settings: cluster.colour", "red"):
        variants_of(mixture({"scenario": "tiny", "settings": {"cluster.colour": "red"}}))
    with refused("mixture[0].scenario", str(write(tmp_path)), "not a mixture"):
        variants_of(mixture({"scenario": str(write(tmp_path))}))
    with refused("mixture[0].settings", {"name": "other"}, "neither name nor mixture"):
        variants_of(mixture({"settings": {"name": "other"}}))
    with refused("prices.pue", 1.2, "mixture.settings"):
        mixture({"scenario": "tiny"}, prices={"pue": 1.2})


def test_environments_take_mixtures_of_one_shape_only(tmp_path):
    env = gymnasium.make("gpusched_env/GpuCluster-v0", scenario=str(write(tmp_path)))
    jobs = [len(env.unwrapped.instance.jobs) for seed in (1000, 1001) if env.reset(seed=seed)]
    assert jobs == [10, 3]
    with refused("scenario", "drawn", "the same configurations"):
        gymnasium.make("gpusched_env/GpuCluster-v0", scenario="drawn")
    for seed in range(2):
        adapted = gymnasium.make(ADAPTATION_ID, scenario="mixture", settings={"jobs.count": 5}).unwrapped
        adapted.reset(options={"workload": 100_000 + seed})
        assert adapted.instance.jobs == make_instance(adapted.source.scenario, 100_000 + seed).jobs
    with refused("scenario", "drawn", "the same GPU types"):
        gymnasium.make(ADAPTATION_ID, scenario="drawn")
    assert set(list_tracks()) - set(list_environments("Adaptation")) == {"drawn"}
    assert set(list_tracks()) - set(list_environments()) == {"drawn", "mixture"}


def test_what_is_billed_is_that_of_all_scenarios():
    rented = load_scenario("rented")
    both = mixture({"scenario": "tiny"}, {"scenario": "rented"}, jobs={"count": 5})
    assert Billing.of(both).rented == Billing.of(rented).rented != ()
    same = mixture({"settings": {"prices.co2_g_per_kwh": 300.0}}, {}, prices={"co2_g_per_kwh": 300.0})
    assert Billing.of(same).co2_g_per_kwh == 300.0
    assert Billing.of(mixture({"settings": {"prices.co2_g_per_kwh": 300.0}}, {})).co2_g_per_kwh is None


def test_a_drawn_scenario_has_a_name():
    assert load_scenario("drawn-8-2") == draw_scenario(8, 2)
    with refused("scenario", "drawn-8"):
        load_scenario("drawn-8")


def test_the_track_of_drawn_clusters_is_the_one_of_its_version():
    """A draw that changes makes it another track: then raise its version, and that of the suite."""
    track = load_track("drawn")
    written = {"exclude_defaults": True, "exclude": {"description"}}
    text = "".join(each.model_dump_json(**written) for each in variants_of(track.scenario))
    assert (track.version, hashlib.sha256(text.encode()).hexdigest()[:4]) == (2, DRAWN)
    assert len(track.scenario.mixture) == 10
