"""FIKIT: a job that comes first, and others in the gaps between its kernels: measured pairs, and kernel by kernel."""

from __future__ import annotations

import csv
import json
import statistics
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpusched_baselines import Fill, Pack
from gpusched_env import (
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Interference,
    Job,
    Node,
    UtilisationModel,
    simulate,
)
from gpusched_env.kernel import kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.sharing_slowdown import speed_by_utilisation
from gpusched_reproductions.systems.validation import Check, Measured, Part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.arrays import Floats

OVERHEAD = 0.03
_CERTAIN = EpochDistribution.certain()
_GPU = GpuType("GPU", gpu_power_w=250.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=1)
_LATE_S = 1e9


def by_default(pair: Pair, submissions_s: tuple[float, ...], first_s: float, other_s: float) -> tuple[float, float]:
    """Run jobs of the first kind beside one of the other, without priorities.

    Args:
        pair: What was measured of them.
        submissions_s: When jobs of the first kind are submitted; the other is at 0.
        first_s: How long each of them takes alone [s].
        other_s: How long the other takes alone [s].

    Returns:
        Mean time from submission to completion of the first kind, and of the other job [s].
    """
    slowdown = np.ones((1, 2, 2))
    slowdown[0, 0, 1], slowdown[0, 1, 0] = pair.slowdown, pair.other_slowdown
    halves = (Configuration("GPU", 1, share=0.5), Configuration("GPU", 1))
    return _run(Pack(most=4), _instance(halves, submissions_s, first_s, other_s, Interference(slowdown)))


def filling(pair: Pair, submissions_s: tuple[float, ...], first_s: float, other_s: float) -> tuple[float, float]:
    """Run the same jobs with priorities: those of the first kind are guaranteed jobs, the other fills their gaps."""
    shares = (Configuration("GPU", 1, share=0.6, priority=1), Configuration("GPU", 1, share=0.4))
    utilisation = UtilisationModel(np.array([[pair.utilisation, pair.other_utilisation]]), overhead=OVERHEAD)
    return _run(Fill(most_busy=2.0), _instance(shares, submissions_s, first_s, other_s, utilisation))


def _instance(
    configurations: tuple[Configuration, ...],
    submissions_s: tuple[float, ...],
    first_s: float,
    other_s: float,
    interference: Interference | UtilisationModel,
) -> Instance:
    seconds = dict.fromkeys(configurations, 1.0)
    other = Job(0.0, _LATE_S, 0.0001, other_s, _CERTAIN, other_s, seconds, application="other")
    firsts = [Job(at_s, _LATE_S, 0.001, first_s, _CERTAIN, first_s, seconds, application="first")
              for at_s in submissions_s]  # fmt: skip
    jobs = sorted([*firsts, other], key=lambda job: job.submission_s)
    return Instance.from_jobs([_GPU], [Node("GPU", 1)], jobs, configurations, interference=interference)


def _run(policy: Fill | Pack, instance: Instance) -> tuple[float, float]:
    result = simulate(instance, policy, record=False)
    took = result.completion_s - instance.jobs.submission_s
    first = instance.jobs.application == instance.jobs.applications.index("first")
    return float(took[first].mean()), float(took[~first][0])


GAVEL = Path("../shared/data/gavel")
"""Where Gavel's throughputs (MIT) are looked for; they are not part of the project."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two jobs on one GPU of a type, as they were measured sharing it by default.

    Attributes:
        first: The job that comes first where there are priorities, as Gavel names it.
        other: The other one.
        slowdown: Factor on the time of the first beside the other, ≥ 1.
        other_slowdown: Factor on the time of the other beside the first, ≥ 1.
        utilisation: Part of the time for which the first keeps the GPU busy alone: half its slow-down beside itself.
        other_utilisation: The same of the other.
    """

    first: str
    other: str
    slowdown: float
    other_slowdown: float
    utilisation: float
    other_utilisation: float


@cache
def measured_pairs(gpu: str) -> tuple[Pair, ...]:
    """List the ordered pairs in which both jobs made progress on a GPU type, `V100` or `P100`.

    A model that was not run beside itself has the median of the utilisations of the others.
    """
    table = json.loads((GAVEL / "physical_cluster_throughputs.json").read_text(encoding="utf-8"))[gpu.lower()]
    single = [key for key in table if key.endswith(", 1)")]
    slowdowns = {
        (one, other): max(1.0, float(table[one]["null"]) / float(table[one][other][0]))
        for one in single
        for other in single
        if min(table[one].get(other, (0.0,))) > 0.0
    }
    utilisations = {one: min(1.0, slowdown / 2.0) for (one, other), slowdown in slowdowns.items() if one == other}
    middle = statistics.median(utilisations.values())
    return tuple(
        Pair(
            one, other, slowdown, slowdowns.get((other, one), slowdown), utilisations.get(one, middle),
            utilisations.get(other, middle),
        )
        for (one, other), slowdown in slowdowns.items()
    )  # fmt: skip


FIKIT = "FIKIT, abstract: 1.32 to 16.41 times, inference beside inference"
LOW = "FIKIT, abstract: 0.86 to 1"
PERIOD_S, PERIODS = 1000.0, 10
ALONE_S = 1000.0


def first_ones(quick: bool) -> Measured:
    """Compare the first job beside the other by default and with filling: by formula, and in the simulator."""
    checks: list[Check] = []
    for gpu in ("V100", "P100"):
        pairs = measured_pairs(gpu)
        gains = np.array([pair.slowdown / (1.0 + OVERHEAD) for pair in pairs])
        sample = pairs[:: 40 if quick else 1]
        simulated = [_simulated(pair) for pair in sample]
        off = max(
            abs(gain - pair.slowdown / (1.0 + OVERHEAD)) for pair, (gain, _) in zip(sample, simulated, strict=True)
        )
        worst = max(slowest for _, slowest in simulated)
        checks += [
            Check(f"{gpu}: pairs", float(len(pairs))),
            Check(f"{gpu}: speed-up of the first job, least", float(gains.min()), 0.95),
            *(
                Check(f"{gpu}: speed-up, {q:.0%} quantile", float(np.quantile(gains, q)))
                for q in (0.25, 0.5, 0.75, 0.9)
            ),
            _greatest(gpu, gains),
            Check(f"{gpu}: share of pairs above 3.4", float(np.mean(gains > 3.4))),
            Check(f"{gpu}: first job over alone, worst of {len(sample)} simulated", worst, 1.0, 1.05),
            Check(f"{gpu}: largest difference of simulated from formula", off, 0.0, 1e-6),
        ]
    gains = np.array([pair.slowdown for pair in measured_pairs("V100")]) / (1.0 + OVERHEAD)
    checks += [
        Check(f"V100: share of pairs below {gain:g}", float(np.mean(gains < gain)), 0.3, 0.9, None, FIKIT)
        for gain in (1.32, 16.41)
    ]
    return Measured(tuple(checks))


def _greatest(gpu: str, gains: np.ndarray) -> Check:
    low, high = (8.0, 12.0) if gpu == "P100" else (-np.inf, np.inf)
    return Check(f"{gpu}: speed-up of the first job, greatest", float(gains.max()), low, high, 16.41, FIKIT)


def _simulated(pair: Pair) -> tuple[float, float]:
    """Return the speed-up of the first job in the simulator, and its time with filling over alone."""
    long_s = 2.0 * ALONE_S * pair.slowdown
    alone_s = filling(pair, (0.0,), ALONE_S, long_s)[0]
    return by_default(pair, (0.0,), ALONE_S, long_s)[0] / alone_s, alone_s / ALONE_S


def other_ones(quick: bool) -> Measured:
    """Compare a job that runs all the time beside first ones that come and go: by default over with filling."""
    checks: list[Check] = []
    for gpu in ("V100", "P100"):
        pairs = measured_pairs(gpu)
        for busy in (0.05, 0.1, 0.2, 0.3):
            ratios = np.array([_rate_ratio(pair, busy) for pair in pairs])
            low, high = (0.9, 1.05) if busy <= 0.2 else (-np.inf, np.inf)
            what = f"{gpu}, first ones {busy:.0%} of the time: default / filling"
            checks += [
                Check(f"{what}, 25% quantile", float(np.quantile(ratios, 0.25))),
                Check(f"{what}, median", float(np.median(ratios)), low, high, None, LOW),
                Check(f"{what}, 75% quantile", float(np.quantile(ratios, 0.75))),
            ]
        sample = pairs[:: 80 if quick else 8]
        off = [abs(_simulated_ratio(pair, 0.1) - _rate_ratio(pair, 0.1)) for pair in sample]
        checks.append(
            Check(f"{gpu}: median difference of {len(sample)} simulated from formula", float(np.median(off)), 0.0, 0.02)
        )
    return Measured(tuple(checks))


def _rate_ratio(pair: Pair, busy: float) -> float:
    """Return the time of the other job by default over that with filling, in the long run.

    First ones would keep to `busy` of the time alone; they take longer beside the other, all of the time at most.
    """
    together = min(1.0, busy * pair.slowdown)
    default = 1.0 - together * (1.0 - 1.0 / pair.other_slowdown)
    return (1.0 - busy * (1.0 + OVERHEAD) * (1.0 - _guest_speed(pair))) / default


def _guest_speed(pair: Pair) -> float:
    demand, sharing = np.zeros(at.PRIORITIES), np.zeros(at.SHARING_COLUMNS)
    demand[:2] = pair.other_utilisation, pair.utilisation
    sharing[[at.OVERHEAD, at.FILLED, at.LEAST_SPEED]] = OVERHEAD, 0.85, 0.02
    return float(speed_by_utilisation(demand, 0, sharing))


def _simulated_ratio(pair: Pair, busy: float) -> float:
    submissions = tuple(PERIOD_S * k for k in range(50 * PERIODS))
    long_s = PERIOD_S * PERIODS
    default, filled = (run(pair, submissions, busy * PERIOD_S, long_s)[1] for run in (by_default, filling))
    return default / filled


BACKGROUND_UTILISATION = 0.9
"""Part of the time for which the job in the background would keep the GPU busy alone: it launches kernels too."""


class FikitOutcome(NamedTuple):
    """What sharing comes to.

    Attributes:
        slowdown: Time of the first job over its time alone.
        filled: Part of the first job's own idle time in which the other one runs kernels.
    """

    slowdown: float
    filled: float


def gaps_of(kernels_s: Floats, utilisation: float, every: int, jitter: float, seed: int) -> tuple[Floats, Floats]:
    """Return the gap after every kernel as predicted and as it is [s], both of the shape of `kernels_s`.

    The idle time that makes the utilisation is cut into equal gaps, one after every `every`-th kernel; each is longer
    or shorter than predicted by a factor drawn from 1 ± `jitter`.
    """
    predicted = np.zeros(len(kernels_s))
    places = np.arange(every - 1, len(kernels_s), every)
    predicted[places] = kernels_s.sum() * (1.0 / utilisation - 1.0) / max(1, len(places))
    drawn = np.random.default_rng(seed).uniform(1.0 - jitter, 1.0 + jitter, len(kernels_s))
    return predicted, predicted * drawn


@kernel
def first_come(kernels_s: Floats, gaps_s: Floats, others_s: Floats, depth: int) -> float:
    """Return the slow-down of the first job where the GPU runs kernels in the order in which they were launched.

    The other job has `depth` kernels launched at any time, so that each kernel of the first one waits for what is left
    of the one that runs, and for `depth` - 1 whole ones.
    """
    time, running_until, k = 0.0, others_s[0], 1
    for i in range(kernels_s.shape[0]):
        while running_until <= time:
            running_until += others_s[k % others_s.shape[0]]
            k += 1
        for _ in range(depth - 1):
            running_until += others_s[k % others_s.shape[0]]
            k += 1
        time = running_until + kernels_s[i]
        running_until = time + others_s[k % others_s.shape[0]]
        k += 1
        time += gaps_s[i]
    return time / (kernels_s.sum() + gaps_s.sum())


@kernel
def fill_gaps(kernels_s: Floats, predicted_s: Floats, gaps_s: Floats, others_s: Floats) -> FikitOutcome:
    """Return what comes of launching the other job's next kernel only if it ends before the gap is predicted to end.

    Kernels are not interrupted: where the gap is shorter than predicted, the first job waits for the one that runs.
    """
    time, k, ready, filled = 0.0, 0, 0.0, 0.0
    for i in range(kernels_s.shape[0]):
        time += kernels_s[i]
        predicted, arrival, now = time + predicted_s[i], time + gaps_s[i], max(time, ready)
        while now < arrival and now + others_s[k % others_s.shape[0]] <= predicted:
            length = others_s[k % others_s.shape[0]]
            filled += length
            time = now + length
            ready = time + length * (1.0 / BACKGROUND_UTILISATION - 1.0)
            now = ready
            k += 1
        time = max(time, arrival)
    alone = kernels_s.sum() + gaps_s.sum()
    return FikitOutcome(time / alone, filled / max(gaps_s.sum(), 1e-12))


KERNELS = Path("../shared/data/orion")
"""Where the kernel times of ten models are looked for; they are not part of the project."""
SOURCE = "FIKIT, abstract; kernel times: Orion's benchmarks (MIT)"
UTILISATIONS = (0.3, 0.5, 0.7)
JITTER = 0.2
REQUESTS = 20
GAPS = {
    1: ("every kernel", 0.0, 0.3),
    5: ("every fifth", -np.inf, np.inf),
    20: ("one in 20", -np.inf, np.inf),
    200: ("one in 200", 0.75, 0.95),
}
"""After which kernels a gap comes, and the band of what is filled: training has few long gaps, inference many."""


def kernel_times(kind: str) -> dict[str, Floats]:
    """Read the kernel times of every model [s]; `kind` is `fwd`, inference, or `fb1`, an iteration of training."""
    times = {}
    for path in sorted(KERNELS.glob(f"*_{kind}.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            times[path.stem] = np.array([float(row["Duration"]) for row in csv.DictReader(file)]) * 1e-9
    return times


def queue(_quick: bool) -> Measured:
    """Compare a FIFO queue of one, two and four kernels of the background with filling."""
    cases = list(_cases(1))
    slowdowns = {depth: [first_come(own, gap, other, depth) for own, _, gap, other in cases] for depth in (1, 2, 4)}
    lost = [fill_gaps(*case).slowdown - 1.0 for case in cases]
    two = slowdowns[2]
    return Measured(
        (
            Check("slow-down in a FIFO queue, 2 kernels deep: median", float(np.median(two)), 3.0, 4.0, 3.4, SOURCE),
            Check("slow-down in a FIFO queue, 2 kernels deep: max", float(np.max(two)), 10.0, 20.0, 16.41, SOURCE),
            Check("slow-down in a FIFO queue, 2 kernels deep: min", float(np.min(two)), 1.0, 1.5, 1.32, SOURCE),
            Check("share of cases above 3.4", float(np.mean(np.array(two) > 3.4)), 0.4, 0.65, 0.5, SOURCE),
            Check("median, 1 kernel deep", float(np.median(slowdowns[1]))),
            Check("median, 4 kernels deep", float(np.median(slowdowns[4]))),
            Check("lost with filling: median", float(np.median(lost)), 0.0, 0.05, 0.05, SOURCE),
            Check("lost with filling: max", float(np.max(lost)), 0.0, 0.12),
        )
    )


def gaps(_quick: bool) -> Measured:
    """Return which part of the idle time can be filled, and what that costs, by how the idle time is cut."""
    checks = []
    for every, (where, low, high) in GAPS.items():
        outcomes = [fill_gaps(*case) for case in _cases(every)]
        filled = float(np.median([outcome.filled for outcome in outcomes]))
        lost = float(np.median([outcome.slowdown for outcome in outcomes])) - 1.0
        checks.append(Check(f"idle time filled, a gap after {where}: median", filled, low, high))
        checks.append(Check(f"lost by the first job, a gap after {where}: median", lost, 0.0, 0.05, 0.05, SOURCE))
    return Measured(tuple(checks))


def _cases(every: int) -> Iterator[tuple[Floats, Floats, Floats, Floats]]:
    """Yield the kernels of every inference job, a loop of requests, its gaps, and every job in the background."""
    first = kernel_times("fwd")
    others = first | kernel_times("fb1")
    for one, other, utilisation in product(first, others, UTILISATIONS):
        if one != other:
            kernels_s = np.tile(first[one], REQUESTS)
            yield kernels_s, *gaps_of(kernels_s, utilisation, every, JITTER, 0), others[other]


PARTS = (
    Part("fikit", "first", "The job that comes first: default sharing against filling", first_ones, GAVEL),
    Part("fikit", "other", "The job that fills gaps: default sharing against filling", other_ones, GAVEL),
    Part("fikit", "kernels", "Slow-down in a FIFO queue and with filling, kernel by kernel", queue, KERNELS),
    Part("fikit", "gaps", "Which part of a job's idle time others can fill, by how it is cut", gaps, KERNELS),
)
