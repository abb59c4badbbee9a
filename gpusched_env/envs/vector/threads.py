"""Threads that share the environments of a step, where that is faster."""

from __future__ import annotations

import threading
import time
import weakref
from queue import SimpleQueue
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpusched_env.envs.vector.kernels import COUNTERS, TAKEN, work
from gpusched_env.named_arrays import PLAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    WorkList: TypeAlias = SimpleQueue[tuple[Any, ...] | None]
    """Where workers wait for the arguments of `work`, or for None: the end."""

TRIAL = 12  # steps that are timed with workers, and as many without
BETWEEN = 600  # steps until the next trial
LEAST_SHARE = 16  # environments below which a thread costs more than it saves


class ThreadTrial:
    """Decides for every step whether workers take part, by which was faster in the last trial.

    Attributes:
        helped: Whether they take part in the next step.
    """

    def __init__(self) -> None:
        self.helped = True
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._left = 0

    def took(self, seconds: float) -> None:
        """Note how long a step took [s]."""
        if self._left > 0:
            self._left -= 1
            self.helped = self.helped or self._left == 0  # a trial begins with them
            return
        self._seconds[self.helped].append(seconds)
        if len(self._seconds[self.helped]) < TRIAL:
            return
        if self.helped and not self._seconds[False]:
            self.helped = False
            return
        self.helped = median(self._seconds[True]) < median(self._seconds[False])
        self._seconds, self._left = {True: [], False: []}, BETWEEN


class ThreadPool:
    """The calling thread and workers, which take a few environments of a step at a time. One step at a time.

    The calling thread waits for no worker that has not begun: one that comes late finds nothing left. Where steps are
    faster without workers, since other processes need the cores, they sleep (`ThreadTrial`). Deleting or closing the
    pool ends them.

    Args:
        threads: Threads in all, ≥ 1; with 1 the calling thread does everything.
    """

    def __init__(self, threads: int) -> None:
        self.threads = 1 if PLAIN else threads
        self._work_list: WorkList = SimpleQueue()
        self._workers: list[threading.Thread] = []
        self._errors: list[BaseException] = []
        self._compiled = False
        self._trial = ThreadTrial()
        self._end: Callable[[], object] = lambda: None

    def __reduce__(self) -> tuple[type[ThreadPool], tuple[int]]:
        return ThreadPool, (self.threads,)

    def step(self, size: int, *arguments: Any) -> None:
        """Do a step of `size` environments; the arguments are those of `work` behind the first."""
        taken = np.zeros(COUNTERS, dtype=np.int64)
        try:
            self._start()
            begin = time.perf_counter()
            # At first only this thread compiles, which can be interrupted.
            for _ in self._workers if self._compiled and self._trial.helped else ():
                self._work_list.put((taken, *arguments))
            while work(taken, *arguments) < size and not self._errors:
                time.sleep(0.0)
        except BaseException:
            taken[TAKEN] = size  # workers take no more
            self.close()
            raise
        if self._errors:
            self.close()
            raise self._errors[0]
        if self._compiled and self._workers:
            self._trial.took(time.perf_counter() - begin)
        self._compiled = True

    def close(self) -> None:
        """End the workers, and wait until they have: none is at work then."""
        self._end()
        for worker in self._workers:
            if worker.ident is not None:
                worker.join()
        self._workers = []

    def _start(self) -> None:
        """Start the workers, unless they run: a forked process has none of its parent's threads."""
        if self.threads == 1 or (self._workers and all(worker.is_alive() for worker in self._workers)):
            return
        self._work_list, self._errors, self._workers = SimpleQueue(), [], []
        self._end = weakref.finalize(self, _end, self._work_list, self.threads - 1)
        for _ in range(1, self.threads):
            arguments = self._work_list, self._errors
            self._workers.append(threading.Thread(target=_help, args=arguments, name="gpusched-vector", daemon=True))
            self._workers[-1].start()


def _help(work_list: WorkList, errors: list[BaseException]) -> None:
    while (arguments := work_list.get()) is not None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that called
            errors.append(error)
        del arguments


def _end(work_list: WorkList, workers: int) -> None:
    for _ in range(workers):
        work_list.put(None)
