"""The constants of a run as arrays."""

from __future__ import annotations

import numpy as np

from gpusched_env.hooks import constants_of
from gpusched_env.model import Instance
from gpusched_env.model.rates import kilowatts
from gpusched_env.named_arrays import build
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Facts


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
