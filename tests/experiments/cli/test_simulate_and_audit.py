import csv
import json

import polars as pl
import pytest

from commands import assert_one_error, gpusched, succeeds
from gpusched_baselines.registry import make_policy
from gpusched_env.simulator import simulate
from gpusched_env.workload import load_scenario, make_instance


@pytest.fixture
def run(tmp_path):
    succeeds("simulate", "-p", "greedy", "-s", "tiny", "--seed", 4, "--out", tmp_path / "run")
    return tmp_path / "run"


def test_a_simulation_prints_what_it_cost_and_draws_its_gantt_chart(tmp_path):
    done = gpusched("simulate", "-p", "edf", "-s", "tiny", "--seed", 4)
    result = simulate(make_instance(load_scenario("tiny"), 4), make_policy("edf"), seed=4)
    assert done.exit_code == 0
    for text in (
        f"{result.energy_eur:,.2f} €",
        f"{result.total_eur:,.2f} €",
        f"{result.late_jobs} of 10",
        "tiny, seed 4",
    ):
        assert text in done.stdout
    assert not list(tmp_path.iterdir())
    succeeds("simulate", "-p", "edf", "-s", "tiny", "--gantt", tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_filled_in_a_file_of_prices_is_printed_and_recorded(tmp_path):
    hours = (f"2025-09-{1 + h // 24:02}T{h % 24:02}:00Z,{h}" for h in range(96) if h != 30)
    (tmp_path / "mine.csv").write_text("\n".join(["time,eur_per_mwh", *hours]))
    priced = ("-s", "tiny", "--prices", tmp_path / "mine.csv", "--jobs", 2)
    note = "mine.csv: the period 2025-09-02T06:00+00:00 is missing; its values are those before."
    done = succeeds("simulate", "-p", "edf", *priced, "--out", tmp_path / "run")
    assert f"note: {note}" in done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["provenance"]["facts"]["modelled"] == [note]
    succeeds("compare", *priced, "--policies", "edf", "--seeds", "0-1", "--workers", 1, "--out", tmp_path / "all")
    assert note in json.loads((tmp_path / "all" / "results.json").read_text())["modelled"]


def test_every_hour_of_a_run_has_a_row_and_they_sum_to_its_bill(tmp_path):
    path = tmp_path / "hours.csv"
    done = succeeds("simulate", "-p", "edf", "-s", "tiny", "--set", "prices.series=de-lu-2024", "--hours", str(path))
    hours = pl.read_csv(path)
    assert hours["start_s"].to_list() == [3600.0 * hour for hour in range(len(hours))]
    assert f"{hours['energy_eur'].sum():,.2f} €" in done.output
    assert hours["eur_per_kwh"].n_unique() > 3


def test_an_audit_finds_nothing_in_a_run_and_prints_each_difference_in_one_that_was_changed(run):
    done = succeeds("audit", run)
    assert f"{run}: no difference; checked capacity" in done.stdout
    with (run / "jobs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[2]["energy_eur"] = str(float(rows[2]["energy_eur"]) + 1.0)
    with (run / "jobs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    done = gpusched("audit", run)
    assert done.exit_code == 1
    assert any(line.startswith("jobs.csv") and "energy" in line for line in done.stdout.splitlines())
    assert "difference" in done.stderr


@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_gantt_chart_of_a_part_is_drawn_in_other_forms(tmp_path, form, begins):
    part = ("--from", 1, "--to", 2.5, "--show-nodes", "0,2", "--show-jobs", "0-3")
    succeeds("simulate", "-p", "edf", "-s", "tiny", "--gantt", tmp_path / f"chart.{form}", *part)
    assert (tmp_path / f"chart.{form}").read_bytes().startswith(begins)


def test_a_moving_picture_of_a_run_has_at_most_so_many_pictures_and_the_whole_at_the_end(tmp_path):
    image = pytest.importorskip("PIL.Image")
    succeeds("simulate", "-p", "edf", "-s", "tiny", "--gif", tmp_path / "run.gif", "--frames", 3, "--fps", 5)
    assert [path.name for path in tmp_path.iterdir()] == ["run.gif"]
    with image.open(tmp_path / "run.gif") as picture:
        assert picture.n_frames == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--gantt", "x.jpg"), "--gantt = 'x.jpg'; allowed: the name of a .png, .svg or .pdf file"),
        (("--from", 1), "--from = 1.0; allowed: nothing without --gantt FILE"),
        (("--gantt", "x.png", "--from", 1, "--to", 1), "--to = 1.0"),
        (("--gantt", "x.png", "--from", 1e6), "--from = 1000000.0; allowed: hours before the end of the run"),
        (("--gantt", "x.png", "--show-nodes", "0-3"), "--show-nodes = '0-3'; allowed: numbers from 0 to 2"),
        (("--gif", "x.avi"), "--gif = 'x.avi'; allowed: the name of a .gif, .mp4 or .webm file"),
        (("--gif", "x.gif", "--fps", 0), "--fps = 0.0"),
    ],
)
def test_pictures_that_cannot_be_drawn_are_one_error_and_nothing_is_written(tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    assert_one_error(gpusched("simulate", "-p", "edf", "-s", "tiny", *options), [words])
    assert not list(tmp_path.iterdir())
