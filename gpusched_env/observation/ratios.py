"""Names of features, and what several groups of them are made of."""

from __future__ import annotations

from collections.abc import Iterator

from gpusched_env.kernel import lean_kernel

ONE_PERCENT = 0.01  # of a worst-case execution time: about the margin of due-date timers


class Names:
    """The names of a group of features, in the order in which they are declared: each gets the next index."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def __call__(self, *names: str) -> int:
        """Declare a feature, or several in a row; return the index of the first."""
        self._names.extend(names)
        return len(self._names) - len(names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)


@lean_kernel
def squash(x: float) -> float:
    return x / (1.0 + abs(x))
