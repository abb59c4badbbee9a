"""What each interval holds: does the instance allow it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.audit.difference import Difference

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpusched_env.audit.record import IntervalRecord, Record


def check_allowed(record: Record) -> Iterator[Difference]:
    """Compare GPUs, GPU type, memory, permission and shared GPU of each interval with the instance."""
    for interval in record.intervals:
        configuration = record.configurations[interval.configuration]
        node, job = record.nodes[interval.node], record.jobs[interval.job]
        if interval.gpus != configuration.gpus:
            yield Difference(interval.where, interval.gpus, configuration.gpus, "GPUs of the configuration")
        if node.gpu_type != configuration.gpu_type:
            yield Difference(interval.where, configuration.gpu_type, node.gpu_type, f"GPU type on node {interval.node}")
        if job.seconds_per_epoch[configuration.column] is None:
            yield Difference(interval.where, interval.configuration, "not allowed", "configuration of the job")
        memory = record.gpu_types[configuration.gpu_type].memory_gib * configuration.share
        if job.memory_gib > memory:
            yield Difference(interval.where, job.memory_gib, memory, "memory needed on a GPU, and there [GiB]")
        yield from _check_gpu(record, interval)


def _check_gpu(record: Record, interval: IntervalRecord) -> Iterator[Difference]:
    """A share has a numbered GPU, and whole GPUs have none."""
    is_shared, most = record.configurations[interval.configuration].is_shared, record.nodes[interval.node].gpus
    if is_shared and interval.gpu < 0:
        yield Difference(interval.where, interval.gpu, f"0 to {most - 1}", "number of the shared GPU")
    if not is_shared and interval.gpu >= 0:
        yield Difference(interval.where, interval.gpu, -1, "number of the shared GPU, -1 for whole GPUs")
