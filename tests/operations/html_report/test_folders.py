import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from gpusched_env.formats.run_folder import write_run
from gpusched_env.provenance import provenance
from gpusched_experiments.report.comparison_folder import Compared, comparison_files
from gpusched_operations.html_report import folder_report, report_html
from refusals import refused
from report_pages import Page, costs, ran

RAN = {name: replace(ran(), policy=name) for name in ("edf", "agent:x")}
RUNS = tuple(
    replace(run, energy_eur=RAN[run.policy].energy_eur, tardiness_eur=RAN[run.policy].tardiness_eur)
    if run.seed == 0
    else run
    for run in costs(edf=[10.0, 11, 12, 13, 14], **{"agent:x": [20.0, 22, 24, 26, 28]})
)


@pytest.fixture
def compared(tmp_path):
    folder = tmp_path / "compared"
    made = provenance("gpusched compare", seeds=[0, 1, 2, 3, 4])
    recorded = {"edf": "edf", "agent:x": "agent-x"}
    files = comparison_files([Compared.of(RUNS, "edf")], "edf", None, recorded, made)
    folder.mkdir()
    (folder / "results.json").write_text(files["results.json"], encoding="utf-8")
    (folder / "scenario.toml").write_text("description = 'mine'\n", encoding="utf-8")
    for policy, name in recorded.items():
        write_run(RAN[policy], folder / "runs" / name)
    return folder


def change(folder, **fields):
    path = folder / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | fields), encoding="utf-8")


def test_a_comparison_folder_holds_all_that_the_report_says(compared):
    data = folder_report(compared)
    assert (data.runs, data.reference, len(data.recorded)) == (RUNS, "edf", 2)
    assert data.scenario == "description = 'mine'\n"
    assert data.provenance["command"] == "gpusched compare"
    assert "edf, the reference, is cheapest" in Page(report_html(data)).text


def test_runs_that_another_comparison_left_there_are_not_shown(compared):
    write_run(replace(RAN["edf"], energy_eur=1.0), compared / "runs" / "edf")
    assert [result.policy for result in folder_report(compared).recorded] == ["agent:x"]


def test_a_comparison_without_recorded_runs_is_read_all_the_same(compared):
    shutil.rmtree(compared / "runs")
    change(compared, recorded={})
    assert folder_report(compared).recorded == ()


def test_what_is_not_known_of_the_runs_is_no_number(compared):
    runs = json.loads((compared / "results.json").read_text(encoding="utf-8"))["runs"]
    for run in runs:
        run["clairvoyant_eur"] = run["non_clairvoyant_eur"] = None
    change(compared, runs=runs)
    page = Page(report_html(folder_report(compared)))
    assert "n/a" in page.text
    assert "The dashed line" not in page.text


def test_under_two_rules_of_gpu_demand_the_verdict_is_told_for_each(compared):
    part = json.loads((compared / "results.json").read_text(encoding="utf-8"))
    other = [run | {"energy_eur": 50.0 if run["policy"] == "edf" else 40.0} for run in part["runs"]]
    exactly = {"gpu_demand": "exact", "modelled": ["Demand is exact.", "Due dates are modelled."], "runs": other}
    modelled = ["Demand is elastic.", "Due dates are modelled."]
    change(compared, gpu_demand="elastic", modelled=modelled, more=[part | exactly])
    data = folder_report(compared)
    elastic, exact, figures = data.verdict
    assert elastic.startswith("GPU demand elastic: edf, the reference, is cheapest: ")
    assert exact.startswith("GPU demand exact: agent:x is cheapest: ")
    assert figures == "The figures are those of elastic demand."
    assert data.modelled[:3] == (
        "Tables of elastic demand: Demand is elastic.",
        "Tables of exact demand: Demand is exact.",
        "Due dates are modelled.",
    )
    best = re.findall(r'<tr class="best"><th scope="row">([^<]*)<', report_html(data))
    assert best == ["edf", "agent:x"]  # in the tables of costs


@pytest.mark.parametrize(
    ("fields", "place", "value"),
    [
        ({"format": "gpusched study"}, "results.json: format", "gpusched study"),
        ({"runs": []}, "results.json", []),
        ({"runs": [1]}, "results.json: runs", 1),
        ({"runs": [{"policy": "edf"}]}, "results.json: runs", {"policy": "edf"}),
        ({"reference": 3}, "results.json: reference", 3),
        ({"recorded": {"edf": "../../elsewhere"}}, "results.json: recorded.edf", "../../elsewhere"),
        ({"recorded": {"edf": "gone"}}, "runs/gone/run.json", "No such file or directory"),
        ({"recorded": []}, "results.json: recorded", []),
    ],
)
def test_a_comparison_that_is_not_whole_is_one_error(compared, fields, place, value):
    change(compared, **fields)
    with refused(f"{compared}/{place}", value):
        folder_report(compared)


def test_a_file_that_is_cut_off_is_one_error(compared):
    (compared / "results.json").write_text('{"format": "gpus', encoding="utf-8")
    with refused(f"{compared}/results.json", allowed="a whole JSON file"):
        folder_report(compared)


def test_a_run_folder_becomes_a_report_of_one_run(tmp_path):
    write_run(ran(), tmp_path / "run", command="gpusched simulate --out run")
    page = Page(report_html(folder_report(tmp_path / "run")))
    for text in ("edf costs", "1 of 2 jobs ends late", "2 jobs on 1 nodes with 2 GPUs", "gpusched simulate --out run"):
        assert text in page.text, text
    assert len(page.all("figure")) == 3


@pytest.mark.parametrize("name", ["cost", "value-of-information"])
def test_the_folder_of_an_experiment_becomes_its_page_with_its_figures(name):
    folder = Path("docs/results") / name
    data = folder_report(folder)
    assert data.pictures[0].name == "figure.svg"
    assert {picture.name for picture in data.pictures} == {path.name for path in folder.glob("*.svg")}
    page = Page(report_html(data))
    heading, question = (folder / "table.md").read_text(encoding="utf-8").splitlines()[:3:2]
    assert heading == f"## {data.title}"
    assert question == data.question
    assert f"gpusched {'leaderboard' if name == 'leaderboard' else 'reproduce'}" in page.text


def test_an_experiment_that_is_not_finished_is_one_error(tmp_path):
    shutil.copy("docs/results/cost/record.json", tmp_path)
    with refused(f"{tmp_path}/table.md", None):
        folder_report(tmp_path)


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_another_folder_is_one_error_that_says_what_can_be_read(tmp_path, name):
    with refused("folder", allowed="one with results.json, run.json, record.json"):
        folder_report(tmp_path / name)
