"""What a pipelined start adds to the first pass and to the first iteration of a built-in application."""

from __future__ import annotations

from functools import cache

from gpusched_env.model.host_memory import BYTES_PER_GIB
from gpusched_env.workload.start_up.architectures import layers_of
from gpusched_env.workload.start_up.pipeline import Pass, StartUpCosts, best_groups, pipelined_s
from gpusched_env.workload.tables.applications import Application, read_table

GPU = "V100"
"""GPU type on which iterations are timed."""


def added_s(application: Application, bandwidth_gb_per_s: float) -> tuple[float, float] | None:
    """Return what a pipeline adds to a first start and to a resumption [s]; None where no layers are known.

    A first start sends the weights while the forward pass computes; a resumption the whole state, that of gradients and
    optimiser while the backward pass does. Passes are those of the application's batch on one V100.

    Args:
        application: The application.
        bandwidth_gb_per_s: Bandwidth from host memory to a GPU [GB/s], > 0.
    """
    layers, samples = layers_of(application.name), _batches().get(application.name)
    epoch_s = application.seconds_per_epoch.get((GPU, 1))
    if not layers or samples is None or epoch_s is None:
        return None
    machine, seconds = StartUpCosts(bandwidth_gb_per_s), epoch_s / samples
    passes = Pass.forward(layers, seconds / 3.0), Pass.iteration(layers, application.state_gib * BYTES_PER_GIB, seconds)
    start, resume = (pipelined_s(task, best_groups(task, machine), machine) - task.total_s for task in passes)
    return start, resume


@cache
def _batches() -> dict[str, float]:
    """Return the batches of an epoch of every built-in application."""
    rows = read_table("application_facts.csv")
    return {row["application"]: float(row["samples_per_epoch"]) / float(row["batch_size"]) for row in rows}
