"""Checks of what users and agents hand to the environment, and its rewards."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, Instance, checks

if TYPE_CHECKING:
    from numpy.random import Generator

MAX_IDLE_REVIEWS = 24
"""Rounds in a row after which an episode in which nothing runs is truncated, unless told otherwise: a day."""
FIRST_DRAWN_SEED = 1000
"""Environments draw the seeds of their episodes from here on: those below are held out for comparisons."""
NEVER = 2**62
Shape: TypeAlias = tuple[tuple[str, ...], tuple[Configuration, ...]]
"""What fixes the spaces: the names of the GPU types, and the configurations."""


def idle_limit(value: int | None) -> int:
    """Give the number of idle reviews after which an episode is truncated; for None one that is never reached.

    Raises:
        InputError: It is neither None nor a whole number >= 1.
    """
    return NEVER if value is None else checks.whole("max_idle_reviews", value)


def draw_seed(generator: Generator) -> int:
    """Draw the seed of an instance, from `FIRST_DRAWN_SEED` to 2^31 - 1."""
    return int(generator.integers(FIRST_DRAWN_SEED, 2**31))


def shape_of(instance: Instance) -> Shape:
    """Give what fixes the spaces of an environment that runs `instance`."""
    return tuple(v.name for v in instance.gpu_types), instance.configurations


def check_shape(instance: Any, shape: Shape) -> None:
    """Check that `instance` can be replayed in an environment of this shape.

    Raises:
        InputError: It is no instance, or has other GPU types or configurations.
    """
    if not isinstance(instance, Instance):
        raise InputError("options['instance']", type(instance).__name__, "an Instance")
    if shape_of(instance) != shape:
        types, configurations = shape
        names = ", ".join(c.name for c in configurations)
        allowed = f"an instance with the GPU types {', '.join(types)} and the configurations {names}"
        raise InputError("options['instance']", instance.name, allowed)


def action_index(action: Any, actions: int) -> int:
    """Give the action as an int: a whole number, or an array of one, as some libraries hand over.

    Raises:
        InputError: It is not a whole number from 0 to `actions` - 1.
    """
    try:
        chosen = -1 if isinstance(action, bool) else action.__index__()
    except AttributeError:
        chosen = -1
    except TypeError:
        chosen = int(action.item()) if getattr(action, "size", 0) == 1 and action.dtype.kind in "iu" else -1
    if not 0 <= chosen < actions:
        raise InputError("action", action, f"a whole number from 0 to {actions - 1}")
    return int(chosen)


def finite_reward(value: Any) -> float:
    """Give what a reward returned, as a float.

    Raises:
        InputError: It is not a finite number.
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise InputError("reward", value, "a reward that returns a finite number")
    return float(value)


class Reward(Protocol):
    """Makes a reward of the costs that accrued since the previous step."""

    def __call__(self, energy_eur: float, tardiness_eur: float) -> float:
        """Give the reward for the energy cost [€] and the tardiness cost [€] of one step."""


@dataclass(frozen=True, slots=True)
class CostReward:
    """Minus the cost: the rewards of an episode sum to minus its total cost / `scale_eur`.

    Args:
        scale_eur: What counts as 1 [€], > 0.

    Raises:
        InputError: `scale_eur` is not a finite number > 0.
    """

    scale_eur: float = 1.0

    def __post_init__(self) -> None:
        checks.positive("reward_scale", self.scale_eur)

    def __call__(self, energy_eur: float, tardiness_eur: float) -> float:
        """Give minus the cost over the scale."""
        return -(energy_eur + tardiness_eur) / self.scale_eur
