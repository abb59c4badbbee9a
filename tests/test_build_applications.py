from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
COMMITTED = ROOT / "gpusched_env" / "workload" / "data"
TABLES = ("gpu_types.csv", "applications.csv", "application_facts.csv")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the public measurements are not beside the repository")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the script; return its output folder and its report."""
    out = tmp_path_factory.mktemp("tables")
    command = [sys.executable, str(ROOT / "scripts" / "build_applications.py"), "--data", str(DATA), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return out, done.stdout


def seconds(application: str, gpu_type: str, gpus: int) -> tuple[float, str]:
    with (COMMITTED / "applications.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["application"], row["gpu_type"], row["gpus"]) == (application, gpu_type, str(gpus)):
                return float(row["seconds_per_epoch"]), row["method"]
    raise KeyError(application)


@pytest.mark.parametrize("name", TABLES)
def test_the_committed_table_is_what_the_script_makes(built: tuple[Path, str], name: str) -> None:
    assert (built[0] / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_only_the_three_tables_are_left(built: tuple[Path, str]) -> None:
    assert {path.name for path in built[0].iterdir()} == set(TABLES)


def test_a_v100_row_is_samples_over_shockwaves_steps_times_batch() -> None:
    table = json.loads((DATA / "shockwave" / "wisr_throughputs.json").read_text(encoding="utf-8"))["v100"]
    steps_per_s = table["('ResNet-50 (batch size 64)', 4)"]["null"]
    found, method = seconds("resnet50-imagenet-bs64", "V100", 4)
    assert found == pytest.approx(1_281_167 / (steps_per_s * 64), rel=1e-5)
    assert method == "measured"


def test_an_a100_row_is_samples_over_iterations_times_the_global_batch() -> None:
    # elasticflow/throughputs_A100/vgg16.csv, batch 256, 8 GPUs: 7.996428170165415 iterations/s
    assert seconds("vgg16-imagenet-global256", "A100", 8) == (
        pytest.approx(1_281_167 / (7.996428170165415 * 256), rel=1e-5),
        "measured",
    )


def test_three_gpus_lie_on_the_log_log_line() -> None:
    # Between 2 and 4 GPUs the speed grows with the power log2(s4 / s2).
    two, four = seconds("gpt2-imdb-global128", "A100", 2)[0], seconds("gpt2-imdb-global128", "A100", 4)[0]
    three, method = seconds("gpt2-imdb-global128", "A100", 3)
    assert three == pytest.approx(two * (four / two) ** 0.5849625007211562, rel=1e-5)
    assert method == "interpolated"


def test_a_single_v100_epoch_comes_straight_from_zeus() -> None:
    # zeus/summary_power_v100.csv, librispeech deepspeech2 batch 64 at 250 W
    found, method = seconds("deepspeech2-librispeech-global64", "V100", 1)
    assert (round(found), method) == (5654, "measured")


def test_the_report_names_dropped_cells_with_their_reason(built: tuple[Path, str]) -> None:
    report = built[1].splitlines()
    assert any(line.startswith("dropped elasticflow/throughputs_A100/resnet50_cifar10.csv") for line in report)
    assert any("v100 ('ResNet-18 (batch size 16)', 2)" in line and "1.15 x 2" in line for line in report)
    assert all(": " in line for line in report)
