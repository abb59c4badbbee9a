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
from gpusched_experiments.report.code_version import code_version, commit, machine, systems_version
from gpusched_experiments.report.processes import PROCESSES, Backend, call_all
from gpusched_experiments.report.store import document_json, write_results
from gpusched_experiments.report.table import TEXT, Column, Outcome, Table, csv_text, markdown, markdown_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from gpusched_experiments.cli.progress import ExperimentWatcher
    from gpusched_experiments.report.chart import Chart, Drawing


@dataclass(frozen=True, slots=True)
class Check:
    """One figure: what was published, what we get, and where ours should lie.

    Args:
        what: What is measured, with its unit.
        ours: Our figure.
        low: Lower end of the band, included; -inf where there is none.
        high: Upper end, included; inf where there is none.
        published: The published figure, or None where there is only a band.
        source: Where the published figure stands, or where the band comes from.

    Raises:
        InputError: The band is empty.
    """

    what: str
    ours: float
    low: float = -math.inf
    high: float = math.inf
    published: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if not self.low <= self.high:
            raise InputError("check.low", self.low, f"a number <= check.high ({self.high})")

    @property
    def met(self) -> bool:
        """Return whether our figure lies in the band; NaN lies in none."""
        return self.low <= self.ours <= self.high

    @classmethod
    def around(cls, what: str, ours: float, published: float, tolerance: float, source: str = "") -> Check:
        """Make the check that our figure lies within `tolerance`, in its unit, of the published one."""
        return cls(what, ours, published - tolerance, published + tolerance, published, source)

    @classmethod
    def within(cls, what: str, ours: float, published: float, share: float, source: str = "") -> Check:
        """Make the check that our figure lies within `share` of the published one, 0.02 for 2 %."""
        return cls.around(what, ours, published, abs(published) * share, source)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a part came to: its figures, and a chart, if it has one."""

    checks: tuple[Check, ...]
    chart: Chart | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One experiment on one system: it runs in a process of its own, so `run` must be a function of a module.

    Attributes:
        system: The system, as its page is called: `pipeswitch`, `antman`, `fikit`, `gavel`, `byteps`, `hived`.
        name: Name of the part, unique within the system, which its files take: letters, digits and hyphens.
        title: What it shows, in a line.
        run: Runs it; told whether a quick version is wanted, of some tens of seconds at most.
        needs: Public data that it needs, a file or folder; without it the part is left out, and said to be.
    """

    system: str
    name: str
    title: str
    run: Callable[[bool], Measured]
    needs: Path | None = None


@dataclass(frozen=True, slots=True)
class PartResult:
    """What a part came to: its figures, and the seconds that it took."""

    part: Part
    checks: tuple[Check, ...]
    run_s: float


def file_of(part: Part) -> str:
    """Name the files of a part, without their ending."""
    return f"{part.system}-{part.name}"


def store(folder: Path, results: PartResult, *, quick: bool) -> None:
    """Write what a part came to, and how it was made."""
    facts = {**_key(results.part, quick), "commit": commit(), "machine": machine(), "run_s": round(results.run_s, 3)}
    checks = [asdict(check) | {"met": check.met} for check in results.checks]
    text = document_json("gpusched system", provenance(None, **facts), title=results.part.title, checks=checks)
    write_atomically(folder / f"{file_of(results.part)}.json", text)


def stored(folder: Path, part: Part, *, quick: bool) -> PartResult | None:
    """Read what a part came to; None if it has not run, or other code or settings made it."""
    try:
        document = json.loads((folder / f"{file_of(part)}.json").read_text(encoding="utf-8"))
        facts = document["provenance"]["facts"]
        if {name: facts.get(name) for name in _key(part, quick)} != _key(part, quick):
            return None
        return PartResult(part, tuple(_check(entry) for entry in document["checks"]), float(facts["run_s"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _key(part: Part, quick: bool) -> dict[str, Any]:
    code = f"{code_version()}-{systems_version()}"
    return {"system": part.system, "part": part.name, "quick": quick, "code": code}


def _check(entry: dict[str, Any]) -> Check:
    """Make the check that was written; what JSON has no number for is null there."""
    ends = {"low": -math.inf, "high": math.inf, "ours": math.nan}
    values: dict[str, Any] = {name: value for name, value in entry.items() if name != "met"}
    values |= {name: end for name, end in ends.items() if values[name] is None}
    return Check(**values)


SYSTEMS = ("pipeswitch", "antman", "fikit", "gavel", "byteps", "hived")
ALL = "systems"
"""The name that stands for all of them on the command line."""


def parts_of(name: str) -> tuple[Part, ...]:
    """List the parts of a system, or of all of them.

    Args:
        name: A system, or `ALL`.

    Raises:
        InputError: There is no such system.
    """
    if name not in (*SYSTEMS, ALL):
        raise InputError("system", name, f"one of {', '.join(SYSTEMS)}, or {ALL}")
    here = __name__.rpartition(".")[0]
    return tuple(part for each in SYSTEMS if name in (each, ALL) for part in import_module(f"{here}.{each}").PARTS)


NOTE = (
    "Bands come from the published spread, or from prototypes that were made before; where one was set or counted "
    "otherwise, the page of the system says so. What is not met is said to be so."
)


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
        WorkerError: A process ended early; what was finished is stored.
    """
    check_values.whole("workers", workers)
    chosen = [part for part in parts if part.needs is None or part.needs.exists()]
    for part in parts:
        if part not in chosen:
            watcher.note(f"without {file_of(part)}, since {part.needs} is not there")
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
    summary = summary_table(all_results)
    contents = {"table.md": page(all_results, folder, quick=quick), "table.csv": csv_text(checks_table(all_results))}
    return Outcome(folder, summary, (*files, *write_results(folder, contents)))


def _timed(part: Part, quick: bool) -> tuple[Measured, float]:
    begin = time.monotonic()
    return part.run(quick), time.monotonic() - begin


def summary_table(results: Iterable[PartResult]) -> Table:
    """Make the short table: how many of every part's figures lie in their bands, of those that have one."""
    columns: tuple[Column[PartResult], ...] = (
        Column("system", "system", lambda s: s.part.system),
        Column("part", "part", lambda s: s.part.name),
        Column("title", "what it shows", lambda s: s.part.title),
        Column("met", "in their bands", lambda s: f"{sum(c.met for c in _banded(s))} of {len(_banded(s))}"),
        Column("run_s", "seconds", lambda s: s.run_s, "{:,.1f}".format),
    )
    return Table.of("Systems beside their published numbers", columns, results)


def _banded(results: PartResult) -> list[Check]:
    """List the figures that have a band; the others are there to be looked at."""
    return [check for check in results.checks if math.isfinite(check.low) or math.isfinite(check.high)]


def checks_table(results: Iterable[PartResult]) -> Table:
    """Make the long table: every figure beside the published one, its band, and whether it is met."""
    rows = [(s.part, check) for s in results for check in s.checks]
    columns: tuple[Column[tuple[Part, Check]], ...] = (
        Column("system", "system", lambda row: row[0].system),
        Column("part", "part", lambda row: row[0].name),
        *CHECK_COLUMNS,
    )
    return Table.of("Every figure", columns, rows)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def _band(check: Check) -> str:
    """Write the band as a text, which has an end or two."""
    if math.isinf(check.low):
        return f"≤ {_short(check.high)}" if math.isfinite(check.high) else ""
    return f"≥ {_short(check.low)}" if math.isinf(check.high) else f"{_short(check.low)} to {_short(check.high)}"


CHECK_COLUMNS: tuple[Column[tuple[Part, Check]], ...] = (
    Column("what", "what", lambda row: row[1].what),
    Column("published", "published", lambda row: _finite(row[1].published), _short),
    Column("ours", "ours", lambda row: "n/a" if _finite(row[1].ours) is None else row[1].ours, _short),
    Column("band", "band", lambda row: _band(row[1])),
    Column("met", "met", lambda row: ("yes" if row[1].met else "**no**") if _band(row[1]) else ""),
    Column("source", "source", lambda row: row[1].source, TEXT),
)


def page(results: Sequence[PartResult], folder: Path, *, quick: bool) -> str:
    """Write the page of all parts: the summary, then every part's figures and its chart."""
    parts = [markdown(summary_table(results)), NOTE + "\n"]
    if quick:
        parts.append("These are the quick versions: to see that everything works, not to cite.\n")
    for each in results:
        table = Table.of("", CHECK_COLUMNS, [(each.part, check) for check in each.checks])
        parts.append(f"### {each.part.system}: {each.part.title}\n\n{markdown_rows(table)}\n")
        if (folder / f"{file_of(each.part)}.svg").is_file():
            parts.append(f"![{each.part.title}]({file_of(each.part)}.svg)\n")
    return "\n".join(parts)
