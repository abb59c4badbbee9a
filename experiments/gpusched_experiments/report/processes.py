"""Run many independent calls in worker processes."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, TypeVar

from gpusched_experiments.report.worker import start_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpusched_env.simulator import Policy

T = TypeVar("T")


class WorkerError(RuntimeError):
    """A worker process ended before its run did."""


def run_in_processes(
    calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int
) -> Iterator[tuple[int, T]]:
    """Make every call in a worker process; give each one's place in `calls` and result as soon as it has ended.

    Args:
        calls: The calls, which must be picklable; begun in this order.
        policies: What every worker compiles before its first call.
        workers: Most processes, ≥ 1.

    Raises:
        WorkerError: A process ended early.
    """
    context = multiprocessing.get_context("spawn")
    processes = min(workers, len(calls))
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=start_worker, initargs=(tuple(policies),))
    try:
        futures = {pool.submit(call): index for index, call in enumerate(calls)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise WorkerError("a worker process ended early, perhaps out of memory; try fewer workers") from error
    finally:
        pool.shutdown(cancel_futures=True)
