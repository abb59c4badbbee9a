"""Scenarios with another network than the measured one, or with BytePS."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import Scenario, Synchronisation, load_scenario, make_instance, simulate
from gpusched_env.workload import Communication, Interconnect, builtin_communication, scenario_toml
from gpusched_env.workload.scenario.places import builtin_files
from refusals import refused

VGG, RESNET = "vgg16-imagenet-global256", "resnet50-imagenet-global256"


def several(**more: object) -> Scenario:
    """Make a scenario of VGG-16 and ResNet-50 on one to eight nodes of A100."""
    values = {"cluster.nodes": 9, "cluster.gpu_types": ["A100"], "jobs.count": 20, "jobs.applications": [VGG, RESNET]}
    return load_scenario("default").replace({**values, "jobs.node_counts": [1, 2, 3, 4, 5, 6, 7, 8], **more})


def seconds(scenario: Scenario, application: str, nodes: int) -> float:
    """Return the time of an epoch on so many whole nodes."""
    instance = make_instance(scenario, 0)
    job = instance.jobs.applications.index(application)
    row = instance.jobs.seconds_per_epoch[int(np.argmax(instance.jobs.application == job))]
    gpus = [(c.gpus_per_node, c.nodes) for c in instance.configurations]
    return float(row[gpus.index((8, nodes))])


def test_nodes_between_measured_ones_are_offered_with_fitted_times():
    """VGG-16: 1,281,167 images in batches of 256, and 0.12401 / 5 + 0.0190479 · 2 · 4 / 5 s an iteration."""
    assert seconds(several(), VGG, 5) == pytest.approx(1_281_167 / 256 * (0.12401 / 5 + 0.0190479 * 1.6), rel=1e-5)
    assert seconds(several(), VGG, 4) == 305.682, "as measured"


def test_without_an_interconnect_of_its_own_a_scenario_is_as_it_was():
    instance = make_instance(several(), 0)
    assert instance.of(Synchronisation) is None
    assert instance == make_instance(several(interconnect=Interconnect()), 0)


def test_a_slow_network_makes_jobs_on_several_nodes_slower_and_others_not():
    """VGG-16 at 2.5 GB/s: 0.6 · 0.5536 / 2.5 = 0.132864 s in place of 0.0190479."""
    slow = several(**{"interconnect.nic_gb_per_s": 2.5})
    factor = (0.12401 / 4 + 0.132864 * 1.5) / (0.12401 / 4 + 0.0190479 * 1.5)
    assert seconds(slow, VGG, 4) == pytest.approx(seconds(several(), VGG, 4) * factor, rel=1e-12)
    assert seconds(slow, VGG, 1) == seconds(several(), VGG, 1)
    assert make_instance(slow, 0).of(Synchronisation) is None


def test_a_network_that_bounds_nothing_changes_nothing():
    assert make_instance(several(**{"interconnect.nic_gb_per_s": 50.0}), 0) == make_instance(several(), 0)


def test_what_the_network_bounds_is_inversely_proportional_to_it():
    bound = Communication(1.0, 0.1, 1.0, 10.0, 0.0)  # 0.6 · 1 / 10 of 0.1 s are the network's
    assert bound.sync_on(20.0, 0.6) == pytest.approx(0.05)
    assert bound.sync_on(10.0, 0.6) == pytest.approx(0.1)
    assert bound.sync_on(20.0, 1.2) == pytest.approx(0.1)
    free = Communication(1.0, 0.2, 1.0, 10.0, 0.0)  # 0.06 of 0.2 s
    assert free.sync_on(20.0, 0.6) == free.sync_on(10.0, 0.6) == 0.2
    assert free.sync_on(1.0, 0.6) == pytest.approx(0.6)
    assert free.sync_on(1.0, 1.9) == pytest.approx(1.9)


def test_byteps_tells_instances_how_their_applications_synchronise():
    scenario = several(**{"interconnect.backend": "byteps", "interconnect.cpu_machines": 3})
    instance = make_instance(scenario, 0)
    own = instance.of(Synchronisation)
    table = builtin_communication()
    names = instance.jobs.applications
    assert own is not None
    assert own.cpu_machines == 3
    assert own.compute_s.tolist() == [[table[name, "A100"].compute_s for name in names]]
    assert own.sync_s.tolist() == [[table[name, "A100"].sync_s for name in names]]
    np.testing.assert_array_equal(instance.jobs.seconds_per_epoch, make_instance(several(), 0).jobs.seconds_per_epoch)


def test_byteps_on_a_slow_network_helps_with_the_time_there():
    scenario = several(**{"interconnect.backend": "byteps", "interconnect.nic_gb_per_s": 2.5})
    own = make_instance(scenario, 0).of(Synchronisation)
    assert own is not None
    assert own.sync_s[0, 0] == pytest.approx(0.132864)


def test_applications_and_types_that_were_not_measured_are_not_helped():
    applications = [VGG, "bert-squad-global384"]
    scenario = several(**{"interconnect.backend": "byteps", "jobs.applications": applications,
                          "cluster.gpu_types": ["T4", "A100"]})  # fmt: skip
    own = make_instance(scenario, 0).of(Synchronisation)
    assert own is not None
    assert (own.sync_s > 0.0).tolist() == [[False, False], [True, False]]


def test_what_is_measured_or_off_takes_the_times_that_were_measured():
    for values in (
        {"interconnect.backend": "parameter-server", "interconnect.cpu_machines": 3, "interconnect.cpu_machine_w": 9.0},
        {"interconnect.backend": "byteps", "interconnect.nic_gb_per_s": 50.0, "interconnect.core_gb_per_s": 450.0},
        {"interconnect.backend": "all-reduce", "interconnect.nic_gb_per_s": 50.0, "interconnect.core_gb_per_s": 450.0},
    ):  # fmt: skip
        instance = make_instance(several(**values), 0)
        assert instance.of(Synchronisation) is not None
        assert instance.of(Synchronisation).backend == values["interconnect.backend"]
        assert instance.of(Synchronisation).cpu_machine_w == values.get("interconnect.cpu_machine_w", 0.0)
        np.testing.assert_allclose(
            instance.jobs.seconds_per_epoch, make_instance(several(), 0).jobs.seconds_per_epoch, rtol=1e-15
        )


def test_a_narrow_core_is_planned_with_all_nodes_of_the_cluster():
    """Nine nodes of 2.5 GB/s over 7.5 GB/s: three times as long, 0.132864 · 1.5 · 3 s for VGG-16 on four."""
    narrow = several(**{"interconnect.nic_gb_per_s": 2.5, "interconnect.core_gb_per_s": 7.5})
    factor = (0.12401 / 4 + 0.132864 * 1.5 * 3) / (0.12401 / 4 + 0.0190479 * 1.5)
    assert seconds(narrow, VGG, 4) == pytest.approx(seconds(several(), VGG, 4) * factor, rel=1e-12)
    own = make_instance(narrow, 0).of(Synchronisation)
    assert own is not None
    assert (own.backend, own.core_nodes) == ("all-reduce", 3.0)


@pytest.mark.parametrize(
    ("backend", "machine", "sync_s"),
    [
        ("all-reduce", "pcie", 0.6 * 0.5536 / 10.0 * 1.5),  # the uplinks, not 12.5 GB/s
        ("all-reduce", "nvlink", 0.6 * 0.5536 / 12.5 * 1.5),
        ("byteps", "pcie", 0.6 * 0.5536 * 7 / 4 / 13.125),  # slower than 1.5 / 12.5
        ("byteps", "nvlink", 0.6 * 0.5536 / 12.5 * 1.5),
        ("parameter-server", "pcie", 0.6 * 0.5536 * 7 / 4 / 10.0),
    ],
)
def test_the_slowest_link_inside_or_between_nodes_decides(backend: str, machine: str, sync_s: float):
    values = {"nic_gb_per_s": 12.5, "backend": backend, "machine": machine}
    other = several(**{f"interconnect.{name}": value for name, value in values.items()})
    factor = (0.12401 / 4 + sync_s) / (0.12401 / 4 + 0.0190479 * 1.5)
    assert seconds(other, VGG, 4) == pytest.approx(seconds(several(), VGG, 4) * factor, rel=1e-12)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"interconnect.nic_gb_per_s": 0.0}, "interconnect.nic_gb_per_s"),
        ({"interconnect.backend": "ring"}, "interconnect.backend"),
        ({"interconnect.cpu_machines": 2}, "interconnect.cpu_machines"),
        ({"interconnect.exposed": 1.9}, "interconnect.exposed"),
        ({"interconnect.cpu_machine_w": 400.0}, "interconnect.cpu_machine_w"),
        ({"interconnect.core_gb_per_s": 10.0}, "interconnect.core_gb_per_s"),
        ({"interconnect.machine": "pcie"}, "interconnect.machine"),
        ({"interconnect.machine": "mesh", "interconnect.nic_gb_per_s": 2.5}, "interconnect.machine"),
        ({"interconnect.backend": "byteps", "interconnect.cpu_machines": -1}, "interconnect.cpu_machines"),
    ],
)
def test_a_setting_that_is_not_allowed_is_named(values, field):
    with refused(field):
        several(**values)


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"interconnect.backend": "byteps", "jobs.node_counts": [1]}, "interconnect.backend"),
        ({"interconnect.nic_gb_per_s": 2.5, "jobs.node_counts": [1]}, "interconnect.nic_gb_per_s"),
        (
            {
                "interconnect.backend": "byteps",
                "jobs.applications": ["bert-squad-global384"],
                "cluster.gpu_types": ["T4"],
            },
            "interconnect.backend",
        ),
    ],
)
def test_a_network_that_no_job_would_use_is_refused(values, field):
    with refused(field):
        make_instance(several(**values), 0)


def test_gpu_types_of_ones_own_are_as_told():
    own = [{"name": "mine", "like": "A100", "memory_gib": 40.0, "gpus_per_node": 8, "gpu_power_w": 300.0,
            "node_base_power_w": 900.0}]  # fmt: skip
    values = {"gpu_types": own, "cluster.gpu_types": ["mine", "A100"], "interconnect.nic_gb_per_s": 2.5}
    plain = make_instance(several(**(values | {"interconnect.nic_gb_per_s": None})), 0)
    slow = make_instance(several(**values), 0)
    mine = np.array([c.gpu_type == "mine" for c in slow.configurations])
    times = slow.jobs.seconds_per_epoch
    np.testing.assert_array_equal(times[:, mine], plain.jobs.seconds_per_epoch[:, mine])
    assert np.any(times[:, ~mine] > plain.jobs.seconds_per_epoch[:, ~mine])


def test_a_scenario_file_shows_the_section():
    text = scenario_toml(load_scenario("byteps"))
    assert all(part in text for part in ("[interconnect]", 'backend = "byteps"', "Modelled"))


def test_the_built_in_scenario_has_jobs_that_are_helped():
    scenario = load_scenario("byteps")
    assert "byteps" in builtin_files("scenario")
    helped, alone = (
        simulate(make_instance(scenario.replace(values), 0), make_policy("fifo"))
        for values in ({}, {"interconnect.backend": "all-reduce", "interconnect.cpu_machines": 0})
    )
    assert helped.energy_eur < 0.99 * alone.energy_eur
