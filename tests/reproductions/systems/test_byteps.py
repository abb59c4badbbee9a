import pytest

from gpusched_env.model import iteration_s, traffic
from gpusched_env.workload import builtin_applications, builtin_communication
from gpusched_env.workload.tables import read_table
from gpusched_env.workload.tables.applications import RDMA
from gpusched_experiments.report.figures import chart_files
from gpusched_reproductions.systems import byteps
from gpusched_reproductions.systems.byteps import NODES, PCIE, TCP

MISSED = {
    "gains": {*(f"{m}, {n.name}, bandwidths" for m in byteps.MODEL_GB for n in (TCP, PCIE)), "one machine"},
    "headlines": set(),
    "horovod": {"VGG-16, 16 P100"},
}
"""Predictions that miss their bands, as the page says."""


@pytest.mark.parametrize("part", byteps.PARTS, ids=lambda part: part.name)
def test_predictions_miss_their_bands_where_the_page_says_so(part):
    predictions = [check for check in part.run(True).checks if check.kind == "prediction"]
    for check in predictions:
        assert check.met != any(check.what.startswith(missed) for missed in MISSED[part.name]), check
    assert sum(not check.met for check in predictions) == len(MISSED[part.name])


@pytest.mark.parametrize("network", [TCP, PCIE])
@pytest.mark.parametrize("model", byteps.MODEL_GB)
def test_gains_rise_with_every_spare_machine_up_to_the_number_of_nodes(network, model):
    gains = [byteps.gain(network, model, k) for k in range(NODES + 1)]
    assert gains == sorted(gains)
    assert 0.0 <= gains[0] < 0.1, "without a spare machine and without a fitted number it begins near 0"


def test_the_fitted_number_gives_the_gain_to_which_it_was_fitted():
    for network, model in byteps.FITTED_TO.items():
        gain = byteps.gain(network, model, NODES, byteps.reached_by(network))
        assert gain == pytest.approx(byteps.PUBLISHED[network, model] / 100.0, rel=1e-12)


def test_no_overlap_explains_the_published_gain_of_resnet50_at_the_bandwidth_of_the_link():
    """If the ring hid nothing and BytePS everything, it would be 42 %, and 44 % are published."""
    alone = byteps.compute_s("ResNet-50")
    assert (alone + byteps.all_reduce_s(TCP, "ResNet-50")) / alone - 1.0 == pytest.approx(0.42, abs=0.005)


def test_a_ring_on_eight_machines_of_eight_gpus_by_hand():
    """2 · 63/64 of 102.4 MB over 2.5 GB/s; BytePS: 102.4 MB. With PCIe alone 10 GB/s, and 7/4 over 13.125 GB/s."""
    assert byteps.all_reduce_s(TCP, "ResNet-50") == pytest.approx(2 * 63 / 64 * 0.1024 / 2.5)
    assert byteps.byteps_s(TCP, "ResNet-50", NODES) == pytest.approx(0.1024 / 2.5)
    assert byteps.all_reduce_s(PCIE, "VGG-16") == pytest.approx(2 * 63 / 64 * 0.5536 / 10.0)
    assert byteps.byteps_s(PCIE, "VGG-16", NODES) == pytest.approx(7 / 4 * 0.5536 / 13.125)
    assert byteps.byteps_s(PCIE, "VGG-16", 0) == pytest.approx(7 / 4 * 0.5536 / 12.5), "the network"


def test_parameter_servers_get_what_every_gpu_sends():
    """Four GPUs send to three other machines, a quarter of the model each, and get sums from there: 2 · 4 · 3/4."""
    assert byteps.server_load(4) == pytest.approx(6.0)
    assert byteps.ring_load(4) == pytest.approx(2 * 15 / 16)


def test_a_v100_computes_64_images_of_resnet50_in_0_19_s():
    assert byteps.compute_s("ResNet-50") == pytest.approx(64 / 332, rel=0.01)


def test_every_time_behind_the_fitted_table_is_within_10_percent_of_the_fit():
    facts = {row["application"]: row for row in read_table("application_facts.csv")}
    rows = [row for row in read_table("whole_nodes.csv") if row["method"] == "measured"]
    looked_at = 0
    for (name, gpu), own in builtin_communication().items():
        iterations = int(facts[name]["samples_per_epoch"]) / int(facts[name]["batch_size"])
        several = [row for row in rows if (row["application"], row["gpu_type"]) == (name, gpu)]
        times = {int(row["nodes"]): float(row["seconds_per_epoch"]) for row in several}
        times[1] = builtin_applications()[name].seconds_per_epoch[gpu, int(several[0]["gpus_per_node"])]
        for nodes, seconds in times.items():
            fit_s = iteration_s(own.compute_s, own.sync_s, 0.0, nodes, traffic(nodes, 0.0))
            assert iterations * fit_s == pytest.approx(seconds, rel=0.1)
            looked_at += 1
    assert looked_at == 6 * 4


def test_the_share_that_is_exposed_by_default_is_fitted_to_nine_efficiencies():
    errors = []
    for rate, model_gb, measured, _ in byteps.HOROVOD.values():
        for nodes, efficiency in measured.items():
            sync_s = RDMA * model_gb / byteps.HOROVOD_GB_PER_S
            took = iteration_s(64 / rate * nodes, sync_s, 0.0, nodes, traffic(nodes, 0.0))
            errors.append(100.0 * (64 / rate / took - efficiency))
    assert max(map(abs, errors)) < 10.5
    assert byteps.horovod(True).checks[-1].ours == pytest.approx((sum(e * e for e in errors) / 9) ** 0.5)


@pytest.mark.parametrize("part", [byteps.gains, byteps.horovod])
def test_the_figure_can_be_drawn(part):
    assert chart_files(part(True).chart, "figure").keys() == {"figure.svg"}
