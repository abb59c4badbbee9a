import csv
import io
import json
from dataclasses import replace

import pytest

from gpusched_experiments.report import RunSummary, markdown_table, runs_csv, summarise, summarise_groups
from gpusched_experiments.report.comparison_folder import Compared, comparison_files
from gpusched_experiments.report.comparison_table import comparison_table, groups_table, metrics_table
from gpusched_experiments.report.metrics import GroupMetrics, RunMetrics

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


def with_facts(runs):
    metrics = RunMetrics(
        energy_kwh=1_500.0, waiting_s=90.0, median_completion_s=60.0, p95_completion_s=3_600.0, busy_gpus=0.25
    )
    return tuple(replace(run, metrics=metrics, co2_kg=570.0) for run in runs)


def test_how_jobs_and_machines_fared_has_a_table_of_what_is_known():
    table = metrics_table(summarise(with_facts(FIVE), "edf"))
    row = dict(zip([column.title for column in table.columns], table.texts()[1], strict=True))
    assert row == {
        "policy": "sts", "energy kWh": "1,500.00", "kg CO₂": "570.00", "waiting": "1 min 30 s",
        "median completion": "1 min", "95 %": "1 h", "GPUs busy": "25.0%", "switches": "7", "ms per round": "2",
    }  # fmt: skip
    said = " ".join(table.notes)
    assert "Waiting:" in said
    assert "Slowdown:" not in said


def test_a_trace_has_no_non_clairvoyant_gap():
    rows = summarise(FIVE, "edf")
    names = [column.name for column in comparison_table(rows, "edf", of_trace=True).columns]
    assert "clairvoyant_gap" in names
    assert "non_clairvoyant_gap" not in names
    assert "The other bounds" not in " ".join(comparison_table(rows, "edf", of_trace=True).notes)


def group(name, jobs, energy):
    return GroupMetrics("tenant", name, jobs, 1, energy, 0.0, 10.0, 60.0, 80.0, 2.0)


def test_the_means_of_a_tenant_are_over_the_seeds_in_which_it_has_jobs():
    runs = (
        replace(RUNS[0], groups=(group("red", 4, 10.0), group("blue", 2, 3.0))),
        replace(RUNS[2], groups=(group("red", 6, 20.0),)),
    )
    red, blue = summarise_groups(runs)
    assert (red.mean.name, red.runs, red.mean.jobs, red.mean.energy_eur) == ("red", 2, 5.0, 15.0)
    assert (blue.runs, blue.mean.energy_eur) == (1, 3.0)
    table = groups_table((red, blue), most=1)
    assert [row[1] for row in table.rows] == ["red"]
    assert "1 more groups are in groups.csv." in table.notes


def test_the_results_file_is_plain_json_with_every_run_and_its_provenance():
    compared = (Compared.of(RUNS, "edf", "elastic", ("Due dates are modelled.",)), Compared.of(RUNS, "edf", "exact"))
    files = comparison_files(compared, "edf", None, {"edf": "runs/edf"}, {"command": "gpusched compare"})
    text = files["results.json"]
    document = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert (document["format"], document["version"]) == ("gpusched comparison", 1)
    assert document["provenance"] == {"command": "gpusched compare"}
    assert (document["reference"], document["seeds"], document["recorded"]) == ("edf", [0, 1], {"edf": "runs/edf"})
    assert [run["policy"] for run in document["runs"]] == ["edf", "sts", "edf", "sts"]
    assert document["runs"][0]["total_eur"] == 1_234.5
    assert document["runs"][0]["slowdown"] is None
    assert document["policies"][1]["saving"] == pytest.approx(0.5)
    assert document["policies"][1]["clairvoyant_gap"] is None
    assert (document["gpu_demand"], document["more"][0]["gpu_demand"]) == ("elastic", "exact")
    rows = list(csv.DictReader(io.StringIO(files["runs.csv"])))
    assert [row["gpu_demand"] for row in rows] == ["elastic"] * 4 + ["exact"] * 4
    assert "### Costs, GPU demand: exact" in files["table.md"]
    assert "- Due dates are modelled." in files["table.md"]
