"""The whole observation of the job at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.kernel import kernel, lean_kernel
from gpusched_env.observation.cluster import write_cluster
from gpusched_env.observation.fixed import OFFER_COLUMNS, TYPE_COLUMNS, write_fixed
from gpusched_env.observation.job import write_job
from gpusched_env.observation.mask import write_mask
from gpusched_env.observation.options import write_options
from gpusched_env.observation.queue import write_queue
from gpusched_env.observation.spare import SPARE_COLUMNS, write_spare
from gpusched_env.observation.tallies import SUM_COLUMNS, TALLY_COLUMNS, bring_up_to_date
from gpusched_env.simulator import layout as at

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats, Ints, Mask, Singles


@kernel
def observe(
    jobs: Floats, nodes: Ints, configs: Ints, tau: Floats, rate: Floats, least_rate: Floats, node_rate: Floats,
    clock: Floats, count: Ints, active: Ints, order: Ints, room: Ints, edges: Floats, survival: Floats,
    tail: Floats, out_job: Singles, out_options: Singles, out_cluster: Singles, out_queue: Singles, mask: Mask,
) -> None:  # fmt: skip
    """Write the observation and the mask of the job at hand; all zeros, and only wait allowed, when the run is over."""
    types, offers = np.empty((room.shape[0], TYPE_COLUMNS)), np.empty((configs.shape[0], OFFER_COLUMNS))
    tallies, sums = np.full(TALLY_COLUMNS + room.shape[0], -1), np.empty(SUM_COLUMNS)
    spare = np.empty((room.shape[0], SPARE_COLUMNS + node_rate.shape[1]), dtype=np.int64)
    write_fixed(nodes, configs, room, rate, node_rate, types, offers)
    observe_next(
        jobs, nodes, configs, tau, rate, least_rate, node_rate, clock, count, active, order, room, edges, survival,
        tail, types, offers, tallies, sums, spare, out_job, out_options, out_cluster, out_queue, mask,
    )  # fmt: skip


@lean_kernel
def observe_next(
    jobs: Floats, nodes: Ints, configs: Ints, tau: Floats, rate: Floats, least_rate: Floats, node_rate: Floats,
    clock: Floats, count: Ints, active: Ints, order: Ints, room: Ints, edges: Floats, survival: Floats,
    tail: Floats, types: Floats, offers: Floats, tallies: Ints, sums: Floats, spare: Ints, out_job: Singles,
    out_options: Singles, out_cluster: Singles, out_queue: Singles, mask: Mask,
) -> None:  # fmt: skip
    """Do what `observe` does, for one run after the other of its decisions, with what is known from before."""
    now = clock[at.NOW]
    free = write_spare(nodes, room, spare)
    if count[at.TO_ASK] == count[at.ASKED]:
        tallies[:] = 0
        tallies[0] = -1
        write_cluster(room, types, spare, tallies, out_cluster)
        out_job[:] = 0.0
        out_options[:, :] = 0.0
        out_queue[:] = 0.0
        mask[:] = 0
        mask[0] = 1
        return
    bring_up_to_date(jobs, configs, now, count, active, order, tallies, sums)
    write_cluster(room, types, spare, tallies, out_cluster)
    job = order[count[at.ASKED]]
    write_mask(configs, room, tau, job, mask)
    expected, least = write_job(jobs, count, edges, survival, tail, rate, tau, now, job, out_job)
    write_options(
        jobs, configs, room, tau, rate, least_rate, node_rate, types, offers, spare, out_cluster, now, job, expected,
        least, mask, out_options,
    )  # fmt: skip
    write_queue(jobs, count, tallies, sums, now, job, free, out_queue)
