"""The report of a comparison folder."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.formats.run_folder import read_result
from gpusched_experiments.page.comparison_report import comparison_data
from gpusched_experiments.page.verdict import verdict_of
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.fared import NAN, GroupFared
from gpusched_experiments.report.recorded_times import Traced
from gpusched_experiments.report.run_summary import RunSummary
from gpusched_experiments.report.statistics import GroupStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpusched_env.simulator import Result
    from gpusched_experiments.page.report_data import ReportData

FORMAT = "gpusched comparison"


def comparison_report(folder: Path) -> ReportData:
    """Make the report of a folder that `gpusched compare` wrote.

    Raises:
        InputError: `results.json` is not whole or of another format, or a recorded run cannot be read.
    """
    document = _read(folder / "results.json")
    compared = [_compared(folder, document, each) for each in (document, *document.get("more", ()))]
    runs, facts = compared[0].runs, document["provenance"].get("facts", {})
    instance = facts.get("instance_file") or None
    scenario = folder / "scenario.toml"
    return comparison_data(
        runs,
        document["reference"],
        recorded=_recorded(folder, document.get("recorded", {}), runs),
        provenance=document["provenance"],
        tables=compared[0].tables(document["reference"], instance),
        more_tables=tuple(table for each in compared[1:] for table in each.tables(document["reference"], instance)),
        modelled=_modelled(compared),
        not_claimed=compared[0].not_claimed,
        verdict=_verdict(compared, document["reference"]),
        scenario=scenario.read_text(encoding="utf-8") if scenario.is_file() else "",
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(str(path), str(error), "a whole JSON file, as gpusched compare writes it") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(
            f"{path}: format", document.get("format") if isinstance(document, dict) else None, repr(FORMAT)
        )
    for name, kind in (("runs", list), ("reference", str), ("provenance", dict)):
        if not isinstance(document.get(name), kind):
            raise InputError(f"{path}: {name}", document.get(name), "what gpusched compare writes there")
    return document


def _compared(folder: Path, document: dict[str, Any], part: dict[str, Any]) -> Compared:
    """Read what came out under one rule of GPU demand."""
    runs = tuple(_run(folder, each) for each in part["runs"])
    if not runs:
        raise InputError(str(folder / "results.json"), [], "one run or more")
    traced, rule = part.get("traced"), part.get("gpu_demand", "")
    try:
        known = None if traced is None else Traced.from_dict(traced)
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / 'results.json'}: traced", traced, f"what a trace knows ({error})") from error
    compared = Compared.of(runs, document["reference"], rule, tuple(part.get("modelled", ())), known)
    return replace(compared, groups=tuple(map(_group, part.get("groups", ()))))


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
    """Say what came out under every rule of GPU demand, as it may differ."""
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


def _group(values: dict[str, Any]) -> GroupStatistics:
    mean: dict[str, Any] = {name: NAN if value is None else value for name, value in values["mean"].items()}
    return GroupStatistics(values["policy"], values["runs"], GroupFared(**mean))


def _run(folder: Path, record: object) -> RunSummary:
    """Read a run; what is no number (null) becomes NaN."""
    try:
        return RunSummary.from_dict(record)  # type: ignore[arg-type]
    except (KeyError, TypeError) as error:
        allowed = "objects with the measures of a run"
        raise InputError(f"{folder / 'results.json'}: runs", record, f"{allowed} ({error})") from error


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
