"""Jobs from a trace: how much work each is, and which numbers of GPUs it is offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.cluster import Site
from gpusched_env.workload.trace import Trace, read_trace

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.applications import Application
    from gpusched_env.workload.scenario import Scenario


def replayed_trace(scenario: Scenario) -> Trace:
    """Read the trace of a scenario as its instances use it: clipped to the cluster's nodes, and stretched if asked.

    Raises:
        InputError: The scenario has no trace, the file is not valid, or its load cannot be scaled.
    """
    replay = scenario.trace
    if replay is None:
        raise InputError("trace", None, "a scenario with a trace section")
    trace = read_trace(
        replay.path,
        replay.format,
        replay.columns,
        sort=replay.sort,
        first=replay.first,
        jobs=scenario.jobs.count,
    )
    site = Site.of(scenario.cluster, scenario.jobs.gpu_counts)
    trace = trace.clip(site.most_gpus)
    if replay.time_scale is not None:
        return trace.stretch(replay.time_scale)
    if replay.load is None:
        return trace
    load = trace.load_on(site.gpus)
    if not np.isfinite(load):
        raise InputError("trace.load", replay.load, "a trace whose jobs are not all submitted at once")
    return trace.stretch(load / replay.load)


def choose_applications(trace: Trace, names: tuple[str, ...], rng: Generator) -> NDArray[np.int64]:
    """Give the index into `names` of every job's application: the trace's, else one drawn uniformly, shape (J,).

    Raises:
        InputError: The trace names an application that is not among `names`.
    """
    if trace.application is None:
        return rng.integers(len(names), size=len(trace))
    index = {name: i for i, name in enumerate(names)}
    for row, name in enumerate(trace.application):
        if name not in index:
            raise InputError(f"{trace.name}: application of job {row}", name, f"one of {', '.join(names)}")
    return np.array([index[name] for name in trace.application], dtype=np.int64)


def epochs_of_duration(
    trace: Trace,
    applications: tuple[Application, ...],
    choice: NDArray[np.int64],
    fractions: NDArray[np.float64],
    reference_gpu_type: str,
) -> NDArray[np.float64]:
    """Size each job so that its realised run takes the trace's duration on the reference GPU type.

    E_j = duration / (fraction · τ), with τ of the job's application on the GPUs that it asked for. Where the
    application was not measured on so many GPUs, the GPU-seconds are kept on the most that it was measured on.

    Args:
        trace: The trace, clipped to the cluster.
        applications: The applications.
        choice: Index of every job's application, shape (J,).
        fractions: Epochs needed / maximum epochs of every job, shape (J,).
        reference_gpu_type: GPU type on which the durations hold.

    Returns:
        Maximum epochs, shape (J,).

    Raises:
        InputError: An application was never measured on the reference GPU type.
    """
    seconds = np.empty(len(trace))
    for index, gpus in {(int(a), int(g)) for a, g in zip(choice, trace.gpus, strict=True)}:
        application = applications[index]
        counts = [g for (v, g) in application.seconds_per_epoch if v == reference_gpu_type]
        if not counts:
            allowed = f"a GPU type that {application.name} was measured on"
            raise InputError("trace.reference_gpu_type", reference_gpu_type, allowed)
        measured = max((g for g in counts if g <= gpus), default=min(counts))
        tau = application.seconds_per_epoch[reference_gpu_type, measured]
        seconds[(choice == index) & (trace.gpus == gpus)] = tau * measured / gpus
    epochs: NDArray[np.float64] = trace.duration_s / (fractions * seconds)
    return epochs


def offered(scenario: Scenario, trace: Trace, gpus_of_configuration: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which configurations each job is offered, by the rule `trace.gpu_demand`, shape (J, C).

    A demand that is not offered at all counts as the next smaller number that is, else as the least.
    """
    rule = "elastic" if scenario.trace is None else scenario.trace.gpu_demand
    counts = np.unique(gpus_of_configuration)
    if rule == "elastic":
        return np.ones((len(trace), len(gpus_of_configuration)), dtype=np.bool_)
    demand = counts[np.maximum(np.searchsorted(counts, trace.gpus, side="right") - 1, 0)][:, None]
    held = gpus_of_configuration[None, :]
    allowed: NDArray[np.bool_] = held == demand if rule == "exact" else held <= demand
    return allowed
