from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, edf
from gpusched_env.audit import Difference, audit
from gpusched_env.audit.reading import EARLY, EARLY_S
from gpusched_env.formats.run_folder import write_run
from gpusched_env.model import EpochDistribution, GpuType, Instance, JobTable, Node, single_node_configurations
from gpusched_env.simulator import simulate
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S
from small_instances import EARLY_COMPLETIONS, early_completion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusched_env.simulator import Policy

Row = dict[str, str]


def make_instance(
    seed: int, jobs: int = 60, nodes: int = 4, restart_s: float = 0.0, gap_s: float = 120.0, least_s: float = 50.0
) -> Instance:
    """Random jobs, crowded enough that some wait and some are late, on two GPU types."""
    rng = np.random.default_rng(seed)
    types = (GpuType("A", 300.0, 400.0, 16.0, 8), GpuType("B", 150.0, 200.0, 16.0, 8))
    cluster = tuple(Node(types[n % 2].name, (8, 4)[n % 2]) for n in range(nodes))
    configurations = single_node_configurations(types, cluster)
    speed = np.array([(1.0 if c.gpu_type == "A" else 2.0) / c.gpus_per_node**0.7 for c in configurations])
    seconds = rng.uniform(least_s, 10.0 * least_s, (jobs, 1)) * speed
    most = rng.uniform(10.0, 100.0, jobs)
    submission = np.sort(rng.uniform(0.0, jobs * gap_s, jobs))
    full = seconds * most[:, None]
    shape = EpochDistribution.from_masses(rng.dirichlet(np.ones(100) * 0.3))
    table = JobTable(
        submission_s=submission,
        due_s=submission + rng.uniform(0.8, 5.0, jobs) * full.min(axis=1),
        tardiness_weight_eur_per_s=rng.uniform(0.025, 0.044, jobs),
        max_epochs=most,
        epochs_needed=np.array([shape.sample(rng) for _ in range(jobs)]) * most,
        memory_gib=np.zeros(jobs),
        seconds_per_epoch=seconds,
        application=np.zeros(jobs, dtype=np.int64),
        applications=("a",),
        distribution=np.zeros(jobs, dtype=np.int64),
        distributions=(shape,),
        restart_s=np.full(jobs, restart_s),
    )
    return Instance(types, cluster, configurations, table, seed=seed)


PREEMPTIVE = DispatchPolicy("preemptive", "pressure", preemption=True)


@pytest.mark.parametrize("restart_s", [0.0, 45.0])
@pytest.mark.parametrize("policy", [edf(), PREEMPTIVE], ids=lambda policy: policy.name)
@pytest.mark.parametrize("seed", range(4))
def test_simulated_runs_audit_clean(tmp_path: Path, seed: int, policy: Policy, restart_s: float) -> None:
    result = simulate(make_instance(seed, restart_s=restart_s), policy)
    write_run(result, tmp_path / "run")
    assert audit(tmp_path / "run") == []
    assert result.late_jobs > 0
    assert (result.switches.sum() > 50) == policy.preemption


def test_a_run_far_from_the_start_of_time_audits_clean(tmp_path: Path) -> None:
    """Years of seconds leave floats fewer digits to tell the end of a job of a second: 2e-7 s after 60 years."""
    instance = make_instance(5, gap_s=3e7, least_s=0.01)
    write_run(simulate(instance, PREEMPTIVE), tmp_path / "run")
    assert audit(tmp_path / "run") == []


@pytest.mark.parametrize("case", EARLY_COMPLETIONS)
def test_a_completion_that_an_event_takes_early_audits_clean(tmp_path: Path, case: tuple[float, float, float]) -> None:
    write_run(simulate(early_completion(*case), edf()), tmp_path / "run")
    assert audit(tmp_path / "run") == []


def test_how_early_a_completion_may_be_is_what_the_simulator_takes_with_an_event() -> None:
    assert (EARLY_S, EARLY) == (SAME_TIME_S, SAME_TIME)


def test_a_completion_that_is_earlier_than_any_event_takes_it_is_named(tmp_path: Path) -> None:
    """A job of 2 s lacks 1e-8 s in the end; events take no completion more than 1.000002e-9 s early."""
    write_run(simulate(early_completion(0.0, 2.0, 1.0), edf()), tmp_path / "run")
    found = corrupt(tmp_path / "run", "intervals.csv", lambda rows: change_number(rows[0], "end_s", -1e-8))
    assert {d.what for d in found} >= {"epochs done in the interval", "epochs needed, and done at completion"}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "clean"
    write_run(simulate(make_instance(0, restart_s=45.0), PREEMPTIVE), folder)
    return folder


@pytest.fixture
def folder(clean: Path, tmp_path: Path) -> Path:
    shutil.copytree(clean, tmp_path / "run")
    return tmp_path / "run"


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def corrupt(folder: Path, file: str, change: Callable[[list[Row]], None]) -> list[Difference]:
    rows = read_rows(folder / file)
    change(rows)
    write_rows(folder / file, rows)
    return audit(folder)


def change_number(row: Row, column: str, by: float) -> None:
    row[column] = repr(float(row[column]) + by)


def middle_of_a_life(folder: Path) -> int:
    """Find a line whose job has intervals before and after it, the latter at once."""
    rows = read_rows(folder / "intervals.csv")
    for index, row in enumerate(rows):
        same = [other for other in rows if other["job"] == row["job"]]
        if same.index(row) > 0 and any(other["start_s"] == row["end_s"] for other in same):
            return index
    raise AssertionError("the run has no such interval")


def test_a_wrong_number_of_gpus_is_the_only_difference(folder: Path) -> None:
    row = read_rows(folder / "intervals.csv")[7]
    found = corrupt(folder, "intervals.csv", lambda rows: rows[7].update(gpus="9"))
    expected = int(row["configuration"].partition("x")[2])
    where = f"intervals.csv line 9 (job {row['job']})"
    assert found == [Difference(where, 9, expected, "GPUs of the configuration")]


def test_a_shifted_interval_is_named_by_its_overlap_and_its_job(folder: Path) -> None:
    index = middle_of_a_life(folder)

    def shift(rows: list[Row]) -> None:
        for column in ("start_s", "ready_s", "end_s"):
            change_number(rows[index], column, 0.5)

    job = read_rows(folder / "intervals.csv")[index]["job"]
    found = corrupt(folder, "intervals.csv", shift)
    overlap = [difference for difference in found if "before the job's interval on line" in difference.what]
    assert len(overlap) == 1
    assert f"on line {index + 2} ends" in overlap[0].what
    assert f"(job {job})" in overlap[0].where
    assert any(difference.what == "energy_eur" and f"(job {job})" in difference.where for difference in found)


def test_a_shifted_start_is_named_on_its_line(folder: Path) -> None:
    index = middle_of_a_life(folder)
    row = read_rows(folder / "intervals.csv")[index]
    found = corrupt(folder, "intervals.csv", lambda rows: change_number(rows[index], "start_s", 1e-5))
    on_line = [d for d in found if d.where == f"intervals.csv line {index + 2} (job {row['job']})"]
    assert len(on_line) == 1
    assert on_line[0].what.startswith("ready_s")


def test_a_start_before_the_submission_is_named(folder: Path) -> None:
    job = read_rows(folder / "intervals.csv")[0]["job"]
    found = corrupt(folder, "intervals.csv", lambda rows: change_number(rows[0], "start_s", -1e-3))
    assert found[0].where == f"intervals.csv line 2 (job {job})"
    assert "submission" in found[0].what


def test_jobs_beyond_the_capacity_of_a_node_are_named(folder: Path) -> None:
    """All intervals of the B nodes go to node 1, which has 4 GPUs."""
    rows = read_rows(folder / "intervals.csv")
    assert {row["node"] for row in rows} == {"0", "1", "2", "3"}
    found = corrupt(
        folder, "intervals.csv", lambda rows: [row.update(node="1") for row in rows if row["node"] == "3"] and None
    )
    beyond = [difference for difference in found if difference.what == "busy GPUs, and GPUs of the node"]
    assert found[: len(beyond)] == beyond
    assert beyond
    assert all("(node 1 from" in difference.where for difference in beyond)
    assert all(difference.recorded > 4 and difference.recomputed == 4 for difference in beyond)


def test_a_job_on_a_node_of_another_type_is_named_first(folder: Path) -> None:
    rows = read_rows(folder / "intervals.csv")
    index = next(i for i, row in enumerate(rows) if row["node"] == "1")
    found = corrupt(folder, "intervals.csv", lambda rows: rows[index].update(node="2"))
    where = f"intervals.csv line {index + 2} (job {rows[index]['job']})"
    assert found[0] == Difference(where, "B", "A", "GPU type on node 2")
    assert sum(difference.what.startswith("GPU type") for difference in found) == 1


@pytest.mark.parametrize("name", ["energy_eur", "tardiness_eur", "total_eur"])
def test_a_total_that_is_off_by_a_millionth_is_the_only_difference(folder: Path, name: str) -> None:
    run: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    true = run[name]
    run[name] = true * (1 + 1e-6)
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    assert audit(folder) == [Difference("run.json", run[name], pytest.approx(true, rel=1e-10), name)]


@pytest.mark.parametrize(
    "column", ["energy_eur", "tardiness_eur", "completion_s", "start_s", "epochs_needed", "switches"]
)
def test_a_wrong_value_of_one_job_is_the_only_difference(folder: Path, column: str) -> None:
    rows = read_rows(folder / "jobs.csv")
    true = float(rows[11][column])
    step = 1.0 if column == "switches" else max(1e-8, 1e-8 * true)
    new = str(int(true + step)) if column == "switches" else repr(true + step)
    found = corrupt(folder, "jobs.csv", lambda rows: rows[11].update({column: new}))
    assert [difference.where for difference in found] == ["jobs.csv line 13 (job 11)"]
    assert column in found[0].what
    assert found[0].recorded == float(new)
    assert found[0].recomputed == pytest.approx(true, rel=1e-9)


def test_wrong_epochs_of_an_interval_are_the_only_difference(folder: Path) -> None:
    index = middle_of_a_life(folder)
    row = read_rows(folder / "intervals.csv")[index]
    found = corrupt(folder, "intervals.csv", lambda rows: change_number(rows[index], "epochs", 1e-6))
    assert [(d.where, d.what) for d in found] == [
        (f"intervals.csv line {index + 2} (job {row['job']})", "epochs done in the interval")
    ]


def test_a_removed_interval_is_named_by_the_epochs_that_its_job_lacks(folder: Path) -> None:
    index = middle_of_a_life(folder)
    row = read_rows(folder / "intervals.csv")[index]
    job = int(row["job"])
    found = corrupt(folder, "intervals.csv", lambda rows: rows.pop(index) and None)
    lacking = [d for d in found if d.what == "epochs needed, and done at completion"]
    assert [d.where for d in lacking] == [f"jobs.csv line {job + 2} (job {job})"]
    assert lacking[0].recorded - lacking[0].recomputed == pytest.approx(float(row["epochs"]), rel=1e-6)
    assert any(d.where == "run.json" and d.what == "energy_eur" for d in found)


def test_a_job_without_any_interval_is_named(folder: Path) -> None:
    def remove(rows: list[Row]) -> None:
        rows[:] = [row for row in rows if row["job"] != "5"]

    found = corrupt(folder, "intervals.csv", remove)
    assert Difference("intervals.csv (job 5)", 0, "at least one", "intervals of the job") in found
