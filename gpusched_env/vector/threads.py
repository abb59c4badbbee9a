"""Threads that share the environments of a step."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Task: TypeAlias = Callable[[int, int], None]
    """Does the work for the environments from the first index to before the second."""

LEAST_SHARE = 16  # environments below which a thread costs more than it saves


def usable_cores() -> int:
    """Count the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Crew:
    """The calling thread and helpers; each takes a contiguous share. Dropping or closing it ends the helpers.

    Args:
        threads: Threads in all, ≥ 1; with 1 the calling thread does everything.
    """

    def __init__(self, threads: int) -> None:
        self._helpers = threads - 1
        self._desks: list[_Desk] = []
        self._process = -1
        self._closer: weakref.finalize[[list[_Desk]], Crew] | None = None

    def run(self, task: Task, count: int) -> None:
        """Do a task for `count` environments; return when every thread is done.

        Raises:
            BaseException: What the task raised in any thread.
        """
        self._start()
        threads = len(self._desks) + 1
        bounds = [count * k // threads for k in range(threads + 1)]
        for desk, first, last in zip(self._desks, bounds[1:], bounds[2:], strict=False):
            desk.hand(task, first, last)
        try:
            task(0, bounds[1])
        finally:
            errors = [desk.wait() for desk in self._desks]
        for error in filter(None, errors):
            raise error

    def close(self) -> None:
        """End the helpers; another `run` starts them again."""
        if self._closer is not None:
            self._closer()
        self._desks = []

    def _start(self) -> None:
        """Start the helpers, unless they run: a forked process has none of its parent's threads."""
        if self._helpers == 0 or (self._desks and self._process == os.getpid()):
            return
        self._process = os.getpid()
        self._desks = [_Desk() for _ in range(self._helpers)]
        for desk in self._desks:
            threading.Thread(target=_help, args=(desk,), name="gpusched-vector", daemon=True).start()
        self._closer = weakref.finalize(self, _dismiss, self._desks)


class _Desk:
    """Where a helper finds its work. It knows nothing of the crew, which can so be dropped while helpers wait."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.share = (0, 0)
        self.error: BaseException | None = None
        self.ready, self.done = threading.Lock(), threading.Lock()
        self.ready.acquire()
        self.done.acquire()

    def hand(self, task: Task, first: int, last: int) -> None:
        self.task, self.share, self.error = task, (first, last), None
        self.ready.release()

    def wait(self) -> BaseException | None:
        """Wait until the helper is done; give what it raised, or what interrupted the wait."""
        interrupt: BaseException | None = None
        while True:
            try:
                self.done.acquire()
            except BaseException as error:  # noqa: BLE001 - the helper still works on the arrays: wait on
                interrupt = error
            else:
                return interrupt or self.error


def _help(desk: _Desk) -> None:
    while True:
        desk.ready.acquire()
        task = desk.task
        if task is None:
            return
        try:
            task(*desk.share)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            desk.error = error
        desk.task = task = None
        desk.done.release()


def _dismiss(desks: Sequence[_Desk]) -> None:
    for desk in desks:
        desk.ready.release()
