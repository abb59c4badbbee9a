"""Make many independent calls, in this process or in several of this machine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children
from typing import Protocol, TypeVar

from gpusched_env.child_processes import children_ignore_sigint, end_with_parent, usable_cores
from gpusched_env.errors import RunError
from gpusched_env.simulator import Policy
from gpusched_experiments.report.warm_up import two_processes, warm_up


class WorkerError(RunError):
    """A worker process ended before its run did."""


class Backend(Protocol):
    """Makes calls elsewhere; the results come back to this process, which alone keeps them."""

    @property
    def name(self) -> str:
        """Name it as `--backend` does."""

    def cores(self) -> int:
        """Return how many calls it can make at once, ≥ 1."""

    def call_all(
        self, calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int
    ) -> Iterator[tuple[int, T]]:
        """Make every call; give each one's place in `calls` and result as soon as it has ended.

        What a call raises is raised here as it is; then, and when the iterator is closed, the other calls are stopped.

        Args:
            calls: The calls, begun in this order; they must be picklable.
            policies: What every process compiles before its first call.
            workers: Most calls at once, ≥ 1.
        """


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of this machine; for one worker, this process itself."""

    name: str = "processes"

    def cores(self) -> int:
        return usable_cores()

    def call_all(
        self, calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int
    ) -> Iterator[tuple[int, T]]:
        """Make every call; with one worker here, where calls need not be picklable."""
        if not calls:
            return
        with two_processes([policy.name for policy in policies]):
            warm_up(policies)  # here first: workers find compiled what one process has compiled
        if min(workers, len(calls)) == 1:  # another process would begin by importing all of it
            yield from ((index, call()) for index, call in enumerate(calls))
        else:
            yield from _in_a_pool(calls, policies, min(workers, len(calls)))


PROCESSES = Processes()


def call_all(
    calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int, backend: Backend = PROCESSES
) -> Iterator[tuple[int, T]]:
    """Make every call; give each one's place in `calls` and result as soon as it has ended.

    Args:
        calls: The calls, begun in this order; they must be picklable, but for one worker of `PROCESSES`.
        policies: What every process compiles before its first call.
        workers: Most calls at once, ≥ 1; with 1, `PROCESSES` makes them in this process.
    """
    yield from backend.call_all(calls, policies, workers)


def _in_a_pool(calls: Sequence[Callable[[], T]], policies: Sequence[Policy], processes: int) -> Iterator[tuple[int, T]]:
    context, others = multiprocessing.get_context("spawn"), set(active_children())
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=start_worker, initargs=(tuple(policies),))
    finished = False
    try:
        with children_ignore_sigint():
            futures = {pool.submit(call): index for index, call in enumerate(calls)}
        for future in as_completed(futures):
            yield futures[future], future.result()
        finished = True
    except BrokenProcessPool as error:
        raise WorkerError("a worker process ended early, perhaps out of memory; try fewer workers") from error
    finally:
        if not finished:  # nobody waits for what they are at
            for process in set(active_children()) - others:
                process.kill()
        pool.shutdown(cancel_futures=True)


def start_worker(policies: Sequence[Policy]) -> None:
    end_with_parent()
    warm_up(policies)
