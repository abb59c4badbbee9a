"""Sorting by keys (Numba's own sort takes longer to compile than a whole round), and the pressure of jobs."""

from __future__ import annotations

import numpy as np

from gpusched_env.arrays import Floats, Ints
from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board


@kernel
def ranked(keys: Floats, size: int) -> Ints:
    """Return the indices of the first `size` keys by key, equal ones by index, (size,)."""
    return _merged(np.zeros(size, dtype=np.int64), keys, size)


@kernel
def ranked_in_groups(groups: Ints, keys: Floats) -> Ints:
    """Return the indices by group, in a group by key, equal ones by index, (n,)."""
    return _merged(groups, keys, groups.shape[0])


@kernel
def _merged(groups: Ints, keys: Floats, size: int) -> Ints:
    order, spare = np.arange(size), np.empty(size, dtype=np.int64)
    width = 1
    while width < size:
        for start in range(0, size, 2 * width):
            middle, end = min(start + width, size), min(start + 2 * width, size)
            left, right = start, middle
            for k in range(start, end):
                if right >= end or (left < middle and _first(groups, keys, order[left], order[right])):
                    spare[k] = order[left]
                    left += 1
                else:
                    spare[k] = order[right]
                    right += 1
        order, spare = spare, order
        width *= 2
    return order


@kernel
def _first(groups: Ints, keys: Floats, one: int, other: int) -> bool:
    return groups[one] < groups[other] or (groups[one] == groups[other] and keys[one] <= keys[other])


@lean_kernel
def pressure(board: Board, job: int, left: float) -> float:
    """Return t + least execution time of `left` epochs - due date [s]; where that is positive, times ω [€].

    So jobs that must be late rank by what their tardiness costs so far, before all others, which rank by slack.
    """
    jobs = board.jobs
    over_s = board.clock[at.NOW] + left * jobs[job, at.MIN_TAU] - jobs[job, at.DUE]
    return over_s * jobs[job, at.WEIGHT] if over_s > 0.0 else over_s


@kernel
def pressures(board: Board, chosen: Ints, left: Floats) -> Floats:
    """Return the pressures of the active jobs `chosen`, (A,), that are taken to have `left` epochs left, (A,)."""
    found = np.empty(chosen.shape[0])
    for i in range(chosen.shape[0]):
        found[i] = pressure(board, chosen[i], left[i])
    return found
