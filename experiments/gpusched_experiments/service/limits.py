"""What a service takes at most: sizes of a request, time of a decision, and requests that wait."""

from __future__ import annotations

from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.model import checks

MOST_JOBS, MOST_NODES, MOST_CONFIGURATIONS, MOST_GPU_TYPES, MOST_BINS = 4_000, 4_000, 1_000, 100, 1_000
"""Sizes that requests may have, which the page of the interface names; `Limits` may only say less."""

MOST_CELLS = 4_000_000
"""Most jobs times configurations: a request may name times once and refer to them thousands of times."""


MOST_RECEIVING = 8
"""Most bytes of bodies that are being received at one time, in largest requests."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that the operator sets.

    Args:
        request_bytes: Largest request [bytes], ≥ 1.
        jobs: Most jobs of a request, from 1 to `MOST_JOBS`.
        nodes: Most nodes of a request, from 1 to `MOST_NODES`.
        decision_s: Longest time from the request to its answer, once a worker has it [s], > 0.
        waiting: Requests that may wait for a worker, ≥ 0; more are turned away.
        receiving_s: Longest time to receive the header of a request, its body, and to send its answer, each [s], > 0.
        waiting_s: Longest time that a request waits for a worker [s], > 0.

    Raises:
        InputError: One of them is out of its range.
    """

    request_bytes: int = 16 * 2**20
    jobs: int = MOST_JOBS
    nodes: int = MOST_NODES
    decision_s: float = 10.0
    waiting: int = 64
    receiving_s: float = 30.0
    waiting_s: float = 10.0

    def __post_init__(self) -> None:
        checks.whole("--max-bytes", self.request_bytes)
        for name, value, most in (("--max-jobs", self.jobs, MOST_JOBS), ("--max-nodes", self.nodes, MOST_NODES)):
            if checks.whole(name, value) > most:
                raise InputError(name, value, f"a whole number from 1 to {most:,}")
        checks.duration("--timeout", self.decision_s)
        checks.whole("--max-waiting", self.waiting, 0)
        checks.duration("--receive-timeout", self.receiving_s)
        checks.duration("waiting_s", self.waiting_s)

    @property
    def answered_s(self) -> float:
        """Longest time from the header of a request until its answer is sent [s]."""
        return 2.0 * self.receiving_s + self.waiting_s + self.decision_s


DEFAULT = Limits()
