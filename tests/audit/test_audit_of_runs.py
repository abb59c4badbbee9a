import shutil
from pathlib import Path

import pytest

from gpusched_baselines.dispatching.dispatch import DispatchPolicy, edf
from gpusched_env.audit import Difference, audit
from gpusched_env.audit.reading import EARLY, EARLY_S
from gpusched_env.formats.run_folder import write_run
from gpusched_env.simulator import simulate
from gpusched_env.simulator.events import SAME_TIME, SAME_TIME_S
from instances import random_instance
from run_files import audited, csv_rows
from small_instances import EARLY_COMPLETIONS, early_completion

Row = dict[str, str]


PREEMPTIVE = DispatchPolicy("preemptive", "pressure", preemption=True)


def test_a_run_far_from_the_start_of_time_audits_clean(tmp_path):
    """Years of seconds leave floats fewer digits to tell the end of a job of a second: 2e-7 s after 60 years."""
    instance = random_instance(5, jobs=60, span_s=1.8e9)
    assert audited(simulate(instance, PREEMPTIVE), tmp_path / "run") == []


@pytest.mark.parametrize("case", EARLY_COMPLETIONS)
def test_a_completion_that_an_event_takes_early_audits_clean(tmp_path, case):
    assert audited(simulate(early_completion(*case), edf()), tmp_path / "run") == []


def test_how_early_a_completion_may_be_is_what_the_simulator_takes_with_an_event():
    assert (EARLY_S, EARLY) == (SAME_TIME_S, SAME_TIME)


def test_a_completion_that_is_earlier_than_any_event_takes_it_is_named(tmp_path):
    """A job of 2 s lacks 1e-8 s in the end; events take no completion more than 1.000002e-9 s early."""
    write_run(simulate(early_completion(0.0, 2.0, 1.0), edf()), tmp_path / "run")
    with csv_rows(tmp_path / "run" / "intervals.csv") as rows:
        change_number(rows[0], "end_s", -1e-8)
    assert {d.what for d in audit(tmp_path / "run")} >= {
        "epochs done in the interval",
        "epochs needed, and done at completion",
    }


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "clean"
    write_run(simulate(random_instance(0, jobs=60, nodes=4, restart_s=45.0), PREEMPTIVE), folder)
    return folder


@pytest.fixture
def folder(clean: Path, tmp_path: Path) -> Path:
    shutil.copytree(clean, tmp_path / "run")
    return tmp_path / "run"


def change_number(row: Row, column: str, by: float) -> None:
    row[column] = repr(float(row[column]) + by)


def test_a_start_before_the_submission_is_named(folder):
    with csv_rows(folder / "intervals.csv") as rows:
        change_number(rows[0], "start_s", -1e-3)
    found = audit(folder)
    assert found[0].where == f"intervals.csv line 2 (job {rows[0]['job']})"
    assert "submission" in found[0].what


def test_a_job_on_a_node_of_another_type_is_named_first(folder):
    with csv_rows(folder / "intervals.csv") as rows:
        index = next(i for i, row in enumerate(rows) if row["configuration"] == "T1x1")
        rows[index]["node"] = "2"
    found = audit(folder)
    where = f"intervals.csv line {index + 2} (job {rows[index]['job']})"
    assert found[0] == Difference(where, "T1", "T0", "GPU type on node 2")
    assert sum(difference.what.startswith("GPU type") for difference in found) == 1


def test_a_job_without_any_interval_is_named(folder):
    with csv_rows(folder / "intervals.csv") as rows:
        rows[:] = [row for row in rows if row["job"] != "5"]
    assert Difference("intervals.csv (job 5)", 0, "at least one", "intervals of the job") in audit(folder)
