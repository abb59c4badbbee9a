from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env import Configuration, Synchronisation
from gpusched_env.model import iteration_s, traffic
from helpers import helped_instance
from refusals import refused

NODES = st.integers(2, 1000)


@settings(deadline=None)
@given(nodes=NODES)
def test_without_spare_machines_traffic_is_that_of_all_reduce_and_with_as_many_one_model(nodes: int):
    assert traffic(nodes, 0.0) == pytest.approx(2.0 * (nodes - 1) / nodes, rel=1e-12)
    assert traffic(nodes, nodes) == pytest.approx(1.0, rel=1e-12)


@settings(deadline=None)
@given(nodes=NODES, spare=st.floats(0.0, 1.0), more=st.floats(0.0, 1.0))
def test_more_spare_machines_never_make_it_longer(nodes: int, spare: float, more: float):
    fewer, others = sorted((spare * nodes, more * nodes))
    assert traffic(nodes, others) <= traffic(nodes, fewer)


def test_traffic_is_the_load_of_the_busiest_link():
    """Machines sum parts as large as the paper says: on CPU machines 2(n - 1), on the others n - k, of n² + kn - 2k.

    A CPU machine receives its part from n nodes; a node sends all but its own part, and its sum to the n - 1 others.
    """
    for n, k in ((3, 1), (4, 2), (8, 5), (8, 8)):
        whole = n * n + k * n - 2 * k
        cpu, own = 2.0 * (n - 1) / whole, (n - k) / whole
        assert k * cpu + n * own == pytest.approx(1.0)
        assert traffic(n, k) == pytest.approx(n * cpu)
        assert traffic(n, k) == pytest.approx(1.0 - own + (n - 1) * own)


def test_one_node_has_nothing_to_send():
    assert traffic(1, 0) == traffic(1, 1) == 0.0
    assert iteration_s(3.0, 2.0, 1, 1) == 3.0


def test_an_iteration_on_four_nodes_by_hand():
    assert iteration_s(2.0, 1.0, 4, 0) == 0.5 + 1.5
    assert iteration_s(2.0, 1.0, 4, 2) == 0.5 + 24 / 20


def test_least_speeds_are_those_with_as_many_spare_machines_as_nodes():
    own = Synchronisation(np.array([[2.0, 1.0]]), np.array([[1.0, 0.0]]), 0)
    configurations = [Configuration("V", 8), Configuration("V", 8, nodes=4), Configuration("V", 8, nodes=2)]
    assert own.least_slowdowns(configurations, [0, 0, 0]).tolist() == [[1.0, 0.75, 1.0], [1.0, 1.0, 1.0]]


def test_an_instance_says_how_fast_jobs_can_be():
    instance = helped_instance(0)
    several = np.array([c.nodes > 2 for c in instance.configurations])
    planned, fastest = instance.jobs.seconds_per_epoch, instance.fastest_seconds_per_epoch
    np.testing.assert_array_equal(fastest[:, ~several], planned[:, ~several])
    assert np.all(fastest <= planned)
    assert np.any(fastest[:, several] < planned[:, several])
    without = replace(instance, synchronisation=None)
    assert without.fastest_seconds_per_epoch is without.jobs.seconds_per_epoch


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"compute_s": [[0.0]]}, "synchronisation.compute_s[0, 0]"),
        ({"sync_s": [[-1.0]]}, "synchronisation.sync_s[0, 0]"),
        ({"sync_s": [[np.inf]]}, "synchronisation.sync_s[0, 0]"),
        ({"compute_s": [1.0]}, "synchronisation.compute_s"),
        ({"sync_s": [[1.0, 1.0]]}, "synchronisation.sync_s"),
        ({"cpu_machines": -1}, "synchronisation.cpu_machines"),
        ({"cpu_machines": 0.5}, "synchronisation.cpu_machines"),
    ],
)
def test_a_wrong_value_is_named(values, field):
    with refused(field):
        Synchronisation(**{"compute_s": [[1.0]], "sync_s": [[1.0]], **values})


def test_tables_must_be_those_of_the_instance():
    instance = helped_instance(0)
    with refused("synchronisation.compute_s", (1, 1)):
        replace(instance, synchronisation=Synchronisation([[1.0]], [[1.0]]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301
def test_values_compare_and_copies_are_read_only(copied):
    own = Synchronisation([[1.0, 2.0]], [[0.5, 0.0]], 3)
    other = copied(own)
    assert other == own
    assert other != replace(own, cpu_machines=2)
    with pytest.raises(ValueError, match="read-only"):
        other.sync_s[0, 0] = 1.0
