"""The processes that decide: a request is handed to a free one, and one that takes too long is replaced.

Compiled kernels hold the interpreter's lock, so threads would hold up one another, and the door. Bytes go in and out:
nothing is unpickled of what came from outside.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import queue
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from gpusched_env.child_processes import children_ignore_sigint
from gpusched_env.errors import InputError
from gpusched_env.simulator import simulate
from gpusched_env.simulator.builds import use_everything
from gpusched_env.simulator.policy import can_decide
from gpusched_experiments.report.processes import WorkerError, start_worker
from gpusched_experiments.report.warm_up import tiny_instance, two_processes
from gpusched_operations.service.client import ServicePolicy
from gpusched_operations.service.decision import Decider, PolicyCatalogue
from gpusched_operations.service.facts import DecisionFacts
from gpusched_operations.service.fields import RequestLimits, error_body
from gpusched_operations.service.forecasting import FORECAST, TIME_SHARE, Forecaster
from gpusched_operations.service.openapi import EXAMPLE


def warm_up_service(decider: Decider) -> None:
    """Compile what requests need, those with other mechanisms too: they come with a limit of time."""
    use_everything()
    instance = tiny_instance()
    for name in decider.policies.names:
        if can_decide(decider.policies.make(name), instance):
            asking = ServicePolicy("", name, instance, post=lambda _, body: decider(body))
            simulate(instance, asking, record=False)
    forecast = {"samples": 1, "arrivals": {"per_hour": 1.0}}
    with suppress(InputError):  # it may not be for such GPUs
        Forecaster(decider)(json.dumps(EXAMPLE | {"policy": decider.policies.names[0], "forecast": forecast}).encode())


def compile_service(policies: PolicyCatalogue, limits: RequestLimits) -> None:
    """Compile what a worker compiles at its start; it is kept on the disk, so that workers start in seconds."""
    with two_processes(policies.names):
        warm_up_service(Decider(policies, b"", limits))


OK, NOT_ALLOWED, TOO_LARGE, FAILED, BUSY, TOO_LONG = 200, 422, 413, 500, 503, 504
READY = b"ready"
START_S = 600.0
"""Longest time that a worker may take to start and compile [s]."""
AGAIN_S, LONGEST_AGAIN_S = 1.0, 60.0
"""Time before another worker is started in place of one that did not start [s]; twice as long each time."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The status and the JSON of an answer; of a decision also what is counted of it."""

    status: int
    body: bytes
    facts: DecisionFacts | None = None


def error_reply(status: int, allowed: str) -> Reply:
    return Reply(status, error_body(None, None, allowed))


def reply_to(decider: Decider, body: bytes) -> Reply:
    """Decide, or forecast if the body begins so; give bad input and failures as replies too."""
    try:
        if body.startswith(FORECAST):
            forecaster = Forecaster(decider, TIME_SHARE * decider.limits.decision_s)
            return Reply(OK, forecaster(body.removeprefix(FORECAST)))
        return Reply(OK, *decider.answered(body))
    except InputError as error:
        status = TOO_LARGE if len(body) > decider.limits.request_bytes else NOT_ALLOWED
        return Reply(status, error_body(error.field, error.value, error.allowed))
    except Exception as error:  # noqa: BLE001 - a service goes on; what happened is said
        return error_reply(FAILED, f"the decision failed: {type(error).__name__}: {error}")


class WorkerPool:
    """Worker processes, each with everything compiled before it takes a request.

    One is ready when this returns; the others follow.

    Args:
        workers: Number of processes, ≥ 1.
        policies: The policies that may be asked.
        key: Signs what policies remember.
        limits: Sizes, times, and how many requests may wait.

    Attributes:
        most_at_once: Requests that may be asked at one time.
        waiting: Requests that wait for a worker now.
        replaced: Workers that ended or took too long, and were ended, so far.

    Raises:
        WorkerError: The first process ended before it was ready.
    """

    def __init__(self, workers: int, policies: PolicyCatalogue, key: bytes, limits: RequestLimits) -> None:
        self.limits = limits
        self._arguments = (policies, key, limits)
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self.most_at_once = workers + limits.waiting
        self._free = threading.Semaphore(self.most_at_once)
        self._closed = threading.Event()
        self._counting = threading.Lock()
        self.waiting, self.replaced = 0, 0
        self._ready: list[_Worker] = []
        self._all: list[_Worker] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        for _ in range(workers - 1):  # they find on the disk what the first one has compiled
            threading.Thread(target=self._start_another, daemon=True).start()

    def __call__(self, body: bytes) -> Reply:
        if not self._free.acquire(blocking=False):
            return error_reply(BUSY, "too many requests wait; try again in a second")
        try:
            return self._ask(body)
        finally:
            self._free.release()

    def close(self) -> None:
        self._closed.set()
        for worker in list(self._all):
            worker.end()

    def alive(self) -> int:
        """Return how many workers are there that can decide, now or after what they are at."""
        return sum(worker.is_alive() for worker in list(self._ready))

    def _ask(self, body: bytes) -> Reply:
        try:
            worker = self._free_worker()
        except queue.Empty:
            return error_reply(BUSY, "no worker became free in time; try again in a second")
        try:
            reply = worker.ask(body, self.limits.decision_s)
        except (OSError, EOFError):
            reply = error_reply(FAILED, "the worker ended while it decided; it is replaced")
        else:
            if reply is not None:
                self._idle.put(worker)
                return reply
            allowed = f"a decision within {self.limits.decision_s:g} s; this one took longer and was given up"
            reply = error_reply(TOO_LONG, allowed)
        self._ready.remove(worker)
        self._all.remove(worker)
        worker.end()
        with self._counting:
            self.replaced += 1
        threading.Thread(target=self._start_another, daemon=True).start()
        return reply

    def _free_worker(self) -> _Worker:
        """Wait for a worker.

        Raises:
            queue.Empty: None became free in time.
        """
        with self._counting:
            self.waiting += 1
        try:
            return self._idle.get(timeout=self.limits.waiting_s)
        finally:
            with self._counting:
                self.waiting -= 1

    def _start_another(self) -> None:
        """Start a worker, again and again until one is ready: what made one fail, such as full memory, may pass."""
        wait_s = 0.0
        while not self._closed.wait(wait_s):
            with suppress(OSError, WorkerError):
                self._start()
                return
            wait_s = min(max(AGAIN_S, 2.0 * wait_s), LONGEST_AGAIN_S)

    def _start(self) -> None:
        """Start a worker, and let it take requests once it is ready."""
        worker = _Worker(self._arguments)
        self._all.append(worker)
        if self._closed.is_set():  # the caller that closed it may not have seen this one
            self.close()
        try:
            worker.wait_until_ready()
        except WorkerError:
            self._all.remove(worker)
            raise
        self._ready.append(worker)
        self._idle.put(worker)


class _Worker:
    """One process, and the pipe to it."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, *arguments), daemon=True)
        with children_ignore_sigint():
            self._process.start()
        theirs.close()

    def wait_until_ready(self) -> None:
        try:
            if self._pipe.poll(START_S) and self._pipe.recv_bytes() == READY:
                return
        except (OSError, EOFError):
            pass
        self.end()
        raise WorkerError("a worker process ended before it was ready, perhaps out of memory; try fewer workers")

    def ask(self, body: bytes, longest_s: float) -> Reply | None:
        self._pipe.send_bytes(body)
        if not self._pipe.poll(longest_s):
            return None
        return _read(self._pipe.recv_bytes())

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(pipe: Connection, policies: PolicyCatalogue, key: bytes, limits: RequestLimits) -> None:
    """Answer requests until the pipe is closed; runs in a process of its own."""
    start_worker(())
    decider = Decider(policies, key, limits)
    warm_up_service(decider)
    gc.collect()
    gc.freeze()  # what is there now stays; decisions need not wait until it was looked through
    pipe.send_bytes(READY)
    while True:
        try:
            pipe.send_bytes(_written(reply_to(decider, pipe.recv_bytes())))
        except (EOFError, OSError):
            return


_HEAD = struct.Struct(">HI")
"""The status of a reply, and how many bytes of facts come before its JSON."""


def _written(reply: Reply) -> bytes:
    facts = b"" if reply.facts is None else reply.facts.written()
    return _HEAD.pack(reply.status, len(facts)) + facts + reply.body


def _read(text: bytes) -> Reply:
    status, length = _HEAD.unpack_from(text)
    begin = _HEAD.size + length
    facts = DecisionFacts.read(text[_HEAD.size : begin]) if length else None
    return Reply(status, text[begin:], facts)
