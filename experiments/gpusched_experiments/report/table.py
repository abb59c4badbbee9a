"""The comparison table: its columns as text, Markdown and CSV."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from gpusched_env.rendering.duration import duration_text
from gpusched_experiments.report.statistics import LEAST_SEEDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import Interval, PolicyStatistics


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table.

    Attributes:
        title: Its heading, with the unit.
        text: Writes a policy's value.
        main: Whether it belongs to the table even where there is little room.
    """

    title: str
    text: Callable[[PolicyStatistics], str]
    main: bool = True


def columns(reference: str) -> tuple[Column, ...]:
    """List the columns, the first of which is the policy's name; `reference` names the policy of the savings."""
    return (
        Column("policy", lambda row: row.policy),
        Column("energy €", lambda row: _money(row.energy_eur)),
        Column("tardiness €", lambda row: _money(row.tardiness_eur)),
        Column("total €", lambda row: _money(row.total_eur)),
        Column(f"saving vs {reference}", lambda row: _saving(row, reference, row.saving, row.saving_interval)),
        Column(
            f"energy saving vs {reference}",
            lambda row: _saving(row, reference, row.energy_saving, row.energy_saving_interval),
            main=False,
        ),
        Column("late jobs", lambda row: f"{row.late_jobs:.1f}"),
        Column("mean completion", lambda row: duration_text(row.mean_completion_s), main=False),
        Column("switches", lambda row: f"{row.switches:.0f}", main=False),
        Column("ms per round", lambda row: f"{1000.0 * row.decision_s_per_round:.3g}", main=False),
        Column("gap, clairvoyant", lambda row: _percent(row.clairvoyant_gap), main=False),
        Column("gap, non-clairv.", lambda row: _percent(row.non_clairvoyant_gap), main=False),
    )


def notes(rows: Sequence[PolicyStatistics], reference: str) -> tuple[str, ...]:
    """Say what the table's figures are, a sentence each."""
    runs = rows[0].runs
    interval = "; in brackets the 95 % bootstrap interval over seeds" if runs >= LEAST_SEEDS else ""
    too_few = () if runs >= LEAST_SEEDS else (f"No intervals: they need {LEAST_SEEDS} seeds or more.",)
    return (
        f"Means over {runs} seed{'s' if runs > 1 else ''}; every policy ran on the same instances.",
        f"Saving: 1 - (sum of total costs) / (sum of total costs of {reference}), paired by seed{interval}.",
        *too_few,
        "Gaps: mean total cost above the mean bound. The clairvoyant bound knows the epochs each job will need.",
        (
            "The other bounds what policies that keep due dates in the worst case can expect to pay if jobs need "
            "epochs as their distributions say: a sample may lie below it, and a trace's jobs need what they needed."
        ),
    )


def markdown_table(rows: Sequence[PolicyStatistics], reference: str) -> str:
    """Write the table and its notes as Markdown."""
    chosen = columns(reference)
    lines = [[column.title for column in chosen], ["---"] + ["---:"] * (len(chosen) - 1)]
    lines += [[column.text(row) for column in chosen] for row in rows]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return table + "\n\n" + "\n".join(f"{note}  " for note in notes(rows, reference)).rstrip() + "\n"


def runs_csv(runs: Sequence[RunSummary]) -> str:
    """Write every run as a line of CSV, with a header."""
    return pl.DataFrame([run.as_dict() for run in runs]).write_csv()


def _money(value: float) -> str:
    return f"{value:,.2f}"


def _percent(value: float) -> str:
    if math.isnan(value):
        return "n/a"
    return f"{value:+.0%}" if abs(value) >= 10 else f"{value:+.1%}"


def _saving(row: PolicyStatistics, reference: str, share: float, interval: Interval | None) -> str:
    if row.policy == reference:
        return "reference"
    if interval is None:
        return _percent(share)
    return f"{_percent(share)} [{_percent(interval[0])}, {_percent(interval[1])}]"
