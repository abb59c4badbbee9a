"""Mechanisms: what not every run needs, each in a folder of its own, called by the core through hooks.

The core imports none of them. A run has those that its instance uses, and those with which they share a build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpusched_env.model.rates import rent_eur_per_h
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpusched_env.model import Instance
    from gpusched_env.simulator.run import Facts


def _spread(facts: Facts) -> Any:
    return facts.configs[:, at.CONFIG_SPREAD] > 0


def _shared(facts: Facts) -> Any:
    return facts.configs[:, at.CONFIG_UNITS] > 0


def _whole_nodes(facts: Facts) -> Any:
    return (facts.configs[:, at.CONFIG_NODES] > 1) & ~_shared(facts) & ~_spread(facts)


def _idle_power_w(instance: Instance) -> Any:
    return getattr(instance.find("shares"), "idle_power_w", None)


USED: dict[str, Callable[[Instance, Facts], bool]] = {
    "cap": lambda instance, _: instance.find("cap") is not None,
    "quotas": lambda instance, _: getattr(instance.find("tenants"), "tenancy", "none") == "quota",
    "cells": lambda instance, _: instance.first_machine > 0,
    "shares": lambda instance, facts: bool(_shared(facts).any()) or instance.find("shares") is not None,
    "spread": lambda _, facts: bool(_spread(facts).any()),
    "nodes": lambda _, facts: bool(_whole_nodes(facts).any()),
    "network": lambda instance, _: instance.find("network") is not None,
    "saved_power": lambda instance, _: _idle_power_w(instance) is not None or instance.find("saved_power") is not None,
    "profiling": lambda instance, _: getattr(instance.find("shares"), "profile_s", 0.0) > 0.0,
    "switching": lambda instance, _: instance.jobs.resume_s is not None,
    "prices": lambda instance, _: instance.find("prices") is not None or rent_eur_per_h(instance) > 0.0,
}
"""Whether an instance uses each mechanism, in the order in which hooks call them."""

GROUPS = {"prices": "prices", "cap": "cap", "limits": "saved_power"}
"""Groups of features in observations, each with the mechanism that writes it, and has their names in `names`."""

BUILDS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "nodes": ("spread", "nodes", "network", "saved_power"),
    "energy": ("cap", "saved_power", "prices"),
    "shared": ("shares", "saved_power", "profiling", "switching"),
    "everything": tuple(USED),
}
"""The builds of the compiled code, from the smallest to the one that has everything: the mechanisms of each."""
