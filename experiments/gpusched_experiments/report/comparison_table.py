"""The tables of a comparison in all formats, and its runs as CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import polars as pl

from gpusched_baselines.registry import KEEP_DUE_DATES
from gpusched_env.rendering.text import duration_text
from gpusched_experiments.report.estimate import LEAST_SEEDS, Estimate
from gpusched_experiments.report.table import (
    MONEY,
    PERCENT,
    SHARE,
    Column,
    ColumnNote,
    Form,
    Table,
    Value,
    markdown_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gpusched_experiments.report.run_summary import RunSummary
    from gpusched_experiments.report.statistics import GroupStatistics, PolicyStatistics

T = TypeVar("T")


def count_text(count: float) -> str:
    return f"{count:,.0f}" if float(count).is_integer() else f"{count:,.1f}"


COUNTS: Form = count_text
WHOLE: Form = "{:.0f}".format
NONE = "\N{EN DASH}"
"""Stands where a bound does not hold."""
SHORT: Form = "{:.3g}".format
TWO: Form = "{:,.2f}".format
MOST_GROUPS = 12
"""Groups of jobs that the table has; the file has all."""


def comparison_table(
    rows: Sequence[PolicyStatistics], reference: str, instance: str | None = None, *, of_trace: bool = False
) -> Table:
    """Make the table of the costs; its first column is the policy's name.

    Args:
        of_trace: Whether a trace was replayed: then the non-clairvoyant bound is none, and left out.
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
        Column("late_jobs", "late jobs", lambda row: row.late_jobs, COUNTS),
        Column("completion_s", "mean completion", lambda row: row.mean_completion_s, duration_text),
        Column("clairvoyant_gap", "gap, clairvoyant", lambda row: row.clairvoyant_gap, PERCENT, main=False),
    )  # fmt: skip
    if not of_trace and not KEEP_DUE_DATES.isdisjoint(row.policy for row in rows):
        columns += (Column("non_clairvoyant_gap", "gap, non-clairv.", _bounded_gap, PERCENT, main=False),)
    notes = _notes(rows[0].runs, reference, instance)
    return Table.of("Costs", columns, rows, notes).keeping(range(len(columns)))


def _bounded_gap(row: PolicyStatistics) -> Value:
    return row.non_clairvoyant_gap if row.policy in KEEP_DUE_DATES else NONE


def metrics_table(rows: Sequence[PolicyStatistics]) -> Table:
    """Make the table of metrics of jobs and machines; columns of which nothing is known are left out."""
    columns: tuple[Column[PolicyStatistics], ...] = (
        Column("policy", "policy", lambda row: row.policy),
        Column("energy_kwh", "energy kWh", lambda row: row.metrics.energy_kwh, TWO),
        Column("co2_kg", "kg CO₂", lambda row: row.co2_kg, TWO),
        Column("waiting_s", "waiting", lambda row: row.metrics.waiting_s, duration_text),
        Column("median_completion_s", "median completion", lambda row: row.metrics.median_completion_s, duration_text),
        Column("p95_completion_s", "95 %", lambda row: row.metrics.p95_completion_s, duration_text),
        Column("p99_completion_s", "99 %", lambda row: row.metrics.p99_completion_s, duration_text, main=False),
        Column("longest_completion_s", "longest", lambda row: row.metrics.longest_completion_s, duration_text),
        Column("slowdown", "slowdown", lambda row: row.metrics.slowdown, SHORT),
        Column("busy_gpus", "GPUs busy", lambda row: row.metrics.busy_gpus, SHARE),
        Column("busy_nodes", "nodes busy", lambda row: row.metrics.busy_nodes, SHARE, main=False),
        Column("switches", "switches", lambda row: row.switches, WHOLE, main=False),
        Column("ms_per_round", "ms per round", lambda row: 1000.0 * row.decision_s_per_round, SHORT, main=False),
    )
    chosen = known_columns(columns, rows)
    return Table.of("Jobs and machines", chosen, rows, _metrics_notes({column.name for column in chosen}))


def groups_table(groups: Sequence[GroupStatistics], most: int | None = MOST_GROUPS) -> Table:
    """Make the table of tenants and classes of jobs; of many the first `most`, all if None."""
    names = list(dict.fromkeys((each.mean.kind, each.mean.name) for each in groups))
    shown = set(names if most is None else names[:most])
    columns: tuple[Column[GroupStatistics], ...] = (
        Column("kind", "jobs of", lambda row: row.mean.kind),
        Column("name", "name", lambda row: row.mean.name),
        Column("policy", "policy", lambda row: row.policy),
        Column("jobs", "jobs", lambda row: row.mean.jobs, COUNTS),
        Column("late_jobs", "late jobs", lambda row: row.mean.late_jobs, COUNTS),
        Column("energy_eur", "energy €", lambda row: row.mean.energy_eur, MONEY),
        Column("tardiness_eur", "tardiness €", lambda row: row.mean.tardiness_eur, MONEY),
        Column("waiting_s", "waiting", lambda row: row.mean.waiting_s, duration_text),
        Column("mean_completion_s", "mean completion", lambda row: row.mean.mean_completion_s, duration_text),
        Column("p95_completion_s", "95 %", lambda row: row.mean.p95_completion_s, duration_text),
        Column("slowdown", "slowdown", lambda row: row.mean.slowdown, SHORT),
    )
    rows = [each for each in groups if (each.mean.kind, each.mean.name) in shown]
    left_out = (f"{len(names) - len(shown)} more groups are in groups.csv.",) if len(shown) < len(names) else ()
    return Table.of(
        "Tenants and classes", columns, rows, ("Energy: the part of the bill of the job's GPUs.", *left_out)
    )


def known_columns(columns: Iterable[Column[T]], rows: Sequence[T]) -> tuple[Column[T], ...]:
    def is_known(column: Column[T]) -> bool:
        return any(value == value for value in map(column.value, rows))  # noqa: PLR0124 - NaN differs from itself

    return tuple(column for column in columns if is_known(column))


def markdown_table(rows: Sequence[PolicyStatistics], reference: str, instance: str | None = None) -> str:
    """Write the tables of costs and of jobs and machines, with their notes; the arguments are those of the first."""
    return tables_markdown((comparison_table(rows, reference, instance), metrics_table(rows)))


def tables_markdown(tables: Iterable[Table], *, titled: bool = False) -> str:
    return "\n".join(
        (f"### {t.title}\n\n" if titled else "") + f"{markdown_rows(t)}\n\n" + "  \n".join(t.notes) + "\n"
        for t in tables
    )


def runs_csv(runs: Sequence[RunSummary], gpu_demands: Sequence[str] = ()) -> str:
    """Write every run as a line of CSV, with a header; with a column of the rules of its GPU demand, if given."""
    frame = pl.DataFrame([run.as_dict() for run in runs], infer_schema_length=None)
    return (frame.insert_column(0, pl.Series("gpu_demand", gpu_demands)) if gpu_demands else frame).write_csv()


def means_over(seeds: int, instance: str | None = None) -> str:
    count = f"{seeds} seed{'s' if seeds > 1 else ''}"
    if instance is None:
        return f"Means over {count}; every policy ran on the same instances."
    return f"Means over {count} of the policies' own randomness; all ran on the one instance of {instance}."


def _notes(seeds: int, reference: str, instance: str | None) -> tuple[str, ...]:
    interval = "; in brackets the 95 % bootstrap interval over seeds" if seeds >= LEAST_SEEDS else ""
    too_few = () if seeds >= LEAST_SEEDS else (f"No intervals: they need {LEAST_SEEDS} seeds or more.",)
    other_bound = (
        "The other bounds what policies that plan due dates for the worst case can expect to pay if jobs need "
        "epochs as their distributions say: a sample may lie below it; " + NONE + " for policies that do not plan so."
    )
    return (
        means_over(seeds, instance),
        f"Saving: 1 - (sum of total costs) / (sum of total costs of {reference}), paired by seed{interval}.",
        *too_few,
        ColumnNote("Completion: from submission to the end.", "completion_s"),
        ColumnNote(
            "Gaps: mean total cost above the mean bound. The clairvoyant bound knows the epochs each job will need.",
            "clairvoyant_gap",
        ),
        ColumnNote(other_bound, "non_clairvoyant_gap"),
    )


_METRICS_NOTES = {
    "waiting_s": "Waiting: from submission to the first start, mean.",
    "p95_completion_s": "Percentiles, longest: of a run's jobs, from submission to the end; then the mean over seeds.",
    "slowdown": "Slowdown: time to the end / the time of the job's epochs alone where fastest (at least 10 s); mean.",
    "busy_gpus": "Busy: part of the time from the first submission to the last completion; a shared GPU counts once.",
    "energy_kwh": "kWh: at the data centre's meter (with its PUE).",
}


def _metrics_notes(columns: set[str]) -> tuple[str, ...]:
    also = {"p95_completion_s": ("p99_completion_s", "longest_completion_s"), "busy_gpus": ("busy_nodes",)}
    return tuple(ColumnNote(text, n, *also.get(n, ())) for n, text in _METRICS_NOTES.items() if n in columns)
