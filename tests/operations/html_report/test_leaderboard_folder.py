"""The page of a leaderboard: verdict, tables with intervals, and a figure for each track."""

import re
import shutil

import pytest

from gpusched_operations.html_report import folder_report, report_html
from refusals import refused
from report_pages import Page
from standings_page import COSTS, standings_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return standings_folder(tmp_path_factory.mktemp("html_report") / "board")


def traces(data, number):
    (view,) = data.drawings[number].views
    return view.traces[0], view.layout


def test_it_says_first_who_is_best_and_marks_it(folder):
    data = folder_report(folder)
    (best,) = data.verdict
    assert best.startswith("sts is on place 1 of 4: ")
    assert re.search(r"as a mean over 2 tracks, at worst 1\.\d\d times \(full\); first on 1\.$", best)
    assert data.marked == "sts"
    assert "](" not in data.question


def test_every_track_has_a_figure_with_a_dot_and_an_interval_for_each_policy(folder):
    data = folder_report(folder)
    assert [drawing.title for drawing in data.drawings] == ["busy", "full"]
    dots, layout = traces(data, 1)
    assert dots["x"] == pytest.approx([1.0, 1.1, 1.2, 1.6], abs=0.03)
    assert layout["yaxis"]["ticktext"] == ["edf", "mine", "sts", "fifo"]
    assert dots["error_x"]["visible"]
    assert min(dots["error_x"]["array"][1:]) > 0.0
    assert layout["shapes"][0]["x0"] == pytest.approx(0.8, abs=0.02)  # the bound
    assert "type" not in layout["xaxis"]


def test_a_track_that_spans_much_has_a_logarithmic_axis(folder):
    dots, layout = traces(folder_report(folder), 0)
    assert max(dots["x"]) == pytest.approx(10.0, abs=0.3)
    assert layout["xaxis"]["type"] == "log"
    assert layout["xaxis"]["ticktext"] == ["1", "1.5", "2", "3", "5", "10"]


def test_tables_have_their_numbers_and_intervals(folder):
    policies, tracks = folder_report(folder).tables
    assert [row["policy"] for row in policies.as_dicts()] == ["sts", "mine", "edf", "fifo"]
    mine = policies.as_dicts()[1]["mean_ratio"]
    assert 1.2 < mine.interval[0] < mine.value < mine.interval[1] < 1.35
    gap = tracks.as_dicts()[0]["gap"]
    assert gap.value == pytest.approx(0.25, abs=0.03)
    assert gap.interval[0] < gap.value < gap.interval[1]
    page = Page(report_html(folder_report(folder)))
    assert "Every track and policy" in page.text


def test_the_published_leaderboard_is_a_page_with_a_figure_for_each_track():
    data = folder_report("docs/results/leaderboard")
    assert len(data.drawings) == len(data.tables[1].rows) >= 17
    assert data.provenance["command"].startswith("gpusched leaderboard")


def test_what_is_not_whole_is_named(folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "copy")
    table = (folder / "table.csv").read_text()
    (folder / "table.csv").write_text(table.replace("to_best_low", "low"))
    with refused(f"{folder}/table.csv", None, "rows with a column to_best_low"):
        folder_report(folder)
    (folder / "table.csv").write_text(table.replace("1.0,1.0,1.0", "x,1.0,1.0"))
    with refused(str(folder), allowed="tables as gpusched leaderboard writes them"):
        folder_report(folder)
    (folder / "table.csv").unlink()
    with refused(f"{folder}/table.csv"):
        folder_report(folder)


def test_names_of_policies_are_shown_as_they_are(tmp_path):
    evil = "<b>x</b><img src=x>"
    costs = {"busy": COSTS["busy"] | {evil: 30}}
    folder = standings_folder(tmp_path / "board", costs=costs)
    html = report_html(folder_report(folder))
    assert "<img src=x>" not in html
    assert "img src=x" in html
