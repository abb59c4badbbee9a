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
    trace: Trace, site: Site, seconds: NDArray[np.float64], reference_gpu_type: str
) -> NDArray[np.int64]:
    """Give the configuration that is closest to what each job ran on, shape (J,).

    It has the GPUs that the job asked for, as `trace.gpu_demand` = exact counts them, on the GPU type on which the
    durations hold. Where a job cannot run on that, it is the one with the next smaller number of GPUs that it can, else
    the next larger; of those with equal numbers one of the reference type, else the fastest.

    Args:
        trace: The trace, clipped to the largest configuration.
        site: The cluster and its configurations.
        seconds: τ of every job on every configuration, shape (J, C), finite for one at least; inf where not offered.
        reference_gpu_type: GPU type on which the durations hold.
    """
    size = np.array([c.gpus for c in site.configurations])
    on_reference = np.array([c.gpu_type == reference_gpu_type for c in site.configurations])
    demand = demand_of(trace, site, size, np.isfinite(seconds))
    wanted = demand[:, None]
    short = np.where(size <= wanted, wanted - size, size + size.max())
    short[~np.isfinite(seconds)] = np.inf
    near = short == short.min(axis=1, keepdims=True)
    same = near & on_reference
    chosen = np.where(np.any(same, axis=1, keepdims=True), same, near)
    index: NDArray[np.int64] = np.where(chosen, seconds, np.inf).argmin(axis=1)
    return index
