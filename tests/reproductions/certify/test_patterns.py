"""Patterns: all that few jobs can hold at one time."""

import numpy as np
import pytest

from gpusched_env import Configuration
from gpusched_reproductions.certify.patterns import Patterns
from refusals import refused
from small_instances import hours_job, kilowatt_cluster, small_random_instance

ONE, TWO = Configuration("V", 1), Configuration("V", 2)
HALF, THIRD = Configuration("V", 1, share=0.5), Configuration("V", 1, share=0.4)
BOTH = Configuration("V", 2, nodes=2)
EUR_PER_H = 1.0 / 3600.0


def rates_eur_per_h(jobs: int, nodes: list[int], configurations: list[Configuration], base_w: float = 0.0):
    hours = {c: 1.0 / c.gpus for c in configurations}
    of = kilowatt_cluster([hours_job(9.0, hours)] * jobs, nodes, configurations, base_w)
    return {held: rate / EUR_PER_H for held, rate in Patterns.of(of).rates().items()}


def test_jobs_of_a_node_add_up_and_are_placed_where_they_cost_least():
    found = rates_eur_per_h(2, [2], [ONE, TWO])
    expected = {(-1, -1): 0, (0, -1): 1, (-1, 0): 1, (0, 0): 2, (1, -1): 2, (-1, 1): 2}
    assert found == pytest.approx(expected)
    # Two jobs of one GPU share a node, so that the other one stays off; each node costs 3 €/h to keep on.
    found = rates_eur_per_h(2, [2, 2], [ONE, TWO], base_w=3000.0)
    assert found[0, 0] == pytest.approx(3 + 2)
    assert found[0, 1] == pytest.approx(6 + 3)
    assert (1, 1) in found


def test_a_shared_gpu_counts_once_and_holds_no_more_than_one_and_several_nodes_must_be_whole_and_empty():
    found = rates_eur_per_h(3, [1], [HALF, THIRD])
    assert found[0, 0, -1] == found[0, 1, -1] == found[1, 1, -1] == pytest.approx(1.0)
    assert (0, 0, 0) not in found
    assert (1, 1, 1) not in found
    tenth = Configuration("V", 1, share=0.1)
    assert (0,) * 10 in rates_eur_per_h(10, [1], [tenth])
    found = rates_eur_per_h(2, [2, 2], [ONE, BOTH])
    assert found[1, -1] == pytest.approx(4.0)
    assert (1, 0) not in found
    assert (0, 1) not in found
    uneven = rates_eur_per_h(1, [2, 1], [ONE, BOTH])
    assert set(uneven) == {(-1,), (0,)}


def test_without_dominated_patterns_the_same_jobs_run_as_fast_for_no_more():
    for seed in range(6):
        everything = Patterns.of(small_random_instance(seed, kinds=True))
        left = everything.undominated()
        assert len(left.held) <= len(everything.held)
        for held, rate, speed in zip(everything.held, everything.rate_eur_per_s, everything.speed, strict=True):
            alike = np.all((left.held >= 0) == (held >= 0), axis=1)
            better = alike & np.all(left.speed >= speed, axis=1) & (left.rate_eur_per_s <= rate)
            assert np.any(better)


def test_a_job_that_holds_something_for_nothing_dominates_no_pattern_without_it():
    """Beside the other job on a shared GPU it costs nothing, but that is not the same as being done."""
    both = kilowatt_cluster([hours_job(9.0, {HALF: 1.0})] * 2, [1], [HALF])
    assert {tuple(held) for held in Patterns.of(both).undominated().held} == {(-1, -1), (0, -1), (-1, 0), (0, 0)}


def test_an_instance_that_is_not_small_is_refused(monkeypatch):
    monkeypatch.setattr("gpusched_reproductions.certify.patterns.MOST", 20)
    with refused("jobs", 4, "at most 20 patterns"):
        Patterns.of(small_random_instance(0, jobs=4))
