import csv
from pathlib import Path

import numpy as np
import pytest

from gpusched_env.model import iteration_s, traffic
from gpusched_env.workload import builtin_applications, builtin_communication
from gpusched_env.workload.tables import read_table
from gpusched_env.workload.tables.applications import RDMA
from gpusched_experiments.report.figures import chart_files
from gpusched_reproductions.systems.byteps import PARTS, gains, horovod, throughputs
from gpusched_reproductions.systems.byteps.gains import NODES, PCIE, TCP

BARS = Path("../shared/data/byteps_charts/throughputs.csv")
MISSED = {
    "gains": {f"{m}, {n.name}, bandwidths" for m in gains.MODEL_GB for n in (TCP, PCIE)},
    "throughputs": {
        *(f"{m}, one machine" for m in gains.MODEL_GB),
        *(f"{m}, {gpus} GPUs, the ring" for m in gains.MODEL_GB for gpus in (16, 32)),
        *(f"{m}, 16 GPUs, BytePS" for m in gains.MODEL_GB),
        "VGG-16, 32 GPUs, BytePS",
    },
    "headlines": set(),
    "horovod": {"VGG-16, 16 P100"},
}
"""Predictions that miss their bands, as the page says."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_predictions_miss_their_bands_where_the_page_says_so(part):
    predictions = [check for check in part.run(True).checks if check.kind == "prediction"]
    for check in predictions:
        assert check.met != any(check.what.startswith(missed) for missed in MISSED[part.name]), check
    assert sum(not check.met for check in predictions) == len(MISSED[part.name])


@pytest.mark.parametrize("network", [TCP, PCIE])
@pytest.mark.parametrize("model", gains.MODEL_GB)
def test_gains_rise_with_every_spare_machine_up_to_the_number_of_nodes(network, model):
    rising = [gains.gain(network, model, k) for k in range(NODES + 1)]
    assert rising == sorted(rising)
    assert 0.0 <= rising[0] < 0.1, "without a spare machine and without a fitted number it begins near 0"


def test_the_fitted_number_gives_the_gain_to_which_it_was_fitted():
    for network, model in gains.FITTED_TO.items():
        gain = gains.gain(network, model, NODES, gains.reached_by(network))
        assert gain == pytest.approx(gains.PUBLISHED[network, model] / 100.0, rel=1e-12)


def test_no_overlap_explains_the_published_gain_of_resnet50_at_the_bandwidth_of_the_link():
    """If the ring hid nothing and BytePS everything, it would be 42 %, and 44 % are published."""
    alone = gains.compute_s("ResNet-50")
    assert (alone + gains.all_reduce_s(TCP, "ResNet-50")) / alone - 1.0 == pytest.approx(0.42, abs=0.005)


def test_a_ring_on_eight_machines_of_eight_gpus_by_hand():
    """2 · 63/64 of 102.4 MB over 2.5 GB/s; BytePS: 102.4 MB. With PCIe alone 10 GB/s, and 7/4 over 13.125 GB/s."""
    assert gains.all_reduce_s(TCP, "ResNet-50") == pytest.approx(2 * 63 / 64 * 0.1024 / 2.5)
    assert gains.byteps_s(TCP, "ResNet-50", NODES) == pytest.approx(0.1024 / 2.5)
    assert gains.all_reduce_s(PCIE, "VGG-16") == pytest.approx(2 * 63 / 64 * 0.5536 / 10.0)
    assert gains.byteps_s(PCIE, "VGG-16", NODES) == pytest.approx(7 / 4 * 0.5536 / 13.125)
    assert gains.byteps_s(PCIE, "VGG-16", 0) == pytest.approx(7 / 4 * 0.5536 / 12.5), "the network"


def test_parameter_servers_get_what_every_gpu_sends():
    """Four GPUs send to three other machines, a quarter of the model each, and get sums from there: 2 · 4 · 3/4."""
    assert horovod.server_load(4) == pytest.approx(6.0)
    assert horovod.ring_load(4) == pytest.approx(2 * 15 / 16)


def test_tensors_that_are_kept_whole_make_their_server_the_slowest():
    """16 workers push 411 MB of VGG-16 to a server at 0.9 GB/s, then pull it; ResNet-101: a quarter of 178 MB each."""
    assert horovod.whole_tensors_s("VGG-16") == pytest.approx(2 * 16 * 0.411 / 0.9)
    assert horovod.whole_tensors_s("ResNet-101") == pytest.approx(16 * 0.178 / 4 / 0.9)


def test_throughputs_of_64_gpus_by_hand():
    """4,096 images in 0.280 s of computing and 554 MB over 13.7 Gb/s; the ring has the rate that gives VGG-16's bar."""
    ring, byteps = throughputs.images_per_s("VGG-16", 8)
    assert byteps == pytest.approx(4096 / (4096 / 14636 + 0.5536 / (13.7 / 8)))
    assert ring == pytest.approx(3368.5)
    assert throughputs.ring_gb_per_s() == pytest.approx(1.164, abs=0.001)


@pytest.mark.skipif(not BARS.is_file(), reason=f"needs {BARS}")
def test_the_bars_are_those_that_were_read():
    """The mean of two versions of each chart; one chart of one machine."""
    with BARS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    def mean(chart, model, machines, system):
        wanted = model, str(machines), system
        named = [row for row in rows if (row["model"], row["machines"], row["system"]) == wanted]
        return np.mean([float(row["images_per_s"]) for row in named if chart in row["chart"]])

    for (model, machines), bars in throughputs.IMAGES_PER_S.items():
        assert bars == pytest.approx([mean("perf_tcp", model, machines, of) for of in ("horovod", "byteps", "ideal")])
    for model, bars in throughputs.ONE_MACHINE.items():
        assert bars == pytest.approx([mean("perf_8gpu", model, 1, of) for of in ("horovod", "byteps", "ideal")])


def test_a_v100_computes_64_images_of_resnet50_in_0_19_s():
    assert gains.compute_s("ResNet-50") == pytest.approx(64 / 332, rel=0.01)


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
    for rate, model_gb, measured, _ in horovod.HOROVOD.values():
        for nodes, efficiency in measured.items():
            sync_s = RDMA * model_gb / horovod.HOROVOD_GB_PER_S
            took = iteration_s(64 / rate * nodes, sync_s, 0.0, nodes, traffic(nodes, 0.0))
            errors.append(100.0 * (64 / rate / took - efficiency))
    assert max(map(abs, errors)) < 10.5
    assert horovod.run(True).checks[-1].ours == pytest.approx((sum(e * e for e in errors) / 9) ** 0.5)


@pytest.mark.parametrize("part", [gains.run, throughputs.run, horovod.run])
def test_the_figure_can_be_drawn(part):
    assert chart_files(part(True).chart, "figure").keys() == {"figure.svg"}
