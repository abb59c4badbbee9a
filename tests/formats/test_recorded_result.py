import numpy as np
import pytest

from gpusched_env.formats.run_folder import read_result, write_run
from gpusched_env.simulator import layout as at
from refusals import refused
from report_pages import ran
from small_instances import small_random_instance


@pytest.mark.parametrize("seed", range(6))
def test_a_run_that_was_written_is_read_as_the_same_result(tmp_path, seed):
    result = ran("fifo", small_random_instance(seed, jobs=6, kinds=True))
    write_run(result, tmp_path / "run")
    again = read_result(tmp_path / "run")
    order = np.lexsort((result.log[:, at.LOG_NODE], result.log[:, at.LOG_JOB], result.log[:, at.LOG_START]))
    assert again.log.tolist() == result.log[order].tolist()
    for name in ("start_s", "completion_s", "job_energy_eur", "job_tardiness_eur", "switches"):
        assert getattr(again, name).tolist() == getattr(result, name).tolist(), name
    for name in ("policy", "seed", "energy_eur", "tardiness_eur", "rounds", "late_jobs"):
        assert getattr(again, name) == getattr(result, name), name


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("job", "7", ("intervals.csv: job", 7, "from 0 to 1")),
        ("node", "-1", ("intervals.csv: node", -1, "from 0 to 0")),
        ("configuration", "9xV", ("intervals.csv: configuration", "9xV")),
    ],
)
def test_an_interval_of_what_there_is_not_is_one_error(tmp_path, column, value, said):
    write_run(ran(), tmp_path / "run")
    path = tmp_path / "run" / "intervals.csv"
    head, first, *rest = path.read_text(encoding="utf-8").splitlines()
    cells = first.split(",")
    cells[head.split(",").index(column)] = value
    path.write_text("\n".join([head, ",".join(cells), *rest]) + "\n", encoding="utf-8")
    with refused(*said):
        read_result(tmp_path / "run")


def test_a_run_without_a_job_is_one_error(tmp_path):
    write_run(ran(), tmp_path / "run")
    path = tmp_path / "run" / "jobs.csv"
    path.write_text("\n".join(path.read_text(encoding="utf-8").splitlines()[:-1]) + "\n", encoding="utf-8")
    with refused("jobs.csv", 1, "a row for each of the 2 jobs"):
        read_result(tmp_path / "run")
