"""PipeSwitch (Bai, Zhang, Zhu and Jin, OSDI 2020): what switching costs, on one GPU and in a cluster.

The published figures are from the authors' log, github.com/netx-repo/PipeSwitch (Apache-2.0), `log-1019.txt`: V100
16 GB, batches of 8, inference in place of training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpusched_baselines import TimeSlice, edf
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Policy
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.workload.network import PIPELINED_S, SwitchingCosts, switching_costs
from gpusched_env.workload.scenario.sharing import Switching
from gpusched_experiments.report.chart import Chart, Panel, Series
from gpusched_experiments.report.estimate import Estimate
from gpusched_reproductions.systems.validation import Check, Measured, Part

MODELS = ("ResNet152", "Inception v3", "BERT-base")
MODEL_MB = (241.0, 102.0, 440.0)  # weights that a switch sends; Inception v3 with or without its auxiliary head
READY_MS = (37.06, 40.54, 39.33)  # latency of a task whose model is on the GPU, figure 5
PIPESWITCH_MS = (43.45, 40.59, 53.85)
STOP_START_MS = (5678.2, 6276.4, 7243.1)
UNPIPELINED_MS = (60.06, 50.38, 83.16)  # figure 7, grouped layers without a pipeline
QUANTA_S = (1.0, 2.0, 5.0, 10.0, 30.0)  # figure 6: how often training and inference of ResNet152 alternate
READY_RATE = (26.10, 27.05, 25.94, 26.99, 26.36)  # batches a second
RATES = {"PipeSwitch": (26.75, 27.125, 26.40, 26.55, 26.233), "stop-start": (0.0, 0.0, 0.0, 11.35, 20.833)}
SOURCE = "PipeSwitch's log of 2021-10-19"

SWITCHES = 400
GPUS, LOAD, SHORTEST_S, LONGEST_S, DUE_FACTOR = 8, 0.3, 5.0, 20.0, 1.5
RESNET50_STATE_GIB = 25.6e6 * 12 / 2**30
CRITICAL, USUAL = 1.0, 0.001  # weights [€/s]
MANY_S = 1e9  # work of a job that never ends
LAST_S = 100.0  # bursts that come so shortly before the end are not counted

ENDLESS = EpochDistribution.certain()
TRAINING, BURSTS = Configuration("V100", 1), Configuration("V100 for bursts", 1)


def figure_6(quick: bool) -> Measured:
    """Let two endless jobs take turns on one GPU, and compare what they get done with figure 6."""
    del quick  # it takes seconds
    lines: dict[str, list[float]] = {}
    checks = []
    for system, latency_ms in (("PipeSwitch", PIPESWITCH_MS[0]), ("stop-start", STOP_START_MS[0])):
        costs_s = (latency_ms - READY_MS[0]) / 1e3
        for quantum_s, rate, ready in zip(QUANTA_S, RATES[system], READY_RATE, strict=True):
            ours = progress_of_turns(quantum_s, costs_s)
            lines.setdefault(system, []).append(ours)
            what = f"{system}, a switch every {quantum_s:g} s: throughput / that of a model that is ready"
            checks.append(Check.around(what, ours, rate / ready, 0.05, f"{SOURCE}, figure 6, ResNet152"))
    return Measured(tuple(checks), _chart(lines))


def latency(quick: bool) -> Measured:
    """Let an inference task take the place of a training task, by formula, and compare with figures 5 and 7."""
    del quick
    checks = []
    for k, model in enumerate(MODELS):
        stop_s = (STOP_START_MS[k] - READY_MS[k]) / 1e3
        slow = 1e3 * overhead_s(SwitchingCosts(stop_s, stop_s, stop_s))
        fast = 1e3 * overhead_s(SwitchingCosts(PIPELINED_S, PIPELINED_S, stop_s))
        sent = 1e3 * (PIPELINED_S + MODEL_MB[k] / 12e3)
        published, stopped = PIPESWITCH_MS[k] - READY_MS[k], STOP_START_MS[k] - READY_MS[k]
        figure = f"{SOURCE}, figure 5"
        checks += [
            Check(f"{model}: PipeSwitch's overhead [ms]", fast, 0.0, 15.0, published, figure),
            Check(f"{model}: stop-start's / PipeSwitch's", slow / fast, 400.0, math.inf, stopped / published, figure),
            Check.around(
                f"{model}: overhead without a pipeline, 3 ms + size / (12 GB/s) [ms]",
                sent, UNPIPELINED_MS[k] - READY_MS[k], 5.0, f"{SOURCE}, figure 7",
            ),
        ]  # fmt: skip
    return Measured(tuple(checks))


def cluster(quick: bool) -> Measured:
    """Compare a split cluster, whose models are always ready, with shared ones of slow and of fast switches."""
    horizon_s, seeds = (5e3, 1) if quick else (2e4, 3)
    stop_s = (STOP_START_MS[0] - READY_MS[0]) / 1e3
    ready, slow = SwitchingCosts(0.0, 0.0, 0.0), SwitchingCosts(stop_s, stop_s, stop_s)
    fast = switching_costs(Switching(model="pipelined"), RESNET50_STATE_GIB, stop_s)
    split, stopped, piped = (
        Shares.mean([shares(costs, seed, horizon_s, split=split) for seed in range(seeds)])
        for costs, split in ((ready, True), (slow, False), (fast, False))
    )
    late, training = "bursts that are late", "training / all that 8 GPUs could do"
    utilisation = "work done / all that 8 GPUs could do"
    closed = "closed form: 1 - load - 2 x 0.024 switches a second x their cost"
    return Measured((
        Check(f"split 6 + 2: {late}", split.late, 0.0, 0.05, None, "Erlang C(6, 2.4) = 4 % wait"),
        Check.around(f"split 6 + 2: {training}", split.training, 0.25, 0.001, "2 of 8 GPUs"),
        Check.around(f"split 6 + 2: {utilisation}", split.work, 0.55, 0.05, "load + 2 of 8 GPUs"),
        Check(f"shared, stop-start: {late}", stopped.late, 0.30, 1.0, None, "slack < 5.6 s for work < 11.3 s: 42 %"),
        Check(f"shared, stop-start: {training}", stopped.training, 0.37, 0.49, None, closed),
        Check(f"shared, pipelined: {late}", piped.late, 0.0, 0.01, None, "all GPUs busy with bursts: next to never"),
        Check(f"shared, pipelined: {training}", piped.training, 0.66, 0.72, None, closed),
        Check(f"shared, pipelined: {utilisation}", piped.work, 0.98, 1.0, None, closed),
    ))  # fmt: skip


def progress_of_turns(quantum_s: float, costs_s: float) -> float:
    """Return what two jobs that take turns of `quantum_s` on one GPU get done in 400 turns, of what one would alone."""
    jobs = [_endless(SwitchingCosts(costs_s, costs_s, costs_s)) for _ in range(2)]
    state = _run(_one_type(jobs, 1), TimeSlice(quantum_s=quantum_s, efficiency=0.0), SWITCHES * quantum_s)
    return float(state.board.jobs[:, at.EPOCHS].sum() / state.board.clock[at.NOW])


def overhead_s(costs: SwitchingCosts) -> float:
    """Return how much longer than its work a task takes that comes while a GPU trains [s]."""
    work_s = 1.0
    jobs = [_endless(costs), _burst(10.0, work_s, costs, TRAINING)]
    state = _run(_one_type(jobs, 1), TimeSlice(critical_eur_per_s=USUAL), 100.0)
    return float(state.board.jobs[1, at.END_S] - 10.0 - work_s)


class Shares(NamedTuple):
    """What became of bursts and training: late bursts of all, and seconds of work of those of all GPUs."""

    late: float
    training: float
    work: float

    @classmethod
    def mean(cls, each: Sequence[Shares]) -> Shares:
        """Return the means over runs."""
        return cls(*(float(np.mean(values)) for values in zip(*each, strict=True)))


def shares(costs: SwitchingCosts, seed: int, horizon_s: float, *, split: bool) -> Shares:
    """Run bursts beside endless training on 8 GPUs for `horizon_s`.

    Args:
        costs: What switches cost all jobs.
        seed: Seed of the bursts: Poisson, work from 5 to 20 s, a load of 0.3, due after one and a half times the work.
        horizon_s: When the run ends [s].
        split: Whether 6 GPUs are for bursts alone and 2 for training; else a burst takes a GPU from training.
    """
    rng = np.random.default_rng(seed)
    rate = LOAD * GPUS / ((SHORTEST_S + LONGEST_S) / 2.0)
    times = np.cumsum(rng.exponential(1.0 / rate, int(1.2 * rate * horizon_s)))
    where = BURSTS if split else TRAINING
    bursts = [
        _burst(time, rng.uniform(SHORTEST_S, LONGEST_S), costs, where) for time in times[times < horizon_s].tolist()
    ]
    training = [_endless(costs) for _ in range(2 if split else GPUS)]
    instance = _split(training + bursts) if split else _one_type(training + bursts, GPUS)
    policy: Policy = edf() if split else TimeSlice(critical_eur_per_s=USUAL, quantum_s=3600.0)
    jobs = _run(instance, policy, horizon_s).board.jobs
    first = len(training)
    counted = jobs[first:][jobs[first:, at.SUBMISSION] < horizon_s - LAST_S]
    late = ~(counted[:, at.END_S] <= counted[:, at.DUE] + 1e-6)
    done = jobs[:, at.EPOCHS] * jobs[:, at.MIN_TAU] / (GPUS * horizon_s)
    return Shares(float(late.mean()), float(done[:first].sum()), float(np.nansum(done)))


def _endless(costs: SwitchingCosts) -> Job:
    """Make a job of epochs of a second that never ends."""
    return Job(0.0, 1e12, USUAL, MANY_S, ENDLESS, MANY_S, {TRAINING: 1.0}, **costs._asdict())


def _burst(time_s: float, work_s: float, costs: SwitchingCosts, where: Configuration) -> Job:
    due_s = time_s + DUE_FACTOR * work_s
    return Job(time_s, due_s, CRITICAL, 1.0, ENDLESS, 1.0, {where: work_s}, **costs._asdict())


def _one_type(jobs: Sequence[Job], gpus: int) -> Instance:
    return Instance.from_jobs([GpuType("V100", 250.0, 300.0, 16.0, 8)], [Node("V100", gpus)], jobs, [TRAINING])


def _split(jobs: Sequence[Job]) -> Instance:
    types = [GpuType(name, 250.0, 300.0, 16.0, 8) for name in (TRAINING.gpu_type, BURSTS.gpu_type)]
    nodes = [Node(TRAINING.gpu_type, 2), Node(BURSTS.gpu_type, 6)]
    return Instance.from_jobs(types, nodes, jobs, [TRAINING, BURSTS])


def _run(instance: Instance, policy: Policy, horizon_s: float) -> State:
    """Run a policy until the first event at or after `horizon_s`: some jobs never end."""
    state, rng = State(instance, review_s=horizon_s, record=False), np.random.default_rng(0)
    while state.board.clock[at.NOW] < horizon_s and state.advance():
        if state.board.count[at.ACTIVE] > 0:
            state.begin_round(policy.preemption)
            policy.decide(state.view, rng)
            state.commit_round()
    return state


def _chart(lines: dict[str, list[float]]) -> Chart:
    drawn = [Series(f"{system}, simulated", _points(values)) for system, values in lines.items()]
    for system, rates in RATES.items():
        drawn.append(Series(f"{system}, published", _points([a / b for a, b in zip(rates, READY_RATE, strict=True)])))
    panel = Panel("ResNet152", "switch every [s]", "throughput / that of a ready model", tuple(drawn), logarithmic="x")
    return Chart("Training and inference take turns on one V100", ((panel,),), (9.0, 3.4))


def _points(values: Sequence[float]) -> tuple[tuple[float | str, Estimate], ...]:
    return tuple((x, Estimate(y, None, 1)) for x, y in zip(QUANTA_S, values, strict=True))


PARTS = (
    Part("pipeswitch", "figure-6", "Two jobs take turns on a GPU: throughput by how often", figure_6),
    Part("pipeswitch", "latency", "A task takes the place of another one: what it waits", latency),
    Part(
        "pipeswitch", "cluster", "Bursts beside training on 8 GPUs: split, shared, shared with fast switches", cluster
    ),
)
