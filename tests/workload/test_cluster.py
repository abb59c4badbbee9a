"""What a cluster offers: single-node configurations, shares of a GPU, whole nodes."""

from __future__ import annotations

import pytest

from gpusched_env.workload import Scenario, load_scenario, make_instance
from gpusched_env.workload.site import Site
from refusals import refused


def names(**values: object) -> list[str]:
    return [c.name for c in Site.of(Scenario().replace(values)).configurations]


def test_shares_and_whole_nodes_come_after_the_single_node_configurations_which_stay_as_they_were():
    few = {"cluster.nodes": 6, "jobs.gpu_counts": [1, 8]}
    single = names(**few)
    assert single == ["V100x1", "V100x8", "A100x1", "A100x8", "T4x1"]
    both = names(**few, **{"sharing.fractions": [0.25, 0.5], "jobs.node_counts": [2, 1]})
    shares = ["V100x0.5", "V100x0.25", "A100x0.5", "A100x0.25", "T4x0.5", "T4x0.25"]
    assert both == [*single, *shares, "2*V100x8", "2*A100x8", "2*T4x4"]


def test_only_types_with_a_node_are_shared():
    assert names(**{"cluster.nodes": 1, "jobs.gpu_counts": [8], "sharing.fractions": [0.5]}) == ["V100x8", "V100x0.5"]


def test_whole_nodes_are_offered_only_where_a_type_has_so_many():
    """Seven nodes: three of V100, two of A100 and of T4."""
    several = [n for n in names(**{"cluster.nodes": 7, "jobs.node_counts": [1, 2, 3, 4]}) if "*" in n]
    assert several == ["2*V100x8", "3*V100x8", "2*A100x8", "2*T4x4"]


def test_whole_nodes_have_the_gpus_that_the_clusters_nodes_have():
    values = {"cluster.nodes": 6, "cluster.gpus_per_node": 3, "jobs.gpu_counts": [1], "jobs.node_counts": [1, 2]}
    assert names(**values)[3:] == ["2*V100x3", "2*A100x3", "2*T4x3"]


def test_spread_gpus_come_last_and_only_as_many_as_a_type_has():
    """Three nodes: two of V100 with 8 GPUs each, one of A100."""
    values = {"cluster.nodes": 3, "cluster.gpu_types": ["V100", "A100"], "jobs.spread_counts": [2, 16]}
    assert [n for n in names(**values) if "~" in n] == ["V100~2", "V100~16", "A100~2"]
    with refused("jobs.spread_counts", [64], "at most the GPUs of a type"):
        names(**values | {"jobs.spread_counts": [64]})
    with refused("jobs.spread_counts", [1, 2], "from 2 on"):
        names(**values | {"jobs.spread_counts": [1, 2]})


def test_spread_times_are_the_measured_ones_times_a_factor():
    values = {"cluster.gpu_types": ["V100"], "jobs.applications": ["lm-wikitext2-bs5"], "jobs.spread_counts": [4]}
    instance = make_instance(Scenario().replace(values | {"jobs.count": 1}), 0)
    together, spread = ([c.name for c in instance.configurations].index(name) for name in ("V100x4", "V100~4"))
    seconds = instance.jobs.seconds_per_epoch[0]
    assert seconds[spread] / seconds[together] == pytest.approx(2.822, abs=5e-4)  # Gavel's LM (batch size 5) on four
    with refused("jobs.spread_counts", [4], "measured on: none"):
        make_instance(Scenario().replace(values | {"jobs.applications": ["bert-cola-global64"]}), 0)


def test_more_nodes_than_the_cluster_has_are_one_clear_error():
    scenario = Scenario().replace({"cluster.nodes": 4, "jobs.node_counts": [1, 8]})
    with refused("jobs.node_counts", [1, 8], "V100 2, A100 1, T4 1$"):
        Site.of(scenario)


def test_a_share_leaves_a_job_its_part_of_the_gpus_memory():
    site = Site.of(Scenario().replace({"cluster.gpu_types": ["A100"], "sharing.fractions": [0.25]}))
    assert site.memory_gib.tolist() == [40.0] * 8 + [10.0]


def test_the_largest_demand_is_that_of_the_largest_node_or_of_several():
    assert Site.of(load_scenario("default")).most_gpus_of_a_job == 8
    assert Site.of(Scenario().replace({"jobs.gpu_counts": [1]})).most_gpus_of_a_job == 8
    assert Site.of(load_scenario("multi-node")).most_gpus_of_a_job == 32
