"""From cells to files: nothing is run twice, and nothing of other code or other settings is mixed in."""

import csv
import io
import json
from dataclasses import replace

import pytest

from gpusched_env.workload import load_scenario
from gpusched_experiments.report import cell as cell_module
from gpusched_experiments.report import experiment_run as module
from gpusched_experiments.report.backends.ray_cluster import RayCluster
from gpusched_experiments.report.cell import Cell, run_cells
from gpusched_experiments.report.chart import Chart
from gpusched_experiments.report.estimate import mean
from gpusched_experiments.report.experiment import Experiment, Reported, Selection
from gpusched_experiments.report.experiment_run import reproduce
from gpusched_experiments.report.table import MONEY, Column, Table
from gpusched_reproductions.published.workloads import ONE_ROUND
from refusals import refused
from watching import Watching

TINY = load_scenario("tiny")
TIMES = ("decision_s", "decision_s_per_round", "run_s")


def cells(choice, policies):
    return tuple(
        Cell((("jobs", jobs),), TINY.replace({"jobs.count": jobs}), policy, seed)
        for jobs in choice.nodes or (3, 5)
        for policy in policies
        for seed in choice.seeds or (0, 1, 2)
    )


def table(runs):
    columns = (
        Column("policy", "policy", str),
        Column("energy_eur", "energy €", lambda policy: mean(runs.where(policy), "energy_eur"), MONEY, interval=True),
    )
    return Table.of("Costs", columns, runs.policies)


FAKE = Experiment(
    name="fake",
    title="A fake",
    question="What for?",
    policies=("edf", "not-there", "fifo"),
    labels=("jobs",),
    cells=cells,
    summary=table,
    details=table,
    chart=lambda _: Chart("drawn"),
    reported=(Reported("something", "42 %", "somebody"),),
)


class Drawn:
    def chart_files(self, chart, name="figure"):
        return {f"{name}.svg": f"<svg>{chart.title}</svg>".encode()}


def run(out, experiment=FAKE, choice=None, stop_after=10**9, **settings):
    watching = Watching(stop_after=stop_after)
    try:
        reproduce(experiment, choice or Selection(), out, watcher=watching, drawing=Drawn(), **settings)
    except KeyboardInterrupt:
        assert watching.ran == stop_after
    return watching


def rows(folder):
    found = list(csv.DictReader(io.StringIO((folder / "cells.csv").read_text())))
    return [{name: value for name, value in row.items() if name not in TIMES} for row in found]


def facts(folder):
    return json.loads((folder / "record.json").read_text())["provenance"]["facts"]


def test_an_experiment_ends_in_its_files(tmp_path):
    watching = run(tmp_path)
    folder = tmp_path / "fake"
    assert {path.name for path in folder.iterdir()} == {
        "cells.csv", "table.md", "table.csv", "summary.csv", "figure.svg", "record.json",
    }  # fmt: skip
    assert watching.begun == [("fake", 12, 0)]
    assert watching.ran == 12
    assert [(row["jobs"], row["policy"], row["seed"]) for row in rows(folder)] == [
        (jobs, policy, seed) for jobs in "35" for policy in ("edf", "fifo") for seed in "012"
    ]
    assert (folder / "figure.svg").read_text() == "<svg>drawn</svg>"
    page = (folder / "table.md").read_text()
    assert page.startswith("## A fake\n\nWhat for?\n")
    assert "| something | 42 % | somebody |" in page
    assert page.count("### Costs") == 2
    assert (folder / "table.csv").read_text().startswith("policy,energy_eur,energy_eur_low,energy_eur_high\nedf,")


def test_further_figures_and_results_go_when_the_set_changes(tmp_path):
    two = replace(FAKE, figures={"close": lambda _: Chart("close by")})
    run(tmp_path, two)
    assert (tmp_path / "fake/figure.svg").read_text() == "<svg>drawn</svg>"
    assert (tmp_path / "fake/close.svg").read_text() == "<svg>close by</svg>"
    run(tmp_path, two, Selection(seeds=(2, 7, 8)), stop_after=1)
    assert {path.name for path in (tmp_path / "fake").iterdir()} == {"cells.csv", "record.json"}
    run(tmp_path)
    run(tmp_path, choice=Selection(seeds=(2, 7, 8)), stop_after=1)
    assert {path.name for path in (tmp_path / "fake").iterdir()} == {"cells.csv", "record.json"}
    assert facts(tmp_path / "fake")["finished"] is False


def test_the_record_says_how_the_results_were_made(tmp_path):
    run(tmp_path)
    found = facts(tmp_path / "fake")
    assert (found["experiment"], found["runs"], found["reused"], found["finished"]) == ("fake", 12, 0, True)
    assert (found["workers"], found["quick"]) == (1, False)
    assert found["duration_s"] >= found["runs_s"] > 0.0
    assert [group["labels"] for group in found["groups"]] == [{"jobs": 3}, {"jobs": 5}]
    assert found["groups"][0]["seeds"] == {"edf": "0-2", "fifo": "0-2"}
    assert found["groups"][0]["settings"]["jobs.count"] == 3
    assert "cluster.gpu_types" not in found["groups"][0]["settings"]
    assert found["reported"] == [{"what": "something", "figure": "42 %", "source": "somebody"}]


def test_policies_that_are_not_registered_are_left_out_of_the_default_with_a_note(tmp_path):
    assert run(tmp_path).notes == ["fake: without not-there, which this version does not have"]
    with refused("policy", "not-there", "one of .*fifo"):
        run(tmp_path, choice=Selection(policies=("edf", "not-there")))


@pytest.mark.parametrize("stop_after", [1, 7, 12])
def test_a_command_that_was_stopped_goes_on_and_ends_the_same(tmp_path, stop_after):
    run(tmp_path / "whole")
    stopped = run(tmp_path / "parts", stop_after=stop_after)
    assert stopped.ran == stop_after
    assert facts(tmp_path / "parts/fake")["finished"] is False
    again = run(tmp_path / "parts")
    assert again.ran == 12 - stop_after
    assert again.begun == [("fake", 12, stop_after)]
    assert f"fake: {stop_after} of 12 runs are finished already" in again.notes
    assert rows(tmp_path / "parts/fake") == rows(tmp_path / "whole/fake")
    for name in ("table.md", "table.csv", "summary.csv"):
        assert (tmp_path / "parts/fake" / name).read_bytes() == (tmp_path / "whole/fake" / name).read_bytes()
    assert facts(tmp_path / "parts/fake")["fingerprint"] == facts(tmp_path / "whole/fake")["fingerprint"]
    assert facts(tmp_path / "parts/fake")["reused"] == stop_after


def test_a_line_that_was_cut_off_spoils_nothing_that_comes_after_it(tmp_path):
    run(tmp_path, stop_after=5)
    stored = tmp_path / "fake/cells.csv"
    stored.write_bytes(stored.read_bytes()[:-20])
    again = run(tmp_path, stop_after=2)
    assert again.begun == [("fake", 12, 4)]
    assert len(rows(tmp_path / "fake")) == 6
    assert run(tmp_path).ran == 6


def test_a_finished_experiment_runs_nothing_again_and_without_matplotlib_there_are_tables_only(tmp_path):
    run(tmp_path)
    before = (tmp_path / "fake/cells.csv").read_bytes()
    assert run(tmp_path).ran == 0
    assert (tmp_path / "fake/cells.csv").read_bytes() == before
    outcome = reproduce(FAKE, Selection(), tmp_path / "tables", watcher=Watching())
    assert not (tmp_path / "tables/fake/figure.svg").exists()
    assert set(outcome.files) == {"table.md", "table.csv", "summary.csv", "cells.csv", "record.json"}


def test_runs_of_other_code_are_never_mixed_in(tmp_path, monkeypatch):
    run(tmp_path, stop_after=5)
    first = facts(tmp_path / "fake")
    monkeypatch.setattr(module, "code_version", lambda: "another")
    monkeypatch.setattr(cell_module, "run_version", lambda *_: "another")
    again = run(tmp_path)
    assert again.ran == 12
    assert any(f"starts again: its 5 runs were made by other code ({first['code']})" in n for n in again.notes)
    assert len(rows(tmp_path / "fake")) == 12
    assert facts(tmp_path / "fake")["fingerprint"] != first["fingerprint"]


def test_other_seeds_use_the_runs_that_they_share_and_leave_the_others_in_the_file(tmp_path):
    run(tmp_path, choice=Selection(seeds=(0, 1)))
    more = run(tmp_path, choice=Selection(seeds=(0, 1, 2)))
    assert more.ran == 4
    fewer = run(tmp_path, choice=Selection(seeds=(1,)))
    assert fewer.ran == 0
    assert any("8 of its 12 runs are of another set" in note for note in fewer.notes)
    assert {row["seed"] for row in rows(tmp_path / "fake")} == {"0", "1", "2"}
    assert run(tmp_path, choice=Selection(seeds=(0, 2))).ran == 0
    before = (tmp_path / "fake/cells.csv").read_bytes()
    with refused("path", str(tmp_path / "fake"), "another folder .*its 12 runs are of other"):
        run(tmp_path, choice=Selection(seeds=(7,)))
    assert (tmp_path / "fake/cells.csv").read_bytes() == before


def test_a_run_that_an_experiment_beside_it_has_finished_is_not_run_again(tmp_path):
    run(tmp_path, replace(FAKE, name="first"), Selection(policies=("edf",)))
    second = run(tmp_path, replace(FAKE, name="second"), Selection(policies=("edf", "greedy")))
    assert second.ran == 6
    assert "second: 6 of 12 runs are finished already, 6 of them from the experiments beside it" in second.notes
    assert len(rows(tmp_path / "second")) == 12


def test_cells_of_two_places_that_are_one_run_are_run_once_and_stand_in_both(tmp_path):
    def twice(choice, policies):
        planned = cells(choice, policies)
        return (*planned, *(replace(cell, labels=(("jobs", "again"),)) for cell in planned))

    watching = run(tmp_path, replace(FAKE, cells=twice))
    assert (watching.ran, watching.begun) == (12, [("fake", 12, 0)])
    found = rows(tmp_path / "fake")
    assert len(found) == 24
    assert [row["energy_eur"] for row in found[:6]] == [row["energy_eur"] for row in found[12:18]]
    assert run(tmp_path, replace(FAKE, cells=twice)).ran == 0


def test_times_of_another_machine_are_measured_again(tmp_path, monkeypatch):
    def timed(choice, policies):
        return tuple(replace(cell, measure=ONE_ROUND) for cell in cells(choice, policies))

    experiment = replace(FAKE, cells=timed, summary=lambda _: Table("t", (), ()), details=lambda _: Table("t", (), ()))
    assert run(tmp_path, experiment).ran == 12
    assert run(tmp_path, experiment).ran == 0
    monkeypatch.setattr(cell_module, "machine", lambda: "another machine")
    assert run(tmp_path, experiment).ran == 12


def test_timings_run_alone_however_many_workers_there_are(tmp_path, monkeypatch):
    used = []

    def spied(cells, known, store, workers, on_finished, backend):
        used.append((workers, backend.name))
        return run_cells(cells, known, store, 1, on_finished)

    monkeypatch.setattr(module, "run_cells", spied)
    run(tmp_path, replace(FAKE, alone=True), workers=2, backend=RayCluster())
    run(tmp_path / "b", FAKE, workers=2, backend=RayCluster())
    assert used == [(1, "processes"), (2, "ray")]
    assert facts(tmp_path / "fake")["workers"] == 1


def test_what_is_in_the_place_of_files_is_left_alone_and_named(tmp_path):
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake/cells.csv").write_text("precious\n")
    with refused(f"{tmp_path}/fake/cells.csv", "precious"):
        run(tmp_path)
    assert (tmp_path / "fake/cells.csv").read_text() == "precious\n"
    (tmp_path / "out").write_text("precious\n")
    with refused("path", allowed="a place that can be written"):
        run(tmp_path / "out")
    assert (tmp_path / "out").read_text() == "precious\n"
    with refused("--policies", ""):
        run(tmp_path, replace(FAKE, policies=("not-there",)))
    with refused("workers", 0):
        run(tmp_path, workers=0)
