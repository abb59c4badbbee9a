import csv
import io
import json
from dataclasses import replace

import pytest

from gpusched_experiments.report import RunSummary, markdown_table, results_json, runs_csv, summarise

RUNS = tuple(
    RunSummary(policy, seed, 4, energy, tardiness, late, 3_660.0, 7, 10, 0.02, bound, 8.0)
    for policy, seed, energy, tardiness, late, bound in (
        ("edf", 0, 1_000.0, 234.5, 1, 0.0),
        ("sts", 0, 617.25, 0.0, 0, 0.0),
        ("edf", 1, 1_000.0, 234.5, 2, 0.0),
        ("sts", 1, 617.25, 0.0, 0, 0.0),
    )
)
FIVE = tuple(replace(run, seed=run.seed + 2 * again) for again in range(3) for run in RUNS)[:10]


def test_the_markdown_table_has_a_row_for_each_policy():
    lines = markdown_table(summarise(FIVE, "edf"), "edf").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:4]]
    table = [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]
    assert table[0]["policy"] == "edf"
    assert table[0]["energy €"] == "1,000.00"
    assert table[0]["tardiness €"] == "234.50"
    assert table[0]["total €"] == "1,234.50"
    assert table[0]["saving vs edf"] == "reference"
    assert table[0]["late jobs"] == "1.4"
    assert table[1]["saving vs edf"] == "+50.0% [+50.0%, +50.0%]"
    assert table[1]["energy saving vs edf"] == "+38.3% [+38.3%, +38.3%]"
    assert table[1]["mean completion"] == "1 h 1 min"
    assert table[1]["switches"] == "7"
    assert table[1]["ms per round"] == "2"
    assert table[1]["gap, clairvoyant"] == "n/a"
    assert table[1]["gap, non-clairv."] == "+7616%"
    assert "Means over 5 seeds" in lines[5]
    assert "95 % bootstrap interval" in lines[6]
    assert "No intervals" not in "\n".join(lines)


@pytest.mark.parametrize(("runs", "means"), [(RUNS[:2], "Means over 1 seed;"), (RUNS, "Means over 2 seeds;")])
def test_few_seeds_have_savings_without_intervals_and_a_note_that_says_so(runs, means):
    text = markdown_table(summarise(runs, "edf"), "edf")
    assert "| +50.0% |" in text
    assert means in text
    assert "No intervals: they need 5 seeds or more." in text
    assert "95 %" not in text


def test_the_csv_holds_every_run():
    rows = list(csv.DictReader(io.StringIO(runs_csv(RUNS))))
    assert len(rows) == 4
    assert (rows[1]["policy"], float(rows[1]["total_eur"])) == ("sts", 617.25)
    assert float(rows[0]["decision_s_per_round"]) == pytest.approx(0.002)


def test_the_results_file_is_plain_json_with_every_run_and_its_provenance():
    text = results_json(RUNS, summarise(RUNS, "edf"), "edf", {"command": "gpusched compare"})
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (document["format"], document["version"]) == ("gpusched comparison", 1)
    assert document["provenance"] == {"command": "gpusched compare"}
    assert (document["reference"], document["seeds"]) == ("edf", [0, 1])
    assert [run["policy"] for run in document["runs"]] == ["edf", "sts", "edf", "sts"]
    assert document["runs"][0]["total_eur"] == 1_234.5
    assert document["policies"][1]["saving"] == pytest.approx(0.5)
    assert document["policies"][1]["clairvoyant_gap"] is None
