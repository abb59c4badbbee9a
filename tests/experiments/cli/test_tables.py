import io

import pytest
from rich.console import Console

from gpusched_experiments.cli.tables import print_comparison
from gpusched_experiments.cli.terminal import WIDE
from gpusched_experiments.report import RunSummary, summarise

RUNS = [
    RunSummary(policy, seed, 4, 1_000.0 + seed, cost, 1, 3_660.0, 7, 10, 0.02, 600.0, 700.0)
    for seed in range(5)
    for policy, cost in (("edf", 12_345.0), ("random-greedy", 0.0))
]


def printed(width):
    console = Console(file=io.StringIO(), width=width)
    print_comparison(console, summarise(RUNS, "edf"), "edf")
    return console.file.getvalue()


def test_without_a_terminal_the_whole_table_is_printed():
    text = printed(WIDE)
    for word in ("random-greedy", "[+92.5%, +92.5%]", "1 h 1 min", "switches", "non-clairv."):
        assert word in text
    assert "table.md" not in text
    assert max(map(len, text.splitlines())) <= WIDE


@pytest.mark.parametrize("width", [80, 120])
def test_a_narrow_terminal_gets_the_main_columns(width):
    text = printed(width)
    for word in ("random-greedy", "energy", "tardiness", "total", "late jobs", "The whole table is in table.md."):
        assert word in text
    assert "switches" not in text
    assert max(map(len, text.splitlines())) <= width
