"""What an instance's tenants must be, and what they close to jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.model.tenant import TENANCIES, hardware

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.model.instance import Instance


def check_tenants(instance: Instance) -> None:
    """Check the tenants of an instance.

    Raises:
        InputError: There is no such tenancy, it needs tenants and there are none, two have one name, one has cells of
            an unknown GPU type, or a job is of a tenant that is not there.
    """
    if instance.tenancy not in TENANCIES:
        raise InputError("tenancy", instance.tenancy, f"one of {', '.join(TENANCIES)}")
    names = [tenant.name for tenant in instance.tenants]
    if (instance.tenancy != "none" and not names) or len(set(names)) != len(names):
        raise InputError("tenants", names, "with a tenancy one or more, all with different names")
    most = int(instance.jobs.tenant.max())
    if names and most >= len(names):
        job = int(instance.jobs.tenant.argmax())
        raise InputError(f"jobs[{job}].tenant", most, f"the index of one of the {len(names)} tenants")
    known = {hardware(v.name) for v in instance.gpu_types}
    for t, tenant in enumerate(instance.tenants):
        for i, cells in enumerate(tenant.cells):
            if cells.gpu_type not in known:
                allowed = f"one of the GPU types {', '.join(sorted(known))}"
                raise InputError(f"tenants[{t}].cells[{i}].gpu_type", cells.gpu_type, allowed)


def quotas(instance: Instance) -> NDArray[np.int64]:
    """Give the GPUs of every type that each tenant's jobs may hold at one time, (T, V); (0, V) without quotas."""
    types = [v.name for v in instance.gpu_types]
    if instance.tenancy != "quota":
        return np.zeros((0, len(types)), dtype=np.int64)
    return np.array([[tenant.gpus(name) for name in types] for tenant in instance.tenants], dtype=np.int64)


def beyond_quota(instance: Instance) -> NDArray[np.bool_]:
    """Say which configurations take more than the whole quota of a job's tenant, (J, C)."""
    limits = quotas(instance)
    if not len(limits):
        return np.zeros((1, 1), dtype=np.bool_)
    gpus = np.array([c.gpus_per_node * c.nodes * c.share for c in instance.configurations])
    beyond: NDArray[np.bool_] = (gpus[None, :] > limits[:, instance.type_of_configuration])[instance.jobs.tenant]
    return beyond
