"""When episodes are truncated: nothing has run for too long, or there were too many steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.envs.env_input import NEVER, idle_limit
from gpusched_env.model import checks

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Limits:
    """The limits of the episodes of N environments, and their steps so far.

    Args:
        size: Number of environments N.
        max_idle_reviews: Idle reviews in a row after which an episode is truncated, ≥ 1; None: never.
        max_episode_steps: Steps after which it is, as by gymnasium's `TimeLimit`, ≥ 1; None: never.

    Attributes:
        steps: Steps of the present episodes, (N,); counted only where they are limited.
        limits_steps: Whether they are.

    Raises:
        InputError: A limit is out of its range.
    """

    def __init__(self, size: int, max_idle_reviews: int | None, max_episode_steps: int | None) -> None:
        self._idle = idle_limit(max_idle_reviews)
        self.limits_steps = max_episode_steps is not None
        self._most = NEVER if max_episode_steps is None else checks.whole("max_episode_steps", max_episode_steps)
        self.steps = np.zeros(size, dtype=np.int64)

    @property
    def told(self) -> bytes:
        """Tell these limits from others."""
        return f"{self._idle} {self._most}".encode()

    def stalled(self, idle: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say in which environments nothing has run for too long, by the idle events in a row in each, (N,)."""
        stalled: NDArray[np.bool_] = idle >= self._idle
        return stalled

    def stepped(self, stalled: NDArray[np.bool_], again: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Count a step of each environment, but of those of `again`, which have just begun; give which are cut off."""
        if not self.limits_steps:
            return stalled.copy()
        self.steps += 1
        if again is not None:
            self.steps[again] = 0
        return self.cut_off(stalled, self.steps)

    def cut_off(self, stalled: NDArray[np.bool_], steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which environments are truncated, given which have stalled and how many steps they have had."""
        return stalled | (steps >= self._most)
