"""The variants of a study: the part that each leaves out, and the record of a finished training."""

from dataclasses import replace

import pytest

from gpusched_agents.spec import SETS_CONTROLS
from gpusched_agents.study import FINISHED, VARIANTS, finished_training, write_finished
from gpusched_agents.training.config import ImitationConfig, TrainingConfig
from refusals import refused

BASE = TrainingConfig(steps=400, imitation=ImitationConfig(steps=600, expert="sts"), envs=8)


def config(name, steps=1_000, seed=3):
    return VARIANTS[name].config(BASE, steps, seed)


def test_every_variant_takes_the_same_number_of_decisions_in_all():
    for steps in (16, 999, 5_000_001):
        for name, variant in VARIANTS.items():
            each = config(name, steps)
            took = each.imitation.steps + each.steps
            if not variant.learns:
                assert took == 1
            elif variant.network == "controls" and variant.agent != "es":  # a step has several rounds
                assert took == max(1, steps // each.network.rounds)
            else:
                assert took == steps


def test_the_full_variant_is_the_base_at_another_length():
    assert config("full") == replace(BASE, seed=3)
    longer = config("full", 10_000)
    assert (longer.imitation.steps, longer.steps) == (6_000, 4_000)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("no-imitation", {"steps": 1_000, "imitation": replace(BASE.imitation, steps=0)}),
        ("imitation-only", {"steps": 0, "imitation": replace(BASE.imitation, steps=1_000)}),
        ("no-set-network", {"network": replace(BASE.network, kind="mlp")}),
        ("distribution-hidden", {"network": replace(BASE.network, distribution=False)}),
    ],
)
def test_every_other_variant_lacks_one_thing(name, changed):
    assert config(name) == replace(config("full"), **changed)


def test_variants_that_set_controls_differ_in_algorithm_and_beginning():
    others = {name: one for name, one in VARIANTS.items() if not name.startswith("ppo-")}
    each = {name: config(name) for name, variant in others.items() if variant.network in SETS_CONTROLS}
    assert {name: (one.agent.algorithm, one.agent.begin) for name, one in each.items()} == {
        "best-constants": ("es", "common-constants"),
        "constants": ("es", "constants"),
        "constants-es": ("es", "constants"),
        "constants-ppo": ("ppo", "constants"),
        "controls-es": ("es", ""),
        "controls-ppo": ("ppo", ""),
        "controls-sac": ("sac", ""),
        "control-set": ("es", "constants"),
        "control-set-es": ("es", "constants"),
    }
    layers = {name: one.network.layers for name, one in each.items() if one.agent.algorithm == "es"}
    assert {name for name, number in layers.items() if number} == {"control-set", "control-set-es"}
    assert each["constants-ppo"].agent.settings["log_std_init"] == -2.0
    assert each["controls-ppo"].evaluate_every == BASE.evaluate_every // 16


def test_what_was_written_down_of_a_training_is_read_back(tmp_path):
    assert finished_training(config("full"), tmp_path) is None
    write_finished(config("full"), tmp_path, 900, 12.5)
    facts = finished_training(config("full"), tmp_path)
    assert (facts["steps"], facts["seconds"]) == (900, 12.5)


@pytest.mark.parametrize(
    ("other", "error"),
    [
        (config("full", seed=4), ("seed", 4, "3")),
        (config("full", 2_000), ("steps", 800, "400")),
        (config("no-imitation"), ("steps", 1000, "400")),
        (config("distribution-hidden"), ("network.distribution", False)),
        (replace(config("full"), validation_seeds=(7,)), ("validation_seeds", [7])),
        (
            replace(config("full"), scenario_settings={"jobs.count": 7}),
            ("scenario_settings.jobs.count", 7),
        ),
    ],
)
def test_a_training_of_other_settings_is_not_taken_for_this_one(tmp_path, other, error):
    write_finished(config("full"), tmp_path, 900, 12.5)
    with refused(*error):
        finished_training(other, tmp_path)


def test_a_training_of_changed_scenarios_is_not_taken_for_one_of_the_scenarios_as_they_are(tmp_path):
    write_finished(replace(config("full"), scenario_settings={"jobs.count": 7}), tmp_path, 1, 1.0)
    with refused("scenario_settings.jobs.count", None, "7"):
        finished_training(config("full"), tmp_path)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"config": 3}', '{"config"'])
def test_a_foreign_file_in_its_place_is_named(tmp_path, text):
    (tmp_path / FINISHED).write_text(text)
    with refused(f"{tmp_path}/finished.json"):
        finished_training(config("full"), tmp_path)
