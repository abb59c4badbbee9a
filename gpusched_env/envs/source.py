"""The arguments of environments: their sources of instances, and keywords that constructors pass on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from gymnasium import spaces

from gpusched_env.errors import InputError
from gpusched_env.model import Configuration, Instance, checks
from gpusched_env.workload import InstanceMaker, Scenario, load_scenario

USUAL = "default"
AnyScenario: TypeAlias = "str | Path | Scenario"


@dataclass(frozen=True, slots=True, eq=False)
class FromScenario:
    """Makes the instance of a seed from a scenario."""

    scenario: Scenario
    maker: InstanceMaker

    @property
    def name(self) -> str:
        return self.scenario.name

    def make(self, seed: int) -> Instance:
        return self.maker.make(seed)

    def identity(self) -> str:
        return self.scenario.model_dump_json()


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Returns one instance, whatever the seed."""

    instance: Instance
    scenario: None = None

    @property
    def name(self) -> str:
        return self.instance.name

    def make(self, seed: int) -> Instance:  # noqa: ARG002 - as a scenario is asked
        return self.instance

    def identity(self) -> str:
        from gpusched_env.formats import instance_json  # noqa: PLC0415 - few need it

        return hashlib.sha256(instance_json(self.instance).encode()).hexdigest()


Source: TypeAlias = FromScenario | Replay


def shape_of(instance: Instance) -> Shape:
    return tuple(v.name for v in instance.gpu_types), instance.configurations


def types_of(instance: Instance) -> tuple[str, ...]:
    """Return the names of the GPU types, which alone fix the spaces of an adaptation environment."""
    return tuple(v.name for v in instance.gpu_types)


def source_of(
    scenario: AnyScenario = USUAL,
    settings: Mapping[str, object] | None = None,
    instance: Instance | None = None,
    alike: Callable[[Instance], object] = shape_of,
) -> Source:
    """Return what makes the instances of an environment.

    Args:
        instance: An instance to replay; then the scenario is left alone and there are no settings.
        alike: What must be the same in all scenarios of a mixture, on which the spaces of the environment depend.
    """
    if instance is None:
        chosen = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        chosen = chosen if settings is None else chosen.replace(settings)
        maker = InstanceMaker(chosen)
        if len({alike(maker.make(seed)) for seed in range(len(chosen.mixture))}) > 1:
            shared = "configurations of GPU types" if alike is shape_of else "GPU types"
            raise InputError("scenario", chosen.name, f"one whose workloads all have the same {shared}")
        return FromScenario(chosen, maker)
    _check_alone(scenario, settings)
    if not isinstance(instance, Instance):
        raise InputError("instance", type(instance).__name__, "an Instance")
    return Replay(instance)


def arguments_of(scenario: Any, settings: Mapping[str, object] | None, instance: Any) -> list[dict[str, Any]]:
    """Return the arguments of each single environment: one, or as many as a sequence of scenarios or instances has."""
    if instance is None:
        each = list(scenario) if isinstance(scenario, Sequence) and not isinstance(scenario, str) else [scenario]
        if not each:
            raise InputError("scenario", scenario, "at least one scenario")
        return [{"scenario": one, "settings": settings} for one in each]
    _check_alone(scenario, settings)
    if not isinstance(instance, Sequence) or isinstance(instance, str):
        return [{"instance": instance}]
    if not instance:
        raise InputError("instance", instance, "at least one instance")
    for k, one in enumerate(instance):
        if not isinstance(one, Instance):
            raise InputError(f"instance[{k}]", type(one).__name__, "an Instance")
    return [{"instance": one} for one in instance]


def _check_alone(scenario: Any, settings: Mapping[str, object] | None) -> None:
    if not isinstance(scenario, str) or scenario != USUAL:
        raise InputError("scenario", getattr(scenario, "name", scenario), f"{USUAL!r}, not given with an instance")
    if settings is not None:
        raise InputError("settings", settings, "none together with an instance: it is as it is")


MAX_IDLE_REVIEWS = 24
"""Default number of rounds in a row after which an episode in which nothing runs is truncated: a day."""
FIRST_SAMPLED_SEED = 1000
"""Environments draw the seeds of their episodes from here on: those below are held out for comparisons."""
NEVER = 2**62
Shape: TypeAlias = tuple[tuple[str, ...], tuple[Configuration, ...]]
"""Values that fix the spaces: the names of the GPU types, and the configurations."""


def limit_of(name: str, value: Any) -> int:
    """Return a limit, ≥ 1, which parameter `name` sets; for None one that is never reached."""
    try:
        return NEVER if value is None else checks.whole(name, value)
    except InputError as error:
        raise InputError(name, value, f"{error.allowed}, or None: no limit") from None


def draw_seed(generator: np.random.Generator) -> int:
    """Draw the seed of an instance, from `FIRST_SAMPLED_SEED` to 2^31 - 1."""
    return int(generator.integers(FIRST_SAMPLED_SEED, 2**31))


def check_types(instance: Any, types: tuple[str, ...]) -> None:
    """Check that `instance` can be replayed in an adaptation environment of these GPU types."""
    if not isinstance(instance, Instance):
        raise InputError("options['instance']", type(instance).__name__, "an Instance")
    if types_of(instance) != types:
        raise InputError("options['instance']", instance.name, f"an instance with the GPU types {', '.join(types)}")


def check_shape(instance: Any, shape: Shape) -> None:
    """Check that `instance` can be replayed in an environment of this shape."""
    types, configurations = shape
    check_types(instance, types)
    if instance.configurations != configurations:
        names = ", ".join(c.name for c in configurations)
        allowed = f"an instance with the GPU types {', '.join(types)} and the configurations {names}"
        raise InputError("options['instance']", instance.name, allowed)


def action_index(action: Any, actions: int) -> int:
    """Return the action as an int: a whole number, or an array of one, which some libraries pass."""
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
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise InputError("reward", value, "a reward that returns a finite number")
    return float(value)


class Reward(Protocol):
    """Makes a reward of the costs that accrued since the previous step."""

    def __call__(self, energy_eur: float, tardiness_eur: float) -> float:
        """Return the reward for the energy cost [€] and the tardiness cost [€] of one step."""


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
        return -(energy_eur + tardiness_eur) / self.scale_eur


VECTOR = "vector"
"""The name of the reward that is a vector, in place of a function."""
OBJECTIVES = ("energy_eur", "tardiness_eur", "co2_kg")
"""What the numbers of a vector reward are minus of, in their order: totals of a result of the same names."""


def reward_space() -> spaces.Box:
    """Return the space of a vector reward, float64 (3,), as MO-Gymnasium reads it from an environment."""
    return spaces.Box(-np.inf, np.inf, (len(OBJECTIVES),), np.float64)


def check_reward(reward: Any, scale: Any) -> None:
    """Check a reward in place of the cost: a function, or `vector`; its scale must be left alone."""
    if reward is None:
        return
    named = isinstance(reward, str) and reward == VECTOR
    if isinstance(reward, type) or not (named or callable(reward)):
        allowed = f"a function of energy_eur and tardiness_eur [€] that returns a number, or {VECTOR}"
        raise InputError("reward", reward, allowed)
    if scale not in (None, 1.0):
        raise InputError("reward_scale", scale, "None or 1 with a reward of your own")


TRIED = "frameskip"
"""TorchRL gives it to every environment, and goes on without it after a TypeError."""

P = ParamSpec("P")
R = TypeVar("R")


def takes_parameters_of(
    *others: Callable[..., Any], without: tuple[str, ...] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function whose `**keywords` are parameters of `others`, but for some.

    Its signature lists them by name, and a keyword that is no parameter raises an InputError with the nearest name.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        shown = signature(function)
        own = {name: one for name, one in shown.parameters.items() if one.kind is not Parameter.VAR_KEYWORD}
        more = {name: one for other in others for name, one in signature(other).parameters.items()}
        added = [one.replace(kind=Parameter.KEYWORD_ONLY) for name, one in more.items() if name not in (*own, *without)]
        known = [*own.values(), *(one for one in added if one.name != "self")]
        names = [one.name for one in known if one.name != "self"]

        @wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            for name, value in keywords.items():
                if name not in names:
                    if name == TRIED:
                        raise TypeError(f"unexpected keyword argument '{name}'")
                    raise InputError(name, value, f"no such parameter; there are {', '.join(names)}")
            return function(*args, **keywords)

        checked.__signature__ = shown.replace(parameters=known)  # type: ignore[attr-defined]
        return checked

    return decorate
