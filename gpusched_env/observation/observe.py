"""The whole observation of the job at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.observation.cluster import write_cluster
from gpusched_env.observation.job import write_job
from gpusched_env.observation.mask import write_mask
from gpusched_env.observation.options import write_options
from gpusched_env.observation.queue import write_queue
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernel import kernel

if TYPE_CHECKING:
    from gpusched_env.simulator.arrays import Floats, Ints, Mask, Singles


@kernel
def observe(
    jobs: Floats, nodes: Ints, configs: Ints, tau: Floats, rate: Floats, least_rate: Floats, node_rate: Floats,
    clock: Floats, count: Ints, active: Ints, order: Ints, room: Ints, edges: Floats, survival: Floats,
    tail: Floats, out_job: Singles, out_options: Singles, out_cluster: Singles, out_queue: Singles, mask: Mask,
) -> None:  # fmt: skip
    """Write the observation and the mask of the job at hand; all zeros, and only wait allowed, when the run is over."""
    now = clock[at.NOW]
    free = write_cluster(jobs, nodes, configs, room, node_rate, count, order, now, out_cluster)
    if count[at.TO_ASK] == count[at.ASKED]:
        out_job[:] = 0.0
        out_options[:] = 0.0
        out_queue[:] = 0.0
        mask[:] = 0
        mask[0] = 1
        return
    job = order[count[at.ASKED]]
    write_mask(configs, room, tau, job, mask)
    expected, least = write_job(jobs, count, edges, survival, tail, rate, tau, now, job, out_job)
    write_options(
        jobs, nodes, configs, room, tau, rate, least_rate, node_rate, out_cluster, now, job, expected, least, mask,
        out_options,
    )  # fmt: skip
    write_queue(jobs, count, active, now, job, free, out_queue)
