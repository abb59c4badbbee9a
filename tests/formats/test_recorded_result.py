import pytest

from gpusched_env.formats.run_folder import read_result, write_run
from refusals import refused
from report_pages import ran


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
