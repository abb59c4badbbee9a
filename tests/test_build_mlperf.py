from pathlib import Path

import pytest

from scripts import run_script

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
COMMITTED = ROOT / "gpusched_env" / "workload" / "tables" / "data"
TABLES = {"mlperf_applications.csv", "mlperf_epochs.csv", "mlperf_power.csv"}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the public measurements are not beside the repository")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the script; return its output folder and its report."""
    out = tmp_path_factory.mktemp("tables")
    return out, run_script("build_mlperf.py", "--data", DATA, "--out", out)


def test_the_committed_tables_are_what_the_script_makes(built):
    assert {path.name for path in built[0].iterdir()} == TABLES
    for name in TABLES:
        assert (built[0] / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_the_report_says_how_much_epochs_vary_and_what_was_dropped(built):
    lines = built[1].splitlines()
    assert any(line.startswith("mlperf-unet3d-b56: 1794 runs") and "mean / longest 0.28" in line for line in lines)
    assert any(line.startswith("dropped mlperf-retinanet-b256 B200 4 nodes: slower than fewer") for line in lines)
