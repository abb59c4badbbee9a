"""Threads that share the environments of a step, where that is faster."""

from __future__ import annotations

import os
import threading
import time
import weakref
from queue import SimpleQueue
from statistics import median
from typing import TYPE_CHECKING, Any, TypeAlias

from gpusched_env.envs.vector.kernels import OPENED, open_step, work
from gpusched_env.envs.vector.work_queue import ASLEEP, FAILED, PLAIN, STOP, THREADS, new_queue

TRIAL = 12  # steps that are timed with workers, and as many without
BETWEEN = 600  # steps until the next trial


class ThreadTrial:
    """Decides for every step whether workers take part, by which was faster in the last trial.

    Attributes:
        helped: Whether they take part in the next step.
    """

    def __init__(self) -> None:
        self.helped = True
        self._seconds: dict[bool, list[float]] = {True: [], False: []}
        self._left = 0

    @property
    def settled(self) -> bool:
        """Whether the next step is part of no trial, and workers take part in it."""
        return self.helped and self._left > 1

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


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusched_env.arrays import Ints
    from gpusched_env.envs.vector.kernels import Seen

    WorkList: TypeAlias = SimpleQueue[tuple[Any, ...] | None]
    """Where a worker waits for the arguments of `work`, or for None: the end."""

LEAST_SHARE = 16  # environments below which a thread costs more than it saves


class ThreadPool:
    """The calling thread and workers. Deleting or closing the pool ends the workers.

    Between two steps a worker waits without the interpreter for a moment, and takes part at once in a step that begins
    then; after that it sleeps until it is woken. Where steps are faster without workers, since other processes need
    the cores, they sleep all the time (`trial`). One step at a time.

    Args:
        threads: Threads in all, ≥ 1; with 1 the calling thread does everything.
    """

    def __init__(self, threads: int) -> None:
        self._threads = 1 if PLAIN else threads
        self._queue = new_queue(self._threads)
        self._work_lists: list[WorkList] = []
        self._errors: list[BaseException] = []
        self._stable: tuple[Any, ...] = ()
        self._process = -1
        self._compiled = False
        self._trial = ThreadTrial()
        self._closer: weakref.finalize[[list[WorkList], Ints], ThreadPool] | None = None

    def __reduce__(self) -> tuple[type[ThreadPool], tuple[int]]:
        return ThreadPool, (self._threads,)

    def step(
        self, actions: Ints, seen: Seen, stable: tuple[Any, ...], meanwhile: Callable[[], None] | None = None
    ) -> None:
        """Do a step of all environments.

        Args:
            actions: Arguments of `work`, like the next one; other arrays in each call, but of the same shapes while
                `stable` is the same.
            stable: All its other arguments; best the same object from call to call.
            meanwhile: Other work for the calling thread, done first if workers have begun: they do more of the
                step instead.
        """
        try:
            arguments, at_work = self._prepare(actions, seen, stable)
        except BaseException:
            self.close()  # no worker has begun: the round has not begun
            raise
        begin = time.perf_counter()
        try:
            if at_work and meanwhile is not None and self._trial.settled:
                _work_after(meanwhile, arguments)
            else:
                work(0, *arguments)
        except BaseException:
            self._recall()
            self.close()
            raise
        if self._compiled and self._work_lists:
            self._trial.took(time.perf_counter() - begin)
        self._compiled = True
        if self._queue[FAILED, 0]:
            self._recall()
            self.close()
            raise self._errors[0]

    def close(self) -> None:
        self._work_lists, self._stable = [], ()
        if self._closer is not None:
            self._closer()

    def _prepare(self, actions: Ints, seen: Seen, stable: tuple[Any, ...]) -> tuple[tuple[Any, ...], bool]:
        """Start the workers, end their sleep, and pass the arrays to them.

        Returns:
            The arguments of `work` after the thread; and whether workers look for work: one that has just been woken
            needs the interpreter first.
        """
        self._start()
        if stable is not self._stable:
            self._recall()
            self._stable = stable
        arguments, at_work = (self._queue, actions, tuple(seen), *stable), bool(self._work_lists)
        if not self._compiled and self._work_lists:
            open_step(new_queue(self._threads), *arguments[1:3])  # compiled now, not by the first step that needs it
        if not self._trial.helped:
            self._recall()
        elif self._compiled:  # until then only this thread compiles, which can be interrupted
            for worker, work_list in enumerate(self._work_lists, start=1):
                if self._queue[THREADS + worker, ASLEEP]:
                    self._queue[THREADS + worker, ASLEEP], at_work = 0, False
                    work_list.put((worker, *arguments))
        return arguments, at_work

    def _recall(self) -> None:
        if self._queue[THREADS + 1 :, ASLEEP].all():
            return
        self._queue[STOP, 0] = 1
        while not self._queue[THREADS + 1 :, ASLEEP].all():
            time.sleep(0.0)
        self._queue[STOP, 0] = 0

    def _start(self) -> None:
        """Start the workers, unless they run: a forked process has none of its parent's threads."""
        if self._threads == 1 or (self._work_lists and self._process == os.getpid()):
            return
        self._queue, self._work_lists, self._errors = new_queue(self._threads), [], []
        self._process = os.getpid()
        self._closer = weakref.finalize(self, _dismiss, self._work_lists, self._queue)
        for _ in range(1, self._threads):
            work_list: WorkList = SimpleQueue()
            self._work_lists.append(work_list)
            threading.Thread(target=_help, args=(work_list, self._errors), name="gpusched-vector", daemon=True).start()


def _work_after(other: Callable[[], None], arguments: tuple[Any, ...]) -> None:
    """Open a step, do other work while workers do theirs, and help them; after an interrupt too, so that they end."""
    open_step(*arguments[:3])
    try:
        other()
    finally:
        work(OPENED, *arguments)


def _help(work_list: WorkList, errors: list[BaseException]) -> None:
    while (arguments := work_list.get()) is not None:
        worker, queue = arguments[:2]
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that called
            errors.append(error)
            queue[FAILED, 0] = 1
        del arguments
        queue[THREADS + worker, ASLEEP] = 1


def _dismiss(work_lists: Sequence[WorkList], queue: Ints) -> None:
    queue[STOP, 0] = 1
    for work_list in work_lists:
        work_list.put(None)
