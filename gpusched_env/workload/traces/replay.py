"""Jobs from a trace: when they come, what they train, how much work each is, and when they really ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.site import Site
from gpusched_env.workload.traces.demand import demand_of
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


BITS = 40
"""Bits that are kept of the maximum epochs, to 1e-12 of them: fewer than a division leaves, so that none shows."""


def dithered(epochs: NDArray[np.float64], trace: Trace, resolution_s: float, rng: Generator) -> NDArray[np.float64]:
    """Size jobs as if each had run for its duration + U(-½, ½) · `resolution_s` on the GPUs that it asked for.

    Durations in whole seconds make E · φ · τ whole: of the hundred fractions that φ can be, few others do. Blurred
    evenly over the second that it stands for, every duration between two whole ones is as likely as any other, and so
    says nothing. A duration below the resolution is blurred by half of itself at most, and stays above 0.

    Args:
        epochs: Maximum epochs by the durations as the trace has them, shape (J,).
        trace: The trace; on how many GPUs its jobs run here, and how many they asked for.
        resolution_s: Unit in which the trace gives durations [s], > 0.
        rng: Randomness.

    Returns:
        Maximum epochs, shape (J,).
    """
    asked = trace.gpus if trace.asked_gpus is None else trace.asked_gpus
    recorded_s = trace.duration_s * (trace.gpus / asked)
    most = np.minimum(resolution_s, recorded_s) / recorded_s
    mantissa, exponent = np.frexp(epochs * (1.0 + rng.uniform(-0.5, 0.5, len(trace)) * most))
    blurred: NDArray[np.float64] = np.ldexp(np.round(np.ldexp(mantissa, BITS)), exponent - BITS)
    return blurred


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
