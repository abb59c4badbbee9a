"""The reports of a run and of a comparison, and the facts of their scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpusched_env.errors import InputError
from gpusched_env.formats.json_fields import check_provenance
from gpusched_env.formats.run_folder import read_result, read_run, result_of
from gpusched_env.model import Instance
from gpusched_env.parsing import parse_json
from gpusched_env.rendering.text import duration_text
from gpusched_env.simulator import Result
from gpusched_env.workload import Scenario, scenario_toml
from gpusched_experiments.report.comparison_folder import JOURNAL_PAGE, Compared
from gpusched_experiments.report.comparison_table import comparison_table
from gpusched_experiments.report.metrics import NAN, Billing, GroupMetrics, RunMetrics
from gpusched_experiments.report.recorded_times import Traced
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import GroupStatistics, summarise
from gpusched_experiments.report.table import Column, Table
from gpusched_operations.html_report.report_data import ReportData
from gpusched_operations.html_report.verdict import verdict_of

FORMAT = "gpusched comparison"


def scenario_of(facts: Mapping[str, Any]) -> Scenario | None:
    settings = facts.get("scenario")
    try:
        return Scenario().replace(settings) if isinstance(settings, dict) else None
    except (ValueError, TypeError, AttributeError):
        return None


def scenario_text(facts: Mapping[str, Any]) -> str:
    scenario = scenario_of(facts)
    return "" if scenario is None else scenario_toml(scenario)


def modelled_of(instance: Instance, facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is modelled: what the command said of it, and what the instance shows."""
    said, jobs, rented = facts.get("modelled", ()), instance.jobs, Billing.of(scenario_of(facts)).said()
    sentences = [*map(str, said if isinstance(said, list | tuple) else ()), *rented]
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


def run_folder_report(folder: Path) -> ReportData:
    run = read_run(folder)
    return run_report(result_of(run), run.facts["provenance"])


def run_report(result: Result, provenance: Mapping[str, Any]) -> ReportData:
    """Make the report of a finished run that was simulated with its intervals."""
    instance, jobs, facts = result.instance, len(result.completion_s), provenance.get("facts", {})
    nodes = instance.machines
    verdict = (
        f"{result.policy} costs {result.total_eur:,.2f} €: {result.energy_eur:,.2f} € for energy and "
        f"{result.tardiness_eur:,.2f} € for late jobs. {result.late_jobs} of {jobs} jobs "
        f"end{'s' if result.late_jobs == 1 else ''} late; from submission to completion they take "
        f"{duration_text(result.mean_completion_s)} on average."
    )
    return ReportData(
        title=f"{result.policy} on {instance.name or 'an instance'}",
        question=f"One run of one policy: {jobs} jobs on {len(nodes)} nodes with {sum(node.gpus for node in nodes)} "
        f"GPUs, seed {result.seed}.",
        tables=(_table(result, Billing.of(scenario_of(facts))),),
        recorded=(result,),
        verdict=(verdict,),
        modelled=modelled_of(instance, facts),
        scenario=scenario_text(facts),
        provenance=provenance,
    )


def _table(result: Result, billing: Billing) -> Table:
    metrics = RunMetrics.of(result, billing)
    emitted = billing.co2_kg(result)
    facts = (
        ("total cost", f"{result.total_eur:,.2f} €"),
        ("energy", f"{result.energy_eur:,.2f} €"),
        ("tardiness", f"{result.tardiness_eur:,.2f} €"),
        *([] if math.isnan(metrics.energy_kwh) else [("energy", f"{metrics.energy_kwh:,.2f} kWh")]),
        *([] if emitted is None else [("emissions", f"{emitted:,.2f} kg CO₂")]),
        ("late jobs", f"{result.late_jobs} of {len(result.completion_s)}"),
        ("completion, mean", duration_text(result.mean_completion_s)),
        ("completion, median", duration_text(metrics.median_completion_s)),
        ("completion, 95 %", duration_text(metrics.p95_completion_s)),
        ("completion, 99 %", duration_text(metrics.p99_completion_s)),
        ("waiting for the first start, mean", duration_text(metrics.waiting_s)),
        ("slowdown, mean", f"{metrics.slowdown:.3g}"),
        ("GPUs busy", f"{metrics.busy_gpus:.1%}"),
        ("nodes busy", f"{metrics.busy_nodes:.1%}"),
        ("last completion", duration_text(float(result.completion_s.max()))),
        ("switches", f"{int(result.switches.sum()):,}"),
        ("decision rounds", f"{result.rounds:,}"),
    )
    columns: tuple[Column[tuple[str, str]], ...] = (
        Column("measure", "measure", lambda fact: fact[0]),
        Column("value", "value", lambda fact: fact[1]),
    )
    return Table.of("The run", columns, facts)


def comparison_data(
    runs: Sequence[RunSummary],
    reference: str,
    *,
    recorded: Sequence[Result] = (),
    provenance: Mapping[str, Any] | None = None,
    scenario: str = "",
    tables: tuple[Table, ...] = (),
    modelled: tuple[str, ...] = (),
    **more: Any,
) -> ReportData:
    """Put the report of a comparison together.

    Args:
        provenance: Where it comes from; its facts name the scenario or the instance's file.
        modelled: What is modelled, beside what the facts and the first recorded run say.
    """
    facts = (provenance or {}).get("facts", {})
    file, known = facts.get("instance_file") or None, scenario_of(facts)
    replay = getattr(known, "trace", None)
    of_trace = "" if replay is None else f"{Path(replay.path).name} (format {replay.format})"
    name = file or of_trace or getattr(known, "name", "") or (recorded[0].instance.name if recorded else "")
    return ReportData(
        title=f"Policies compared on {name}" if name else "Policies compared",
        question=_question(runs, recorded, name, same=file is not None),
        tables=tables or (comparison_table(summarise(runs, reference), reference, file),),
        runs=tuple(runs),
        reference=reference,
        recorded=tuple(recorded),
        modelled=tuple(dict.fromkeys((*modelled, *(modelled_of(recorded[0].instance, facts) if recorded else ())))),
        scenario=scenario or scenario_text(facts),
        provenance=provenance or {},
        **more,
    )


def _question(runs: Sequence[RunSummary], recorded: Sequence[Result], name: str, *, same: bool) -> str:
    """Return what was compared: policies, workloads, jobs and cluster."""
    policies, seeds = len({run.policy for run in runs}), len({run.seed for run in runs})
    jobs = sorted({run.jobs for run in runs})
    count = f"{jobs[0]}" if len(jobs) == 1 else f"{jobs[0]} to {jobs[-1]}"
    on, plural = f" of {name}" if name else "", "s" if seeds > 1 else ""
    what = f"{seeds} workload{plural}{on}, {count} jobs each"
    if same:
        what = f"the one instance{on}, {seeds} seed{plural} of the policies' own randomness"
    cluster = ""
    if recorded:
        nodes = recorded[0].instance.machines
        kinds = ", ".join(dict.fromkeys(node.gpu_type for node in nodes))
        cluster = f", on {len(nodes)} nodes with {sum(node.gpus for node in nodes)} GPUs ({kinds})"
    who = "the policy" if policies == 1 else f"each of {policies} policies"
    return f"What does {who} cost on {what}{cluster}?"


def comparison_report(folder: Path) -> ReportData:
    document = _read(folder / "results.json")
    reference, provenance = document["reference"], document["provenance"]
    first, *others = compared = [_compared(folder, document, each) for each in (document, *document.get("more", ()))]
    instance = provenance.get("facts", {}).get("instance_file") or None
    scenario, journal = folder / "scenario.toml", folder / JOURNAL_PAGE
    first_said, heading, page = (journal.read_text("utf-8") if journal.is_file() else "").partition("## ")
    return comparison_data(
        first.runs,
        reference,
        recorded=_recorded(folder, document.get("recorded", {}), first.runs),
        provenance=provenance,
        tables=first.tables(reference, instance),
        more_tables=tuple(table for each in others for table in each.tables(reference, instance)),
        modelled=_modelled(compared),
        not_claimed=first.not_claimed,
        verdict=(*filter(None, [first_said.strip()]), *_verdict(compared, reference)),
        scenario=scenario.read_text(encoding="utf-8") if scenario.is_file() else "",
        page=heading + page,
    )


def read_json(path: Path, command: str) -> Any:
    try:
        return parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise InputError(str(path), str(error), f"a whole JSON file, as gpusched {command} writes it") from error


def _read(path: Path) -> dict[str, Any]:
    document = read_json(path, "compare")
    form = document.get("format") if isinstance(document, dict) else None
    if form != FORMAT:
        raise InputError(f"{path}: format", form, repr(FORMAT))
    check_provenance(str(path), document.get("provenance"))
    for name, kind in (("runs", list), ("reference", str)):
        if not isinstance(document.get(name), kind):
            raise InputError(f"{path}: {name}", document.get(name), "what gpusched compare writes there")
    return dict(document)


def _compared(folder: Path, document: dict[str, Any], part: dict[str, Any]) -> Compared:
    """Read what came out under one rule of GPU demand; a mean that is no number (null) becomes NaN."""
    path, traced = folder / "results.json", part.get("traced")
    if not part["runs"]:
        raise InputError(str(path), [], "one run or more")
    try:
        name, allowed, record = "runs", "objects with the measures of a run", None
        runs = [RunSummary.from_dict(record := each) for each in part["runs"]]
        name, allowed, record = "traced", "what a trace knows", traced
        known = None if traced is None else Traced.from_dict(traced)
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: {name}", record, f"{allowed} ({error})") from error
    rule, modelled = part.get("gpu_demand", ""), tuple(part.get("modelled", ()))
    groups = []
    for each in part.get("groups", ()):
        mean: dict[str, Any] = {name: NAN if value is None else value for name, value in each["mean"].items()}
        groups.append(GroupStatistics(each["policy"], each["runs"], GroupMetrics(**mean)))
    return replace(Compared.of(runs, document["reference"], rule, modelled, known), groups=tuple(groups))


def _modelled(compared: Sequence[Compared]) -> tuple[str, ...]:
    """Return what is modelled under every rule of GPU demand; what holds under some alone comes first."""
    rules: dict[str, list[str]] = {}
    for each in compared:
        for sentence in each.modelled:
            rules.setdefault(sentence, []).append(each.gpu_demand)
    some = [
        f"Tables of {', '.join(of)} demand: {sentence}" for sentence, of in rules.items() if len(of) < len(compared)
    ]
    return (*some, *(sentence for sentence, of in rules.items() if len(of) == len(compared)))


def _verdict(compared: Sequence[Compared], reference: str) -> tuple[str, ...]:
    """Return what came out under every rule of GPU demand, as it may differ."""
    verdicts = [verdict_of(each, reference) for each in compared]
    if len(compared) == 1:
        return (" ".join(verdicts[0]),)
    firsts = {said[0] for said in verdicts} if all(each.not_claimed for each in compared) else set()
    common = tuple(firsts) if len(firsts) == 1 else ()  # what ran is the same under every rule
    each_rule = (
        f"GPU demand {each.gpu_demand}: {' '.join(said[len(common) :])}"
        for each, said in zip(compared, verdicts, strict=True)
    )
    return (*common, *each_rule, f"The figures are those of {compared[0].gpu_demand} demand.")


def _recorded(folder: Path, folders: object, runs: tuple[RunSummary, ...]) -> tuple[Result, ...]:
    """Read the recorded runs that are among `runs`; `folders` are names below `runs`, by policy.

    A comparison that was stopped may have left others there, of which the results say nothing.
    """
    known = {(run.policy, run.seed, run.energy_eur, run.tardiness_eur) for run in runs}
    if not isinstance(folders, dict):
        raise InputError(f"{folder / 'results.json'}: recorded", folders, "folders by policy")
    results = []
    for policy, name in folders.items():
        if not isinstance(name, str) or "/" in name or "\\" in name or name in {"", ".", ".."}:
            raise InputError(f"{folder / 'results.json'}: recorded.{policy}", name, "the name of a folder in runs")
        results.append(read_result(folder / "runs" / name))
    return tuple(each for each in results if (each.policy, each.seed, each.energy_eur, each.tardiness_eur) in known)
