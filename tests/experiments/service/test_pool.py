"""Worker processes: a decision that takes too long is given up, and holds up nobody."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING

import pytest

from gpusched_experiments.report.processes import WorkerError
from gpusched_experiments.service.decision import PolicyCatalogue
from gpusched_experiments.service.fields import RequestLimits
from gpusched_experiments.service.openapi import EXAMPLE
from gpusched_experiments.service.pool import Reply, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODY = json.dumps(EXAMPLE | {"policy": "edf"}).encode()
KEY = b"a key"


class SlowWorker:
    """In place of a process: it decides for as long as its body says, in seconds."""

    def __init__(self, _: object) -> None:
        self.ended = threading.Event()

    def wait_until_ready(self) -> None:
        """Be ready."""

    def ask(self, body: bytes, longest_s: float) -> Reply | None:
        """Decide."""
        if body == b"dies":
            raise EOFError
        self.ended.wait(min(float(body), longest_s))
        return None if float(body) > longest_s else Reply(200, body)

    def is_alive(self) -> bool:
        """Return whether it was not ended."""
        return not self.ended.is_set()

    def end(self) -> None:
        """End."""
        self.ended.set()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    monkeypatch.setattr("gpusched_experiments.service.pool._Worker", SlowWorker)
    pool = WorkerPool(2, PolicyCatalogue.of("edf"), KEY, RequestLimits(decision_s=0.3, waiting=2, waiting_s=0.05))
    wait_for(lambda: pool.alive() == 2)
    yield pool
    pool.close()


@pytest.mark.slow
def test_a_decision_that_takes_too_long_is_given_up_and_its_worker_replaced(slow: WorkerPool):
    for _ in range(3):  # more often than there are workers
        reply = slow(b"9")
        assert reply.status == 504
        assert b"within 0.3 s" in reply.body
    assert slow(b"0.0") == Reply(200, b"0.0")


def test_a_worker_that_dies_is_replaced(slow: WorkerPool):
    for _ in range(6):
        assert slow(b"dies").status == 500
    assert slow(b"0.0").status == 200


def test_a_long_decision_does_not_hold_up_a_short_one(slow: WorkerPool):
    with ThreadPoolExecutor(2) as threads:
        long = threads.submit(slow, b"0.25")
        time.sleep(0.05)
        begin = time.monotonic()
        assert slow(b"0.0").status == 200
        assert time.monotonic() - begin < 0.2
        assert long.result().status == 200


def test_more_requests_than_may_wait_are_turned_away(slow: WorkerPool):
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(slow, [b"0.2"] * 8))
    assert sorted({reply.status for reply in replies}) == [200, 503]
    assert [reply.status for reply in replies].count(200) == 2
    assert slow(b"0.0").status == 200  # and afterwards all is well


def test_a_worker_that_cannot_be_replaced_now_is_replaced_later(slow: WorkerPool, monkeypatch: pytest.MonkeyPatch):
    memory_is_free, number = threading.Event(), count()

    class FailingWorker(SlowWorker):
        def __init__(self, arguments: object) -> None:
            super().__init__(arguments)
            if next(number) == 0:
                raise OSError

        def wait_until_ready(self) -> None:
            if not memory_is_free.is_set():
                raise WorkerError

    monkeypatch.setattr("gpusched_experiments.service.pool.AGAIN_S", 0.01)
    monkeypatch.setattr("gpusched_experiments.service.pool._Worker", FailingWorker)
    assert slow.alive()
    for _ in range(2):
        assert slow(b"dies").status == 500
    assert not slow.alive()
    assert slow(b"0.0").status == 503
    memory_is_free.set()
    wait_for(lambda: slow.alive() == 2)
    assert slow(b"0.0").status == 200


def test_one_worker_is_enough_to_begin_and_the_others_follow(monkeypatch: pytest.MonkeyPatch):
    go_on, number = threading.Event(), count()

    class LateWorker(SlowWorker):
        def wait_until_ready(self) -> None:
            assert next(number) == 0 or go_on.wait(10.0)

    monkeypatch.setattr("gpusched_experiments.service.pool._Worker", LateWorker)
    pool = WorkerPool(3, PolicyCatalogue.of("edf"), KEY, RequestLimits())
    try:
        assert (pool.alive(), pool(b"0.0").status) == (1, 200)
        go_on.set()
        wait_for(lambda: pool.alive() == 3)
    finally:
        pool.close()


def test_it_says_how_many_wait_and_how_many_were_replaced(slow: WorkerPool):
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(slow, b"0.2") for _ in range(3)]
        wait_for(lambda: slow.waiting == 1 or all(each.done() for each in asked))
        assert [each.result().status for each in asked].count(503) == 1  # it waited for 0.05 s
    assert (slow.waiting, slow.replaced) == (0, 0)
    assert slow(b"dies").status == 500
    assert slow.replaced == 1
