"""Jobs from a trace: when they come, what they train, and how much work each is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.site import Site
from gpusched_env.workload.traces.read import read_selected

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.tables.applications import Application
    from gpusched_env.workload.traces.trace import Trace


def replayed_trace(scenario: Scenario) -> Trace:
    """Read the trace of a scenario as its instances use it: clipped to the largest configuration, stretched if asked.

    Raises:
        InputError: The scenario has no trace, the file is not valid, or its load cannot be scaled.
    """
    replay = scenario.trace
    if replay is None:
        raise InputError("trace", None, "a scenario with a trace section")
    trace = read_selected(replay.path, replay.format, replay.columns, replay.selection, scenario.jobs.count)
    site = Site.of(scenario)
    trace = trace.clip(site.most_gpus_of_a_job)
    if replay.time_scale is None and replay.load is None:
        return trace
    load = trace.load_on(site.gpus)
    if replay.load is not None and not np.isfinite(load):
        raise InputError("trace.load", replay.load, "a trace whose jobs are not all submitted at once")
    try:
        return trace.stretch(load / replay.load if replay.load is not None else replay.time_scale or 1.0)
    except InputError as error:
        name = "time_scale" if replay.load is None else "load"
        raise InputError(f"trace.{name}", getattr(replay, name), error.allowed) from error


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
    gpu_type: NDArray[np.str_],
) -> NDArray[np.float64]:
    """Size each job so that its realised run takes the trace's duration on the GPU type on which that holds.

    E_j = duration / (fraction · τ), with τ of the job's application on the GPUs that it asked for. Where the
    application was not measured on so many GPUs, the GPU-seconds are kept on the most that it was measured on, or on
    one GPU where the job asked for a share. As they are, these numbers would disclose the fractions: see `dithered`.

    Args:
        trace: The trace, clipped to the cluster.
        applications: The applications.
        choice: Index of every job's application, shape (J,).
        fractions: Epochs needed / maximum epochs of every job, shape (J,).
        gpu_type: GPU type on which every job's duration holds, shape (J,), `gpu_type_of_jobs`.

    Returns:
        Maximum epochs, shape (J,).

    Raises:
        InputError: An application was never measured on such a GPU type.
    """
    seconds = np.empty(len(trace))
    kinds = set(zip(choice.tolist(), trace.gpus.tolist(), gpu_type.tolist(), strict=True))
    for index, gpus, name in kinds:
        tau = _times_on(applications[index], name)
        measured = max((g for g in tau if g <= gpus), default=min(tau))
        seconds[(choice == index) & (trace.gpus == gpus) & (gpu_type == name)] = tau[measured] * measured / gpus
    epochs: NDArray[np.float64] = trace.duration_s / (fractions * seconds)
    return epochs


def _times_on(application: Application, gpu_type: str) -> dict[int, float]:
    """Give τ by number of GPUs of a type: in one node, and beyond on whole nodes, where they were measured."""
    whole = {k * g: s for (v, k, g), s in application.whole_nodes_s.items() if v == gpu_type}
    times = whole | {g: s for (v, g), s in application.seconds_per_epoch.items() if v == gpu_type}
    if not times:
        allowed = f"a GPU type that {application.name} was measured on"
        raise InputError("trace.reference_gpu_type", gpu_type, allowed)
    return times
