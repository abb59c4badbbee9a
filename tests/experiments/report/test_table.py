import csv
import io
from operator import itemgetter

from gpusched_experiments.report.estimate import Estimate
from gpusched_experiments.report.table import (
    COUNT,
    MILLISECONDS,
    MONEY,
    PERCENT,
    RATIO,
    SHARE,
    Column,
    Table,
    table_text,
)

TABLE = Table.of(
    "Costs",
    (
        Column("policy", "policy", itemgetter(0)),
        Column("nodes", "nodes", itemgetter(1), COUNT),
        Column("energy_eur", "energy €", itemgetter(2), MONEY, interval=True),
        Column("saving", "saved", itemgetter(3), PERCENT, interval=True),
        Column("late", "late jobs", itemgetter(4), SHARE),
        Column("round_s", "one round [ms]", itemgetter(5), MILLISECONDS),
        Column("growth", "growth", itemgetter(6), RATIO),
    ),
    (
        ("edf", 1000, Estimate(1234.5, (1000.0, 2000.25), 5), None, 0.125, 0.0123, 1.0),
        ("sts", 10, Estimate(1.0, None, 1), Estimate(0.385, (-0.01, 0.5), 5), 0.0, 2.0, 1.256),
        ("x", 10, Estimate(float("nan"), None, 0), Estimate(-12.5, None, 2), float("nan"), 0.0, 0.5),
    ),
    ("A note.",),
)


def test_the_markdown_has_values_with_units_and_the_csv_full_numbers_with_both_ends_of_intervals():
    assert table_text(TABLE, "md") == (
        "### Costs\n\n"
        "| policy | nodes | energy € | saved | late jobs | one round [ms] | growth |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| edf | 1,000 | 1,234.50 [1,000.00, 2,000.25] |  | 12.5% | 12.3 | 1.00 |\n"
        "| sts | 10 | 1.00 | +38.5% [-1.0%, +50.0%] | 0.0% | 2,000 | 1.26 |\n"
        "| x | 10 | n/a | -1250% | n/a | 0 | 0.50 |\n"
        "\nA note.\n"
    )
    rows = list(csv.DictReader(io.StringIO(table_text(TABLE, "csv"))))
    assert rows[0] == {
        "policy": "edf", "nodes": "1000", "energy_eur": "1234.5", "energy_eur_low": "1000.0",
        "energy_eur_high": "2000.25", "saving": "", "saving_low": "", "saving_high": "", "late": "0.125",
        "round_s": "0.0123", "growth": "1.0",
    }  # fmt: skip
    assert (rows[1]["saving"], rows[1]["saving_low"], rows[1]["saving_high"]) == ("0.385", "-0.01", "0.5")
    assert (rows[1]["energy_eur_low"], rows[2]["energy_eur"], rows[2]["late"]) == ("", "", "")
