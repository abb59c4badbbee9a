"""Jobs from a trace: their submissions, applications, work, and traced runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.workload.site import Site
from gpusched_env.workload.traces.presets import likely_gpu_type, shell_word
from gpusched_env.workload.traces.trace import Trace, read_trace

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.tables.applications import Application


def columns_of(
    scenario: Scenario,
    trace: Trace,
    site: Site,
    applications: tuple[Application, ...],
    choice: NDArray[np.int64],
    fractions: NDArray[np.float64],
    seconds: NDArray[np.float64],
    rng: Generator,
) -> dict[str, NDArray[Any]]:
    """Return the columns of a trace, and the configurations that jobs are offered by their demand.

    Args:
        choice: The application of every job, (J,).
        fractions: The share of its greatest number of epochs that every job needs, (J,).
        seconds: τ of every job on every configuration, (J, C); inf where it cannot run.
        rng: Draws of what the unit of the trace's durations leaves open.
    """
    gpu_type = gpu_type_of_jobs(scenario, trace)
    epochs = epochs_of_duration(trace, applications, choice, fractions, gpu_type)
    open_to = offered(scenario, trace, site, tuple(applications[i].name for i in choice), seconds)
    seconds = np.where(open_to, seconds, np.inf)
    resolution_s = scenario.trace.resolution_s if scenario.trace else 1.0
    columns = {
        "submission_s": trace.submission_s,
        "max_epochs": dithered(epochs, trace, resolution_s, rng),
        "seconds_per_epoch": seconds,
    }
    if trace.start_s is None:
        return columns
    named = names_a_type(scenario, trace)
    config, known = traced_configurations(trace, site, seconds, gpu_type, named)
    return columns | {"traced_start_s": trace.start_s, "traced_config": config, "traced_type_known": known}


def offered(
    scenario: Scenario, trace: Trace, site: Site, names: tuple[str, ...], seconds: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which configurations each job is offered, by the rule `trace.gpu_demand`, shape (J, C).

    Args:
        trace: The trace, clipped to the largest configuration.
        seconds: τ of every job on every configuration, shape (J, C); inf where it cannot run.
    """
    rule = "elastic" if scenario.trace is None else scenario.trace.gpu_demand
    if rule == "elastic":
        return np.ones(seconds.shape, dtype=np.bool_)
    size = np.array([c.gpus for c in site.configurations])
    demand = demand_of(trace, site, size, np.isfinite(seconds))[:, None]
    allowed: NDArray[np.bool_] = size == demand if rule == "exact" else size <= demand
    fits = np.any(allowed & np.isfinite(seconds), axis=1)
    if not np.all(fits):
        job, offers = int(np.argmin(fits)), ", ".join(c.name for c in site.configurations)
        good = (
            f"a rule that offers every job a configuration: job {job} of the trace ({names[job]}, {trace.gpus[job]:g} "
            f"GPUs) cannot run on so many; the cluster has {offers}"
        )
        raise InputError("trace.gpu_demand", rule, good)
    return allowed


def demand_of(trace: Trace, site: Site, size: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the number of GPUs, or the share of one, that each job's demand counts as, shape (J,).

    Whole GPUs of a node count as the next smaller number that is offered, else as the least. A share counts as the
    next smaller one that is offered and that the job's memory fits, else as the least such, else as the least number of
    whole GPUs. More GPUs than a node has count as the next smaller number on several whole nodes on which the job's
    application can run, else as those of the largest node.
    """
    counts = np.unique(size[site.of_kind("single-node")])
    demand: NDArray[np.float64] = counts[np.maximum(np.searchsorted(counts, trace.gpus, side="right") - 1, 0)]
    shared, several = site.of_kind("shared"), site.of_kind("multi-node") | site.of_kind("spread")
    for job in np.flatnonzero((trace.gpus < 1.0) | (trace.gpus > site.most_gpus)):
        asked = trace.gpus[job]
        fit = size[known[job] & (shared if asked < 1.0 else several)]
        if np.any(fit <= asked):
            demand[job] = fit[fit <= asked].max()
        elif asked < 1.0 and len(fit):
            demand[job] = fit.min()
    return demand


def replayed_trace(scenario: Scenario) -> Trace:
    """Read the trace of a scenario as its instances use it: clipped to the largest configuration, stretched if asked.

    Raises:
        InputError: The scenario has no trace, the file is not valid, or its load cannot be scaled.
    """
    replay = scenario.trace
    if replay is None:
        raise InputError("trace", None, "a scenario with a trace section")
    trace = read_trace(replay.path, replay.format, replay.columns, jobs=scenario.jobs.count, **replay.selection)
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
    """Return the index into `names` of every job's application: the trace's, else one drawn uniformly, shape (J,)."""
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
        choice: Index of every job's application, shape (J,).
        fractions: Epochs needed / maximum epochs of every job, shape (J,).
        gpu_type: GPU type on which every job's duration holds, shape (J,), `gpu_type_of_jobs`.

    Returns:
        Maximum epochs, shape (J,).
    """
    seconds = np.empty(len(trace))
    kinds = set(zip(choice.tolist(), trace.gpus.tolist(), gpu_type.tolist(), strict=True))
    for index, gpus, name in kinds:
        application = applications[index]  # on whole nodes too, where it was measured there
        tau = {k * g: s for (v, k, g), s in application.whole_nodes_s.items() if v == name}
        tau |= {g: s for (v, g), s in application.seconds_per_epoch.items() if v == name}
        if not tau:
            allowed = f"a GPU type that {application.name} was measured on"
            raise InputError("trace.reference_gpu_type", name, allowed)
        measured = max((g for g in tau if g <= gpus), default=min(tau))
        seconds[(choice == index) & (trace.gpus == gpus) & (gpu_type == name)] = tau[measured] * measured / gpus
    epochs: NDArray[np.float64] = trace.duration_s / (fractions * seconds)
    return epochs


BITS = 40
"""Bits that are kept of the maximum epochs, to 1e-12 of them: fewer than a division leaves, so that none shows."""


def dithered(epochs: NDArray[np.float64], trace: Trace, resolution_s: float, rng: Generator) -> NDArray[np.float64]:
    """Size jobs as if each had run for its duration + U(-½, ½) · `resolution_s` on the GPUs that it asked for.

    Durations in whole seconds make E · φ · τ whole: of the hundred fractions that φ can be, few others do. Blurred
    evenly over the second that it stands for, every duration between two whole ones is as likely as any other, and
    discloses nothing. A duration below the resolution is blurred by half of itself at most, and stays above 0.

    Args:
        epochs: Maximum epochs by the durations as the trace has them, shape (J,).
        trace: The trace; on how many GPUs its jobs run here, and how many they asked for.
        resolution_s: Unit in which the trace gives durations [s], > 0.

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


_SHOWN = 3
"""Most names for which an error writes the option that maps them."""


def jobs_by_name(trace: Trace) -> Counter[str]:
    return Counter(dict(Counter(trace.gpu_type or [""] * len(trace)).most_common()))


def gpu_types_named(scenario: Scenario, trace: Trace) -> dict[str, str | None]:
    """Return the GPU type of the scenario for every name that rows of the trace have.

    A name stands for what `trace.gpu_types` says, else for the type of the cluster of that name, else for the only one
    that is `like` it and as fast; capital and small letters count the same. Rows that name none, and names that
    `trace.gpu_types` maps to an empty text, are of `trace.reference_gpu_type`, by default the cluster's first.

    Returns:
        The types by name, as the file spells it; None where the cluster has none.
    """
    types, replay = scenario.cluster.gpu_types, scenario.trace
    reference = (replay and replay.reference_gpu_type) or types[0]
    of_name: dict[str, str] = {"": reference}
    alike: dict[str, list[str]] = {}
    for own in scenario.gpu_types:
        if own.name in types and own.like is not None and own.factor == 1.0:
            alike.setdefault(own.like.casefold(), []).append(own.name)
    of_name |= {name: found[0] for name, found in alike.items() if len(found) == 1}
    of_name |= {name.casefold(): name for name in types}
    known = {name.casefold(): name for name in scenario.known_gpu_types()}
    for spelling, name in (replay.gpu_types if replay else {}).items():
        if name.casefold() not in known and name:
            raise InputError(
                f"trace.gpu_types.{spelling}", name, f"one of {', '.join(known.values())}, or an empty text"
            )
        of_name[spelling.casefold()] = known[name.casefold()] if name else reference
    return {name: of_name.get(name.casefold()) for name in jobs_by_name(trace)}


def gpu_type_of_jobs(scenario: Scenario, trace: Trace) -> NDArray[np.str_]:
    """Return the GPU type on which each job's duration holds, shape (J,)."""
    types = gpu_types_named(scenario, trace)
    if None in types.values():
        count = jobs_by_name(trace)
        said = ", ".join(f"{name} {count[name]:,} jobs" for name, of in types.items() if of is None)
        allowed = f"GPU types of the cluster ({', '.join(scenario.cluster.gpu_types)}); {ways_out(scenario, types)}"
        raise InputError(f"{trace.name}: gpu_type", said, allowed)
    return np.array([types[name] for name in trace.gpu_type or [""] * len(trace)], dtype=np.str_)


def names_a_type(scenario: Scenario, trace: Trace) -> NDArray[np.bool_]:
    empty = {name.casefold() for name, to in (scenario.trace.gpu_types if scenario.trace else {}).items() if not to}
    names = trace.gpu_type or [""] * len(trace)
    return np.array([bool(name) and name.casefold() not in empty for name in names], dtype=np.bool_)


def ways_out(scenario: Scenario, types: dict[str, str | None]) -> str:
    unknown = [name for name, of in types.items() if of is None]
    had = [shell_word(name) for name, of in types.items() if of is not None and name]
    likely = {name: likely_gpu_type(name, scenario.cluster.gpu_types) or "TYPE" for name in unknown[:_SHOWN]}
    mapped = " ".join(f"--set {shell_word(f'trace.gpu_types.{name}={of}')}" for name, of in likely.items())
    rows = f'--where "gpu_type in ({", ".join(had)})"' if had else "--where 'gpu_type = NAME'"
    return (
        f"say which of them each is: {mapped}; or take other rows: {rows}; or leave the column unread: "
        "--set trace.columns.gpu_type="
    )
