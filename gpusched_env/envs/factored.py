"""Actions of two numbers: the GPUs that a job gets, and their power limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration


class FactoredActions:
    """The actions of an environment with power limits, as two numbers.

    The first is 0 = wait, or p = the GPUs of `placements[p - 1]`. The second, l, is the power limit `limits[l]`, the
    largest first. The job gets the largest limit up to this one with which these GPUs can be placed now; where there is
    none, the least above it. So the second number is always free, and the first one is when any limit can be placed.

    Args:
        configurations: The configurations, with their limits, C of them.

    Attributes:
        placements: The configurations without their limits, P of them, in their order.
        limits: The different limits, the largest first, L of them.
    """

    def __init__(self, configurations: Sequence[Configuration]) -> None:
        self.placements = tuple(dict.fromkeys(each.unlimited for each in configurations))
        self.limits = tuple(sorted({each.power_limit for each in configurations}, reverse=True))
        row = {each: p + 1 for p, each in enumerate(self.placements)}
        size = 1 + len(self.placements), len(self.limits)
        self._of = np.zeros((*size, size[1]), dtype=np.int64)  # actions of a single number, the wanted one first
        for p in range(1, size[0]):
            own = [(c.power_limit, 1 + k) for k, c in enumerate(configurations) if row[c.unlimited] == p]
            for number, limit in enumerate(self.limits):
                below = sorted((each for each in own if each[0] <= limit), reverse=True)
                above = sorted(each for each in own if each[0] > limit)
                actions = [action for _, action in below + above]
                self._of[p, number] = actions + [actions[-1]] * (size[1] - len(actions))
        self._firsts = np.zeros((size[0], 1 + len(configurations)), dtype=np.bool_)
        for p in range(size[0]):
            self._firsts[p, self._of[p]] = True

    @property
    def space(self) -> spaces.MultiDiscrete:
        return spaces.MultiDiscrete(np.array(self._of.shape[:2], dtype=np.int64))

    @property
    def numbers(self) -> int:
        """Return the length of a mask, 1 + P + L."""
        return sum(self._of.shape[:2])

    def masks(self, masks: NDArray[Any]) -> NDArray[Any]:
        """Return masks of both numbers end to end, (..., 1 + P + L), from those of one number, (..., 1 + C)."""
        firsts = (masks[..., None, :].astype(np.bool_) & self._firsts).any(axis=-1)
        every = np.ones((*masks.shape[:-1], len(self.limits)), dtype=np.bool_)
        return np.concatenate([firsts, every], axis=-1).astype(masks.dtype)

    def indices(self, actions: Any, masks: NDArray[Any], asked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the actions of one number, int64 (N,); one that cannot be placed stays so, and means wait.

        Args:
            actions: N pairs of whole numbers.
            masks: The masks of actions of one number, (N, 1 + C).
            asked: Whose action counts, (N,); the others' may be any whole numbers.
        """
        try:
            given = np.asarray(actions)
        except ValueError:  # lists of different lengths
            given = np.empty(0, dtype=np.object_)
        sizes = np.array(self._of.shape[:2])
        if given.shape != (len(asked), 2) or given.dtype.kind not in "iu":
            raise InputError("actions", actions, f"{len(asked)} pairs of whole numbers, one for each environment")
        outside: NDArray[np.bool_] = np.any((given < 0) | (given >= sizes), axis=1)
        for i in np.flatnonzero(asked & outside).tolist():
            allowed = f"whole numbers from 0 to {sizes[0] - 1} and from 0 to {sizes[1] - 1}"
            raise InputError(f"actions[{i}]", given[i].tolist(), allowed)
        kept = np.where(outside[:, None], 0, given)
        wanted = self._of[kept[:, 0], kept[:, 1]]
        first = np.take_along_axis(masks.astype(np.bool_), wanted, axis=1).argmax(axis=1)
        chosen: NDArray[np.int64] = wanted[np.arange(len(wanted)), first]
        return chosen
