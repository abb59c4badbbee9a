"""What each job of a trace really ran on, as a configuration of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.workload.traces.demand import demand_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpusched_env.workload.site import Site
    from gpusched_env.workload.traces.trace import Trace


def traced_configurations(
    trace: Trace, site: Site, seconds: NDArray[np.float64], gpu_type: NDArray[np.str_], named: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the configuration that is closest to what each job ran on, and whether its GPU type is known.

    It has the GPUs that the job asked for, as `trace.gpu_demand` = exact counts them, on the GPU type on which its
    duration holds. Where a job cannot run on that, it is the one with the next smaller number of GPUs that it can, else
    the next larger; of those with equal numbers one of that type, else the fastest. A job whose row names a type is on
    that type, with as many GPUs as it can have there, wherever it can run on it at all.

    Args:
        trace: The trace, clipped to the largest configuration.
        site: The cluster and its configurations.
        seconds: τ of every job on every configuration, shape (J, C), finite for one at least; inf where not offered.
        gpu_type: GPU type on which every job's duration holds, shape (J,).
        named: Whether every job's row names it, shape (J,).

    Returns:
        Indices of the configurations, (J,), and whether each is of the type that the job's row names, (J,).
    """
    size = np.array([c.gpus for c in site.configurations])
    of_type = gpu_type[:, None] == np.array([c.gpu_type for c in site.configurations])
    known = named & np.any(of_type & np.isfinite(seconds), axis=1)
    demand = demand_of(trace, site, size, np.isfinite(seconds))
    wanted = demand[:, None]
    short = np.where(size <= wanted, wanted - size, size + size.max())
    short[~np.isfinite(seconds) | (known[:, None] & ~of_type)] = np.inf
    near = short == short.min(axis=1, keepdims=True)
    same = near & of_type
    chosen = np.where(np.any(same, axis=1, keepdims=True), same, near)
    index: NDArray[np.int64] = np.where(chosen, seconds, np.inf).argmin(axis=1)
    return index, known
