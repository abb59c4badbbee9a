"""What a comparison on a trace depends on, beside the trace: in short sentences, for tables and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.workload.traces.gpu_types import gpu_types_named, jobs_by_name
from gpusched_env.workload.traces.replay import replayed_trace

if TYPE_CHECKING:
    from gpusched_env.workload.scenario.scenario import Scenario
    from gpusched_env.workload.scenario.trace_replay import TraceReplay
    from gpusched_env.workload.traces.trace import Trace

DEMAND = {
    "elastic": "elastic: any number of GPUs on offer, whatever a job asked for",
    "at-most": "at-most: as many GPUs as a job asked for, or fewer",
    "exact": "exact: as many GPUs as a job asked for",
}
"""What the rules of `trace.gpu_demand` say."""


def modelled(scenario: Scenario, trace: Trace | None = None) -> tuple[str, ...]:
    """Say what a replay of the scenario's trace depends on that is not in the trace, a short sentence each.

    They name the rule of the GPU demand; by which rule due dates, weights, applications and distributions are made
    where the trace has none; and what was left out, clipped or stretched.

    Args:
        scenario: The scenario.
        trace: Its trace as `replayed_trace` gives it; by default it is read here.

    Returns:
        The sentences; none without a trace, since then the scenario says it all.

    Raises:
        InputError: The trace is not valid.
    """
    replay = scenario.trace
    if replay is None:
        return ()
    trace = replayed_trace(scenario) if trace is None else trace
    return (
        f"GPU demand is {DEMAND[replay.gpu_demand]} (trace.gpu_demand).",
        _due_dates(scenario, trace),
        _weights(scenario, trace),
        _applications(scenario, trace),
        _durations(scenario, replay, trace),
        *_changed(replay, trace),
    )


def _due_dates(scenario: Scenario, trace: Trace) -> str:
    if trace.due_s is not None:
        return "Due dates are the trace's."
    factor = "" if scenario.due_dates.slack == 1.0 else f"{scenario.due_dates.slack:g} x "
    return f"Due dates are modelled: submission + {factor}U(least, greatest full execution time)."


def _weights(scenario: Scenario, trace: Trace) -> str:
    if trace.tardiness_weight_eur_per_s is not None:
        return "Tardiness weights are the trace's."
    low, high = (3600.0 * w for w in (scenario.weights.min_eur_per_s, scenario.weights.max_eur_per_s))
    return f"Tardiness weights are modelled: U({low:.3g}, {high:.3g}) €/h."


def _applications(scenario: Scenario, trace: Trace) -> str:
    if trace.application is not None:
        return "Applications are the trace's; memory and speed-up are theirs."
    given = scenario.jobs.applications
    of = f"{len(given)} applications" if given is not None else "all applications"
    return f"Applications, with memory and speed-up, are modelled: one of {of} for each job, drawn uniformly."


def _durations(scenario: Scenario, replay: TraceReplay, trace: Trace) -> str:
    needed = (
        "the part of its maximum epochs that a job needs is modelled: "
        f"distributions of the family {scenario.epochs.family}."
    )
    if trace.gpu_type is not None and any(trace.gpu_type):
        return f"Durations hold on the GPU type of each row: {_types(scenario, trace)}; {needed}"
    reference = replay.reference_gpu_type or scenario.cluster.gpu_types[0]
    types, there = scenario.cluster.gpu_types, ""
    if reference not in types:
        there = f", of which the cluster has no node (trace.reference_gpu_type; it has {', '.join(types)})"
    elif len(types) > 1 and trace.start_s is not None:
        there = ", where as-traced runs all jobs (trace.reference_gpu_type)"
    return f"Durations hold on {reference}{there}; {needed}"


def _types(scenario: Scenario, trace: Trace) -> str:
    """Say which types the rows name, which of the scenario's they are, and how many jobs name them."""
    types, said = gpu_types_named(scenario, trace), []
    for name, count in jobs_by_name(trace).items():
        of = types[name]
        here = "no such node here" if of is None else "" if of.casefold() == name.casefold() else f"here {of}"
        said.append(f"{name or 'none named'}{f' ({here})' if here else ''} {count:,} jobs")
    return ", ".join(said)


def _changed(replay: TraceReplay, trace: Trace) -> list[str]:
    """Say what of the trace is not replayed as it is."""
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
