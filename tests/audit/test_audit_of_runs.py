from __future__ import annotations

import csv
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, edf
from gpusched_env.audit import Difference, audit
from gpusched_env.audit.reading import EARLY, EARLY_S
from gpusched_env.formats.run_folder import write_run
from gpusched_env.model import EpochDistribution, GpuType, Instance, JobTable, Node, single_node_configurations
from gpusched_env.simulator import simulate
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S
from run_files import audited
from small_instances import EARLY_COMPLETIONS, early_completion

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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


def test_a_run_far_from_the_start_of_time_audits_clean(tmp_path: Path) -> None:
    """Years of seconds leave floats fewer digits to tell the end of a job of a second: 2e-7 s after 60 years."""
    instance = make_instance(5, gap_s=3e7, least_s=0.01)
    assert audited(simulate(instance, PREEMPTIVE), tmp_path / "run") == []


@pytest.mark.parametrize("case", EARLY_COMPLETIONS)
def test_a_completion_that_an_event_takes_early_audits_clean(tmp_path: Path, case: tuple[float, float, float]) -> None:
    assert audited(simulate(early_completion(*case), edf()), tmp_path / "run") == []


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


def test_a_start_before_the_submission_is_named(folder: Path) -> None:
    job = read_rows(folder / "intervals.csv")[0]["job"]
    found = corrupt(folder, "intervals.csv", lambda rows: change_number(rows[0], "start_s", -1e-3))
    assert found[0].where == f"intervals.csv line 2 (job {job})"
    assert "submission" in found[0].what


def test_a_job_on_a_node_of_another_type_is_named_first(folder: Path) -> None:
    rows = read_rows(folder / "intervals.csv")
    index = next(i for i, row in enumerate(rows) if row["node"] == "1")
    found = corrupt(folder, "intervals.csv", lambda rows: rows[index].update(node="2"))
    where = f"intervals.csv line {index + 2} (job {rows[index]['job']})"
    assert found[0] == Difference(where, "B", "A", "GPU type on node 2")
    assert sum(difference.what.startswith("GPU type") for difference in found) == 1


def test_a_job_without_any_interval_is_named(folder: Path) -> None:
    def remove(rows: list[Row]) -> None:
        rows[:] = [row for row in rows if row["job"] != "5"]

    found = corrupt(folder, "intervals.csv", remove)
    assert Difference("intervals.csv (job 5)", 0, "at least one", "intervals of the job") in found
