"""Sorting by keys. Numba's own sort takes longer to compile than all of a round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints


@kernel
def ranked(keys: Floats, size: int) -> Ints:
    """Give the indices of the first `size` keys by key, equal ones by index, (size,)."""
    order, spare = np.arange(size), np.empty(size, dtype=np.int64)
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            middle, end = min(start + width, size), min(start + 2 * width, size)
            left, right = start, middle
            for k in range(start, end):
                if right >= end or (left < middle and keys[order[left]] <= keys[order[right]]):
                    spare[k] = order[left]
                    left += 1
                else:
                    spare[k] = order[right]
                    right += 1
        order, spare = spare, order
        width *= 2
    return order
