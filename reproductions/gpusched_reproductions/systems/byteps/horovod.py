"""All-reduce and TensorFlow's parameter servers on the machines of Horovod's authors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.model import Machine, iteration_s, network_load, traffic
from gpusched_env.model.synchronisation import BYTEPS, PARAMETER_SERVER
from gpusched_env.workload.tables.applications import RDMA
from gpusched_experiments.report.chart import Chart, Panel
from gpusched_reproductions.systems.byteps.gains import BATCH, QUARTER, line
from gpusched_reproductions.systems.checks import Check, Measured

if TYPE_CHECKING:
    from collections.abc import Callable

HOROVOD_SOURCE = "Horovod's documentation and pull request 44"
WHOLE = f"{HOROVOD_SOURCE}; 0.9 GB/s: tensorflow issue 6116; 4 servers are ours; third rule tried with these figures"
HOROVOD_GB_PER_S, HOROVOD_GPUS, HOROVOD_NODES = 3.125, 4, 4
SERVER_GB_PER_S = 0.9
LARGEST_GB = {"Inception V3": 0.0082, "ResNet-101": 0.0094, "VGG-16": 0.4110}
"""The largest tensor, which TensorFlow's parameter servers keep whole."""
HOROVOD = {
    "Inception V3": (134.4, 0.1088, {4: 15.0 / 16, 32: 0.90, 128: 0.90}, 10.0),
    "ResNet-101": (119.4, 0.178, {4: 14.6 / 16, 32: 0.90, 128: 0.90}, 8.0),
    "VGG-16": (130.9, 0.5536, {4: 13.7 / 16, 32: 0.79, 128: 0.68}, 0.6),
}
"""On machines of 4 P100 and 25 Gb/s: images a second on one P100, size of the model [GB], efficiency of all-reduce by
number of machines, and speed-up of 16 GPUs with TensorFlow's parameter servers."""


def horovod_efficiency(model: str, nodes: int, load: Callable[[int], float]) -> float:
    """Return the efficiency on Horovod's machines, from bandwidths alone; `load` in sizes of the model."""
    rate, model_gb, *_ = HOROVOD[model]
    alone = BATCH / rate
    return alone / (alone + load(nodes) * model_gb / HOROVOD_GB_PER_S)


def ring_load(nodes: int) -> float:
    return Machine(HOROVOD_GPUS, 1).all_reduce_s(nodes, 1.0)


def server_load(nodes: int) -> float:
    """Return what each of Horovod's machines sends if it is a server too, and each of its GPUs sends on its own."""
    return HOROVOD_GPUS * network_load(PARAMETER_SERVER, nodes, 0.0, 0.0)


def whole_tensors_s(model: str) -> float:
    """Return the time of 16 workers at 4 servers that keep tensors whole [s].

    The largest tensor is pushed to its server, then pulled; the others go both ways at once.
    """
    workers, servers = HOROVOD_GPUS * HOROVOD_NODES, HOROVOD_NODES
    return workers * max(2.0 * LARGEST_GB[model], HOROVOD[model][1] / servers) / SERVER_GB_PER_S


def run(_: bool) -> Measured:
    checks, errors = [], []
    for model, (rate, model_gb, measured, servers) in HOROVOD.items():
        ours, where = 16.0 * horovod_efficiency(model, HOROVOD_NODES, server_load), f"{model}, 16 P100, 25 Gb/s"
        what = f"{where}, TensorFlow's parameter servers, bandwidths alone: speed-up"
        checks.append(Check.within(what, ours, servers, QUARTER, HOROVOD_SOURCE))
        ours = 16.0 / (1.0 + whole_tensors_s(model) * rate / BATCH)
        what = f"{where}, servers that keep tensors whole and move 0.9 GB/s each: speed-up"
        checks.append(Check.within(what, ours, servers, QUARTER, WHOLE, "fitted"))
        for nodes, efficiency in measured.items():
            alone = BATCH / rate
            took = iteration_s(alone * nodes, RDMA * model_gb / HOROVOD_GB_PER_S, 0.0, nodes, traffic(nodes, 0.0))
            errors.append(100.0 * (alone / took - efficiency))
    rms = float(np.sqrt(np.mean(np.square(errors))))
    what = "nine efficiencies of all-reduce with 0.6 of its time exposed, rms error [points]"
    fitted = Check(what, rms, source=HOROVOD_SOURCE, kind="fitted")
    return Measured((*checks, fitted), _efficiency_chart())


def _efficiency_chart() -> Chart:
    """Draw efficiency by number of GPUs and backend, with the published points."""
    backends: dict[str, Callable[[int], float]] = {
        "all-reduce": ring_load,
        "parameter servers": server_load,
        "BytePS, no spare machine": lambda n: network_load(BYTEPS, n, 0.0, 0.0),
        "BytePS, one a machine": lambda n: network_load(BYTEPS, n, n, 0.0),
    }
    panels = []
    for model in ("ResNet-101", "VGG-16"):
        lines = [
            line(name, ((HOROVOD_GPUS * n, horovod_efficiency(model, n, sent)) for n in (2, 4, 8, 16, 32, 64, 128)))
            for name, sent in backends.items()
        ]
        measured, servers = HOROVOD[model][2:]
        lines.append(line("all-reduce, published", ((HOROVOD_GPUS * n, own) for n, own in measured.items())))
        lines.append(line("parameter servers, published", ((16, servers / 16),)))
        panels.append(Panel(model, "GPUs", "efficiency", tuple(lines), percent=True, logarithmic="x"))
    title = "Bandwidths alone: 4 P100 a machine, 25 Gb/s"
    return Chart(title, (tuple(panels),), panel_inches=(5.0, 3.8))
