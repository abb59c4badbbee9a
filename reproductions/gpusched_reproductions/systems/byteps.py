"""BytePS: spare machines that help jobs on several nodes to synchronise (Jiang et al., OSDI 2020).

One parameter is fitted: `TCP`, to what is published of ResNet-50. That BytePS hides twice as much of its traffic as
all-reduce follows from what is published of BERT-large, and is used for all.
"""

from __future__ import annotations

import numpy as np

from gpusched_baselines import make_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Synchronisation, simulate
from gpusched_env.model import iteration_s, traffic
from gpusched_env.workload import builtin_applications, builtin_communication
from gpusched_env.workload.tables.applications import RDMA, read_table
from gpusched_experiments.report.chart import Chart, Level, Panel, series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.validation import Check, Measured, Part

NODES = 8
BATCH = 64
IMAGES = 1_281_167
MODEL_GB = {"ResNet-50": 0.1024, "VGG-16": 0.5536}
ON_ONE_V100 = {"ResNet-50": "resnet50-imagenet-bs64", "VGG-16": "vgg16-imagenet-global256"}
SLOW_GB_PER_S, FAST_GB_PER_S = 2.5, 12.5
TCP = 1.86
"""Exposed share of synchronising with NCCL over TCP, over the efficiency of the link: fitted to ResNet-50's +44 %."""
HIDDEN = 2.0
"""How many times as much BytePS hides: from BERT-large's 70 and 90 %."""
PERFORMANCE = "BytePS, docs/performance.md"
ABSTRACT = "BytePS, README"
HOROVOD_GB_PER_S, HOROVOD_GPUS = 3.125, 4
HOROVOD = {
    "Inception V3": (134.4, 0.1088, {4: 15.0 / 16, 32: 0.90, 128: 0.90}),
    "ResNet-101": (119.4, 0.178, {4: 14.6 / 16, 32: 0.90, 128: 0.90}),
    "VGG-16": (130.9, 0.5536, {4: 13.7 / 16, 32: 0.79, 128: 0.68}),
}
"""Images a second on one P100, size of the model [GB], efficiency by number of nodes with 4 GPUs and 25 Gb/s."""


def formulas(quick: bool) -> Measured:
    """Compare the traffic with its closed forms, and see that more help is never worse."""
    most = 64 if quick else 1024
    nodes = range(2, most + 1)
    none = max(abs(traffic(n, 0.0) / (2.0 * (n - 1) / n) - 1.0) for n in nodes)
    whole = max(abs(traffic(n, n) - 1.0) for n in nodes)
    rises = sum(traffic(n, k + 0.5) > traffic(n, k) for n in nodes for k in np.arange(0.0, n, 0.5))
    source = "all-reduce sends 2(n - 1)/n, and the best that there is 1"
    return Measured(
        (
            Check("traffic without help against all-reduce, largest relative error", none, high=1e-12, source=source),
            Check("traffic with as many spare machines as nodes against 1", whole, high=1e-12, source=source),
            Check("times that more help is worse", float(rises), high=0.0),
        )
    )


def compute_s(network: str) -> float:
    """Return the time in which one V100 trains a batch of 64 images [s], by the built-in table."""
    return BATCH * builtin_applications()[ON_ONE_V100[network]].seconds_per_epoch["V100", 1] / IMAGES


def gain(network: str, spare: float, gb_per_s: float, exposed: float) -> float:
    """Return how much faster BytePS is than all-reduce on 8 nodes, each GPU with its own batch; 0.44 for +44 %."""
    computing = compute_s(network) * NODES  # a batch for each node: all of them are that many on one
    sync_s = exposed * MODEL_GB[network] / gb_per_s
    own = iteration_s(computing, sync_s / HIDDEN, NODES, spare)
    return iteration_s(computing, sync_s, NODES, 0.0) / own - 1.0


def gains(_: bool) -> Measured:
    """Compare the gains over all-reduce with the published ones."""
    points = {name: 100.0 * gain(name, NODES, SLOW_GB_PER_S, TCP) for name in MODEL_GB}
    fast = 100.0 * gain("ResNet-50", NODES, FAST_GB_PER_S, RDMA)
    bert = 100.0 / (1.0 + (1.0 / 0.7 - 1.0) / traffic(32, 0.0) / HIDDEN * traffic(32, 32))
    checks = (
        Check.around("ResNet-50, 20 Gb/s, 8 nodes (fitted): gain [%]", points["ResNet-50"], 44.0, 10.0, PERFORMANCE),
        Check.around("VGG-16, 20 Gb/s, 8 nodes: gain [%]", points["VGG-16"], 100.0, 15.0, PERFORMANCE),
        Check("ResNet-50, 100 Gb/s, 8 nodes: gain [%]", fast, 0.0, 7.0, 7.0, f"{PERFORMANCE} (PCIe alone)"),
        Check.around(
            "BERT-large, 100 Gb/s, 32 nodes: efficiency if all-reduce has 70 % [%]", bert, 90.0, 5.0, ABSTRACT
        ),
    )
    return Measured(checks, _gain_chart())


def _gain_chart() -> Chart:
    lines = tuple(
        series(name, ((k, Estimate(gain(name, k, SLOW_GB_PER_S, TCP), None, 1)) for k in range(NODES + 1)))
        for name in MODEL_GB
    )
    levels = (Level(0.44, "published: ResNet-50"), Level(1.0, "published: VGG-16"))
    panel = Panel("8 nodes, 20 Gb/s TCP", "spare machines", "gain over all-reduce", lines, percent=True, levels=levels)
    return Chart("BytePS over all-reduce", ((panel,),), panel_inches=(6.8, 3.4))


def horovod(_: bool) -> Measured:
    """Compare all-reduce, without any spare machine, with nine points that Horovod's authors measured."""
    errors = []
    for rate, model_gb, measured in HOROVOD.values():
        for nodes, efficiency in measured.items():
            computing = BATCH / rate
            took = iteration_s(computing * nodes, RDMA * model_gb / HOROVOD_GB_PER_S, nodes, 0.0)
            errors.append(100.0 * (computing / took - efficiency))
    source, rms = "Horovod's documentation and pull request 44", float(np.sqrt(np.mean(np.square(errors))))
    return Measured(
        (
            Check("nine efficiencies of all-reduce, rms error [points]", rms, 0.0, 6.0, source=source),
            Check("the worst of them [points]", max(abs(e) for e in errors), 0.0, 12.0, source=source),
        )
    )


def fits(_: bool) -> Measured:
    """Compare the built-in table with every row of ElasticFlow's on which it rests."""
    checks = []
    facts = {row["application"]: row for row in read_table("application_facts.csv")}
    rows = [row for row in read_table("whole_nodes.csv") if row["method"] == "measured"]
    for (name, gpu), own in builtin_communication().items():
        iterations = int(facts[name]["samples_per_epoch"]) / int(facts[name]["batch_size"])
        several = [row for row in rows if (row["application"], row["gpu_type"]) == (name, gpu)]
        times = {int(row["nodes"]): float(row["seconds_per_epoch"]) for row in several}
        on_one = builtin_applications()[name].seconds_per_epoch[gpu, int(several[0]["gpus_per_node"])]
        for nodes, seconds in ({1: on_one} | times).items():
            fit_s = iterations * iteration_s(own.compute_s, own.sync_s, nodes, 0.0)
            what = f"{name} on {nodes} x {gpu}: error of the fit [%]"
            checks.append(Check(what, 100.0 * (fit_s / seconds - 1.0), -10.0, 10.0, source="ElasticFlow, A100"))
    return Measured(tuple(checks))


def simulated(quick: bool) -> Measured:
    """Run one job on 8 nodes beside others that each have a node, and compare its completion with the formula."""
    rows = [(network, k) for network in MODEL_GB for k in ((0, 3, 8) if quick else range(NODES + 2))]
    errors = [_completion_error(network, k, cpu) for network, k in rows for cpu in (0, 2)]
    what = f"{len(errors)} completions in the simulator against the formula, largest relative error"
    return Measured((Check(what, max(errors), high=1e-9),))


def _completion_error(network: str, neighbours: int, cpu_machines: int) -> float:
    """Return the relative error of a job's completion, with so many neighbours and CPU machines."""
    one, all_of_them = Configuration("V", 8), Configuration("V", 8, nodes=NODES)
    computing, sync_s = compute_s(network) * NODES, TCP / HIDDEN * MODEL_GB[network] / SLOW_GB_PER_S
    certain = EpochDistribution.certain()
    alone_s = 1000.0 * iteration_s(computing, sync_s, NODES, 0.0)
    jobs = [Job(0.0, 1e9, 0.0, 10.0, certain, 10.0, {all_of_them: alone_s})]
    jobs += [Job(0.0, 1e9, 0.0, 1.0, certain, 1.0, {one: 100.0 * alone_s}) for _ in range(neighbours)]
    instance = Instance.from_jobs(
        [GpuType("V", 300.0, 300.0, 32.0, 8)],
        [Node("V", 8)] * (NODES + neighbours),
        jobs,
        [one, all_of_them],
        synchronisation=Synchronisation(np.array([[computing]]), np.array([[sync_s]]), cpu_machines),
    )
    spare = min(NODES, neighbours + cpu_machines)
    expected = 10.0 * 1000.0 * iteration_s(computing, sync_s, NODES, spare)
    return abs(float(simulate(instance, make_policy("fifo")).completion_s[0]) / expected - 1.0)


PARTS = (
    Part("byteps", "formulas", "the traffic of n nodes with k spare machines has the known ends, and falls", formulas),
    Part("byteps", "gains", "gains over all-reduce, published and ours", gains),
    Part("byteps", "horovod", "all-reduce without help, as measured by others", horovod),
    Part("byteps", "fits", "iterations that were measured on 1 to 8 nodes, and the fit", fits),
    Part("byteps", "simulated", "a job beside idle networks takes what the formula says", simulated),
)
