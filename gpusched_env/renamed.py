"""Names of version 0.1 that still work, with a `DeprecationWarning`, until version 0.3.

The table of `CHANGELOG.md` is made from these, and `docs/glossary.md` says what the names of today mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type[Any])

POLICIES = {"atc-company": "atc-co-located", "look-ahead": "rollout", "sts-x:worst-company": "sts-x:worst-co-runners"}
SCENARIOS = {"hosts-and-guests": "guaranteed-and-opportunistic"}
EXPERIMENTS = {"lessons": "value-of-information"}
NETWORKS = {"knobs": "controls"}
REMOVED_NETWORKS = ("steering", "adaptation")
"""Networks of old agents, which this version cannot read."""
FIELDS = {
    "deadline_wake_ups": "due_date_timers",
    "duty": "utilisation",
    "least_pace": "least_speed",
    "drawn": "randomised",
    "teacher": "expert",
    "led": "beta",
    "sharpness": "inverse_temperature",
    "knobs": "controls",
    "company": "co_located",
    "challenge": "challenger_samples",
    "urgent_eur_per_s": "critical_eur_per_s",
}
"""Fields of files and keyword arguments."""
METHODS = {
    "wake_up": "set_timer",
    "forget_place": "clear_preferred_node",
    "prefer_place": "set_preferred_node",
    "pace_now": "speed_now",
    "room": "capacity",
}
"""Methods and arrays of `View`."""
ENVIRONMENT_METHODS = ("wake_up",)
"""Those of them that environments have."""
OBJECTS = {
    "Duty": "UtilisationModel",
    "FIRST_DRAWN_SEED": "FIRST_SAMPLED_SEED",
    "COMPANY_FEATURES": "CO_RUNNER_FEATURES",
    "LookAhead": "RolloutPolicy",
    "atc_company": "atc_co_located",
    "teacher_names": "expert_names",
    "GpuSteeringEnv": "GpuAdaptationEnv",
    "GpuSteeringVectorEnv": "GpuAdaptationVectorEnv",
    "SteeringConfig": "AdaptationConfig",
    "SteeringTraining": "AdaptationTraining",
    "KnobPolicy": "ControlPolicy",
    "KnobTraining": "ControlTraining",
    "Comparison": "ComparisonSettings",
    "Fared": "RunMetrics",
    "Prices": "CapacityPrices",
    "GroupFared": "GroupMetrics",
}
"""Names that packages export."""
OLD_ADAPTATION = "Steering"
"""Part of old ids of environments: `gpusched_env/SlackSteering-v0` is `gpusched_env/SlackAdaptation-v0`."""


def current(name: str, names: Mapping[str, str], what: str, level: int = 3) -> str:
    """Return the name of today: `name` itself, unless it is one of the old `names`, which warns.

    Args:
        name: A name that a user gave.
        names: Today's names by old ones.
        what: What it names, for the warning.
        level: Frames from here to the code to warn.
    """
    if name not in names:
        return name
    warnings.warn(
        f"{what} {name!r} is now {names[name]!r}; the old name works until version 0.3",
        DeprecationWarning,
        stacklevel=level,
    )
    return names[name]


def current_fields(values: Mapping[str, Any], what: str, names: Mapping[str, str] = FIELDS) -> dict[str, Any]:
    """Return `values` with today's names of fields, in the same order; old ones warn."""
    return {current(name, names, what, 4): value for name, value in values.items()}


def takes_old_names(cls: Class) -> Class:
    """Let a class take old names of its keyword arguments too; they warn. A decorator."""
    new: Any = cls.__init__

    @wraps(new)
    def init(self: object, *values: Any, **named: Any) -> None:
        new(self, *values, **(current_fields(named, f"{cls.__name__}:") if FIELDS.keys() & named else named))

    cls.__init__ = init
    return cls


def show_warnings() -> None:
    """Print warnings of old names to stderr, a line each: Python hides them from people who only run commands."""
    warnings.filterwarnings("default", message=".*; the old name works until", category=DeprecationWarning)
    usual = warnings.formatwarning

    def line(message: Any, category: type[Warning], *place: Any, **more: Any) -> str:
        return f"warning: {message}\n" if category is DeprecationWarning else usual(message, category, *place, **more)

    warnings.formatwarning = line


def old_module(old: str, new: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module under its old name: it returns what the module `new` has, and warns."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(current(old, {old: new}, "module")), OBJECTS.get(name, name))

    return get


def old_method(name: str) -> tuple[str, Callable[..., Any]]:
    """Return a method's old name, and a method that calls it by its new one, and warns."""

    def method(self: object, *values: Any, **named: Any) -> Any:
        return getattr(self, current(name, METHODS, f"{type(self).__name__}:"))(*values, **named)

    return name, method
