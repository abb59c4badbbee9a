"""Threads that share the environments of a step."""

from __future__ import annotations

import os
import threading
import time
import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from gpusched_env.vector.board import ASLEEP, PLAIN, STOP, THREADS, all_done, new_board
from gpusched_env.vector.kernels import work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator.arrays import Ints
    from gpusched_env.vector.kernels import Seen

    Desk: TypeAlias = SimpleQueue[tuple[Any, ...] | None]
    """Where a helper waits for what `work` takes, or for None: the end."""

LEAST_SHARE = 16  # environments below which a thread costs more than it saves


def usable_cores() -> int:
    """Count the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class Crew:
    """The calling thread and helpers. Dropping or closing it ends the helpers.

    Between two steps a helper waits without the interpreter for a moment, and takes part in a step that begins then
    without any handover; after that it sleeps until it is woken.

    Args:
        threads: Threads in all, ≥ 1; with 1 the calling thread does everything.
    """

    def __init__(self, threads: int) -> None:
        self._threads = 1 if PLAIN else threads
        self._board = new_board(self._threads)
        self._desks: list[Desk] = []
        self._stable: tuple[Any, ...] = ()
        self._process = -1
        self._closer: weakref.finalize[[list[Desk], Ints], Crew] | None = None

    def step(self, actions: Ints, seen: Seen, stable: tuple[Any, ...]) -> None:
        """Do a step of all environments.

        Args:
            actions: What `work` takes, like the next one; other arrays in each call, but of the same shapes while
                `stable` is the same.
            seen: See there.
            stable: All else that it takes; best the same object from call to call.
        """
        self._start()
        if stable is not self._stable:
            self._recall()
            self._stable = stable
        for helper, desk in enumerate(self._desks, start=1):
            if self._board[THREADS + helper, ASLEEP]:
                self._board[THREADS + helper, ASLEEP] = 0
                desk.put((helper, self._board, actions, tuple(seen), *stable))
        try:
            work(0, self._board, actions, tuple(seen), *stable)
        finally:
            self._wait(len(actions))

    def close(self) -> None:
        """End the helpers; another `step` starts them again."""
        if self._closer is not None:
            self._closer()
        self._desks = []

    def _wait(self, size: int) -> None:
        """Wait until all is done, whatever interrupts: others still write to the arrays."""
        interrupt: BaseException | None = None
        while not all_done(self._board, size):
            try:
                time.sleep(0.0)
            except BaseException as error:  # noqa: BLE001 - raised again below
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _recall(self) -> None:
        """Let the helpers leave the arrays that they work with."""
        self._board[STOP, 0] = 1
        while not self._board[THREADS + 1 :, ASLEEP].all():
            time.sleep(0.0)
        self._board[STOP, 0] = 0

    def _start(self) -> None:
        """Start the helpers, unless they run: a forked process has none of its parent's threads."""
        if self._threads == 1 or (self._desks and self._process == os.getpid()):
            return
        self._process = os.getpid()
        self._board = new_board(self._threads)
        self._desks = [SimpleQueue() for _ in range(self._threads - 1)]
        for desk in self._desks:
            threading.Thread(target=_help, args=(desk,), name="gpusched-vector", daemon=True).start()
        self._closer = weakref.finalize(self, _dismiss, self._desks, self._board)


def _help(desk: Desk) -> None:
    while (arguments := desk.get()) is not None:
        work(*arguments)
        del arguments


def _dismiss(desks: Sequence[Desk], board: Ints) -> None:
    board[STOP, 0] = 1
    for desk in desks:
        desk.put(None)
