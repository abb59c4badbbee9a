"""Checks of the input of a vector environment, and when its episodes are truncated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.source import Shape, check_shape, limit_of
from gpusched_env.errors import InputError
from gpusched_env.model import Instance, checks

ALLOWED_OPTIONS = ("instance", "reset_mask")


def action_indices(actions: Any, choices: int, asked: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the actions as a fresh int64 array, (N,); those of environments that are not `asked`, (N,), may be any."""
    try:
        given = np.asarray(actions)
    except ValueError:  # lists of different lengths
        given = np.empty(0, dtype=np.object_)
    if given.shape != asked.shape or given.dtype.kind not in "iu":
        raise InputError("actions", actions, f"{len(asked)} whole numbers, one for each environment")
    chosen = given.astype(np.int64)
    if np.count_nonzero(chosen.view(np.uint64) >= choices):  # what is below 0 is very large there
        for i in np.flatnonzero(asked & ((given < 0) | (given >= choices))).tolist():
            raise InputError(f"actions[{i}]", int(given[i]), f"a whole number from 0 to {choices - 1}")
    return chosen


def reset_seeds(seed: Any, environments: int) -> list[int | None]:
    """Return every environment's seed: those of a sequence, or `seed` + i for environment i; None for none."""
    if seed is None:
        return [None] * environments
    if isinstance(seed, list | tuple | np.ndarray):
        if len(seed) != environments:
            raise InputError("seed", seed, f"{environments} seeds, one for each environment")
        return [None if s is None else checks.seed(s, f"seed[{i}]") for i, s in enumerate(seed)]
    first = checks.seed(seed)
    return [checks.seed(first + i) for i in range(environments)]


def check_options(options: dict[str, Any]) -> None:
    unknown = [key for key in options if key not in ALLOWED_OPTIONS]
    if unknown:
        raise InputError("options", unknown[0], f"one of {', '.join(ALLOWED_OPTIONS)}")


def reset_mask(options: dict[str, Any], environments: int) -> NDArray[np.bool_]:
    """Return which environments are reset, (N,): all, or those of `options["reset_mask"]`."""
    mask = options.get("reset_mask")
    if mask is None:
        return np.ones(environments, dtype=np.bool_)
    good = isinstance(mask, np.ndarray) and mask.shape == (environments,) and mask.dtype == np.bool_
    if not good or not mask.any():
        allowed = f"an array of {environments} booleans, at least one of them True"
        raise InputError("options['reset_mask']", mask, allowed)
    return mask.copy()


def reset_instances(options: dict[str, Any], environments: int, shape: Shape) -> list[Instance | None]:
    """Return the instance that every environment replays: one for all, or those of a sequence; None for none."""
    given = options.get("instance")
    if not isinstance(given, list | tuple):
        if given is not None:
            check_shape(given, shape)
        return [given] * environments
    if len(given) != environments:
        raise InputError("options['instance']", f"{len(given)} instances", f"{environments}, one for each environment")
    for i, instance in enumerate(given):
        if instance is not None:
            try:
                check_shape(instance, shape)
            except InputError as error:
                raise InputError(f"options['instance'][{i}]", error.value, error.allowed) from None
    return list(given)


class EpisodeLimits:
    """The limits of the episodes of N environments, and their steps so far.

    Args:
        size: Number of environments N.
        max_idle_reviews: Idle reviews in a row after which an episode is truncated, ≥ 1; None: never.
        max_episode_steps: Steps after which it is, as by gymnasium's `TimeLimit`, ≥ 1; None: never.
        own: The `step_limit` of every scenario: environment i has that of scenario i mod their number.

    Attributes:
        idle: Idle reviews that truncate, a number that is never reached for None.
        most: Steps that truncate in each environment, the smaller of both limits, (N,).
        steps: Steps of the present episodes, (N,).

    Raises:
        InputError: A limit is out of its range.
    """

    def __init__(
        self, size: int, max_idle_reviews: int | None, max_episode_steps: int | None, own: Sequence[int | None]
    ) -> None:
        self.idle = limit_of("max_idle_reviews", max_idle_reviews)
        most = limit_of("max_episode_steps", max_episode_steps)
        self.most = np.resize([min(most, limit_of("step_limit", one)) for one in own], size)
        self.steps = np.zeros(size, dtype=np.int64)

    def stalled(self, idle: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return in which environments nothing has run for too long, by the idle events in a row in each, (N,)."""
        stalled: NDArray[np.bool_] = idle >= self.idle
        return stalled

    def stepped(self, stalled: NDArray[np.bool_], again: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Count a step of each environment except those of `again`, which restart; return which are truncated."""
        self.steps += 1
        if again is not None:
            self.steps[again] = 0
        return stalled | (self.steps >= self.most)
