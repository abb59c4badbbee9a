"""The report of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.model.tenant import machines
from gpusched_experiments.page.report_data import ReportData
from gpusched_experiments.page.run_report import modelled_of, scenario_of, scenario_text
from gpusched_experiments.report.comparison_table import comparison_table
from gpusched_experiments.report.statistics import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpusched_env.simulator import Result
    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.table import Table


def comparison_data(
    runs: Sequence[RunSummary],
    reference: str,
    *,
    recorded: Sequence[Result] = (),
    provenance: Mapping[str, Any] | None = None,
    scenario: str = "",
    tables: tuple[Table, ...] = (),
    more_tables: tuple[Table, ...] = (),
    modelled: tuple[str, ...] = (),
    verdict: tuple[str, ...] = (),
    not_claimed: str = "",
) -> ReportData:
    """Put the report of a comparison together.

    Args:
        runs: Every run: the same seeds for every policy.
        reference: Name of the policy that savings are measured against.
        recorded: The first seed's runs, with their intervals.
        provenance: Where it comes from; its facts name the scenario or the instance's file.
        scenario: The scenario as TOML; by default that of the facts.
        tables: The tables; by default that of `comparison_table`.
        more_tables: Tables that stand below the figures.
        modelled: What is modelled, beside what the facts and the first recorded run say.
        verdict: What to say first, a paragraph each; by default it is computed from the runs.
        not_claimed: A policy of which, and against which, no saving is shown.
    """
    facts = (provenance or {}).get("facts", {})
    file = facts.get("instance_file") or None
    replay = getattr(scenario_of(facts), "trace", None)
    of_trace = "" if replay is None else f"{Path(replay.path).name} (format {replay.format})"
    name = (
        file or of_trace or getattr(scenario_of(facts), "name", "") or (recorded[0].instance.name if recorded else "")
    )
    told = modelled_of(recorded[0].instance, facts) if recorded else ()
    return ReportData(
        title=f"Policies compared on {name}" if name else "Policies compared",
        question=_question(runs, recorded, name, same=file is not None),
        tables=tables or (comparison_table(summarise(runs, reference), reference, file),),
        more_tables=more_tables,
        runs=tuple(runs),
        reference=reference,
        verdict=verdict,
        not_claimed=not_claimed,
        recorded=tuple(recorded),
        modelled=(*modelled, *told),
        scenario=scenario or scenario_text(facts),
        provenance=provenance or {},
    )


def _question(runs: Sequence[RunSummary], recorded: Sequence[Result], name: str, *, same: bool) -> str:
    """Say what was compared: policies, workloads, jobs and cluster."""
    policies, seeds = len({run.policy for run in runs}), len({run.seed for run in runs})
    jobs = sorted({run.jobs for run in runs})
    count = f"{jobs[0]}" if len(jobs) == 1 else f"{jobs[0]} to {jobs[-1]}"
    on = f" of {name}" if name else ""
    if same:
        what = f"the one instance{on}, {seeds} seed{'s' if seeds > 1 else ''} of the policies' own randomness"
    else:
        what = f"{seeds} workload{'s' if seeds > 1 else ''}{on}, {count} jobs each"
    cluster = ""
    if recorded:
        nodes = machines(recorded[0].instance)
        kinds = ", ".join(dict.fromkeys(node.gpu_type for node in nodes))
        cluster = f", on {len(nodes)} nodes with {sum(node.gpus for node in nodes)} GPUs ({kinds})"
    who = "the policy" if policies == 1 else f"each of {policies} policies"
    return f"What does {who} cost on {what}{cluster}?"
