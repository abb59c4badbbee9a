"""The present sources against those of an earlier commit: ratios of speed, in pairs of one run."""

from __future__ import annotations

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.child import REPOSITORY, run_python
from benchmarks.figure import Figure, at_least
from benchmarks.house import BEFORE
from benchmarks.startup import FIRST_STEP
from benchmarks.trees import Worker, checked_out, environment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figure import Target

FASTER, NO_SLOWER, AS_FAST = at_least(1.2), at_least(0.97), at_least(1.0)
VECTOR = ("vector", "256", "300", "median")


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree of sources.

    Args:
        path: Its folder.
        cache: Folder of Numba's cache for it.
    """

    path: Path
    cache: Path

    def worker(self, arguments: tuple[str, ...]) -> Worker:
        """Start a process that measures on it."""
        return Worker(self.path, self.cache, arguments)

    def start(self, cache: Path | None = None) -> float:
        """Measure the processor time from the start of a process to its first step [s]."""
        program = f"{FIRST_STEP}print(time.process_time())"
        printed = run_python(["-P", "-c", program], environment=environment_of(self.path, cache or self.cache))
        return float(printed.split()[-1])


@dataclass(frozen=True, slots=True)
class Case:
    """A measurement to pair with the same on other sources.

    Args:
        name: What is measured.
        arguments: The measurement on the present sources: arguments of `either_tree`.
        target: Target of its speed over that of the other measurement.
        before: Whether the other one runs on the earlier sources; else on the present ones, too.
        pairs: Pairs in each sitting.
    """

    name: str
    arguments: tuple[str, ...]
    target: Target | None = None
    before: bool = True
    pairs: int = 5


def _rounds(policy: str, target: Target, large_jobs: int) -> Iterator[Case]:
    scenarios: tuple[tuple[str, ...], ...] = (
        ("tiny",),
        ("default",),
        ("large", f"jobs.count={large_jobs}"),
        ("burst", "cluster.nodes=100", "jobs.count=400"),
    )
    for scenario in scenarios:
        yield Case(f"rounds of {policy}: {' '.join(scenario)}", ("rounds", policy, *scenario), target)


NOISE = "the same sources on both sides: how far a ratio is from 1 by chance"
CASES = (
    *_rounds("sts", FASTER, 2000),
    *_rounds("sts-x", AS_FAST, 200),
    Case("env.step: default", ("steps",), NO_SLOWER),
    Case("vector step, 256 envs", VECTOR, NO_SLOWER, pairs=12),
)
SAME_CASES = (
    Case("noise, rounds of sts-x: default", ("rounds", "sts-x", "default"), before=False),
    Case("noise, env.step", ("steps",), before=False),
    Case("noise, vector step", VECTOR, before=False, pairs=12),
)


def measure(
    before: str = BEFORE,
    cases: Sequence[Case] = (*CASES, *SAME_CASES),
    sittings: int = 2,
    cold_starts: int = 2,
    warm_starts: int = 8,
) -> list[Figure]:
    """Pair the present sources with those of the commit `before`: ratios of speeds.

    Args:
        before: The commit.
        cases: What to measure besides start-up.
        sittings: Number of times that each case gets fresh processes, to average over their layouts of memory.
        cold_starts: Pairs of first starts, with an empty cache.
        warm_starts: Pairs of later starts.

    Raises:
        InputError: There is no such commit here.
    """
    with checked_out(before) as path, tempfile.TemporaryDirectory() as caches:
        old, now = Tree(path, Path(caches, "before")), Tree(REPOSITORY, Path(caches, "now"))
        figures = [*_starts(old, now, cold_starts, warm_starts)]
        for case in cases:
            print(f"  {case.name.strip()} ...", file=sys.stderr, flush=True)
            figures.append(_measured(case, old, now, sittings))
        return figures


def paired(below: Callable[[], float], above: Callable[[], float], pairs: int) -> tuple[float, ...]:
    """Measure the seconds of two in turn, in the order A B B A ..., and divide the first's by the second's."""
    measured = []
    for pair in range(pairs):
        if pair % 2 == 0:
            first, second = below(), above()
        else:
            second, first = above(), below()
        measured.append(first / second)
    return tuple(measured)


def _measured(case: Case, old: Tree, now: Tree, sittings: int) -> Figure:
    measured: list[float] = []
    for _ in range(sittings):
        with ExitStack() as opened:
            other = (old if case.before else now).worker(case.arguments)
            workers = [opened.enter_context(closing(worker)) for worker in (other, now.worker(case.arguments))]
            for worker in workers:
                worker.wait()
            measured += paired(workers[0], workers[1], case.pairs)
    return Figure(case.name, tuple(measured), "times", case.target, NOISE if case.name.startswith("noise") else "")


def _starts(old: Tree, now: Tree, cold: int, warm: int) -> list[Figure]:
    """Measure starts. The two of a cold pair run at the same time, since they take long."""
    ratio = []
    for turn in range(cold):
        print(f"  cold start {turn + 1} ...", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as both:
            caches = [tree.cache if turn == 0 else Path(folder, tree.cache.name) for tree in (old, now)]
            before_s, now_s = both.map(Tree.start, (old, now), caches)
            ratio.append(before_s / now_s)
    note = "time of the processor, up to the first step of an environment; cold: all kernels are compiled"
    return [
        Figure("cold start", tuple(ratio), "times", NO_SLOWER, note),
        Figure("warm start", paired(old.start, now.start, warm), "times", NO_SLOWER),
    ]
