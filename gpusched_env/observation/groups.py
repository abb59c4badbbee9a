"""Groups of features that are not in observations unless they are asked for: mechanisms write them."""

from __future__ import annotations

from importlib import import_module

MECHANISM_OF: dict[str, str] = import_module("gpusched_env.mechanisms").GROUPS
"""The mechanism that writes each group, by the name of its part of an observation (`hooks.write_group`)."""

GROUPS = tuple(MECHANISM_OF)


def features_of(group: str) -> tuple[str, ...]:
    """Return the names of the features of a group, of which `limits` has a row for each configuration."""
    features: tuple[str, ...] = import_module(f"gpusched_env.mechanisms.{MECHANISM_OF[group]}.names").FEATURES
    return features
