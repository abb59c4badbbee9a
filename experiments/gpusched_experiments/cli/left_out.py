"""Variants of a scenario, with the same jobs, in which a part of what jobs are offered is left out."""

from gpusched_env.errors import InputError
from gpusched_env.workload import InstanceMaker, Scenario


def without_types(scenario: Scenario) -> dict[str, Scenario]:
    """Return the scenario without each GPU type of its pools, by "without TYPE"; due dates stay.

    A type is passed over if an application fits nowhere, or a tenant has no cell, without it.
    """
    types = scenario.cluster.gpu_types
    found = {}
    for gpu_type in types if len(types) > 1 else ():
        tenants = [
            {**tenant.model_dump(), "cells": {name: cells for name, cells in tenant.cells.items() if name != gpu_type}}
            for tenant in scenario.tenants
        ]
        values: dict[str, object] = {
            "name": f"{scenario.name}-without-{gpu_type}",
            "cluster.pools": [pool.model_dump() for pool in scenario.cluster.pools if pool.gpu_type != gpu_type],
            "due_dates.gpu_types": [gpu_type],
            "tenants": tenants,
        }
        try:
            variant = scenario.replace(values)
            InstanceMaker(variant)
        except InputError:
            continue
        found[f"without {gpu_type}"] = variant
    return found


def without_shares(scenario: Scenario) -> dict[str, Scenario]:
    """Return the scenario without shares of GPUs, by "without shares"; nothing if it has none."""
    if not scenario.sharing.fractions:
        return {}
    return {"without shares": scenario.replace({"name": f"{scenario.name}-without-shares", "sharing": None})}
