"""The builds of the compiled code: a run uses the smallest one that has the mechanisms of its instance.

Every build is a kind of `Board` with the same arrays and other flags. Kernels are compiled for each build that is used,
and leave out what its flags exclude; results are the same to the last bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board, Facts

if TYPE_CHECKING:
    from gpusched_env.model import Instance

FORCED = "GPUSCHED_BUILD"
"""Environment variable: with `everything` every run uses `Board`, the build with all mechanisms."""


class PlainBoard(Board):
    """Whole GPUs of one node at one price of energy, and nothing else."""

    has_cells = has_quotas = has_prices = has_site = has_savings = False
    has_shares = has_several_shares = has_interference = has_memory = has_profiling = False
    has_nodes = has_spread = has_network = has_slowdowns = has_distances = has_pool = False


class NodesBoard(PlainBoard):
    """Also several whole nodes, spread GPUs, a model of the network, and power by application or limit."""

    has_nodes = has_spread = has_network = has_slowdowns = has_savings = True


class EnergyBoard(PlainBoard):
    """Also prices that change or count GPU hours, a cap on the power of the site, and power limits."""

    has_prices = has_site = has_savings = True


class SharedBoard(PlainBoard):
    """Also shares of GPUs, with every model of how jobs slow one another down there, and costs of switching."""

    has_shares = has_several_shares = has_interference = has_memory = has_profiling = True
    has_slowdowns = has_savings = has_distances = has_pool = True


BUILDS: tuple[type[Board], ...] = (PlainBoard, NodesBoard, EnergyBoard, SharedBoard, Board)
"""From the smallest to the one that has everything."""


def build_of(instance: Instance, facts: Facts, tenants: int, least: type[Board] = PlainBoard) -> type[Board]:
    """Return the smallest build for the runs of an instance.

    Args:
        instance: The instance.
        facts: Its constants.
        tenants: Tenants with quotas.
        least: A build that it covers, too.

    Raises:
        InputError: `GPUSCHED_BUILD` has another value than `everything`.
    """
    if _is_forced():
        return Board
    return _covering(_flags(least) | _mechanisms(instance, facts, tenants))


def common_build(builds: Iterable[type[Board]]) -> type[Board]:
    """Return the smallest build that has what each of these has."""
    return _covering(set().union(*map(_flags, builds)))


def _covering(flags: set[str]) -> type[Board]:
    return next(build for build in BUILDS if flags <= _flags(build))


def use_everything() -> None:
    """Let all runs of this process, and of those that it starts, use the build with all mechanisms."""
    os.environ[FORCED] = "everything"


def _flags(build: type[Board]) -> set[str]:
    return {name for name, there in build._numba_type_.flags.items() if there}


def _is_forced() -> bool:
    value = os.environ.get(FORCED, "")
    if value not in ("", "everything"):
        raise InputError(FORCED, value, "everything, or nothing: then the smallest build that a run needs")
    return value == "everything"


def _mechanisms(instance: Instance, facts: Facts, tenants: int) -> set[str]:
    host = instance.host_memory
    there = {
        "has_cells": instance.hosts > 0,
        "has_quotas": tenants > 0,
        "has_prices": instance.prices is not None or instance.gpu_hour_eur > 0.0,
        "has_distances": instance.jobs.resume_s is not None,
        "has_pool": host is not None and host.pool_gib < float("inf"),
    }
    return {name for name in there if there[name]} | _of_facts(facts)


@lru_cache(maxsize=64)  # many runs have the same facts
def _of_facts(facts: Facts) -> frozenset[str]:
    configs, network = facts.configs, len(facts.network) > 0
    shared, spread = configs[:, at.CONFIG_UNITS] > 0, configs[:, at.CONFIG_SPREAD] > 0
    several, interference = configs[:, at.CONFIG_NODES] > 1, len(facts.slowdown) + len(facts.utilisation) > 0
    there = {
        "has_site": len(facts.site) > 0,
        "has_savings": len(facts.idle_saving) > 0 or len(facts.saved_kw) > 0,
        "has_shares": shared.any(),
        "has_several_shares": (shared & (several | (configs[:, at.CONFIG_GPUS] > 1))).any(),
        "has_interference": interference,
        "has_memory": len(facts.memory) > 0 or facts.sharing[at.ADAPT_S] > 0.0,
        "has_profiling": facts.sharing[at.PROFILE_S] > 0.0,
        "has_nodes": (several & ~shared & ~spread).any(),
        "has_spread": spread.any(),
        "has_network": network,
        "has_slowdowns": interference or network or spread.any(),
    }
    return frozenset(name for name in there if there[name])
