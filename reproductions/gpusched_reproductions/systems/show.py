"""Run the parts that are not finished yet, and write what they came to."""

from __future__ import annotations

import math
import time
from functools import partial
from typing import TYPE_CHECKING, Protocol

from gpusched_env.model import checks as check_values
from gpusched_experiments.report.processes import PROCESSES, call_all
from gpusched_experiments.report.store import write_results
from gpusched_experiments.report.table import TEXT, Column, Outcome, Table, csv_text, markdown, markdown_rows
from gpusched_reproductions.systems.catalogue import ALL, parts_of
from gpusched_reproductions.systems.store import Shown, file_of, store, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from gpusched_experiments.report.chart import Drawing
    from gpusched_experiments.report.processes import Backend
    from gpusched_reproductions.systems.store import Check, Findings, Part

NOTE = (
    "Bands come from the published spread, or from prototypes that were made before; where one was set or counted "
    "otherwise, the page of the system says so. What is not met is said to be so."
)


class Watcher(Protocol):
    """Whom to tell how it goes."""

    def note(self, text: str) -> None:
        """Hear what somebody who reads the results must know."""

    def start(self, text: str, runs: int, finished: int) -> None:
        """Hear that the runs begin, and how many of them are finished already."""

    def finished(self) -> None:
        """Hear that one more run is finished."""


def show_systems(
    parts: Sequence[Part],
    folder: Path,
    *,
    quick: bool,
    workers: int,
    watcher: Watcher,
    drawing: Drawing | None = None,
    backend: Backend = PROCESSES,
) -> Outcome:
    """Run every part that is not finished yet, each in a process, and write all figures beside the published ones.

    Each part's outcome is written when it is there, so that a command that was stopped goes on where it was; but not
    if the code or the settings have changed since. The tables have all parts that the folder has, those that were not
    asked for too.

    Args:
        parts: The parts.
        folder: Where the files go.
        quick: Whether the quick versions run.
        workers: Number of processes, ≥ 1.
        watcher: Whom to tell how it goes.
        drawing: What draws; without it there are no figures.
        backend: What makes the processes.

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
        part: shown for part in (*parts_of(ALL), *chosen) if (shown := stored(folder, part, quick=quick)) is not None
    }
    to_run = [part for part in chosen if part not in known]
    watcher.start("systems", len(chosen), len(chosen) - len(to_run))
    files: list[str] = []
    calls = [partial(_timed, part, quick) for part in to_run]
    for index, (findings, run_s) in call_all(calls, (), workers, backend):
        known[to_run[index]] = shown = Shown(to_run[index], findings.checks, run_s)
        if drawing is not None and findings.chart is not None:
            files += write_results(folder, drawing.chart_files(findings.chart, file_of(shown.part)))
        store(folder, shown, quick=quick)
        watcher.finished()
    all_shown = [known[part] for part in dict.fromkeys((*parts_of(ALL), *chosen)) if part in known]
    summary = summary_table(all_shown)
    contents = {"table.md": page(all_shown, folder, quick=quick), "table.csv": csv_text(checks_table(all_shown))}
    return Outcome(folder, summary, (*files, *write_results(folder, contents)))


def _timed(part: Part, quick: bool) -> tuple[Findings, float]:
    begin = time.monotonic()
    return part.run(quick), time.monotonic() - begin


def summary_table(shown: Iterable[Shown]) -> Table:
    """Make the short table: how many of every part's figures lie in their bands, of those that have one."""
    columns: tuple[Column[Shown], ...] = (
        Column("system", "system", lambda s: s.part.system),
        Column("part", "part", lambda s: s.part.name),
        Column("title", "what it shows", lambda s: s.part.title),
        Column("met", "in their bands", lambda s: f"{sum(c.met for c in _banded(s))} of {len(_banded(s))}"),
        Column("run_s", "seconds", lambda s: s.run_s, "{:,.1f}".format),
    )
    return Table.of("Systems beside their published numbers", columns, shown)


def _banded(shown: Shown) -> list[Check]:
    """List the figures that have a band; the others are there to be looked at."""
    return [check for check in shown.checks if math.isfinite(check.low) or math.isfinite(check.high)]


def checks_table(shown: Iterable[Shown]) -> Table:
    """Make the long table: every figure beside the published one, its band, and whether it is met."""
    rows = [(s.part, check) for s in shown for check in s.checks]
    columns: tuple[Column[tuple[Part, Check]], ...] = (
        Column("system", "system", lambda row: row[0].system),
        Column("part", "part", lambda row: row[0].name),
        *(_lifted(column) for column in CHECK_COLUMNS),
    )
    return Table.of("Every figure", columns, rows)


def _lifted(column: Column[Check]) -> Column[tuple[Part, Check]]:
    return Column(column.name, column.title, lambda row: column.value(row[1]), column.form)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _short(number: float) -> str:
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def _ours(check: Check) -> float | str:
    return check.ours if math.isfinite(check.ours) else "n/a"


def _band(check: Check) -> str:
    """Write the band as a text, which has an end or two."""
    if math.isinf(check.low):
        return f"≤ {_short(check.high)}" if math.isfinite(check.high) else ""
    return f"≥ {_short(check.low)}" if math.isinf(check.high) else f"{_short(check.low)} to {_short(check.high)}"


CHECK_COLUMNS: tuple[Column[Check], ...] = (
    Column("what", "what", lambda c: c.what),
    Column("published", "published", lambda c: _finite(c.published), _short),
    Column("ours", "ours", _ours, _short),
    Column("band", "band", _band),
    Column("met", "met", lambda c: ("yes" if c.met else "**no**") if _band(c) else ""),
    Column("source", "source", lambda c: c.source, TEXT),
)


def page(shown: Sequence[Shown], folder: Path, *, quick: bool) -> str:
    """Write the page of all parts: the summary, then every part's figures and its chart."""
    parts = [markdown(summary_table(shown)), NOTE + "\n"]
    if quick:
        parts.append("These are the quick versions: to see that everything works, not to cite.\n")
    for each in shown:
        table = Table.of("", CHECK_COLUMNS, each.checks)
        parts.append(f"### {each.part.system}: {each.part.title}\n\n{markdown_rows(table)}\n")
        if (folder / f"{file_of(each.part)}.svg").is_file():
            parts.append(f"![{each.part.title}]({file_of(each.part)}.svg)\n")
    return "\n".join(parts)
