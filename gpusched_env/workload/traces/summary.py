"""The scenario that replays a trace, the summary of a trace in numbers, and the assumptions of its replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.workload.mixture import variants_of
from gpusched_env.workload.scenario.comparison import TraceReplay
from gpusched_env.workload.scenario.scenario_file import load_scenario
from gpusched_env.workload.traces.presets import check_format
from gpusched_env.workload.traces.replay import gpu_types_named, jobs_by_name, replayed_trace
from gpusched_env.workload.traces.trace import detect_format, read_trace

if TYPE_CHECKING:
    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.site import Site
    from gpusched_env.workload.traces.trace import Trace

_EDGES = (0.0, 1.0, 2.0, 3.0, 5.0, 9.0, 17.0, 33.0, np.inf)
_NAMES = ("share", "1", "2", "3-4", "5-8", "9-16", "17-32", "33-")


def scenario_for_trace(
    path: str | Path,
    jobs: int | None = None,
    nodes: int | None = None,
    *,
    base: Scenario | None = None,
    trace_format: str | None = None,
) -> Scenario:
    """Make the scenario that replays a trace.

    Args:
        path: The trace.
        jobs: Most jobs to take; by default all of the trace.
        nodes: Number of nodes; by default those of `base`.
        base: Scenario for all else; by default the built-in `default`. Settings of its own `trace` section stay.
        trace_format: Format of the trace; by default detected from its columns.

    Raises:
        InputError: There is no such format, the file cannot be read, or a number is out of its range.
    """
    if trace_format is not None:
        check_format(trace_format)
    chosen = load_scenario("default") if base is None else base
    encoding = TraceReplay.model_fields["encoding"].default if chosen.trace is None else chosen.trace.encoding
    kind = detect_format(path, encoding) if trace_format is None else trace_format
    replay = {} if chosen.trace is None else chosen.trace.model_dump(exclude_none=True)
    replay |= {"path": str(Path(path).resolve()), "format": kind}
    trace = TraceReplay(**replay)
    if jobs is None:
        jobs = len(read_trace(trace.path, trace.format, trace.columns, jobs=None, **trace.selection))
    description = f"Replays {Path(path).name}; what it lacks is modelled as in scenario {chosen.name}."
    values = {"name": Path(path).stem, "description": description, "jobs.count": jobs, "trace": trace}
    return chosen.replace(values if nodes is None else {**values, "cluster.nodes": nodes})


@dataclass(frozen=True, slots=True)
class TraceDemand:
    """Jobs that asked for about as many GPUs.

    Attributes:
        gpus: How many, as a range; `share` for less than one.
        jobs: Part of all jobs.
        gpu_hours: Part of all GPU-hours.
    """

    gpus: str
    jobs: float
    gpu_hours: float


@dataclass(frozen=True, slots=True)
class TypeLoad:
    """Jobs whose rows name one GPU type.

    Attributes:
        name: The type as the file spells it; empty for rows that name none.
        gpu_type: The scenario's type that it stands for; None if the cluster has none such.
        jobs: Number of jobs.
        gpu_hours: Their work [GPU·h].
        gpus: GPUs of that type in the cluster.
        load: GPU-seconds / (these GPUs · span); None if all jobs come at once, or there are no such GPUs.
    """

    name: str
    gpu_type: str | None
    jobs: int
    gpu_hours: float
    gpus: int
    load: float | None


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """The summary of a trace, and its load on a cluster.

    Attributes:
        jobs: Jobs.
        left_out: Rows of the file that were left out.
        span_s: Time from first to last submission [s].
        gpu_hours: Work of all jobs [GPU·h].
        mean_gpus: GPUs that are busy on average over the span; None if all jobs come at once.
        duration_s: Median, 95 % and longest duration [s].
        demand: How many GPUs jobs asked for; ranges that none asked for are left out.
        most_gpus: The most that one asked for.
        load: GPU-seconds / (GPUs of the cluster · span), None if all jobs come at once.
        clipped: Jobs that ask for more GPUs than the cluster offers one job.
        wait_s: Median and 95 % of the time from submission to start [s], if there are start times.
        tenants: How many tenants there are, None if the trace does not have them.
        users: How many users, likewise.
        gpu_types: The jobs by the GPU type that their rows name, the most frequent first; empty if none names one.
    """

    jobs: int
    left_out: int
    span_s: float
    gpu_hours: float
    mean_gpus: float | None
    duration_s: tuple[float, float, float]
    demand: tuple[TraceDemand, ...]
    most_gpus: float
    load: float | None
    clipped: int
    wait_s: tuple[float, float] | None
    tenants: int | None
    users: int | None
    gpu_types: tuple[TypeLoad, ...]

    @classmethod
    def of(cls, trace: Trace, site: Site, scenario: Scenario) -> TraceSummary:
        """Sum up a trace as it was read, and as it would come to the cluster of a scenario, which is `site`."""
        span = float(trace.submission_s[-1])
        waits = None if trace.start_s is None else trace.start_s - trace.submission_s
        return cls(
            jobs=len(trace),
            left_out=sum(count for _, count in trace.skipped),
            span_s=span,
            gpu_hours=trace.gpu_seconds / 3600.0,
            mean_gpus=trace.gpu_seconds / span if span > 0.0 else None,
            duration_s=(*_quantiles(trace.duration_s), float(trace.duration_s.max())),
            demand=_demand(trace),
            most_gpus=float(trace.gpus.max()),
            load=trace.load_on(site.gpus) if span > 0.0 else None,
            clipped=trace.clip(site.most_gpus_of_a_job).clipped,
            wait_s=None if waits is None else _quantiles(waits),
            tenants=None if trace.tenant is None else len(set(trace.tenant)),
            users=None if trace.user is None else len(set(trace.user)),
            gpu_types=_type_loads(trace, site, scenario),
        )


def _quantiles(seconds: np.ndarray) -> tuple[float, float]:
    median, high = np.quantile(seconds, (0.5, 0.95))
    return float(median), float(high)


def _type_loads(trace: Trace, site: Site, scenario: Scenario) -> tuple[TypeLoad, ...]:
    if trace.gpu_type is None or not any(trace.gpu_type):
        return ()
    named, span, loads = np.array(trace.gpu_type), float(trace.submission_s[-1]), []
    for name, gpu_type in gpu_types_named(scenario, trace).items():
        chosen = named == name
        work = float(np.dot(trace.duration_s[chosen], trace.gpus[chosen]))
        gpus = sum(node.gpus for node in site.nodes if node.gpu_type == gpu_type)
        load = work / (gpus * span) if gpus and span > 0.0 else None
        loads.append(TypeLoad(name, gpu_type, int(chosen.sum()), work / 3600.0, gpus, load))
    return tuple(loads)


def _demand(trace: Trace) -> tuple[TraceDemand, ...]:
    place = np.searchsorted(_EDGES, trace.gpus, side="right") - 1
    jobs = np.bincount(place, minlength=len(_NAMES)) / len(trace)
    work = np.bincount(place, trace.duration_s * trace.gpus, minlength=len(_NAMES)) / trace.gpu_seconds
    return tuple(
        TraceDemand(name, float(part), float(hours))
        for name, part, hours in zip(_NAMES, jobs, work, strict=True)
        if part > 0.0
    )


DEMAND = {
    "elastic": "elastic: any number of GPUs on offer, whatever a job asked for",
    "at-most": "at-most: as many GPUs as a job asked for, or fewer",
    "exact": "exact: as many GPUs as a job asked for",
}
"""Descriptions of the rules of `trace.gpu_demand`."""


def modelled(scenario: Scenario, trace: Trace | None = None) -> tuple[str, ...]:
    """Return the assumptions of a replay of the scenario's trace that are not in the trace, a short sentence each.

    They name the rule of the GPU demand; by which rule due dates, weights, applications and distributions are made
    where the trace has none; and what was left out, clipped or stretched.

    Args:
        scenario: The scenario.
        trace: Its trace as `replayed_trace` gives it; by default it is read here.

    Returns:
        The sentences; none without a trace, since the scenario then has all of it. Of a mixture those of all of its
        scenarios.

    Raises:
        InputError: The trace is not valid.
    """
    replay = scenario.trace
    if scenario.mixture:
        return tuple(dict.fromkeys(said for variant in variants_of(scenario) for said in modelled(variant)))
    if replay is None:
        return ()
    trace = replayed_trace(scenario) if trace is None else trace
    factor = "" if scenario.due_dates.slack == 1.0 else f"{scenario.due_dates.slack:g} x "
    low, high = (3600.0 * w for w in (scenario.weights.min_eur_per_s, scenario.weights.max_eur_per_s))
    given = scenario.jobs.applications
    of = f"{len(given)} applications" if given is not None else "all applications"
    return (
        f"GPU demand is {DEMAND[replay.gpu_demand]} (trace.gpu_demand).",
        "Due dates are the trace's."
        if trace.due_s is not None
        else f"Due dates are modelled: submission + {factor}U(least, greatest full execution time).",
        "Tardiness weights are the trace's."
        if trace.tardiness_weight_eur_per_s is not None
        else f"Tardiness weights are modelled: U({low:.3g}, {high:.3g}) €/h.",
        "Applications are the trace's; memory and speed-up are theirs."
        if trace.application is not None
        else f"Applications, with memory and speed-up, are modelled: one of {of} for each job, drawn uniformly.",
        _durations(scenario, replay, trace),
        *_changed(replay, trace),
    )


def _durations(scenario: Scenario, replay: TraceReplay, trace: Trace) -> str:
    needed = (
        "the part of its maximum epochs that a job needs is modelled: "
        f"distributions of the family {scenario.epochs.family}."
    )
    if trace.gpu_type is not None and any(trace.gpu_type):
        types, said = gpu_types_named(scenario, trace), []
        for name, count in jobs_by_name(trace).items():
            of = types[name]
            here = "no such node here" if of is None else "" if of.casefold() == name.casefold() else f"here {of}"
            said.append(f"{name or 'none named'}{f' ({here})' if here else ''} {count:,} jobs")
        return f"Durations hold on the GPU type of each row: {', '.join(said)}; {needed}"
    reference = replay.reference_gpu_type or scenario.cluster.gpu_types[0]
    there, offered = "", scenario.cluster.gpu_types
    if reference not in offered:
        there = f", of which the cluster has no node (trace.reference_gpu_type; it has {', '.join(offered)})"
    elif len(offered) > 1 and trace.start_s is not None:
        there = ", where as-traced runs all jobs (trace.reference_gpu_type)"
    return f"Durations hold on {reference}{there}; {needed}"


def _changed(replay: TraceReplay, trace: Trace) -> list[str]:
    """Return the parts of the trace that are not replayed unchanged."""
    said = []
    if trace.skipped:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in trace.skipped)
        said.append(f"Rows of {trace.name} that are left out: {reasons}.")
    if trace.clipped:
        said.append(
            f"{trace.clipped:,} of {len(trace):,} jobs asked for more GPUs than are on offer; they run longer on fewer."
        )
    if replay.load is not None:
        said.append(f"Times between submissions are scaled to a load of {replay.load:g}.")
    elif replay.time_scale is not None:
        said.append(f"Times between submissions are multiplied by {replay.time_scale:g}.")
    return said
