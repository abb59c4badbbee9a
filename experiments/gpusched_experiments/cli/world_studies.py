"""What `gpusched worlds` compares a policy with: other policies, or itself without a part of what jobs are offered."""

from collections.abc import Callable
from dataclasses import dataclass

from gpusched_env.errors import InputError
from gpusched_env.workload import InstanceMaker, Scenario


@dataclass(frozen=True, slots=True)
class Study:
    """What the reference policy is compared with.

    Attributes:
        file: Name of the table's files, without their ends.
        other: What the other costs are of.
        margin: What it must save to be listed as cheaper, as a part of the reference's cost.
        variants: Returns the scenarios on which the reference also runs, by what they are without; None if other
            policies run on the same scenario.
    """

    file: str
    other: str
    margin: float
    variants: Callable[[Scenario], dict[str, Scenario]] | None = None


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


POLICIES = Study("worlds", "the best other policy", 0.02)
LEFT_OUT = {
    "types": Study("without-types", "the same policy without a GPU type", 0.01, without_types),
    "shares": Study("without-shares", "the same policy without shares", 0.02, without_shares),
}
"""Studies in which a part of the cluster is left out, by the name of the part."""
