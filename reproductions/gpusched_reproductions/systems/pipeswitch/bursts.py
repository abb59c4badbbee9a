"""Bursts of inference beside endless training on eight GPUs: split, shared with switches, shared with MPS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines import SlackSlice, TimeSlice, edf
from gpusched_env import Configuration, GpuType, Instance, Interference, Job, Node, Policy
from gpusched_env.simulator import layout as at
from gpusched_env.workload import builtin_applications
from gpusched_env.workload.scenario.sharing import Switching, SwitchingCosts
from gpusched_env.workload.switching import switching_costs
from gpusched_reproductions.systems.checks import Check, Measured
from gpusched_reproductions.systems.pipeswitch.one_gpu import ENDLESS, TRAINING, USUAL, endless, run_until
from gpusched_reproductions.systems.pipeswitch.published import OTHER_MPS_MS, OTHER_READY_MS, READY_MS
from gpusched_reproductions.systems.pipeswitch.start_up import predicted_ms

if TYPE_CHECKING:
    from numpy.random import Generator

GPUS = 8
CRITICAL = 1.0  # weight [€/s]
LAST_S = 100.0  # bursts that come so shortly before the end are not counted
BURSTS = Configuration("V100 for bursts", 1)
BESIDE, BURST = Configuration("V100", 1, share=0.6), Configuration("V100", 1, share=0.4)
TRAININGS = 12  # where they take turns
QUANTUM_S = 60.0
FIRST_SEED = 3000
CO_RUN = 2.06736
"""Slow-down of ResNet-50 beside ResNet-50 on a V100 (Gavel's measured pairs, in `colocation.csv`)."""
RESNET50 = "resnet50-imagenet-bs64"


@dataclass(frozen=True, slots=True)
class Load:
    """Bursts: Poisson, of uniform work, due after a multiple of it.

    Attributes:
        load: Work of bursts over what all GPUs can do.
        work_s: Least and most work of a burst [s].
        due_factor: When a burst is due, in times of its work after its submission.
    """

    load: float = 0.3
    work_s: tuple[float, float] = (5.0, 20.0)
    due_factor: float = 1.5

    @classmethod
    def drawn(cls, rng: Generator) -> Load:
        """Draw a load of 0.1 to 0.5, work that differs by a factor of 2 to 10, and a factor of 1.2 to 3."""
        least = rng.uniform(2.0, 20.0)
        return cls(rng.uniform(0.1, 0.5), (least, least * rng.uniform(2.0, 10.0)), rng.uniform(1.2, 3.0))

    def bursts(
        self, rng: Generator, horizon_s: float, costs: SwitchingCosts, where: Configuration, application: str = ""
    ) -> list[Job]:
        """Draw the bursts that are submitted before `horizon_s`."""
        rate = self.load * GPUS / (sum(self.work_s) / 2.0)
        times = np.cumsum(rng.exponential(1.0 / rate, int(1.2 * rate * horizon_s) + 50))
        jobs = []
        for time in times[times < horizon_s].tolist():
            work_s = rng.uniform(*self.work_s)
            due_s = time + self.due_factor * work_s
            seconds = {where: work_s}
            jobs.append(
                Job(time, due_s, CRITICAL, 1.0, ENDLESS, 1.0, seconds, application=application, **costs._asdict())
            )
        return jobs


class Shares(NamedTuple):
    """What became of bursts and training.

    Attributes:
        late: Late bursts, of all.
        training: Seconds of work of training, of those of all GPUs.
        work: The same of both.
        pauses: Pauses of training for every burst.
    """

    late: float
    training: float
    work: float
    pauses: float

    @classmethod
    def mean(cls, each: Sequence[Shares]) -> Shares:
        return cls(*(float(np.mean(values)) for values in zip(*each, strict=True)))

    @classmethod
    def of_run(cls, instance: Instance, policy: Policy, training: int, horizon_s: float) -> Shares:
        """Run an instance whose first jobs, so many, are training, and count."""
        jobs = run_until(instance, policy, horizon_s).board.jobs
        counted = jobs[training:][jobs[training:, at.SUBMISSION] < horizon_s - LAST_S]
        late = ~(counted[:, at.END_S] <= counted[:, at.DUE] + 1e-6)
        done = jobs[:, at.EPOCHS] * instance.jobs.seconds_per_epoch.min(axis=1) / (GPUS * horizon_s)
        pauses = jobs[:training, at.SWITCHES].sum() / 2.0 / len(counted)
        return cls(float(late.mean()), float(done[:training].sum()), float(np.nansum(done)), float(pauses))


def shares(costs: SwitchingCosts, horizon_s: float, seed: int, *, split: bool = False) -> Shares:
    """Run the usual bursts for `horizon_s`: on 6 GPUs of their own if `split`, else in the place of training on 8."""
    where, count = (BURSTS, 2) if split else (TRAINING, GPUS)
    bursts = Load().bursts(np.random.default_rng(seed), horizon_s, costs, where)
    jobs = [endless(costs) for _ in range(count)] + bursts
    types = [GpuType(name, 250.0, 300.0, 16.0, 8) for name in (TRAINING.gpu_type, BURSTS.gpu_type)]
    nodes = [Node(TRAINING.gpu_type, 2), Node(BURSTS.gpu_type, 6)] if split else [Node(TRAINING.gpu_type, GPUS)]
    instance = Instance.from_jobs(types, nodes, jobs, [TRAINING, BURSTS] if split else [TRAINING])
    policy: Policy = edf() if split else TimeSlice(critical_eur_per_s=USUAL, quantum_s=3600.0)
    return Shares.of_run(instance, policy, count, horizon_s)


def beside(start_s: float, slowdown: float, horizon_s: float, seed: int) -> Shares:
    """Run the usual bursts beside training on the same GPUs, as with MPS.

    Args:
        start_s: Start-up of a burst [s].
        slowdown: Factor on the time of both while they share a GPU, ≥ 1.
        horizon_s: When the run ends [s].
    """
    costs = SwitchingCosts(start_s, start_s, start_s)
    bursts = Load().bursts(np.random.default_rng(seed), horizon_s, costs, BURST, "burst")
    jobs = [endless(SwitchingCosts(0.0, 0.0, 0.0), BESIDE, "training") for _ in range(GPUS)] + bursts
    table = Interference(np.array([[[1.0, slowdown], [slowdown, 1.0]]]))
    gpu_type, nodes = GpuType("V100", 250.0, 300.0, 16.0, 8), [Node("V100", GPUS)]
    instance = Instance.from_jobs([gpu_type], nodes, jobs, [BESIDE, BURST], interference=table)
    return Shares.of_run(instance, edf(), GPUS, horizon_s)


def costs_of(model: str, application: str = RESNET50) -> SwitchingCosts:
    """Return what switches cost an application: by its layers if pipelined, else a new process of ResNet152."""
    stop_s = (predicted_ms("two processes", "ResNet152", READY_MS[0]) - READY_MS[0]) / 1e3
    switching = Switching(model="pipelined", start_up="layers") if model == "pipelined" else Switching(model=model)  # type: ignore[arg-type]
    return switching_costs(switching, builtin_applications()[application], stop_s)


def cluster(quick: bool) -> Measured:
    """Compare a split cluster with shared ones of slow and of fast switches, and with MPS."""
    horizon_s, seeds = (5e3, 1) if quick else (2e4, 3)
    mps_s = (OTHER_MPS_MS[0] - OTHER_READY_MS[0]) / 1e3
    split, stopped, piped, mps = (
        Shares.mean([run(seed) for seed in range(seeds)])
        for run in (
            partial(shares, SwitchingCosts(0.0, 0.0, 0.0), horizon_s, split=True),
            partial(shares, costs_of("stop-start"), horizon_s),
            partial(shares, costs_of("pipelined"), horizon_s),
            partial(beside, mps_s, CO_RUN, horizon_s),
        )
    )
    late, training = "bursts that are late", "training / all that 8 GPUs could do"
    closed = "closed form: 1 - load - 2 x 0.024 switches a second x their cost"
    return Measured((
        Check(f"split 6 + 2: {late}", split.late, 0.0, 0.05, None, "Erlang C(6, 2.4) = 4 % wait"),
        Check(f"split 6 + 2: {training}", split.training, source="2 of 8 GPUs"),
        Check(f"shared, stop-start: {late}", stopped.late, 0.30, 1.0, None, "slack < 5.6 s for work < 11.3 s: 42 %"),
        Check(f"shared, stop-start: {training}", stopped.training, 0.37, 0.49, None, closed),
        Check(f"shared, pipelined: {late}", piped.late, 0.0, 0.01, None, "all GPUs busy with bursts: next to never"),
        Check(f"shared, pipelined: {training}", piped.training, 0.66, 0.72, None, closed),
        Check(f"shared, MPS: {late}", mps.late, 0.95, 1.0, None, "measured slow-down of 2.07, due after 1.5"),
        Check(f"shared, MPS: {training}", mps.training, source="slow-down of 2.07 beside bursts"),
    ))  # fmt: skip


def by_slack(quick: bool) -> Measured:
    """Compare preemption at once and a fixed quantum with slack, on drawn loads beside twelve drawn trainings."""
    horizon_s, loads = (1e3, 2) if quick else (4e3, 16)
    checks = []
    for model in ("pipelined", "one-process", "stop-start"):
        pairs = [drawn_pair(model, seed, horizon_s) for seed in range(FIRST_SEED, FIRST_SEED + loads)]
        at_once, by_slack = (Shares.mean([pair[k] for pair in pairs]) for k in (0, 1))
        gained = np.array([pair[1].training - pair[0].training for pair in pairs])
        for name, each in (("fixed quantum", at_once), ("by slack", by_slack)):
            checks += [
                Check(f"{model}, {name}: bursts that are late", each.late, source=f"{loads} drawn loads"),
                Check(f"{model}, {name}: pauses of training for a burst", each.pauses, source=f"{loads} drawn loads"),
            ]
        worst = f"never less; least of {loads}: {gained.min():+.4f}"
        checks.append(
            Check(f"{model}: training by slack - with a fixed quantum", float(gained.mean()), 0.0, 1.0, None, worst)
        )
    return Measured(tuple(checks))


def drawn_pair(model: str, seed: int, horizon_s: float) -> tuple[Shares, Shares]:
    """Run a drawn load beside drawn trainings with both policies."""
    names = sorted(builtin_applications())
    found = []
    for policy in (TimeSlice(critical_eur_per_s=USUAL, quantum_s=QUANTUM_S), SlackSlice(least_quantum_s=QUANTUM_S)):
        rng = np.random.default_rng(seed)
        load = Load.drawn(rng)
        training = [endless(costs_of(model, name)) for name in rng.choice(names, TRAININGS).tolist()]
        jobs = training + load.bursts(rng, horizon_s, costs_of(model), TRAINING)
        gpu_type, nodes = GpuType("V100", 250.0, 300.0, 16.0, 8), [Node("V100", GPUS)]
        instance = Instance.from_jobs([gpu_type], nodes, jobs, [TRAINING])
        found.append(Shares.of_run(instance, policy, TRAININGS, horizon_s))
    return found[0], found[1]
