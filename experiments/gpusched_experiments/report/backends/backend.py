"""What makes many independent calls, whatever machines it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from gpusched_env.simulator import Policy

T = TypeVar("T")


class WorkerError(RuntimeError):
    """A worker process ended before its run did."""


class Backend(Protocol):
    """Makes calls elsewhere; the results come back to this process, which alone keeps them."""

    @property
    def name(self) -> str:
        """Name it as `--backend` does."""

    def cores(self) -> int:
        """Give how many calls it can make at once, ≥ 1."""

    def call_all(
        self, calls: Sequence[Callable[[], T]], policies: Sequence[Policy], workers: int
    ) -> Iterator[tuple[int, T]]:
        """Make every call; give each one's place in `calls` and result as soon as it has ended.

        What a call raises is raised here as it is; then, and when the iterator is closed, the other calls are stopped.

        Args:
            calls: The calls, begun in this order; they must be picklable.
            policies: What every process compiles before its first call.
            workers: Most calls at once, ≥ 1.

        Raises:
            WorkerError: A process ended early.
        """
