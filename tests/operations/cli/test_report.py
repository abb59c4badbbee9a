import sys

import pytest

from commands import gpusched, succeeds
from gpusched_env.formats.run_folder import write_run
from gpusched_operations.cli import report
from report_pages import ran


@pytest.fixture
def run(tmp_path):
    write_run(ran(), tmp_path / "run")
    return tmp_path / "run"


def test_the_page_is_written_into_the_folder_which_stays_what_it_was(run):
    done = gpusched("report", run)
    assert (done.exit_code, done.output) == (0, f"wrote {run / 'report.html'}\n")
    page = (run / "report.html").read_bytes()
    assert page.startswith(b"<!DOCTYPE html>")
    assert gpusched("report", run).exit_code == 0
    assert (run / "report.html").read_bytes() == page


def test_the_page_can_stand_elsewhere(run, tmp_path):
    succeeds("report", run, "--out", tmp_path / "sent" / "mine.html")
    assert (tmp_path / "sent" / "mine.html").is_file()
    assert not (run / "report.html").exists()


def test_the_page_is_opened_when_asked_for(run, monkeypatch):
    opened = []
    monkeypatch.setattr(report.webbrowser, "open", opened.append)
    assert gpusched("report", run, "--open").exit_code == 0
    assert opened == [(run / "report.html").as_uri()]


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_another_folder_ends_in_one_line(tmp_path, name):
    done = gpusched("report", tmp_path / name)
    assert done.exit_code == 2
    assert done.output.count("\n") == 1
    assert "a folder that compare, simulate --out, reproduce or leaderboard wrote" in done.output
    assert list(tmp_path.iterdir()) == []


def test_without_plotly_it_ends_in_one_line_and_nothing_is_written(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    done = gpusched("report", run)
    assert done.exit_code == 2
    assert 'pip install "gpusched-env[report]"' in done.output
    assert not (run / "report.html").exists()
