import csv
from pathlib import Path

import pytest

from scripts import run_script

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data" / "gpuspb"
COMMITTED = ROOT / "gpusched_env" / "workload" / "tables" / "data"
TABLES = ("published_applications.csv", "published_inhouse_applications.csv", "published_epochs.csv")


def rows(name: str) -> list[dict[str, str]]:
    with (COMMITTED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(not DATA.is_dir(), reason="the published files are not beside the repository")
def test_the_committed_tables_are_what_the_script_makes(tmp_path):
    run_script("build_published.py", "--data", DATA, "--out", tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(TABLES)
    for name in TABLES:
        assert (tmp_path / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_there_are_15_jobs_on_one_to_eight_gpus_of_two_types():
    table = rows("published_applications.csv")
    keys = {(row["application"], row["gpu_type"], int(row["gpus"])) for row in table}
    names = {f"alexnet-j{job}" for job in range(1, 17) if job != 13}
    assert keys == {(name, v, g) for name in names for v in ("K80", "M60") for g in range(1, 9)}
    assert len(table) == len(keys)
    assert all(float(row["seconds"]) > 0 and int(row["max_epochs"]) > 0 for row in table)
    assert {row["memory_gib"] for row in table} == {"4", "6", "8", "12"}


def test_a_published_time_is_that_of_all_epochs_as_it_stands_in_the_file():
    first = rows("published_applications.csv")[0]
    assert list(first.values())[:-1] == ["alexnet-j1", "K80", "1", "84777.89652000001", "500", "4"]
    assert "Apache-2.0" in first["source"]


def test_the_in_house_jobs_run_on_their_servers_types():
    table = rows("published_inhouse_applications.csv")
    assert len({row["application"] for row in table}) == 10
    assert {(row["gpu_type"], row["gpus"]) for row in table} == {("TESLA", "1"), ("TESLA", "2"), ("TURING", "1")}
    assert {row["memory_gib"] for row in table} == {"0"}
    assert table[0]["application"] == "lstmbig-j1"


def test_the_six_histograms_have_100_bins_and_add_up_to_one():
    table = rows("published_epochs.csv")
    assert list(table[0]) == ["TF_alexnet", "PY", "PY_alexnet", "PY_mobilnet", "PY_resnet", "PY_vgg"]
    assert len(table) == 100
    for name in table[0]:
        assert sum(float(row[name]) for row in table) == pytest.approx(1.0, abs=1e-12)
