"""Worker processes: a decision that takes too long is given up, and holds up nobody."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pytest

from gpusched_experiments.report.processes import WorkerError
from gpusched_operations.service.decision import PolicyCatalogue
from gpusched_operations.service.fields import RequestLimits
from gpusched_operations.service.openapi import EXAMPLE
from gpusched_operations.service.pool import Reply, WorkerPool
from waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

BODY = json.dumps(EXAMPLE | {"policy": "edf"}).encode()
KEY = b"a key"
LONGEST_S = 0.5


class SlowWorker:
    """In place of a process: of `held` it decides once it is let go, and of `long` never."""

    let_go = threading.Event()

    def __init__(self, _: object) -> None:
        self.ended = False

    def wait_until_ready(self) -> None:
        """Be ready."""

    def ask(self, body: bytes, longest_s: float) -> Reply | None:
        """Decide."""
        if body == b"dies":
            raise EOFError
        assert body != b"held" or self.let_go.wait(300.0)
        return None if body == b"long" else Reply(200, body)

    def is_alive(self) -> bool:
        """Return whether it was not ended."""
        return not self.ended

    def end(self) -> None:
        """End."""
        self.ended = True


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerPool]:
    monkeypatch.setattr("gpusched_operations.service.pool._Worker", SlowWorker)
    monkeypatch.setattr(SlowWorker, "let_go", threading.Event())
    limits = RequestLimits(decision_s=LONGEST_S, waiting=2, waiting_s=300.0)
    pool = WorkerPool(2, PolicyCatalogue.of("edf"), KEY, limits)
    eventually(lambda: pool.alive() == 2)
    yield pool
    SlowWorker.let_go.set()
    pool.close()


def test_a_decision_that_takes_too_long_is_given_up_and_its_worker_replaced(slow: WorkerPool):
    for _ in range(3):  # more often than there are workers
        reply = slow(b"long")
        assert reply.status == 504
        assert b"within 0.5 s" in reply.body
    assert slow(b"short") == Reply(200, b"short")


def test_a_worker_that_dies_is_replaced(slow: WorkerPool):
    for _ in range(6):
        assert slow(b"dies").status == 500
    assert slow(b"short").status == 200


def test_a_long_decision_does_not_hold_up_a_short_one(slow: WorkerPool):
    with ThreadPoolExecutor(2) as threads:
        held = threads.submit(slow, b"held")
        assert slow(b"short").status == 200
        assert not held.done()
        SlowWorker.let_go.set()
        assert held.result().status == 200


def test_more_requests_than_may_wait_are_turned_away(slow: WorkerPool):
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(slow, b"held") for _ in range(8)]
        eventually(lambda: sum(each.done() for each in asked) == 4)  # two are decided, and two wait
        SlowWorker.let_go.set()
    assert sorted(each.result().status for each in asked) == [200] * 4 + [503] * 4
    assert slow(b"short").status == 200  # and afterwards all is well


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

    monkeypatch.setattr("gpusched_operations.service.pool.AGAIN_S", 0.01)
    monkeypatch.setattr("gpusched_operations.service.pool._Worker", FailingWorker)
    assert slow.alive()
    for _ in range(2):
        assert slow(b"dies").status == 500
    assert not slow.alive()
    limits, slow.limits = slow.limits, replace(slow.limits, waiting_s=0.01)
    assert slow(b"short").status == 503
    slow.limits = limits
    memory_is_free.set()
    eventually(lambda: slow.alive() == 2)
    assert slow(b"short").status == 200


def test_one_worker_is_enough_to_begin_and_the_others_follow(monkeypatch: pytest.MonkeyPatch):
    go_on, number = threading.Event(), count()

    class LateWorker(SlowWorker):
        def wait_until_ready(self) -> None:
            assert next(number) == 0 or go_on.wait(300.0)

    monkeypatch.setattr("gpusched_operations.service.pool._Worker", LateWorker)
    pool = WorkerPool(3, PolicyCatalogue.of("edf"), KEY, RequestLimits())
    try:
        assert (pool.alive(), pool(b"0.0").status) == (1, 200)
        go_on.set()
        eventually(lambda: pool.alive() == 3)
    finally:
        pool.close()


def test_it_says_how_many_wait_and_how_many_were_replaced(slow: WorkerPool):
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(slow, b"held") for _ in range(3)]
        eventually(lambda: slow.waiting == 1)
        SlowWorker.let_go.set()
    assert [each.result().status for each in asked] == [200] * 3
    assert (slow.waiting, slow.replaced) == (0, 0)
    assert slow(b"dies").status == 500
    assert slow.replaced == 1


def test_who_waits_too_long_is_turned_away(slow: WorkerPool):
    slow.limits = replace(slow.limits, waiting_s=0.01)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(slow, b"held") for _ in range(3)]
        eventually(lambda: any(each.done() for each in asked))
        SlowWorker.let_go.set()
    assert sorted(each.result().status for each in asked) == [200, 200, 503]
