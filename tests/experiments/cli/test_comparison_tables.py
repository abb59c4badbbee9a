import io
from dataclasses import replace

import pytest
from rich.console import Console

from gpusched_experiments.cli.comparison_plan import print_comparisons
from gpusched_experiments.cli.terminal import WIDE
from gpusched_experiments.report import RunSummary
from gpusched_experiments.report.comparison_folder import Compared
from gpusched_experiments.report.metrics import RunMetrics

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
