from __future__ import annotations

import csv
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_baselines.dispatching.dispatch import edf
from gpusched_env import load_scenario, make_instance
from gpusched_env.files import new_folder, write_atomically
from gpusched_env.formats.run_folder import RUN_FILES, read_result, read_run, write_run
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.provenance import provenance
from gpusched_env.simulator import Result, simulate
from gpusched_env.simulator import layout as at
from refusals import refused
from run_files import csv_rows

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def result() -> Result:
    """Thirty random jobs under EDF on two nodes; the name of a GPU type has a comma."""
    rng, one, other = np.random.default_rng(3), Configuration("A,B", 2), Configuration("V", 3)
    types = [GpuType("A,B", 300.0, 200.0, 16.0), GpuType("V", 250.0, 150.0, 16.0)]
    drawn = rng.uniform((0.0, 500.0, 0.025, 1.0, 50.0), (1e5, 5000.0, 0.044, 100.0, 200.0), (30, 5))
    jobs = [
        Job(s, s + slack, weight, 100.0, EpochDistribution.certain(), needed, {one: epoch_s, other: 1.5 * epoch_s})
        for s, slack, weight, needed, epoch_s in drawn
    ]
    instance = Instance.from_jobs(types, [Node("A,B", 4), Node("V", 4)], jobs, name="small")
    return simulate(replace(instance, seed=3), edf(), seed=7)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_run_folder_holds_four_files_and_nothing_is_left_beside_it(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path / "a" / "run")
    assert names(tmp_path / "a" / "run") == sorted(RUN_FILES)
    assert names(tmp_path / "a") == ["run"]


def test_intervals_read_back_by_plain_python_are_exact(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path / "run")
    with (tmp_path / "run" / "intervals.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    expected = result.intervals().rows(named=True)
    assert list(rows[0]) == ["job", "node", "gpus", "gpu", "configuration", "start_s", "ready_s", "end_s", "epochs"]
    assert len(rows) == len(expected) == 30
    for row, interval in zip(rows, expected, strict=True):
        assert {name: type(interval[name])(text) for name, text in row.items()} == interval


def same_runs(read: Result, made: Result) -> None:
    order = np.lexsort((made.log[:, at.LOG_NODE], made.log[:, at.LOG_JOB], made.log[:, at.LOG_START]))
    np.testing.assert_array_equal(read.log, made.log[order])
    for name in ("start_s", "completion_s", "job_energy_eur", "job_tardiness_eur", "switches"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name))
    for name in ("policy", "seed", "energy_eur", "tardiness_eur", "rounds", "decision_s"):
        assert getattr(read, name) == getattr(made, name)
    assert read.intervals().equals(made.intervals())


def test_a_result_is_made_again_from_its_folder(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path / "run")
    same_runs(read_result(tmp_path / "run"), result)


@pytest.mark.parametrize("name", ["sharing", "multi-node", "track:tenants"])
def test_a_result_of_shared_gpus_several_nodes_and_tenants_is_made_again(name: str, tmp_path: Path) -> None:
    made = simulate(make_instance(load_scenario(name).replace({"jobs.count": 30}), 1), make_policy("greedy"))
    write_run(made, tmp_path / "run")
    same_runs(read_result(tmp_path / "run"), made)


def test_run_json_says_where_the_run_comes_from(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path / "run", command="gpusched simulate", facts={"review_s": np.float64(60.0)})
    made = read_run(tmp_path / "run").facts["provenance"]
    assert made["command"] == "gpusched simulate"
    assert made["packages"]["numpy"] == np.__version__
    expected = {"policy": "edf", "seed": 7, "instance": "small", "instance_seed": 3, "review_s": 60.0}
    assert made["facts"] == expected


def test_a_former_run_is_replaced(result: Result, tmp_path: Path) -> None:
    write_run(result, tmp_path / "run")
    write_run(replace(result, policy="other"), tmp_path / "run")
    assert read_run(tmp_path / "run").policy == "other"
    assert names(tmp_path) == ["run"]


def test_a_folder_with_somebody_elses_file_is_refused_and_left_alone(result: Result, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "thesis.tex").write_text("years of work", encoding="utf-8")
    with refused("path", allowed="found 'thesis.tex'"):
        write_run(result, tmp_path / "notes")
    assert (tmp_path / "notes" / "thesis.tex").read_text(encoding="utf-8") == "years of work"
    assert names(tmp_path) == ["notes"]


def test_a_run_without_its_intervals_is_refused_before_anything_is_written(result: Result, tmp_path: Path) -> None:
    with refused("result.log", 0, "record=True"):
        write_run(simulate(result.instance, edf(), record=False), tmp_path / "run")
    with refused("result.completion_s[2]", float("nan"), "a finished run"):
        write_run(replace(result, completion_s=np.where(np.arange(30) == 2, np.nan, 1.0)), tmp_path / "run")
    assert not names(tmp_path)


def test_a_fact_that_json_cannot_hold_leaves_no_folder(result: Result, tmp_path: Path) -> None:
    with refused("facts.odd", float("nan")):
        write_run(result, tmp_path / "deep" / "run", facts={"odd": float("nan")})
    assert not names(tmp_path)


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        ("run.json", '"version": 2', '"version": 1', ": version"),
        ("run.json", '"rounds"', '"circles"', ": rounds"),
        ("run.json", "{", "", ""),
        ("jobs.csv", "due_s", "deadline", ": columns"),
        ("jobs.csv", "\n0,", "\nzero,", ": line 2, job"),
        ("intervals.csv", "\n", "\n0,0,1,-1,Vx1,0.0,nan,1.0,1.0\n", ": line 2, ready_s"),
    ],
)
def test_a_malformed_run_is_one_error_that_names_it(
    result: Result, tmp_path: Path, file: str, old: str, new: str, named: str
) -> None:
    write_run(result, tmp_path / "run")
    path = tmp_path / "run" / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with refused(f"{path}{named}"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("job", "30", ("intervals.csv: job", 30, "from 0 to 29")),
        ("node", "-1", ("intervals.csv: node", -1, "from 0 to 1")),
        ("configuration", "9xV", ("intervals.csv: configuration", "9xV")),
    ],
)
def test_an_interval_of_what_there_is_not_is_one_error(result, tmp_path, column, value, said):
    write_run(result, tmp_path / "run")
    with csv_rows(tmp_path / "run" / "intervals.csv") as rows:
        rows[0][column] = value
    with refused(*said):
        read_result(tmp_path / "run")


def test_a_run_without_a_job_is_one_error(result, tmp_path):
    write_run(result, tmp_path / "run")
    with csv_rows(tmp_path / "run" / "jobs.csv") as rows:
        rows.pop()
    with refused("jobs.csv", 29, "a row for each of the 30 jobs"):
        read_result(tmp_path / "run")


@pytest.mark.parametrize("file", RUN_FILES)
def test_a_missing_file_is_one_error(result: Result, tmp_path: Path, file: str) -> None:
    write_run(result, tmp_path / "run")
    (tmp_path / "run" / file).unlink()
    with refused(f"{tmp_path}/run/{file}" + ": file" * (file == "instance.json")):
        read_run(tmp_path / "run")


def test_a_file_is_written_whole_as_text_or_bytes(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "a.txt", "€\n")
    write_atomically(tmp_path / "new" / "a.txt", "€ again\n")
    write_atomically(tmp_path / "new" / "b.bin", b"\x00\r\n")
    assert (tmp_path / "new" / "a.txt").read_bytes() == "€ again\n".encode()
    assert (tmp_path / "new" / "b.bin").read_bytes() == b"\x00\r\n"
    assert names(tmp_path / "new") == ["a.txt", "b.bin"]


def test_a_file_in_the_place_of_a_folder_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    with refused("path", allowed="a file, not a folder"):
        write_atomically(tmp_path, "x")
    with refused("path", allowed="a place that can be written"):
        write_atomically(tmp_path / "file" / "below", "x")
    with refused("path", allowed="a new folder, not a file"), new_folder(tmp_path / "file"):
        pass
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"
    assert names(tmp_path) == ["file"]


def test_a_failure_while_the_file_is_renamed_keeps_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "a.txt", "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with refused("path", allowed="No space left"):
        write_atomically(tmp_path / "a.txt", "new")
    with refused("path", allowed="No space left"):
        write_atomically(tmp_path / "deep" / "er" / "a.txt", "new")
    assert names(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "old"


def test_a_folder_appears_only_when_its_body_is_done(tmp_path: Path) -> None:
    with new_folder(tmp_path / "out") as draft:
        (draft / "a").write_text("a", encoding="utf-8")
        assert not (tmp_path / "out").exists()
    assert names(tmp_path) == ["out"]
    assert names(tmp_path / "out") == ["a"]


def _fail_in(folder: Path, **options: frozenset[str]) -> None:
    with new_folder(folder, **options) as draft:
        (draft / "a").write_text("new", encoding="utf-8")
        raise KeyError("boom")


def test_a_body_that_fails_leaves_nothing_behind_and_the_former_folder_as_it_was(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        _fail_in(tmp_path / "deep" / "er" / "out")
    assert not names(tmp_path)
    write_atomically(tmp_path / "out" / "a", "old")
    with pytest.raises(KeyError):
        _fail_in(tmp_path / "out", ours=frozenset({"a"}))
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "a").read_text(encoding="utf-8") == "old"


def test_an_empty_folder_is_taken_and_one_that_is_not_ours_is_refused_before_the_body_runs(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with new_folder(tmp_path / "empty") as draft:
        (draft / "a").write_text("a", encoding="utf-8")
    assert names(tmp_path / "empty") == ["a"]
    with refused("path", allowed="a new or empty folder"):
        _fail_in(tmp_path / "empty")
    (tmp_path / "other" / "a").mkdir(parents=True)  # a folder that is named as a file of ours
    with refused("path", allowed="a new or empty folder, or one that holds nothing but a former run"):
        _fail_in(tmp_path / "other", ours=frozenset({"a"}))
    assert names(tmp_path / "other") == ["a"]


def test_provenance_gives_versions_command_and_time_and_can_be_written_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/some/where/gpusched", "compare", "--out", "two words"])
    made = provenance(seed=np.int64(3), policies=("edf", "sts"))
    assert made["command"] == "gpusched compare --out 'two words'"
    assert made["facts"] == {"seed": 3, "policies": ["edf", "sts"]}
    assert set(made["packages"]) == {"gpusched-env", "numpy", "numba", "gymnasium", "scipy", "polars"}
    assert all(made["packages"].values())
    assert made["made_utc"].endswith("+00:00")
    assert json.loads(json.dumps(made)) == made
