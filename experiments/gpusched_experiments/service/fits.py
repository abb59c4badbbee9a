"""What fits now: configurations that the nodes of a request can hold, and jobs that may use one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model import Configuration
    from gpusched_experiments.service.cluster import ClusterNames
    from gpusched_experiments.service.fields import DecideRequest

BOOLS = np.bool_


def holds(names: ClusterNames, configuration: Configuration) -> bool:
    """Say whether the nodes that are there could hold a configuration if they were empty."""
    gpus = [node.gpus for node in names.nodes if node.gpu_type == configuration.gpu_type]
    return sum(own >= configuration.gpus_per_node for own in gpus) >= configuration.nodes


def held(names: ClusterNames) -> NDArray[BOOLS]:
    """Say it of every configuration, (C,)."""
    gpus = {v.name: np.array([n.gpus for n in names.nodes if n.gpu_type == v.name]) for v in names.gpu_types}
    none = np.zeros(0)
    able = [np.count_nonzero(gpus.get(c.gpu_type, none) >= c.gpus_per_node) >= c.nodes for c in names.configurations]
    return np.array(able, dtype=BOOLS)


def memory_gib(names: ClusterNames) -> NDArray[np.float64]:
    """Give the memory that a job has on each GPU of every configuration [GiB], (C,)."""
    of_type = {v.name: v.memory_gib for v in names.gpu_types}
    return np.array([of_type.get(c.gpu_type, 0.0) * c.share for c in names.configurations])


def within_quota(request: DecideRequest, names: ClusterNames) -> NDArray[BOOLS]:
    """Say which configurations take no more than the whole quota of every tenant, (T, C); without quotas (1, C)."""
    if request.cluster.tenancy != "quota" or not names.tenants:
        return np.ones((1, len(names.configurations)), dtype=BOOLS)
    quota = np.array([[tenant.gpus(c.gpu_type) for c in names.configurations] for tenant in names.tenants])
    within: NDArray[BOOLS] = np.array([c.gpus for c in names.configurations]) <= quota
    return within


def usable(
    request: DecideRequest,
    names: ClusterNames,
    seconds: NDArray[np.float64],
    needs_gib: NDArray[np.float64],
    tenant: NDArray[np.int64],
) -> NDArray[BOOLS]:
    """Say on which configurations each job could be if the cluster were empty, (J, C).

    Args:
        request: The request.
        names: Its cluster.
        seconds: Seconds per epoch, (J, C); inf: not on this one.
        needs_gib: What each job needs on every GPU [GiB], (J,).
        tenant: Index of each job's tenant, (J,).
    """
    within = within_quota(request, names)
    found: NDArray[BOOLS] = (
        np.isfinite(seconds)
        & held(names)[None, :]
        & (needs_gib[:, None] <= memory_gib(names)[None, :])
        & within[np.minimum(tenant, len(within) - 1)]
    )
    return found
