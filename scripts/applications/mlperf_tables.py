"""Applications, epochs needed and power of MLPerf Training's runs, one global batch an application."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from applications.measurements import read_csv
from applications.mlperf import FILE, NOT_VERIFIED, Run, best_speed, quantile, runs
from applications.modern_power import AIR, B200_NODE, IMMERSED
from applications.modern_power import RUNS as POWER_FILE
from applications.power import GPUS_PER_NODE
from applications.restarts import OTHERS_S, SIA_S

if TYPE_CHECKING:
    from pathlib import Path

MOST_NODES = 16
SUPERLINEAR = 1.15
"""A number of GPUs is left out if the next larger one beats it by more than so many times linear."""
PROBABILITIES = (0.0, 0.01, *(k / 20 for k in range(1, 20)), 0.99, 0.995, 0.998, 1.0)
MEASURED, OTHER_BATCH, LINEAR = "measured", "other batch", "linear"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One application: a benchmark at one global batch.

    Args:
        name: The benchmark.
        label: What the application is called.
        batch: Global batch; the epochs needed grow with it.
        unit: What its progress counts.
        per_unit: Units of the file in one of these.
        least_gpus: Fewest GPUs of a node that are assumed to hold it.
        restart_s: Seconds without progress after a change, as Sia's artifact has it.
    """

    name: str
    label: str
    batch: int
    unit: str = "epoch"
    per_unit: float = 1.0
    least_gpus: int = 1
    restart_s: float = OTHERS_S

    @property
    def application(self) -> str:
        """Return the name of the application."""
        return f"mlperf-{self.label}-b{self.batch}"


BENCHMARKS = (
    Benchmark("bert", "bert", 768, "1,000 samples", 1000.0, restart_s=SIA_S["bert"][0]),
    Benchmark("dlrm_dcnv2", "dlrm", 55296, least_gpus=4),
    Benchmark("gnn", "gnn", 16384, least_gpus=4),
    Benchmark("llama2_70b_lora", "llama2-lora", 8, "sample", least_gpus=4),
    Benchmark("llama31_8b", "llama31-8b", 32, "1,000 samples", 1000.0, least_gpus=8),
    Benchmark("maskrcnn", "maskrcnn", 96),
    Benchmark("resnet", "resnet50", 3200, restart_s=SIA_S["resnet50-imagenet"][0]),
    Benchmark("retinanet", "retinanet", 256),
    Benchmark("rnnt", "rnnt", 1536),
    Benchmark("ssd", "ssd", 256),
    Benchmark("stable_diffusion", "stable-diffusion", 256, "1,000 samples", 1000.0),
    Benchmark("unet3d", "unet3d", 56),
)
"""At the batch of most runs on one node of eight H100 (Llama 3.1: of B200)."""


@dataclass(frozen=True, slots=True)
class ApplicationRow:
    """One line of `mlperf_applications.csv`; the facts stand on an application's first."""

    application: str
    gpu_type: str
    nodes: int
    gpus: int
    seconds_per_epoch: float
    max_epochs: float | None
    restart_s: float | None
    method: str
    source: str


@dataclass(frozen=True, slots=True)
class EpochRow:
    """One line of `mlperf_epochs.csv`: a quantile of the epochs needed."""

    application: str
    probability: float
    epochs: float


@dataclass(frozen=True, slots=True)
class PowerRow:
    """One line of `mlperf_power.csv`: what was measured at the wall, means over runs."""

    application: str
    gpu_type: str
    nodes: int
    batch: int
    runs: int
    run_s: float
    epochs: float
    node_w: float
    source: str


def epochs_needed(data: Path, benchmark: Benchmark) -> list[float]:
    """Return the epochs that different runs at the batch needed, in rising order; a run that was sent in twice once."""
    found = {
        (run.seconds, run.progress)
        for run in runs(data)
        if (run.benchmark, run.batch) == (benchmark.name, benchmark.batch)
    }
    return sorted(progress / benchmark.per_unit for _, progress in found)


def epoch_rows(data: Path) -> list[EpochRow]:
    """Return the quantiles of the epochs that each application needs, by seed."""
    return [
        EpochRow(benchmark.application, probability, quantile(needed, probability))
        for benchmark in BENCHMARKS
        for needed in [epochs_needed(data, benchmark)]
        for probability in PROBABILITIES
    ]


def epochs_report(data: Path) -> list[str]:
    """Return a line for each application: how much the epochs needed vary."""
    lines = []
    for benchmark in BENCHMARKS:
        needed = epochs_needed(data, benchmark)
        mean = fmean(needed)
        lines.append(
            f"{benchmark.application}: {len(needed)} runs, mean {mean:.5g} x {benchmark.unit}, variation "
            f"{pstdev(needed) / mean:.2f}, mean / longest {mean / needed[-1]:.2f}; {NOT_VERIFIED}"
        )
    return lines


def application_rows(data: Path) -> list[ApplicationRow]:
    """Return the seconds per epoch of every application on the types and numbers of nodes that MLPerf measured.

    Args:
        data: Folder of the public measurements.
    """
    rows = []
    for benchmark in BENCHMARKS:
        of_benchmark: dict[str, list[Run]] = defaultdict(list)
        for run in runs(data):
            if run.benchmark == benchmark.name:
                of_benchmark[run.gpu_type].append(run)
        made = [
            (gpu_type, *figures)
            for gpu_type in GPUS_PER_NODE
            if gpu_type in of_benchmark
            for figures in _of_type(benchmark, gpu_type, of_benchmark[gpu_type])
        ]
        facts: tuple[float | None, float | None] = (epochs_needed(data, benchmark)[-1], benchmark.restart_s)
        for gpu_type, nodes, gpus, seconds, method, source in made:
            rows.append(ApplicationRow(benchmark.application, gpu_type, nodes, gpus, seconds, *facts, method, source))
            facts = (None, None)
    return rows


def _of_type(benchmark: Benchmark, gpu_type: str, of_type: list[Run]) -> list[tuple[int, int, float, str, str]]:
    """Return nodes, GPUs of a node, seconds per epoch, method and source."""
    full = GPUS_PER_NODE[gpu_type]
    sizes = [gpus for gpus in (1, 2, 4, 8) if benchmark.least_gpus <= gpus <= full]
    single = _screened(benchmark, gpu_type, [run for run in of_type if run.nodes == 1])
    rows = [(1, gpus, *_on_one_node(benchmark, gpus, single)) for gpus in sizes] if single else []
    least_s = min((row[2] for row in rows), default=float("inf"))
    for nodes in range(2, MOST_NODES + 1):
        whole = [run for run in of_type if (run.nodes, run.gpus, run.batch) == (nodes, full, benchmark.batch)]
        if whole:
            seconds, source = _seconds(benchmark, whole)
            if seconds < least_s:
                rows.append((nodes, full, seconds, MEASURED, source))
                least_s = seconds
            else:
                print(f"dropped {benchmark.application} {gpu_type} {nodes} nodes: slower than fewer; {source}")
    return rows


def _screened(benchmark: Benchmark, gpu_type: str, single: list[Run]) -> list[Run]:
    """Leave out numbers of GPUs that the next larger one beats by far: other servers, and other software."""
    larger_s, kept = float("inf"), set[int]()
    for gpus in sorted({run.gpus for run in single}, reverse=True):
        seconds, _, source = _on_one_node(benchmark, gpus, [run for run in single if run.gpus == gpus])
        if seconds * gpus > SUPERLINEAR * larger_s:
            print(f"dropped {benchmark.application} {gpu_type} {gpus} GPUs: superlinear above; {source}")
            continue
        larger_s = seconds * gpus
        kept.add(gpus)
    return [run for run in single if run.gpus in kept]


def _on_one_node(benchmark: Benchmark, gpus: int, single: list[Run]) -> tuple[float, str, str]:
    """Return the time on GPUs of one node: at this batch, at another, or as that of another number, linearly."""
    equal = [run for run in single if run.gpus == gpus]
    of_batch = [run for run in equal if run.batch == benchmark.batch]
    if of_batch:
        seconds, source = _seconds(benchmark, of_batch)
        return seconds, MEASURED, source
    if equal:
        seconds, source = _seconds(benchmark, equal)
        return seconds, OTHER_BATCH, source
    nearest = min({run.gpus for run in single}, key=lambda known: (abs(known - gpus), known))
    of_nearest = [run for run in single if run.gpus == nearest]
    seconds, source = _seconds(benchmark, [r for r in of_nearest if r.batch == benchmark.batch] or of_nearest)
    return seconds * nearest / gpus, LINEAR, f"{nearest} GPUs x {nearest} / {gpus}: {source}"


def _seconds(benchmark: Benchmark, of: list[Run]) -> tuple[float, str]:
    speed, (edition, submitter, system), batch = best_speed(of)
    source = f"{FILE} round {edition} {submitter} {system} batch {batch} mean of progress / run_s; {NOT_VERIFIED}"
    return benchmark.per_unit / speed, source


def power_rows(data: Path) -> list[PowerRow]:
    """Return the measured power of nodes by benchmark and number of nodes, with the time and epochs of the runs.

    Args:
        data: Folder of the public measurements.
    """
    known = {(run.submission, run.benchmark): run.batch for run in runs(data)}
    types = {IMMERSED: "H100", AIR: "H100-air", B200_NODE: "B200"}
    grouped: dict[tuple[str, str, int], list[dict[str, str]]] = defaultdict(list)
    for row in read_csv(data / POWER_FILE):
        if row["submitter"] in types and row["status"] == "success":
            grouped[row["submitter"], row["benchmark"], int(row["nodes"])].append(row)
    made = []
    for (submitter, name, nodes), rows in grouped.items():
        benchmark = next((b for b in BENCHMARKS if b.name == name), None)
        batch = known[(rows[0]["round"], submitter, rows[0]["system"]), name]
        if benchmark is None:
            continue
        per_unit = benchmark.per_unit * (168.0 if name == "unet3d" else 1.0)
        means = (fmean(float(row[column]) for row in rows) for column in ("run_s", "progress_at_end"))
        run_s, progress = means
        node_w = fmean(float(row["mean_w_per_node"]) for row in rows)
        source = f"{POWER_FILE} round {rows[0]['round']} {submitter} {rows[0]['meter']}; {NOT_VERIFIED}"
        made.append(
            PowerRow(
                benchmark.application,
                types[submitter],
                nodes,
                batch,
                len(rows),
                run_s,
                progress / per_unit,
                node_w,
                source,
            )
        )
    return sorted(made, key=lambda row: (row.application, row.gpu_type, row.nodes))
