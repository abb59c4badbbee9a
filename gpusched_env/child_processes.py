"""Child processes: a pool of them, their number, protection from Ctrl-C, and their end when the parent ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import Any, Self, TypeVar

T = TypeVar("T")


@contextmanager
def children_ignore_sigint() -> Iterator[None]:
    """Block Ctrl-C in processes that are started in the body: this process handles it, and ends them.

    A terminal interrupts all processes of a command at once, and one that is still importing would print a long
    traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # it would lift the block if it started in the body
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def end_with_parent() -> None:
    """End this child process when its parent is gone, however the parent ended: a killed command leaves no process."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


def usable_cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class ProcessPool:
    """Child processes that call functions; a context manager that ends them.

    Args:
        processes: Number of processes, ≥ 1; by default as many as there are cores.
    """

    def __init__(self, processes: int | None = None) -> None:
        self._processes = usable_cores() if processes is None else processes

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(self._processes, mp_context=context, initializer=end_with_parent)
        return self

    def __exit__(self, *error: object) -> None:
        children = list((self._pool._processes or {}).values())  # noqa: SLF001 - their results are not needed
        if error[0] is not None:
            for child in children:
                child.kill()
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> list[T]:
        with children_ignore_sigint():
            futures = [self._pool.submit(function, *call) for call in calls]
        return [future.result() for future in futures]
