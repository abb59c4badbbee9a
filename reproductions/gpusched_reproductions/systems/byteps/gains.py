"""BytePS's gains over all-reduce, from bandwidths, and what the gains of the abstract need.

All figures follow from bandwidths, sizes of models and the measured time of an iteration on one GPU: it computes, then
synchronises, and nothing overlaps. What is added is one number for each kind of network: the bandwidth that all-reduce
reaches there, as a part of the link's. It is fitted to one published gain, and the other one is predicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpusched_env.model import Machine, network_load
from gpusched_env.model.synchronisation import BYTEPS
from gpusched_env.workload import builtin_applications
from gpusched_experiments.report.chart import Chart, Level, Panel, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.checks import Check, Measured

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpusched_experiments.report.chart import Series

NODES = 8
"""Machines, and CPU machines beside them: neither is published."""
BATCH = 64
IMAGES = 1_281_167
MODEL_GB = {"ResNet-50": 0.1024, "VGG-16": 0.5536}
ON_ONE_V100 = {"ResNet-50": "resnet50-imagenet-bs64", "VGG-16": "vgg16-imagenet-global256"}
QUARTER = 0.25
"""Deviation that we call agreement: a quarter of the published gain, the same for all."""
PERFORMANCE = "BytePS, docs/performance.md"
README = "BytePS, README: 70 and 90 %; an earlier docs/performance.md: +16 %"
ABSTRACT = "BytePS, abstract: up to; which model it is, and its time on one GPU, are not in public data"


class Network(NamedTuple):
    """Machines of 8 V100 and a network: name, machine, network of a machine [GB/s]."""

    name: str
    machine: Machine
    nic_gb_per_s: float


TCP = Network("NVLink, 20 Gb/s TCP", Machine.of("nvlink"), 2.5)
PCIE = Network("PCIe alone, 100 Gb/s RDMA", Machine.of("pcie"), 12.5)
PUBLISHED = {(TCP, "ResNet-50"): 44.0, (TCP, "VGG-16"): 100.0, (PCIE, "ResNet-50"): 7.0, (PCIE, "VGG-16"): 17.0}
FITTED_TO = {TCP: "ResNet-50", PCIE: "VGG-16"}


def compute_s(model: str, batch: int = BATCH) -> float:
    """Return the time in which one V100 trains a batch of images [s], by the built-in table."""
    return batch * builtin_applications()[ON_ONE_V100[model]].seconds_per_epoch["V100", 1] / IMAGES


def all_reduce_s(network: Network, model: str, nodes: int = NODES) -> float:
    return network.machine.all_reduce_s(nodes, network.nic_gb_per_s) * MODEL_GB[model]


def byteps_s(network: Network, model: str, spare: float, nodes: int = NODES) -> float:
    """Return the time of BytePS with a number of spare machines [s]: the slower of machine and network."""
    over = network_load(BYTEPS, nodes, spare, 0.0) / network.nic_gb_per_s
    return max(network.machine.inside_s, over) * MODEL_GB[model]


def gain(network: Network, model: str, spare: float, reached: float = 1.0) -> float:
    """Return how much faster BytePS is than all-reduce, which reaches a part of the bandwidth; 0.44 for +44 %."""
    alone = compute_s(model)
    return (alone + all_reduce_s(network, model) / reached) / (alone + byteps_s(network, model, spare)) - 1.0


def reached_by(network: Network) -> float:
    model = FITTED_TO[network]
    alone, published = compute_s(model), PUBLISHED[network, model] / 100.0
    took = (1.0 + published) * (alone + byteps_s(network, model, NODES)) - alone
    return all_reduce_s(network, model) / took


def run(_: bool) -> Measured:
    """Compare gains over all-reduce with the published ones: from bandwidths alone, then with one number a network."""
    where = f"{NODES} machines and {NODES} CPU machines, which are ours"
    checks = []
    for (network, model), published in PUBLISHED.items():
        what = f"{model}, {network.name}, bandwidths alone ({where}): gain [%]"
        ours = 100.0 * gain(network, model, NODES)
        checks.append(Check.within(what, ours, published, QUARTER, PERFORMANCE))
    for (network, model), published in PUBLISHED.items():
        reached = reached_by(network)
        what = f"{model}, {network.name}, all-reduce at {reached:.2f} of the link: gain [%]"
        kind = "fitted" if FITTED_TO[network] == model else "prediction"
        ours = 100.0 * gain(network, model, NODES, reached)
        checks.append(Check.within(what, ours, published, QUARTER, PERFORMANCE, kind))  # type: ignore[arg-type]
    return Measured((*checks, *_others()), _gain_chart())


def _others() -> tuple[Check, ...]:
    """Compare what BERT-large gains with the number of the same kind of network, and two ways of copying."""
    ring = 2.0 * (256 - 1) / 256 / reached_by(PCIE)
    nvlink, nic = TCP.machine, PCIE.nic_gb_per_s
    past = 100.0 * (nvlink.beside_network_s(1.0, nic) / max(nvlink.inside_s, 1.0 / nic) - 1.0)
    bert = 100.0 * ((1.0 / 0.7) / (1.0 + (1.0 / 0.7 - 1.0) * network_load(BYTEPS, 32, 32, 0.0) / ring) - 1.0)
    return (
        Check("NVLink, 100 Gb/s, k = n: time of copies beside the network, over copies past it, less 1 [%]", past),
        Check(
            "BERT-large, 256 GPUs, 100 Gb/s RDMA, where all-reduce has 70 % (32 CPU machines: ours): gain [%]",
            bert, 16.0, 100.0 * (0.9 / 0.7 - 1.0), 100.0 * (0.9 / 0.7 - 1.0), README, "prediction",
        ),
    )  # fmt: skip


def headlines(_: bool) -> Measured:
    """Say what the gains of the abstract need: 256 GPUs on 32 machines with NVLink, 100 Gb/s and 32 CPU machines."""
    nic, nodes, gpus, model = 12.5, 32, 8, "VGG-16"
    computing, sent_s = compute_s(model, 32), MODEL_GB[model] / nic
    ring = Machine.of("nvlink").all_reduce_s(nodes, nic) * nic
    loads = {"all-reduce": (ring, 84.0), f"parameter servers, to which each of {gpus} GPUs sends": (float(gpus), 245.0)}
    checks = []
    for name, (load, published) in loads.items():
        needs = (load - (1.0 + published / 100.0)) / (published / 100.0)
        vgg = 100.0 * ((computing + load * sent_s) / (computing + sent_s) - 1.0)
        rows = {
            f"over {name}, if computing takes no time: gain [%]": 100.0 * (load - 1.0),
            f"over {name}: computing time with that gain, over that of sending the model": needs,
            f"over {name}, VGG-16 with 32 images a GPU (computing takes {computing / sent_s:.1f} times): gain [%]": vgg,
        }
        published_of = (published, None, published)
        pairs = zip(rows.items(), published_of, strict=True)
        checks += [Check(what, ours, published=each, source=ABSTRACT) for (what, ours), each in pairs]
    return Measured(tuple(checks))


def line(name: str, points: Iterable[tuple[float, float]]) -> Series:
    return series(name, ((x, Estimate(y, None, 1)) for x, y in points))


def _gain_chart() -> Chart:
    """Draw gains by spare machines beside the published ones: from bandwidths alone, and with the fitted number."""
    reached = reached_by(TCP)
    levels = tuple(Level(PUBLISHED[TCP, model] / 100.0, f"published: {model}") for model in MODEL_GB)
    titles = {1.0: "Bandwidths alone", reached: f"All-reduce at {reached:.2f} of the link, fitted to ResNet-50"}
    panels = []
    for part, title in titles.items():
        lines = tuple(line(m, ((k, gain(TCP, m, k, part)) for k in range(NODES + 1))) for m in MODEL_GB)
        panel = Panel(
            title, "spare machines", "gain over all-reduce", lines, percent=True, levels=levels, y_range=(0.0, 1.15)
        )
        panels.append(panel)
    return Chart(f"BytePS over all-reduce, {NODES} machines, {TCP.name}", (tuple(panels),), panel_inches=(5.0, 3.8))
