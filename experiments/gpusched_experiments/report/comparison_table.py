"""The table of a comparison, and its runs as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpusched_env.rendering.duration import duration_text
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate
from gpusched_experiments.report.table import MONEY, PERCENT, Column, Form, Table, Value, markdown_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import PolicyStatistics

TENTHS: Form = "{:.1f}".format
WHOLE: Form = "{:.0f}".format
SHORT: Form = "{:.3g}".format


def comparison_table(rows: Sequence[PolicyStatistics], reference: str, instance: str | None = None) -> Table:
    """Make the table; its first column is the policy's name.

    Args:
        rows: The statistics of every policy.
        reference: Name of the policy of the savings.
        instance: Name of the instance, if all seeds ran the same one.
    """

    def saving(name: str) -> Callable[[PolicyStatistics], Value]:
        return lambda row: (
            "reference"
            if row.policy == reference
            else Estimate(getattr(row, name), getattr(row, f"{name}_interval"), row.runs)
        )

    columns: tuple[Column[PolicyStatistics], ...] = (
        Column("policy", "policy", lambda row: row.policy),
        Column("energy_eur", "energy €", lambda row: row.energy_eur, MONEY),
        Column("tardiness_eur", "tardiness €", lambda row: row.tardiness_eur, MONEY),
        Column("total_eur", "total €", lambda row: row.total_eur, MONEY),
        Column("saving", f"saving vs {reference}", saving("saving"), PERCENT, interval=True),
        Column(
            "energy_saving", f"energy saving vs {reference}", saving("energy_saving"), PERCENT, interval=True,
            main=False,
        ),
        Column("late_jobs", "late jobs", lambda row: row.late_jobs, TENTHS),
        Column("completion_s", "mean completion", lambda row: row.mean_completion_s, duration_text, main=False),
        Column("switches", "switches", lambda row: row.switches, WHOLE, main=False),
        Column("ms_per_round", "ms per round", lambda row: 1000.0 * row.decision_s_per_round, SHORT, main=False),
        Column("clairvoyant_gap", "gap, clairvoyant", lambda row: row.clairvoyant_gap, PERCENT, main=False),
        Column("non_clairvoyant_gap", "gap, non-clairv.", lambda row: row.non_clairvoyant_gap, PERCENT, main=False),
    )  # fmt: skip
    return Table.of("Comparison", columns, rows, _notes(rows[0].runs, reference, instance))


def markdown_table(rows: Sequence[PolicyStatistics], reference: str, instance: str | None = None) -> str:
    """Write the table and its notes as Markdown; the arguments are those of `comparison_table`."""
    table = comparison_table(rows, reference, instance)
    return markdown_rows(table) + "\n\n" + "\n".join(f"{note}  " for note in table.notes).rstrip() + "\n"


def runs_csv(runs: Sequence[RunSummary]) -> str:
    """Write every run as a line of CSV, with a header."""
    return pl.DataFrame([run.as_dict() for run in runs]).write_csv()


def means_over(seeds: int, instance: str | None = None) -> str:
    """Say what the means are taken over: workloads of so many seeds, or one instance that all seeds ran."""
    count = f"{seeds} seed{'s' if seeds > 1 else ''}"
    if instance is None:
        return f"Means over {count}; every policy ran on the same instances."
    return f"Means over {count} of the policies' own randomness; all ran on the one instance of {instance}."


def _notes(seeds: int, reference: str, instance: str | None) -> tuple[str, ...]:
    """Say what the table's figures are, a sentence each."""
    interval = "; in brackets the 95 % bootstrap interval over seeds" if seeds >= LEAST_SEEDS else ""
    too_few = () if seeds >= LEAST_SEEDS else (f"No intervals: they need {LEAST_SEEDS} seeds or more.",)
    return (
        means_over(seeds, instance),
        f"Saving: 1 - (sum of total costs) / (sum of total costs of {reference}), paired by seed{interval}.",
        *too_few,
        "Gaps: mean total cost above the mean bound. The clairvoyant bound knows the epochs each job will need.",
        (
            "The other bounds what policies that keep due dates in the worst case can expect to pay if jobs need "
            "epochs as their distributions say: a sample may lie below it, and a trace's jobs need what they needed."
        ),
    )
