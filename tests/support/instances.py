"""Instances that several tests share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpusched_env import (
    Configuration,
    EpochDistribution,
    GpuType,
    HostMemory,
    Instance,
    Interference,
    Job,
    JobTable,
    Node,
    UtilisationModel,
)
from gpusched_env.model import single_node_configurations

HOUR = 3600.0
CERTAIN = EpochDistribution.certain()


def three_jobs() -> Instance:
    """Make the instance that `test_hand_computed.py` works out by hand."""
    gpu = GpuType("V", gpu_power_w=900.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=2)
    one, two = Configuration("V", 1), Configuration("V", 2)
    seconds = {one: HOUR, two: HOUR * 2 / 3}
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
    certain = EpochDistribution.certain()
    jobs = [
        Job(0.0, 3.5 * HOUR, 0.001, 4.0, halves, 2.0, seconds, application="A"),
        Job(0.0, 10.0 * HOUR, 0.002, 2.0, certain, 2.0, seconds, application="B"),
        Job(0.0, 1.5 * HOUR, 0.003, 2.0, certain, 2.0, seconds, application="C"),
    ]
    nodes = [Node("V", 2), Node("V", 1)]
    return Instance.from_jobs([gpu], nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, name="three-jobs")


def random_instance(
    seed: int,
    *,
    jobs: int = 12,
    nodes: int = 3,
    types: int = 2,
    span_s: float = 4000.0,
    restart_s: float = 0.0,
    kinds: bool = False,
    interference: bool = False,
    equal: bool = False,
    spread: bool = False,
    blocks: Sequence[int] = (),
) -> Instance:
    """Make a small instance: unequal nodes, closed configurations, non-monotone speed-ups, several distributions.

    With `kinds`, jobs may share GPUs and take several whole nodes too; with `interference`, sharing slows them down by
    pairs. With `equal`, all nodes are as large as they can be. With `spread`, jobs may also take GPUs of any nodes;
    with `blocks`, shares of several GPUs on so many nodes.
    """
    rng = np.random.default_rng(seed)
    gpu_types = [GpuType(f"T{i}", rng.uniform(60, 400), rng.uniform(0, 600), 16.0, 4) for i in range(types)]
    sizes = [int(rng.integers(1, 5)) for _ in range(nodes)]
    cluster = [Node(f"T{i % types}", 4 if equal else size) for i, size in enumerate(sizes)]
    configurations = single_node_configurations(gpu_types, cluster)
    if kinds:
        largest = {c.gpu_type: c.gpus_per_node for c in configurations}
        shares = [Configuration(name, 1, share=share) for name in largest for share in (0.2, 0.3, 0.5)]
        several = [Configuration(name, gpus, nodes=k) for name, gpus in largest.items() for k in (2, 3)]
        configurations = (*configurations, *shares, *several)
    if spread:
        names = dict.fromkeys(c.gpu_type for c in configurations)
        on_any = [Configuration(name, 1, nodes=gpus, spread=True) for name in names for gpus in (2, 3, 5)]
        configurations = (*configurations, *on_any)
    sizes_of = [(v.name, gpus, k) for v in gpu_types for k in blocks for gpus in ((2, 3, 4) if k == 1 else (4,))]
    shares = [Configuration(name, gpus, k, share) for name, gpus, k in sizes_of for share in (0.2, 0.5)]
    configurations = (*configurations, *shares)
    distributions = tuple(EpochDistribution.from_masses(rng.dirichlet(np.full(bins, 0.5))) for bins in (1, 4, 20, 100))
    kind = rng.integers(0, len(distributions), jobs)
    largest = rng.uniform(2.0, 60.0, jobs)
    needed = np.array([distributions[k].sample(rng) for k in kind]) * largest
    speed_up = np.array([c.gpus_per_node * c.nodes for c in configurations]) ** rng.uniform(0.2, 1.0, (jobs, 1))
    speed = np.array([1.0 + int(c.gpu_type[1]) for c in configurations])
    seconds = rng.uniform(5, 60, (jobs, 1)) / (speed * speed_up * rng.uniform(0.9, 1.1, speed_up.shape))
    closed = rng.random(seconds.shape) < 0.15
    closed[:, 0] = False
    seconds[closed] = np.inf
    submission = np.sort(rng.uniform(0.0, span_s, jobs)) if span_s > 0 else np.zeros(jobs)
    full = (seconds * largest[:, None]).min(axis=1)
    table = JobTable(
        submission_s=submission,
        due_s=submission + full * rng.uniform(0.8, 4.0, jobs),
        tardiness_weight_eur_per_s=rng.uniform(0.0, 0.05, jobs),
        max_epochs=largest,
        epochs_needed=needed,
        memory_gib=rng.uniform(1.0, 12.0, jobs),
        seconds_per_epoch=seconds,
        application=rng.integers(0, 2, jobs),
        applications=("a", "b"),
        distribution=kind,
        distributions=distributions,
        restart_s=np.full(jobs, restart_s),
    )
    slowdown = Interference(1.0 + rng.exponential(0.4, (types, 2, 2))) if interference else None
    return Instance(
        tuple(gpu_types), tuple(cluster), configurations, table, interference=slowdown, name="random", seed=seed
    )


def with_switching(instance: Instance, seed: int) -> Instance:
    """Let jobs lose seconds by distance: up to 6 s at a start, 4 s where they were last, 12 s elsewhere."""
    rng, jobs = np.random.default_rng(seed), len(instance.jobs)
    start_s, resume_s, restart_s = (rng.uniform(0.0, most, jobs) for most in (6.0, 4.0, 12.0))
    return replace(instance, jobs=replace(instance.jobs, start_s=start_s, resume_s=resume_s, restart_s=restart_s))


def with_host_memory(instance: Instance, seed: int) -> Instance:
    """Let states of 1 to 10 GiB cross links of two GPUs at 20 GB/s, and nodes keep those of a few paused jobs."""
    rng, jobs = np.random.default_rng(seed), instance.jobs
    memory = HostMemory(float(rng.uniform(5.0, 20.0)), 2, 20.0)
    jobs = replace(jobs, state_gib=rng.uniform(1.0, 10.0, len(jobs)))
    return replace(instance, jobs=jobs).with_mechanisms(memory)


def without_idle_power(gpu_types: Sequence[GpuType]) -> tuple[GpuType, ...]:
    """Return types whose idle GPUs draw nothing, so that their nodes may have any number of GPUs."""
    return tuple(replace(gpu_type, idle_gpu_power_w=0.0) for gpu_type in gpu_types)


def by_utilisation(instance: Instance, *, priorities: bool = True, power: bool = True, table: bool = False) -> Instance:
    """Let jobs share GPUs by drawn utilisations, some shares as hosts; with `power`, GPUs draw it by utilisation.

    With `table`, what is filled depends on the host's application and the number of guests.
    """
    rng = np.random.default_rng(instance.seed + 1)
    shape = len(instance.gpu_types), len(instance.jobs.applications)
    least = np.array([v.gpu_power_w for v in instance.gpu_types])
    utilisation = UtilisationModel(
        rng.uniform(0.05, 1.0, shape), idle_power_w=least * rng.uniform(0.1, 0.9) if power else None
    )
    drawn = rng.integers(0, 3, len(instance.configurations))
    if table:
        utilisation = replace(utilisation, filled=np.sort(rng.uniform(size=(shape[1], 3)), axis=1))
    ranked = tuple(
        replace(c, priority=int(p)) if c.kind == "shared" and priorities else c
        for c, p in zip(instance.configurations, drawn, strict=True)
    )
    return replace(instance, configurations=ranked, interference=utilisation)
