"""Named arrays and kernels over them, in a file that other processes can import."""

from typing import Annotated

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.named_arrays import NamedArrays, element_of, new_handles


class Inner(NamedArrays):
    numbers: Annotated[Ints, 1]


class Outer(NamedArrays):
    inner: Inner
    table: Annotated[Floats, 2]
    cube: Annotated[Floats, 3]


outer_at = element_of(Outer)


def new_outer(first: float = 0.0) -> Outer:
    """Make a value of 3 numbers, a table of 2 rows and 3 columns, and a cube of 2, 3 and 4."""
    return Outer(
        inner=Inner(numbers=np.arange(3)),
        table=first + np.arange(6.0).reshape(2, 3),
        cube=first + np.arange(24.0).reshape(2, 3, 4),
    )


@kernel
def weigh(outer: Outer) -> float:
    total, table, cube = 0.0, outer.table, outer.cube
    for i in range(outer.inner.numbers.shape[0]):
        total += i * outer.inner.numbers[i]
    for i in range(table.shape[0]):
        for j in range(table.shape[1]):
            total += (10 * i + j) * table[i, j]
            for k in range(cube.shape[2]):
                total += (100 * i + 10 * j + k) * cube[i, j, k]
    return total


@lean_kernel
def change(outer: Outer, by: int) -> None:
    """Change what is in the arrays, also by a row and by the value within."""
    inner, row = outer.inner, outer.table[1]
    inner.numbers[0] += by
    row[2] += by
    outer.cube[1, 2, 3] += by


@kernel
def weigh_nth(handles: Ints, n: int) -> float:
    return weigh(outer_at(handles, n))


def by_hand(outer: Outer) -> float:
    """Compute what `weigh` does with arrays."""
    i, j, k = np.indices(outer.cube.shape)
    table = (10 * i[:, :, 0] + j[:, :, 0]) * outer.table
    numbers = np.arange(len(outer.inner.numbers)) * outer.inner.numbers
    return float(numbers.sum() + table.sum() + ((100 * i + 10 * j + k) * outer.cube).sum())


def main() -> None:
    """Print what kernels make of two values, and how many kernels came from the disk."""
    values, handles = [new_outer(), new_outer(5.0)], new_handles(2)
    change(values[1], 7)
    for n, value in enumerate(values):
        handles[n] = value.handle
    hits = getattr(weigh_nth, "stats", None)
    print(weigh_nth(handles, 0), weigh_nth(handles, 1), sum(hits.cache_hits.values()) if hits else 0)  # noqa: T201


if __name__ == "__main__":
    main()
