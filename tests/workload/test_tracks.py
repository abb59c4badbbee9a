from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.workload import (
    SUITE_VERSION,
    InstanceMaker,
    builtin_scenarios,
    list_tracks,
    load_scenario,
    load_track,
    offered_load,
    track_toml,
)
from gpusched_env.workload.mixture import parts_of, variants_of
from gpusched_env.workload.scenario import places
from refusals import refused

PAGE = Path(__file__).parents[2] / "docs" / "tracks.md"
LOADS = {
    "slack": 0.5, "busy": 0.85, "full": 1.1, "restarts-60": 0.85, "restarts-600": 0.85, "two-point": 1.1,
    "lognormal": 1.1, "flow-time": 0.85, "philly": 0.85, "openb": 0.85,
    "fleet": 0.85, "restarts-1800": 0.85, "h100-l4": 0.85, "modern": 0.7, "a100-h200": 0.85, "rented": 0.85,
    "limits": 0.7, "failures": 0.7,
}  # fmt: skip
MANY_SEEDS = {"published-1", "published-2", "published-3", "few-jobs", "drawn"}  # rare and dear tardiness, few jobs
OWN = """
base = "tiny"

[track]
hard = "nothing"
weights = "none"
test = "3-5"
"""


def write(folder: Path, text: str = OWN) -> Path:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_suite_names_every_file_of_a_track_once():
    there = {Path(file.name).stem for file in files("gpusched_env").joinpath("workload", "tracks").iterdir()}
    assert set(list_tracks()) == there
    assert len(list_tracks()) == len(there)
    assert not there & set(builtin_scenarios())
    assert SUITE_VERSION >= 1


@pytest.mark.parametrize("name", list_tracks())
def test_seeds_for_training_validation_and_test_have_none_in_common(name):
    track = load_track(name)
    seeds = [set(track.seeds(purpose)) for purpose in ("training", "validation", "test")]
    test = 100 if name in MANY_SEEDS else {"fleet": 3, "mixture": 60}.get(name, 20)
    assert [len(each) for each in seeds] == [10_000, 20, test]
    assert len(set().union(*seeds)) == 10_020 + test


@pytest.mark.parametrize("name", list_tracks())
def test_a_track_says_what_is_hard_and_why_its_weights_are_what_they_are(name):
    track = load_track(name)
    assert track.name == track.scenario.name == name
    for line in (track.hard, track.weights, track.scenario.description):
        assert 20 < len(line) <= 120
        assert "\n" not in line


@pytest.mark.parametrize(("name", "load"), LOADS.items())
def test_a_track_has_the_load_that_it_says_on_its_test_seeds(name, load):
    track = load_track(name)
    make = InstanceMaker(track.scenario).make
    assert np.mean([offered_load(make(seed)) for seed in track.seeds("test")]) == pytest.approx(load, abs=0.03)


def test_the_page_states_what_is_hard_about_every_track_and_its_load():
    rows = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    stated = {row[0].strip("`"): row for row in rows if len(row) == 8 and row[0].startswith("`")}
    assert tuple(stated) == list_tracks()
    for name, row in stated.items():
        track = load_track(name)
        make = InstanceMaker(track.scenario).make
        load = np.mean([offered_load(make(seed)) for seed in track.seeds("test")[:10]])
        assert float(row[3]) == pytest.approx(load, rel=0.15)
        assert _numbers(row[2]) == _ends([variant.jobs.count for variant in variants_of(track.scenario)])
        parts = parts_of(track.scenario)
        assert _numbers(row[4]) == pytest.approx(_ends([part.due_dates.slack for part in parts]), rel=0.02)
        assert row[7] == track.hard


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in text.split(" to ")]


def _ends(values: list[float]) -> list[float]:
    return sorted({min(values), max(values)})


def test_restarts_are_all_that_sets_those_tracks_apart_from_busy():
    busy = load_track("busy").scenario
    for seconds in (60, 600, 1800):
        scenario = load_track(f"restarts-{seconds}").scenario
        assert scenario.restart_s == seconds
        told = {"restart_s": busy.restart_s, "name": busy.name, "description": busy.description}
        assert scenario.replace(told) == busy


def test_a_job_of_the_track_flow_time_is_due_as_it_is_submitted():
    jobs = InstanceMaker(load_track("flow-time").scenario).make(0).jobs
    least = (jobs.max_epochs[:, None] * jobs.seconds_per_epoch).min(axis=1)
    assert np.median((jobs.due_s - jobs.submission_s) / least) < 0.01


@pytest.mark.parametrize("name", list_tracks())
def test_the_name_of_a_track_is_taken_wherever_that_of_a_scenario_is_and_compares_its_test_seeds(name):
    scenario = load_scenario(name)
    assert scenario == load_scenario(f"track:{name}") == load_track(name).scenario
    assert scenario.name == name
    assert scenario.compare.seeds == load_track(name).test


def test_a_file_may_build_on_a_track_by_its_name(tmp_path):
    path = write(tmp_path, 'base = "busy"\nname = "busy"\n[jobs]\ncount = 4\n')
    assert load_scenario(path) == load_track("busy").scenario.replace({"jobs.count": 4})


def test_a_built_in_scenario_wins_over_a_track_of_its_name(monkeypatch):
    found = places.builtin_files("scenario")
    monkeypatch.setattr(places, "builtin_files", lambda kind: found if kind == "scenario" else {"tiny": found["high"]})
    assert load_scenario("tiny").cluster.nodes == 3


def test_an_unknown_name_is_told_scenarios_and_tracks_and_asked_which_was_meant():
    with pytest.raises(
        InputError, match=r"scenario = 'slac'; .*tiny; a track: a100-h200, busy, .*did you mean slack\?"
    ):
        load_scenario("slac")
    with pytest.raises(InputError, match=r"did you mean tiny\?"):
        load_scenario("tinny")


def test_a_file_of_ones_own_is_a_track_and_a_scenario(tmp_path):
    track = load_track(write(tmp_path))
    assert (track.name, track.seeds("test"), track.version) == ("own", (3, 4, 5), 1)
    assert load_scenario(write(tmp_path)) == track.scenario
    assert track.scenario.cluster.nodes == 3


@pytest.mark.parametrize("name", ["busy", "restarts-60", "philly", "published-2", "whole-nodes"])
def test_a_track_that_is_written_loads_back_equal(tmp_path, name):
    path = tmp_path / f"{name}.toml"
    path.write_text(track_toml(load_track(name)), encoding="utf-8")
    assert load_track(path) == load_track(name)


@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ('test = "3-5"', 'test = "20019-20021"', "track.test", "20019-20021"),
        ('test = "3-5"', 'test = "5-3"', "track.test", "5-3"),
        ('test = "3-5"', "version = 0", "track.version", 0),
        ('test = "3-5"', "colour = 0", "track.colour", 0),
        ('hard = "nothing"', "", "track.hard", None),
        ("[track]", "[compare]", "compare.hard", "nothing"),
        ("[track]", '[compare]\nseeds = "0-1"\n\n[track]', "compare.seeds", "0-1"),
    ],
)
def test_a_wrong_header_is_one_clear_error(tmp_path, old, new, field, value):
    with refused(field, value):
        load_track(write(tmp_path, OWN.replace(old, new)))


def test_what_is_no_track_is_named_with_what_there_is(tmp_path):
    with refused("track", "bussy", "one of a100-h200, busy, .*slack"):
        load_track("bussy")
    with refused("track", "default", "one of a100-h200, busy"):
        load_scenario("track:default")
    with refused("track", allowed="a scenario file with a section [track]"):
        load_track(write(tmp_path, 'base = "tiny"'))
    with refused("track", 3):
        load_track(write(tmp_path, "track = 3"))
