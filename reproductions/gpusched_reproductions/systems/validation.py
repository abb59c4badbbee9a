"""The systems, part by part: their checks in files, run where they are not finished, and the page of all of them."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpusched_env.errors import InputError
from gpusched_env.files import write_atomically
from gpusched_env.model import checks as check_values
from gpusched_env.provenance import provenance
from gpusched_experiments.report.code_version import code_version, commit, machine, version_beside
from gpusched_experiments.report.processes import PROCESSES, Backend, call_all
from gpusched_experiments.report.store import document_json, write_results
from gpusched_experiments.report.table import TEXT, Column, Outcome, Table, csv_text, markdown, markdown_rows
from gpusched_reproductions.data_sources import where_from
from gpusched_reproductions.systems.checks import Check, Measured, Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from gpusched_experiments.cli.progress import ExperimentWatcher
    from gpusched_experiments.report.chart import Drawing


@dataclass(frozen=True, slots=True)
class PartResult:
    """What a part came to: its figures, and the seconds that it took."""

    part: Part
    checks: tuple[Check, ...]
    run_s: float


def file_of(part: Part) -> str:
    return f"{part.system}-{part.name}"


def store(folder: Path, results: PartResult, *, quick: bool) -> None:
    facts = {**_key(results.part, quick), "commit": commit(), "machine": machine(), "run_s": round(results.run_s, 3)}
    checks = [asdict(check) | {"met": check.met} for check in results.checks]
    text = document_json("gpusched system", provenance(None, **facts), title=results.part.title, checks=checks)
    write_atomically(folder / f"{file_of(results.part)}.json", text)


def stored(folder: Path, part: Part, *, quick: bool) -> PartResult | None:
    try:
        document = json.loads((folder / f"{file_of(part)}.json").read_text(encoding="utf-8"))
        facts = document["provenance"]["facts"]
        if {name: facts.get(name) for name in _key(part, quick)} != _key(part, quick):
            return None
        return PartResult(part, tuple(_check(entry) for entry in document["checks"]), float(facts["run_s"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _key(part: Part, quick: bool) -> dict[str, Any]:
    code = f"{code_version()}-{version_beside(_module_of(part.system))}"
    return {"system": part.system, "part": part.name, "quick": quick, "code": code}


def _check(entry: dict[str, Any]) -> Check:
    ends = {"low": -math.inf, "high": math.inf, "ours": math.nan}
    values: dict[str, Any] = {name: value for name, value in entry.items() if name != "met"}
    values |= {name: end for name, end in ends.items() if values[name] is None}
    return Check(**values)


SYSTEMS = ("pipeswitch", "antman", "fikit", "gavel", "byteps", "hived")
ALL = "systems"
"""The name that stands for all of them on the command line."""


def parts_of(name: str) -> tuple[Part, ...]:
    if name not in (*SYSTEMS, ALL):
        raise InputError("system", name, f"one of {', '.join(SYSTEMS)}, or {ALL}")
    return tuple(part for each in SYSTEMS if name in (each, ALL) for part in import_module(_module_of(each)).PARTS)


def _module_of(system: str) -> str:
    return f"{__name__.rpartition('.')[0]}.{system}"


NOTE = (
    "Kinds of figures: *prediction*: published, and nothing was fitted to it; *fitted*: a parameter, a subset or the "
    "band was chosen by it; *input*: put in, or true by construction; *own formula*: compared with a formula or a "
    "program of ours, or with what was published of other rules. Only predictions are counted; a band is the deviation "
    "that we call agreement."
)
QUICK = "Quick runs are smaller than the published ones: their figures have no bands. They show that everything works."


def validate_systems(
    parts: Sequence[Part],
    folder: Path,
    *,
    quick: bool,
    workers: int,
    watcher: ExperimentWatcher,
    drawing: Drawing | None = None,
    backend: Backend = PROCESSES,
) -> Outcome:
    """Run every part that is not finished yet, each in a process, and write all figures beside the published ones.

    Each part's outcome is written when it is there, so that a command that was stopped goes on where it was; but not
    if the code or the settings have changed since. The tables have all parts that the folder has, those that were not
    asked for too.

    `backend` makes the processes, `workers` of them, ≥ 1; without `drawing` there are no figures.

    Raises:
        InputError: A number is out of its range, or the folder cannot be written.
    """
    check_values.whole("workers", workers)
    chosen = [part for part in parts if part.needs is None or part.needs.exists()]
    for part in parts:
        if part not in chosen and part.needs is not None:
            watcher.note(f"without {file_of(part)}, since {part.needs} is not there{where_from(part.needs)}")
    known = {
        part: results
        for part in (*parts_of(ALL), *chosen)
        if (results := stored(folder, part, quick=quick)) is not None
    }
    to_run = [part for part in chosen if part not in known]
    watcher.start("systems", len(chosen), len(chosen) - len(to_run))
    files: list[str] = []
    calls = [partial(_timed, part, quick) for part in to_run]
    for index, (measured, run_s) in call_all(calls, (), workers, backend):
        known[to_run[index]] = results = PartResult(to_run[index], measured.checks, run_s)
        if drawing is not None and measured.chart is not None:
            files += write_results(folder, drawing.chart_files(measured.chart, file_of(results.part)))
        store(folder, results, quick=quick)
        watcher.finished()
    all_results = [known[part] for part in dict.fromkeys((*parts_of(ALL), *chosen)) if part in known]
    summary = summary_table(all_results, quick=quick)
    contents = {
        "table.md": page(all_results, folder, quick=quick),
        "table.csv": csv_text(checks_table(all_results, quick=quick)),
    }
    return Outcome(folder, summary, (*files, *write_results(folder, contents)))


def _timed(part: Part, quick: bool) -> tuple[Measured, float]:
    begin = time.monotonic()
    return part.run(quick), time.monotonic() - begin


def summary_table(results: Iterable[PartResult], *, quick: bool = False) -> Table:
    """Make the short table: how many of every part's predictions lie in their bands, and how many other figures it has.

    Quick runs have no bands.
    """
    each = list(results)
    columns: tuple[Column[PartResult], ...] = (
        Column("system", "system", lambda s: s.part.system),
        Column("part", "part", lambda s: s.part.name),
        Column("title", "what it shows", lambda s: s.part.title),
        Column("met", "predictions met", lambda s: "no bands" if quick else _met(s.checks)),
        Column("others", "other figures", lambda s: sum(c.kind != "prediction" for c in s.checks), "{:,.0f}".format),
        Column("run_s", "seconds", lambda s: s.run_s, "{:,.1f}".format),
    )
    whole = _met([check for s in each for check in s.checks])
    notes = (QUICK,) if quick else (f"Predictions in their bands, all parts: {whole}.",) if whole else ()
    return Table.of("Models of six systems beside their published figures", columns, each, notes)


def _met(checks: Sequence[Check]) -> str:
    predictions = [check.met for check in checks if check.kind == "prediction"]
    return f"{sum(predictions)} of {len(predictions)}" if predictions else ""


def checks_table(results: Iterable[PartResult], *, quick: bool = False) -> Table:
    rows = [(s.part, check) for s in results for check in s.checks]
    columns: tuple[Column[tuple[Part, Check]], ...] = (
        Column("system", "system", lambda row: row[0].system),
        Column("part", "part", lambda row: row[0].name),
        *_check_columns(quick),
    )
    return Table.of("Every figure", columns, rows)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def _band(check: Check) -> str:
    if math.isinf(check.low):
        return f"≤ {_short(check.high)}" if math.isfinite(check.high) else ""
    return f"≥ {_short(check.low)}" if math.isinf(check.high) else f"{_short(check.low)} to {_short(check.high)}"


def _check_columns(quick: bool) -> tuple[Column[tuple[Part, Check]], ...]:
    """Return the columns of a figure; quick runs have no bands."""
    columns: tuple[Column[tuple[Part, Check]], ...] = (
        Column("what", "what", lambda row: row[1].what),
        Column("kind", "kind", lambda row: row[1].kind),
        Column("published", "published", lambda row: _finite(row[1].published), _short),
        Column("ours", "ours", lambda row: "n/a" if _finite(row[1].ours) is None else row[1].ours, _short),
        Column("band", "band", lambda row: _band(row[1])),
        Column("met", "met", lambda row: ("yes" if row[1].met else "**no**") if row[1].banded else ""),
        Column("source", "source", lambda row: row[1].source, TEXT),
    )
    return tuple(column for column in columns if not (quick and column.name in ("band", "met")))


NOT_PUBLIC = {
    "pipeswitch": "how fast memory that is not pinned crosses PCIe on its machines, how long its processes take to "
    "start with BERT, and how long what it stops still runs",
    "antman": "the load on which it gained 34 and 42 %, its table of completion times, its local coordinator",
    "fikit": "its models, their kernel times, and how busy each job keeps a GPU alone",
    "byteps": "NCCL's version, and its rate and cost of a tensor over PCIe and TCP, the links of its single machine, "
    "the number of CPU machines, and the model behind the gains of the abstract",
    "hived": "the GPUs promised to its 11 tenants, and the months of its trace",
}
"""What no public source gives, by system: without it the figures that are missed, or not predicted, stay open."""


def page(results: Sequence[PartResult], folder: Path, *, quick: bool) -> str:
    parts = [markdown(summary_table(results, quick=quick)), NOTE + "\n"]
    shown = dict.fromkeys(each.part.system for each in results)
    missing = [f"- {system}: {NOT_PUBLIC[system]}" for system in shown if system in NOT_PUBLIC]
    parts += ["\n".join(["Not public, so out of reach:\n", *missing, ""])] if missing else []
    for each in results:
        table = Table.of("", _check_columns(quick), [(each.part, check) for check in each.checks])
        parts.append(f"### {each.part.system}: {each.part.title}\n\n{markdown_rows(table)}\n")
        if (folder / f"{file_of(each.part)}.svg").is_file():
            parts.append(f"![{each.part.title}]({file_of(each.part)}.svg)\n")
    return "\n".join(parts)
