"""The builds of the compiled code: a run uses the smallest one that has the mechanisms of its instance.

A build is `Board` with the arrays and functions of some mechanisms. Kernels are compiled for each build that is used;
results are the same to the last bit. The constants of a run depend on its build, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.hooks import constants_of
from gpusched_env.model.rates import kilowatts
from gpusched_env.named_arrays import added_fields, build
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Facts

if TYPE_CHECKING:
    from gpusched_env.model import Instance

FORCED = "GPUSCHED_BUILD"
"""Environment variable: with `everything` every run uses the build with all mechanisms of this package."""


def build_of(instance: Instance, facts: Facts, least: type[Board] = Board) -> type[Board]:
    """Return the smallest build for the runs of an instance.

    Args:
        instance: The instance.
        facts: Its constants.
        least: A build that it covers, too.

    Raises:
        InputError: `GPUSCHED_BUILD` has another value than `everything`.
    """
    used = {name for name, uses in _known().USED.items() if uses(instance, facts)}
    used |= {own.mechanism for own in instance.mechanisms if "." in own.mechanism}
    return with_mechanisms(used | set(least.mechanisms))


def with_mechanisms(names: Iterable[str]) -> type[Board]:
    """Return the smallest build that has some mechanisms."""
    value = os.environ.get(FORCED, "")
    if value not in ("", "everything"):
        raise InputError(FORCED, value, "everything, or nothing: then the smallest build that a run needs")
    return build(Board, _covering(frozenset(names), forced=value == "everything"))


def common_build(builds: Iterable[type[Board]]) -> type[Board]:
    """Return the smallest build that has what each of these has."""
    return with_mechanisms(name for one in builds for name in one.mechanisms)


@lru_cache(maxsize=1)
def empty_arrays() -> Mapping[str, Any]:
    """Return an empty array for each one that the mechanisms of this package add to a board, by name."""
    board = build(Board, _known().BUILDS["everything"])
    kinds = {name: board._fields[name] for name in added_fields(board)}
    return {name: np.empty((0,) * kind.ndim, dtype=str(kind.dtype)) for name, kind in kinds.items()}


def use_everything() -> None:
    """Let all runs of this process, and of those that it starts, use the build with all mechanisms."""
    os.environ[FORCED] = "everything"


@lru_cache(maxsize=256)
def _covering(names: frozenset[str], *, forced: bool) -> tuple[str, ...]:
    """Return the mechanisms of the first of the builds that has those of this package, then all others, by name."""
    builds: Mapping[str, tuple[str, ...]] = _known().BUILDS
    everything = builds["everything"]
    own, others = names & set(everything), sorted(names - set(everything))
    covering = everything if forced else next(build for build in builds.values() if own <= set(build))
    return (*covering, *others)


def _known() -> Any:
    """Return the list of mechanisms; nothing below them imports it."""
    return import_module("gpusched_env.mechanisms")


def facts_of(instance: Instance) -> Facts:
    """Make the constants of the runs of an instance that all builds have."""
    configurations = instance.configurations
    configs = np.zeros((len(configurations), at.CONFIG_COLUMNS), dtype=np.int64)
    configs[:, at.CONFIG_TYPE] = instance.type_of_configuration
    configs[:, at.CONFIG_CONSOLIDATED] = instance.consolidated
    configs[:, at.CONFIG_UNLIMITED] = instance.unlimited
    for row, configuration in zip(configs, configurations, strict=True):
        units = share_units(configuration.share)
        row[at.CONFIG_GPUS] = configuration.gpus_per_node
        row[at.CONFIG_NODES] = configuration.nodes
        row[at.CONFIG_UNITS] = units
        row[at.CONFIG_PRIORITY] = configuration.priority
        row[at.CONFIG_SPREAD] = configuration.spread
        row[at.CONFIG_SIZE] = (units or at.UNITS) * configuration.gpus_per_node * configuration.nodes
    return Facts(
        configs=configs,
        shares=np.array([c.share for c in configurations]),
        kilowatts=kilowatts(instance),
        planned=np.ones((len(instance.jobs.applications), len(configurations))),
    )


def with_constants_of(facts: Facts, mechanisms: tuple[str, ...], instance: Instance) -> Facts:
    """Return the constants of the runs of an instance in a build: with those of its mechanisms."""
    if not mechanisms:
        return facts
    values = facts.__getstate__()
    for mechanism in mechanisms:
        values |= constants_of(mechanism, instance)
    return build(Facts, mechanisms)(**values)


def share_units(share: float) -> int:
    """Return a share of a GPU in units, rounded down: shares that sum to 1 always fit together."""
    return max(1, int(share * at.UNITS)) if share < 1.0 else 0
