"""BytePS's throughputs, read off its authors' charts, by two rates that were chosen for 64 GPUs; and on one machine.

An iteration computes for as long as on one GPU of the same chart, then synchronises. Neither rate was chosen by the
throughputs of 16 and 32 GPUs, where both systems take less time than by these rates, which overlap
could explain.
"""

from __future__ import annotations

from gpusched_experiments.report.chart import Chart, Panel
from gpusched_reproductions.systems.byteps.gains import (
    BATCH,
    MODEL_GB,
    NODES,
    PCIE,
    PUBLISHED,
    QUARTER,
    TCP,
    all_reduce_s,
    byteps_s,
    line,
)
from gpusched_reproductions.systems.checks import Check, Kind, Measured

TENTH = 0.1
"""Deviation of a throughput that we call agreement, as of the times of `communication.csv`."""
CHARTS = "images of github.com/bytedance/byteps up to f5df52fe (Apache-2.0), read off the bars"
CONNECTION = f"{CHARTS}; 13.7 Gb/s of a TCP connection (its issue 29) was chosen with the bars of 64 GPUs known"
RING = f"{CHARTS}; the ring's rate is fitted to VGG-16's bar of 64 GPUs"
PRACTICE = f"{CHARTS}; docs/best-practice.md: 20 to 30 %; its links are not named, PCIe is ours"
CONNECTION_GB_PER_S = 13.7 / 8.0
IMAGES_PER_S = {
    ("VGG-16", 8): (3368.5, 6649.5, 14636.0),
    ("ResNet-50", 8): (11537.5, 16656.0, 21712.0),
    ("VGG-16", 4): (2083.5, 4210.0, 7342.0),
    ("ResNet-50", 4): (7668.0, 8966.5, 10861.0),
    ("VGG-16", 2): (1640.0, 2478.0, 3695.0),
    ("ResNet-50", 2): (3987.0, 4820.0, 5477.0),
}
"""Of the ring, BytePS and one GPU times their number, by model and machines (`TCP`): the mean of two versions of each
chart, which a pixel makes uncertain by 27 to 153."""
ONE_MACHINE = {"VGG-16": (1043.0, 1282.0, 1680.0), "ResNet-50": (1839.0, 1999.0, 2317.0)}
"""The same on one machine, with 32 images a GPU."""


def ring_gb_per_s() -> float:
    """Return the rate of the ring with which VGG-16 has its published throughput on 64 GPUs [GB/s]."""
    took = TCP.machine.gpus * NODES * BATCH / IMAGES_PER_S["VGG-16", NODES][0] - _alone_s("VGG-16")
    return TCP.machine.all_reduce_s(NODES, 1.0) * MODEL_GB["VGG-16"] / took


def images_per_s(model: str, nodes: int) -> tuple[float, float]:
    """Return the images a second of the ring and of BytePS, on a number of machines, with as many CPU machines."""
    ring, connection = (TCP._replace(nic_gb_per_s=rate) for rate in (ring_gb_per_s(), CONNECTION_GB_PER_S))
    images, alone = TCP.machine.gpus * nodes * BATCH, _alone_s(model)
    sync = all_reduce_s(ring, model, nodes), byteps_s(connection, model, nodes, nodes)
    return images / (alone + sync[0]), images / (alone + sync[1])


def _alone_s(model: str) -> float:
    """Return the time of an iteration on one GPU of those charts [s]."""
    return TCP.machine.gpus * NODES * BATCH / IMAGES_PER_S[model, NODES][2]


def run(_: bool) -> Measured:
    """Compare throughputs with what two rates give: fitted on 64 GPUs, and held out on fewer."""
    names, checks = (("the ring", RING), ("BytePS", CONNECTION)), []
    for (model, nodes), published in IMAGES_PER_S.items():
        kind: Kind = "fitted" if nodes == NODES else "prediction"
        for (name, source), ours, bar in zip(names, images_per_s(model, nodes), published, strict=False):
            what = f"{model}, {8 * nodes} GPUs, {name}: images a second"
            checks.append(Check.within(what, ours, bar, TENTH, source, kind))
    for model in MODEL_GB:
        (ring, byteps), what = images_per_s(model, NODES), f"{model}, 64 GPUs, by both rates: gain [%]"
        ours = 100.0 * (byteps / ring - 1.0)
        checks.append(Check.within(what, ours, PUBLISHED[TCP, model], QUARTER, CONNECTION, "fitted"))
    return Measured((*checks, *map(one_machine, ONE_MACHINE)), _throughput_chart())


def one_machine(model: str) -> Check:
    """Compare the throughput of BytePS on one machine, as if it had PCIe alone, with that of the ring."""
    published, machine = ONE_MACHINE[model], PCIE.machine
    alone = machine.gpus * 32 / published[2]
    ring, byteps = (alone + each * MODEL_GB[model] for each in (machine.all_reduce_s(1, 1.0), machine.inside_s))
    what, bars = f"{model}, one machine, PCIe alone: gain of throughput [%]", published[1] / published[0]
    return Check.within(what, 100.0 * (ring / byteps - 1.0), 100.0 * (bars - 1.0), QUARTER, PRACTICE)


def _throughput_chart() -> Chart:
    """Draw images a second by number of GPUs: ours, with rates chosen for 64, and the bars."""
    panels = []
    for model in MODEL_GB:
        nodes = sorted(n for each, n in IMAGES_PER_S if each == model)
        lines = [
            line(f"{name}, {whose}", ((8 * n, rates(model, n)[place]) for n in nodes))
            for place, name in enumerate(("all-reduce", "BytePS"))
            for whose, rates in (("ours", images_per_s), ("published", lambda m, n: IMAGES_PER_S[m, n]))
        ]
        panels.append(Panel(model, "GPUs", "images a second", tuple(lines)))
    return Chart(f"{TCP.name}: both rates were chosen for 64 GPUs", (tuple(panels),), panel_inches=(5.0, 3.8))
