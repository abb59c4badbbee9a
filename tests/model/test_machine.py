"""Links inside a machine, by hand, and against what BytePS's authors say of theirs."""

from __future__ import annotations

import pytest

from gpusched_env.model import Machine
from refusals import refused

PCIE, NVLINK = Machine.of("pcie"), Machine.of("nvlink")


def test_a_ring_of_eight_gpus_sends_seven_quarters_over_the_uplinks():
    """BytePS, section 4.2: 7M/4 on the link between switch and CPU, at 80 Gb/s."""
    assert PCIE.all_reduce_s(1, 12.5) == pytest.approx(7 / 4 / 10.0)
    assert NVLINK.all_reduce_s(1, 12.5) == pytest.approx(7 / 4 / 150.0)
    assert Machine(4, 1).all_reduce_s(1, 12.5) == pytest.approx(3 / 2 / 13.125), "one switch: no uplink"


def test_over_several_machines_the_slowest_link_of_the_ring_decides():
    assert PCIE.all_reduce_s(2, 12.5) == pytest.approx(2 * 15 / 16 / 10.0), "the uplinks"
    assert PCIE.all_reduce_s(2, 2.5) == pytest.approx(2 * 15 / 16 / 2.5), "the network"
    assert NVLINK.all_reduce_s(2, 12.5) == pytest.approx(2 * 15 / 16 / 12.5)
    assert Machine(4, 1).all_reduce_s(2, 12.5) == pytest.approx(2 * 7 / 8 / 10.0), "the uplink to the network"


def test_summing_on_the_cpu_sends_one_model_over_each_uplink():
    """Of four GPUs under a switch each sends 3/4 and 1/4 and 3/4 over its own link."""
    assert PCIE.inside_s == pytest.approx(7 / 4 / 13.125)
    assert Machine(uplink_gb_per_s=5.0).inside_s == pytest.approx(1 / 5.0)
    assert Machine(memory_gb_per_s=8.0).inside_s == pytest.approx(4 / 8.0), "two switches, in and out"
    assert Machine(8, 8).inside_s == pytest.approx(16 / 37.5), "a GPU a switch: the memory"


def test_it_takes_24_percent_less_than_the_ring_as_its_authors_say():
    assert 1.0 - PCIE.inside_s / PCIE.all_reduce_s(1, 12.5) == pytest.approx(0.24, abs=0.005)


def test_with_nvlink_one_gpu_away_from_the_network_copies_to_the_cpu():
    assert NVLINK.inside_s == pytest.approx(1 / 13.125)
    assert Machine(8, 4, nvlink_gb_per_s=5.0).inside_s == pytest.approx(1 / 5.0)
    # If all copy, a quarter of the model passes the switch of the network beside what that sends.
    assert NVLINK.beside_network_s(1.0, 12.5) == pytest.approx(1.25 / 13.125)
    assert NVLINK.beside_network_s(1.0, 2.5) == pytest.approx(1.0 / 2.5)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"gpus": 0}, "machine.gpus"),
        ({"gpus": 6, "switches": 4}, "machine.gpus"),
        ({"switches": 0}, "machine.switches"),
        ({"pcie_gb_per_s": 0.0}, "machine.pcie_gb_per_s"),
        ({"uplink_gb_per_s": -1.0}, "machine.uplink_gb_per_s"),
        ({"memory_gb_per_s": float("inf")}, "machine.memory_gb_per_s"),
        ({"nvlink_gb_per_s": 0.0}, "machine.nvlink_gb_per_s"),
    ],
)
def test_a_wrong_value_is_named(values, field):
    with refused(field):
        Machine(**values)
