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


def test_answers_that_agree_are_counted(instance: Path):
    done = gpusched("conform", "gpuspb", instance)
    assert (done.exit_code, done.stdout.strip()) == (0, "7 of 7 agree")
    assert gpusched("conform", "gpuspb", instance.parent).stdout == done.stdout


def test_an_answer_that_differs_is_printed_and_ends_in_1(instance: Path):
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
    assert done.stdout.rstrip().endswith("6 of 7 agree")


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
        (("other", "."), "one of gpuspb"),
        (("gavel", "high-10-0.csv"), "a list of demands and answers of las, ftf, cost, mtd"),
        (("gpuspb", "nowhere"), "a file or folder that exists"),
        (("gpuspb", "high-10-0.csv"), "an instance with results.csv beside it"),
    ],
)
def test_what_is_no_answer_is_refused(arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "high-10-0.csv").write_text("job\n", encoding="utf-8")
    done = gpusched("conform", *arguments)
    assert done.exit_code == 2
    assert says in done.stderr
