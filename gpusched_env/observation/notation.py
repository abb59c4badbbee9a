"""What the names of features are made of, and how a group of features gets its names.

Every feature lies in [-1, 1]. `squash(x)` is x / (1 + |x|). T is the job's least execution time left in the worst case,
D its time to the due date. Its *cheapest* configuration is the one whose epochs cost least in full nodes; L is the
worst-case energy cost left there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.kernel import lean_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

ONE_PERCENT = 0.01  # of a worst-case execution time: about what deadline wake-ups leave


class Names:
    """The names of a group of features, in the order in which they are declared: each gets the next index."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __call__(self, *names: str) -> int:
        """Declare a feature, or several that lie side by side; give the index of the first."""
        self._names.extend(names)
        return len(self._names) - len(names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)


@lean_kernel
def squash(x: float) -> float:
    """Give x / (1 + |x|)."""
    return x / (1.0 + abs(x))
