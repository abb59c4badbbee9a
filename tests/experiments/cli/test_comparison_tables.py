import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from gpusched_experiments.cli.comparison_plan import print_comparisons
from gpusched_experiments.cli.limits import Limited
from gpusched_experiments.cli.terminal import WIDE, print_table
from gpusched_experiments.report import RunSummary
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.comparison_table import NONE
from gpusched_experiments.report.comparison_text import comparisons_text
from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.metrics import RunMetrics
from gpusched_experiments.report.table import COUNT, PERCENT, Column, ColumnNote, Table

RUNS = [
    RunSummary(policy, seed, 4, 1_000.0 + seed, cost, 1, 3_660.0, 7, 10, 0.02, 600.0, 700.0, RunMetrics(waiting_s=90.0))
    for seed in range(5)
    for policy, cost in (("edf", 12_345.0), ("random-greedy", 0.0))
]


def printed(width, *compared):
    console = Console(file=io.StringIO(), width=width)
    print_comparisons(console, compared or [Compared.of(RUNS, "edf")], "edf", None, "a/table.md")
    return console.file.getvalue()


def test_without_a_terminal_all_columns_are_printed():
    text = printed(WIDE)
    for word in ("random-greedy", "[+92.5%, +92.5%]", "1 h 1 min", "switches", "non-clairv.", "1 min 30 s", "Gaps:"):
        assert word in text
    assert "table.md" not in text
    assert max(map(len, text.splitlines())) <= WIDE


@pytest.mark.parametrize(("width", "late"), [(80, False), (120, True)])
def test_a_narrow_terminal_gets_the_columns_that_fit_and_what_they_mean(width, late):
    text = printed(width)
    for word in ("random-greedy", "energy", "tardiness", "total", "saving", "All columns are in a/table.md."):
        assert word in text
    assert ("late jobs" in text) == late
    assert "Gaps" not in text
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_of_a_trace_every_rule_has_its_table_and_what_is_modelled_is_said():
    runs = [replace(run, energy_eur=run.energy_eur + 1.0) for run in RUNS]
    text = printed(
        WIDE, Compared.of(RUNS, "edf", "elastic", ("Due dates are modelled.",)), Compared.of(runs, "edf", "exact")
    )
    for word in ("Costs, GPU demand: elastic", "Costs, GPU demand: exact", "Due dates are modelled.", "1,003.00"):
        assert word in text
    assert "non-clairv." not in text


TRACKS = (
    Column("track", "track", lambda row: row[0]),
    Column("gap", "gap, non-clairv.", lambda row: row[1], PERCENT, main=False),
    Column("jobs", "jobs", len, COUNT, main=False),
    Column("hard", "what is hard", lambda row: row[2]),
)


@pytest.mark.parametrize(("width", "columns"), [(80, 4), (72, 3), (50, 2)])
def test_in_any_width_numbers_and_names_are_whole_and_what_is_left_out_is_not_explained(width, columns):
    hard = "decisions weigh a late job against the energy of all"
    rows = [("restarts-1800", Estimate(0.481, (0.412, 0.559), 5), hard)]
    notes = ("Of all.", ColumnNote("Gap: above the bound.", "gap"))
    console = Console(file=io.StringIO(), width=width)
    cut = print_table(console, Table.of("Tracks", TRACKS, rows, notes), named=True, stacked=None)
    text = console.file.getvalue()
    assert cut == (columns < len(TRACKS))
    assert ("+48.1%" in text, "Gap: above" in text) == (columns > 2, columns > 2)
    assert all(word in text for word in ("restarts-1800", *hard.split(), "Of all."))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width


def test_a_bound_is_shown_of_the_policies_for_which_it_holds_and_csv_has_numbers_alone():
    runs = [replace(run, policy="sts-x" if run.policy == "random-greedy" else run.policy) for run in RUNS]
    compared = Compared.of(runs, "edf")
    costs = compared.tables("edf")[0]
    assert [row["non_clairvoyant_gap"] for row in costs.as_dicts()] == [pytest.approx(18.07, rel=0.1), NONE]
    rows = list(csv.DictReader(io.StringIO(comparisons_text([compared], "edf", None, "csv"))))
    assert (rows[0]["saving"], rows[0]["energy_saving"]) == ("", "")
    assert float(rows[1]["saving"]) > 0.0
    assert [row["non_clairvoyant_gap"] == "" for row in rows] == [False, True]
    alone = Compared.of([run for run in runs if run.policy == "sts-x"], "sts-x").tables("sts-x")[0]
    assert "non-clairv" not in " ".join((*(column.title for column in alone.columns), *alone.notes))


def test_a_row_by_power_limit_has_means_hours_and_what_is_saved_in_all():
    runs = [
        replace(run, metrics=replace(run.metrics, energy_kwh=3.0 + run.seed)) for run in RUNS if run.policy == "edf"
    ]
    row = Limited.of("0.8", runs, [replace(run, energy_eur=2.0 * run.energy_eur) for run in runs])
    first = runs[0]
    assert (row.limit, row.kwh) == ("0.8", 5.0)
    assert (row.energy_eur, row.tardiness_eur) == (first.energy_eur + 2.0, first.tardiness_eur)
    assert row.late == first.late_jobs / first.jobs
    assert row.completion_h == first.mean_completion_s / 3600.0
    total = sum(run.energy_eur + run.tardiness_eur for run in runs)
    assert row.saving.value == pytest.approx(1.0 - total / (total + sum(run.energy_eur for run in runs)))
