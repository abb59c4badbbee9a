from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gpusched_env import Configuration, Synchronisation
from gpusched_env.model import iteration_s, network_load, traffic
from gpusched_env.model.synchronisation import ALL_REDUCE, BYTEPS, PARAMETER_SERVER
from helpers import helped_instance
from refusals import refused

NODES = st.integers(2, 1000)


@settings(deadline=None)
@given(nodes=NODES)
def test_without_spare_machines_traffic_is_that_of_all_reduce_and_with_as_many_one_model(nodes: int):
    assert traffic(nodes, 0.0) == pytest.approx(2.0 * (nodes - 1) / nodes, rel=1e-12)
    assert traffic(nodes, nodes) == pytest.approx(1.0, rel=1e-12)


def least_load(nodes: int, spare: int) -> float:
    """Return the load of the busiest link if the parts that machines sum are chosen best, by a linear program.

    A CPU machine receives its part from all nodes. A node sends all but its own part, and its sum to all others.
    """
    own = np.diag([nodes - 2.0] * nodes + [float(nodes)] * spare)
    rows, sent = np.column_stack([own, -np.ones(nodes + spare)]), [-1.0] * nodes + [0.0] * spare
    parts = np.append(np.ones(nodes + spare), 0.0)
    found = linprog(np.append(np.zeros(nodes + spare), 1.0), A_ub=rows, b_ub=sent, A_eq=parts[None, :], b_eq=[1.0])
    return float(found.fun)


@settings(deadline=None, max_examples=30)
@given(nodes=st.integers(2, 20), part=st.floats(0.0, 1.0))
def test_traffic_is_the_least_load_of_the_busiest_link(nodes: int, part: float):
    spare = round(part * nodes)
    assert traffic(nodes, spare) == pytest.approx(least_load(nodes, spare), rel=1e-7)


def test_one_node_has_nothing_to_send():
    assert traffic(1, 0) == traffic(1, 1) == 0.0
    assert network_load(BYTEPS, 1, 1, 5.0) == 0.0
    assert iteration_s(3.0, 2.0, 9.0, 1, 0.0) == 3.0


def test_an_iteration_on_four_nodes_by_hand():
    assert iteration_s(2.0, 1.0, 0.0, 4, traffic(4, 0)) == 0.5 + 1.5
    assert iteration_s(2.0, 1.0, 0.0, 4, traffic(4, 2)) == 0.5 + 24 / 20
    assert iteration_s(2.0, 1.0, 1.3, 4, traffic(4, 2)) == 0.5 + 1.3, "the links inside a machine are slower"


@pytest.mark.parametrize(
    ("backend", "spare", "busy", "sizes"),
    [
        (ALL_REDUCE, 0, 0.0, 1.5),  # 2 · 3/4
        (ALL_REDUCE, 4, 0.0, 1.5),  # spare machines have no part in it
        (ALL_REDUCE, 0, 2.0, 3.0),  # twice as many nodes as the core carries
        (PARAMETER_SERVER, 0, 0.0, 1.5),  # every node is a server too
        (PARAMETER_SERVER, 2, 0.0, 1.5),  # two servers receive 2 each: better beside
        (PARAMETER_SERVER, 3, 0.0, 4 / 3),
        (PARAMETER_SERVER, 4, 0.0, 1.0),
        (PARAMETER_SERVER, 4, 0.7, 1.4),  # what nodes send and what they get crosses the core
        (PARAMETER_SERVER, 4, 2.0, 3.0),  # 4 over the core: better beside
        (BYTEPS, 2, 0.0, 1.2),  # 24 / 20
        (BYTEPS, 4, 0.0, 1.0),
        (BYTEPS, 4, 0.5, 1.0),  # eight machines send 1 each, over a core for eight
        (BYTEPS, 4, 0.8, 4 / 3),  # only one of four is used: five send 2 · 4 · 3 / (16 + 2) over a core for five
        (BYTEPS, 4, 0.6, 1.125),  # 2 2/3 of four: 24 / (16 + 16/3)
        (BYTEPS, 4, 2.0, 3.0),  # 4 with help
    ],
)
def test_four_nodes_take_what_the_busiest_link_takes(backend: int, spare: int, busy: float, sizes: float):
    assert network_load(backend, 4, spare, busy) == pytest.approx(sizes, rel=1e-12)


@settings(deadline=None)
@given(backend=st.integers(0, 2), nodes=NODES, spare=st.floats(0.0, 1.0), more=st.floats(0.0, 1.0),
       busy=st.floats(0.0, 9.0), others=st.floats(0.0, 9.0))  # fmt: skip
def test_spare_machines_and_fewer_jobs_on_the_network_never_make_it_longer(backend, nodes, spare, more, busy, others):
    fewer, many = sorted((spare * nodes, more * nodes))
    low, high = sorted((busy, others))
    assert network_load(backend, nodes, many, low) <= network_load(backend, nodes, fewer, high) * (1 + 1e-12)


def test_least_speeds_are_those_with_as_many_spare_machines_as_nodes():
    own = Synchronisation(np.array([[2.0, 1.0]]), np.array([[1.0, 0.0]]), 0)
    configurations = [Configuration("V", 8), Configuration("V", 8, nodes=4), Configuration("V", 8, nodes=2)]
    assert own.least_slowdowns(configurations, [0, 0, 0], 8).tolist() == [[1.0, 0.75, 1.0], [1.0, 1.0, 1.0]]
    narrow = replace(own, core_nodes=4.0)  # four nodes: 1/2 + 1.5 of 1/2 + 1.5 · 8/4, help makes it 2 over the core
    assert narrow.least_slowdowns(configurations, [0, 0, 0], 8)[0, 1] == pytest.approx(2.0 / 3.5)


def test_an_instance_says_how_fast_jobs_can_be():
    instance = helped_instance(0)
    several = np.array([c.nodes > 2 for c in instance.configurations])
    planned, fastest = instance.jobs.seconds_per_epoch, instance.fastest_seconds_per_epoch
    np.testing.assert_array_equal(fastest[:, ~several], planned[:, ~several])
    assert np.all(fastest <= planned)
    assert np.any(fastest[:, several] < planned[:, several])
    without = replace(instance, mechanisms=())
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
        ({"cpu_machines": 1, "backend": "all-reduce"}, "synchronisation.cpu_machines"),
        ({"backend": "ring"}, "synchronisation.backend"),
        ({"cpu_machine_w": -1.0}, "synchronisation.cpu_machine_w"),
        ({"core_nodes": 0.0}, "synchronisation.core_nodes"),
        ({"inside_s": [[-1.0]]}, "synchronisation.inside_s[0, 0]"),
        ({"inside_s": [[1.0, 1.0]]}, "synchronisation.inside_s"),
    ],
)
def test_a_wrong_value_is_named(values, field):
    with refused(field):
        Synchronisation(**{"compute_s": [[1.0]], "sync_s": [[1.0]], **values})


def test_tables_must_be_those_of_the_instance():
    instance = helped_instance(0)
    with refused("synchronisation.compute_s", (1, 1)):
        instance.with_mechanisms(Synchronisation([[1.0]], [[1.0]]))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301
def test_values_compare_and_copies_are_read_only(copied):
    own = Synchronisation([[1.0, 2.0]], [[0.5, 0.0]], 3)
    other = copied(own)
    assert other == own
    assert other != replace(own, cpu_machines=2)
    assert other == replace(own, inside_s=np.zeros((1, 2)))
    for change in (
        {"backend": "parameter-server"}, {"cpu_machine_w": 1.0}, {"core_nodes": 9.0}, {"inside_s": [[0.0, 1.0]]},
    ):  # fmt: skip
        assert other != replace(own, **change)
    with pytest.raises(ValueError, match="read-only"):
        other.sync_s[0, 0] = 1.0
