"""The `sharing` section, and where a scenario's fractions and nodes fit nothing."""

from __future__ import annotations

import pytest

from gpusched_env.mechanisms.shares.model import UtilisationModel
from gpusched_env.workload import Scenario, Sharing, load_scenario, make_instance
from gpusched_env.workload.tables.applications import builtin_utilisations
from refusals import refused


def test_sharing_is_off_by_default():
    assert (Sharing().fractions, Sharing().interference, Sharing().max_inflation) == ((), "random", None)


def test_one_greatest_inflation_holds_for_all_fractions_and_a_list_for_each():
    assert Sharing(fractions=[0.5, 0.25], max_inflation=1.5).own_max_inflation() == {0.5: 1.5, 0.25: 1.5}
    assert Sharing(fractions=[0.25, 0.5], max_inflation=[3, 2]).own_max_inflation() == {0.25: 3.0, 0.5: 2.0}
    assert Sharing(fractions=[0.5]).own_max_inflation() == {}


def test_by_utilisation_shares_have_priorities_and_go_where_they_are_fastest():
    section = Sharing(fractions=[0.4, 0.6], interference="utilisation", priorities=[0, 1])
    assert section.offers() == ((0.4, 0), (0.6, 1))
    assert section.fastest
    assert not Sharing(interference="measured").fastest
    assert Sharing(interference="measured", placement="fastest").fastest
    assert not Sharing(interference="utilisation", placement="fullest").fastest
    assert len(Sharing(fractions=[0.5, 0.5], interference="utilisation", priorities=[0, 1]).fractions) == 2


def test_a_scenario_by_utilisation_has_its_utilisations_from_the_table_or_a_range_and_power_by_utilisation():
    values = {"sharing.interference": "utilisation", "sharing.fractions": [0.6, 0.4], "sharing.priorities": [1, 0]}
    scenario = load_scenario("sharing").replace(values)
    instance = make_instance(scenario, 0)
    assert [c.name for c in instance.configurations if c.kind == "shared"][:2] == ["V100x0.6!", "V100x0.4"]
    assert isinstance(instance.find("shares"), UtilisationModel)
    assert instance.find("shares").idle_power_w is None
    assert instance.find("shares").utilisation[0, 0] == builtin_utilisations()["V100", instance.jobs.applications[0]]
    drawn = make_instance(
        scenario.replace({"sharing.utilisation": [0.2, 0.3], "sharing.power": "utilisation"}), 0
    ).find("shares")
    assert ((drawn.utilisation >= 0.2) & (drawn.utilisation <= 0.3)).all()
    assert (drawn.utilisation == drawn.utilisation[0]).all()
    idle = [v.idle_gpu_power_w or 0.155 * v.gpu_power_w for v in instance.gpu_types]
    assert drawn.idle_power_w.tolist() == idle


BAD = [
    ({"fractions": [0.5], "priorities": [1]}, "priorities", "its default"),
    ({"fractions": [0.5], "interference": "utilisation", "priorities": [1, 0]}, "priorities", "one for each"),
    ({"fractions": [0.5], "interference": "utilisation", "priorities": [10]}, "priorities[0]", "<= 9"),
    ({"interference": "measured", "power": "utilisation"}, "power", "its default"),
    ({"interference": "utilisation", "least_speed": 0.5}, "least_speed", "overhead / (1 + overhead)"),
    ({"interference": "utilisation", "utilisation": [0.5, 1.5]}, "utilisation", "<= 1"),
    ({"interference": "random", "placement": "fastest"}, "placement", "fullest"),
    ({"fractions": [0.5, 1.0]}, "fractions[1]", "< 1"),
    ({"fractions": [2]}, "fractions[0]", "< 1"),
    ({"fractions": [0.0]}, "fractions[0]", ">= 0.001"),
    ({"fractions": [-0.5]}, "fractions[0]", ">= 0.001"),
    ({"fractions": [float("nan")]}, "fractions[0]", "< 1"),
    ({"fractions": ["0.5"]}, "fractions[0]", "a number"),
    ({"fractions": 0.5}, "fractions", "a list"),
    ({"fractions": [0.5, 0.5]}, "fractions", "each once"),
    ({"fractions": [0.5, 0.1]}, "fractions[1]", "at least 0.125, the least of the built-in table"),
    ({"interference": "none"}, "interference", "'random', 'measured'"),
    ({"fractions": [0.5], "max_inflation": 1.0}, "max_inflation[0]", ">= 1.01"),
    ({"fractions": [0.5], "max_inflation": float("inf")}, "max_inflation[0]", "finite"),
    ({"fractions": [0.5], "max_inflation": [2, 3]}, "max_inflation", "one for each of fractions (1)"),
    ({"fractions": [0.5], "interference": "measured", "max_inflation": 2}, "max_inflation", "that sets the times"),
    ({"fraction": [0.5]}, "fraction", "fractions, interference, max_inflation"),
]


@pytest.mark.parametrize(("values", "field", "allowed"), BAD)
def test_a_wrong_section_is_one_clear_error(values, field, allowed):
    with refused(f"sharing.{field}", allowed=allowed):
        Scenario(sharing=values)


def test_a_small_fraction_needs_an_inflation_of_its_own_or_measured_pairs():
    assert Sharing(fractions=[0.05], max_inflation=9).fractions == (0.05,)
    assert Sharing(fractions=[0.05], interference="measured").fractions == (0.05,)


def test_a_fraction_that_no_application_fits_is_one_clear_error():
    """The smallest needs 4.33 GiB; a quarter of 16 GiB are 4."""
    scenario = Scenario().replace(
        {
            "cluster.gpu_types": ["V100", "T4"],
            "jobs.applications": ["vgg16-imagenet-global256", "transformer-multi30k-bs128"],
            "sharing.fractions": [0.5, 0.25],
        }
    )
    with refused("sharing.fractions", 0.25, r"transformer-multi30k-bs128 needs least, 4.33486 GiB.*V100 16, T4 16$"):
        make_instance(scenario, 0)


def test_nodes_on_which_no_application_was_measured_are_one_clear_error():
    scenario = Scenario().replace({"jobs.node_counts": [1, 2], "cluster.gpu_types": ["K80", "P100"]})
    with refused("jobs.node_counts", [1, 2], r"2\*A100x8, .*2\*T4x4"):
        make_instance(scenario, 0)
    own = scenario.replace({"jobs.applications": ["lm-wikitext2-bs5"], "cluster.gpu_types": ["A100"]})
    with refused("jobs.node_counts", [1, 2], "measured on: none$"):
        make_instance(own, 0)
