"""The report of one run, and the facts of its scenario."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.formats.run_folder import read_run, result_of
from gpusched_env.model.tenant import machines
from gpusched_env.rendering.text import duration_text
from gpusched_env.workload import Scenario, scenario_toml
from gpusched_experiments.page.report_data import ReportData
from gpusched_experiments.report.fared import Billing, Fared
from gpusched_experiments.report.table import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpusched_env.model import Instance
    from gpusched_env.simulator import Result


def scenario_of(facts: Mapping[str, Any]) -> Scenario | None:
    """Give the scenario that these facts hold; None if they hold none that this release can read."""
    settings = facts.get("scenario")
    try:
        return Scenario().replace(settings) if isinstance(settings, dict) else None
    except (InputError, ValueError):
        return None


def scenario_text(facts: Mapping[str, Any]) -> str:
    """Give the scenario as TOML; empty if there is none."""
    scenario = scenario_of(facts)
    return "" if scenario is None else scenario_toml(scenario)


def modelled_of(instance: Instance, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what is modelled: what the command said of it, and what the instance shows."""
    said = facts.get("modelled", ())
    jobs = instance.jobs
    sentences = [str(sentence) for sentence in said] if isinstance(said, list | tuple) else []
    rented = Billing.of(scenario_of(facts)).said()
    sentences += rented
    if not rented:
        sentences.append(
            f"Energy costs {instance.energy_price_eur_per_kwh:g} €/kWh at a PUE of {instance.pue:g}; a node draws "
            "power while any of its GPUs is busy, and none otherwise."
        )
    late = float(jobs.tardiness_weight_eur_per_s.mean()) * 3600.0
    if late > 0.0:
        sentences.append(f"A job costs {late:.3g} € for every hour by which it ends after its due date, on average.")
    if bool(jobs.restart_s.any()):
        sentences.append("A job that changes its GPUs or node makes no progress while it restarts.")
    return tuple(sentences)


@dataclass(frozen=True, slots=True)
class _Fact:
    name: str
    text: str


def run_folder_report(folder: Path) -> ReportData:
    """Make the report of a run folder.

    Raises:
        InputError: A file is missing or not whole.
    """
    run = read_run(folder)
    return run_report(result_of(run), run.facts["provenance"])


def run_report(result: Result, provenance: Mapping[str, Any]) -> ReportData:
    """Make the report of a finished run that was simulated with its intervals."""
    instance, jobs = result.instance, len(result.completion_s)
    nodes = machines(instance)
    size = f"{jobs} jobs on {len(nodes)} nodes with {sum(node.gpus for node in nodes)} GPUs"
    late = f"{result.late_jobs} of {jobs} jobs end{'s' if result.late_jobs == 1 else ''} late"
    verdict = (
        f"{result.policy} costs {result.total_eur:,.2f} €: {result.energy_eur:,.2f} € for energy and "
        f"{result.tardiness_eur:,.2f} € for late jobs. {late}; from submission to completion they take "
        f"{duration_text(result.mean_completion_s)} on average."
    )
    facts = provenance.get("facts", {})
    return ReportData(
        title=f"{result.policy} on {instance.name or 'an instance'}",
        question=f"One run of one policy: {size}, seed {result.seed}.",
        tables=(_table(result, Billing.of(scenario_of(facts))),),
        recorded=(result,),
        verdict=(verdict,),
        modelled=modelled_of(instance, facts),
        scenario=scenario_text(facts),
        provenance=provenance,
    )


def _table(result: Result, billing: Billing) -> Table:
    fared = Fared.of(result, billing)
    emitted = billing.co2_kg(fared.energy_kwh)
    facts = (
        _Fact("total cost", f"{result.total_eur:,.2f} €"),
        _Fact("energy", f"{result.energy_eur:,.2f} €"),
        _Fact("tardiness", f"{result.tardiness_eur:,.2f} €"),
        *([] if math.isnan(fared.energy_kwh) else [_Fact("energy", f"{fared.energy_kwh:,.2f} kWh")]),
        *([] if emitted is None else [_Fact("emissions", f"{emitted:,.2f} kg CO₂")]),
        _Fact("late jobs", f"{result.late_jobs} of {len(result.completion_s)}"),
        _Fact("completion, mean", duration_text(result.mean_completion_s)),
        _Fact("completion, median", duration_text(fared.median_completion_s)),
        _Fact("completion, 95 %", duration_text(fared.p95_completion_s)),
        _Fact("completion, 99 %", duration_text(fared.p99_completion_s)),
        _Fact("waiting for the first start, mean", duration_text(fared.waiting_s)),
        _Fact("slowdown, mean", f"{fared.slowdown:.3g}"),
        _Fact("GPUs busy", f"{fared.busy_gpus:.1%}"),
        _Fact("nodes busy", f"{fared.busy_nodes:.1%}"),
        _Fact("last completion", duration_text(float(result.completion_s.max()))),
        _Fact("switches", f"{int(result.switches.sum()):,}"),
        _Fact("decision rounds", f"{result.rounds:,}"),
    )
    columns: tuple[Column[_Fact], ...] = (
        Column("measure", "measure", lambda fact: fact.name),
        Column("value", "value", lambda fact: fact.text),
    )
    return Table.of("The run", columns, facts)
