"""Make many independent calls, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeVar

from gpusched_experiments.report.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpusched_env.simulator import Policy

T = TypeVar("T")


class WorkerError(RuntimeError):
    """A worker process ended before its run did."""


def call_all(calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int) -> Iterator[tuple[int, T]]:
    """Make every call; give each one's place in `calls` and result as soon as it has ended.

    Args:
        calls: The calls, begun in this order; for more than one worker they must be picklable.
        policies: What every process compiles before its first call.
        workers: Most processes, ≥ 1; with 1 everything happens in this process.

    Raises:
        WorkerError: A process ended early.
    """
    if not calls:
        return
    warm_up(policies)  # here first: workers find compiled what one process has compiled
    if workers == 1:
        yield from ((index, call()) for index, call in enumerate(calls))
        return
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


def start_worker(policies: Sequence[Policy]) -> None:
    """Tie this worker process to its parent's life, and compile what `policies` need."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    warm_up(policies)


def _end_with(sentinel: int) -> None:
    """End this process when the parent is gone, however it went: a killed command leaves nobody behind."""
    wait([sentinel])
    os._exit(1)
