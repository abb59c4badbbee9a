"""`gpusched conform`: what differs, how many answers agree, and what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_baselines.gavel.objectives import las
from gpusched_experiments.cli.app import app
from gpusched_reproductions.conform.gavel import read_demands
from gpusched_reproductions.systems.muri.traces import path_of

ROOT = Path(__file__).parents[3]
PLACES = [folder / "shared" / "data" / "gpuspb" / "reference" for folder in (ROOT.parent, ROOT.parent.parent)]
FOLDER = next((place for place in PLACES if place.is_dir()), PLACES[0])
DEMANDS = FOLDER.parents[1] / "gavel_policies" / "demands_and_answers.json.gz"


def gpusched(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    """Copy an instance and its answers."""
    if not FOLDER.is_dir():
        pytest.skip(f"the published answers are not in {FOLDER}")
    for name in ("high-10-0.csv", "results.csv"):
        shutil.copy(FOLDER / name, tmp_path / name)
    return tmp_path / "high-10-0.csv"


def without(instance: Path, *methods: str) -> None:
    """Take these methods out of the published answers."""
    results = instance.parent / "results.csv"
    rows = results.read_text(encoding="utf-8").splitlines()
    kept = [row for row in rows if row.split(",")[3] not in methods]
    results.write_text("\n".join(kept), encoding="utf-8")


def test_answers_that_agree_are_counted(instance: Path):
    without(instance, "STS")
    done = gpusched("conform", "gpuspb", instance)
    assert (done.exit_code, done.stdout.strip()) == (0, "5 of 5 agree")
    assert gpusched("conform", "gpuspb", instance.parent).stdout == done.stdout


def test_an_answer_that_costs_much_less_differs_too(instance: Path):
    done = gpusched("conform", "gpuspb", instance)
    assert done.exit_code == 1
    assert "high-10-0, sts (published as STS): energy [EUR]: published 2758.1100, ours" in done.stdout
    assert done.stdout.rstrip().endswith("5 of 7 agree")


def test_an_answer_that_differs_is_printed_and_ends_in_1(instance: Path):
    without(instance, "STS")
    results = instance.parent / "results.csv"
    rows = results.read_text(encoding="utf-8").splitlines()
    header = rows[0].split(",")
    row = next(i for i, text in enumerate(rows) if "high-10-0" in text.split(",") and "EDF" in text.split(","))
    cells = rows[row].split(",")
    cells[header.index("energy_eur")] = "1.0"
    rows[row] = ",".join(cells)
    results.write_text("\n".join(rows), encoding="utf-8")
    done = gpusched("conform", "gpuspb", instance)
    assert done.exit_code == 1
    assert "high-10-0, edf (published as EDF): energy [EUR]: published 1.0000, ours" in done.stdout
    assert done.stdout.rstrip().endswith("4 of 5 agree")


@pytest.mark.skipif(not path_of(3).is_file(), reason=f"needs {path_of(3)}, of github.com/pkusys/Muri")
def test_a_trace_of_muri_agrees_and_one_of_half_the_jobs_does_not(tmp_path: Path):
    rows = path_of(3).read_text(encoding="utf-8").splitlines()
    whole = tmp_path / "trace3.csv"
    whole.write_text("\n".join(rows), encoding="utf-8")
    assert gpusched("conform", "muri", whole).stdout.strip() == "2 of 2 agree"
    whole.write_text("\n".join(rows[:60]), encoding="utf-8")
    done = gpusched("conform", "muri", tmp_path)
    assert done.exit_code == 1
    assert "trace3: mean completion with AntMan over Tiresias': published 0.880, ours" in done.stdout
    assert done.stdout.rstrip().endswith("of 2 agree")


@pytest.fixture
def demands(tmp_path: Path) -> Path:
    """Write two demands of two jobs with answers worked out by hand, the second of them wrong.

    One GPU of each type. With x_prop both jobs do 2 steps/s; each alone on the type that it is faster on does 3. So the
    least level is 1.5, and all is done after 100 s.
    """
    jobs = [{"T": [3, 2, 1], "s": 1, "left": 300, "age": 0, "w": 1, "due": 1000} for _ in range(2)]
    jobs[1]["T"] = [1, 3, 2]
    right, wrong = [[1, 0, 0], [0, 1, 0]], [[0.5, 0, 0], [0, 1, 0]]
    demand = {"W": [1, 1, 1], "jobs": jobs}
    cases = [{"demand": demand, "answer": dict.fromkeys(("las", "ftf", "mtd"), x)} for x in (right, wrong)]
    path = tmp_path / "demands.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    return path


def test_allocations_are_compared_by_the_value_of_their_objective(demands: Path):
    done = gpusched("conform", "gavel", demands)
    assert done.exit_code == 1
    assert "demand 1, las: published 0.75, ours 1.5 (+100.00% better)" in done.stdout
    assert done.stdout.rstrip().endswith("3 of 6 agree")


@pytest.mark.skipif(not DEMANDS.is_file(), reason=f"the published answers are not in {DEMANDS}")
def test_of_equal_optima_max_min_fairness_takes_that_of_the_published_solver():
    for demand, shares in read_demands(DEMANDS):
        assert np.where(demand.speed > 0.0, las(demand) - shares["las"], 0.0) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.skipif(not DEMANDS.is_file(), reason=f"the published answers are not in {DEMANDS}")
def test_all_answers_of_the_published_policy_classes_agree():
    assert gpusched("conform", "gavel", DEMANDS).stdout.strip() == "80 of 80 agree"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("other", "."), "one of gpuspb, hived, gavel, muri"),
        (("gavel", "high-10-0.csv"), "a list of demands and answers of las, ftf, cost, mtd"),
        (("gpuspb", "nowhere"), "a file or folder that exists"),
        (("gpuspb", "high-10-0.csv"), "an instance with results.csv beside it"),
        (("muri", "high-10-0.csv"), "trace1.csv to trace4.csv"),
    ],
)
def test_what_is_no_answer_is_refused(arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "high-10-0.csv").write_text("job\n", encoding="utf-8")
    done = gpusched("conform", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr


EPISODE = {
    "Mode": "one",
    "Steps": [
        {"Op": "schedule", "Gang": "g", "VC": "A", "Prio": 0, "Lazy": False, "Pinned": "", "Type": "G"}
        | {"Members": [[1, 2]], "Outcome": "bind", "Pods": [{"Node": "n", "Gpus": [0, 1]}]},
        {"Op": "delete", "Gang": "g"},
        {"Op": "schedule", "Gang": "h", "VC": "A", "Prio": 0, "Lazy": False, "Pinned": "", "Type": "H"}
        | {"Members": [[1, 2]], "Outcome": "error", "Pods": None},
    ],
}
CLUSTER = """
physicalCluster:
  cellTypes: {N: {childCellType: G, childCellNumber: 2, isNodeLevel: true}}
  physicalCells: [{cellType: N, cellAddress: n}]
virtualClusters: {A: {virtualCells: [{cellType: N, cellNumber: 1}]}}
"""


def test_requests_to_hiveds_program_are_answered_step_by_step(tmp_path: Path):
    (tmp_path / "some.jsonl").write_text(json.dumps(EPISODE), encoding="utf-8")
    assert "episodes with cluster.yaml beside them" in gpusched("conform", "hived", tmp_path).stderr
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    assert gpusched("conform", "hived", tmp_path).stdout.strip() == "2 of 2 agree"
    other = json.dumps(EPISODE).replace("[0, 1]", "[1, 0]")
    (tmp_path / "some.jsonl").write_text(other, encoding="utf-8")
    done = gpusched("conform", "hived", tmp_path / "some.jsonl")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "some.jsonl, episode 0 (one), step 0, g: published bind n:1,0, ours bind n:0,1",
        "0 of 1 agree",
    ]
