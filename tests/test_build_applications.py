import csv
import hashlib
import json
import math
import statistics
from pathlib import Path

import pytest

from scripts import run_script

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
COMMITTED = ROOT / "gpusched_env" / "workload" / "tables" / "data"
TABLES = (
    "gpu_types.csv",
    "applications.csv",
    "application_facts.csv",
    "whole_nodes.csv",
    "spread.csv",
    "communication.csv",
    "colocation.csv",
    "utilisation.csv",
    "inflation.csv",
)
MEASURED_TYPES = ("K80", "P100", "V100", "T4", "A100")
METHODS = ("measured", "fitted")
BY_MLPERF = ("H100", "H200", "L40S", "H100-air", "B200", "GB200", "L40", "A30")
LIKE = dict.fromkeys(("T4", "L4", "A30"), "P100") | dict.fromkeys(("A100", "A10", *BY_MLPERF[:-1]), "V100")
"""Whose pairs the types without measured pairs have."""

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the public measurements are not beside the repository")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the script; return its output folder and its report."""
    out = tmp_path_factory.mktemp("tables")
    return out, run_script("build_applications.py", "--data", DATA, "--out", out)


def rows(name: str) -> list[dict[str, str]]:
    with (COMMITTED / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def slowdown(gpu_type: str, application: str, other: str) -> tuple[float, str]:
    for row in rows("colocation.csv"):
        if (row["gpu_type"], row["application"], row["other"]) == (gpu_type, application, other):
            return float(row["slowdown"]), row["method"]
    raise KeyError(application)


def gavel_slowdowns(gpu_type: str) -> dict[tuple[str, str], float]:
    """Speed alone / speed beside another, of all pairs of single-GPU jobs that both made progress."""
    text = (DATA / "gavel" / "physical_cluster_throughputs.json").read_text(encoding="utf-8")
    table = json.loads(text)[gpu_type.lower()]
    keys = [key for key in table if key.endswith(", 1)")]
    pairs = {(a, b): table[a][b] for a in keys for b in keys if b in table[a]}
    return {(a, b): max(1.0, table[a]["null"] / own) for (a, b), (own, others) in pairs.items() if own and others}


def seconds(application: str, gpu_type: str, gpus: int) -> tuple[float, str]:
    with (COMMITTED / "applications.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row["application"], row["gpu_type"], row["gpus"]) == (application, gpu_type, str(gpus)):
                return float(row["seconds_per_epoch"]), row["method"]
    raise KeyError(application)


@pytest.mark.parametrize("name", TABLES)
def test_the_committed_table_is_what_the_script_makes(built, name):
    assert (built[0] / name).read_bytes() == (COMMITTED / name).read_bytes()


def test_only_these_tables_are_left(built):
    assert {path.name for path in built[0].iterdir()} == set(TABLES)


def test_rows_are_samples_over_what_was_measured_by_hand():
    table = json.loads((DATA / "shockwave" / "wisr_throughputs.json").read_text(encoding="utf-8"))["v100"]
    steps_per_s = table["('ResNet-50 (batch size 64)', 4)"]["null"]
    found, method = seconds("resnet50-imagenet-bs64", "V100", 4)
    assert found == pytest.approx(1_281_167 / (steps_per_s * 64), rel=1e-5)
    assert method == "measured"
    assert seconds("vgg16-imagenet-global256", "A100", 8) == (
        pytest.approx(1_281_167 / (7.996428170165415 * 256), rel=1e-5),
        "measured",
    )
    two, four = seconds("gpt2-imdb-global128", "A100", 2)[0], seconds("gpt2-imdb-global128", "A100", 4)[0]
    three, method = seconds("gpt2-imdb-global128", "A100", 3)
    assert three == pytest.approx(two * (four / two) ** 0.5849625007211562, rel=1e-5)
    assert method == "interpolated"
    found, method = seconds("deepspeech2-librispeech-global64", "V100", 1)
    assert (round(found), method) == (5654, "measured")
    table = {(r["application"], r["gpu_type"], r["nodes"], r["gpus_per_node"]): r for r in rows("whole_nodes.csv")}
    row = table["vgg16-imagenet-global256", "A100", "2", "8"]
    assert float(row["seconds_per_epoch"]) == pytest.approx(1_281_167 / (12.621757731334574 * 256), rel=1e-5)
    # elasticflow/throughputs_T4/yolov3.csv, batch 64, 16 GPUs over four nodes; 32 and 64 are NaN
    row = table["yolov3-voc-global64", "T4", "4", "4"]
    assert float(row["seconds_per_epoch"]) == pytest.approx(16_551 / (0.8514782062868322 * 64), rel=1e-5)
    # pollux/cifar10/scalability.csv, 8 nodes of four, 129 samples a GPU: 0.2250307559967041 s
    row = table["resnet18-cifar10-bs128", "T4", "8", "4"]
    assert float(row["seconds_per_epoch"]) == pytest.approx(50_000 * 0.2250307559967041 / (32 * 129), rel=1e-5)


def test_whole_nodes_hold_only_what_was_measured_or_lies_between_on_a_fit():
    table = rows("whole_nodes.csv")
    assert {row["method"] for row in table} == {"measured", "fitted"}
    assert all(row["method"] == "measured" for row in table if row["gpu_type"] == "T4")
    by_method = {m: {int(r["nodes"]) for r in table if (r["method"], r["gpu_type"]) == (m, "A100")} for m in METHODS}
    assert by_method == {"measured": {2, 4, 8}, "fitted": {3, 5, 6, 7}}
    assert {(row["gpu_type"], row["gpus_per_node"]) for row in table} == {("A100", "8"), ("T4", "4")}
    assert all(int(row["nodes"]) > 1 for row in table)
    assert "resnet50-cifar10-global256" not in {row["application"] for row in table}, "0 in the source: not run"
    assert not any(row["application"].startswith("yolo") and int(row["nodes"]) > 4 for row in table), (
        "NaN in the source"
    )
    table = rows("communication.csv")
    assert len(table) == 6
    for row in table:
        file, batch = row["source"].split(" ")[0], int(row["source"].split("global_batch_size ")[1].split(":")[0])
        with (DATA / file).open(encoding="utf-8", newline="") as open_file:
            measured = next(r for r in csv.DictReader(open_file) if int(r["global_batch_size"]) == batch)
        for nodes in (1, 2, 4, 8):
            fit_s = float(row["compute_s"]) / nodes + float(row["sync_s"]) * 2 * (nodes - 1) / nodes
            error = fit_s * float(measured[str(8 * nodes)]) - 1.0
            assert abs(error) <= min(0.1, float(row["worst_error"]) + 1e-5)
    own = {row["application"]: row for row in rows("communication.csv")}
    facts = {row["application"]: row for row in rows("application_facts.csv")}
    for row in rows("whole_nodes.csv"):
        if row["method"] == "fitted":
            n, name = int(row["nodes"]), row["application"]
            iterations = int(facts[name]["samples_per_epoch"]) / int(facts[name]["batch_size"])
            fit_s = float(own[name]["compute_s"]) / n + float(own[name]["sync_s"]) * 2 * (n - 1) / n
            assert float(row["seconds_per_epoch"]) == pytest.approx(iterations * fit_s, rel=2e-5)


def test_pairs_are_as_measured_else_a_median_else_that_of_the_nearest_type():
    pair = gavel_slowdowns("P100")["('LM (batch size 5)', 1)", "('ResNet-18 (batch size 128)', 1)"]
    found = slowdown("P100", "lm-wikitext2-bs5", "resnet18-cifar10-bs128")
    assert found == (pytest.approx(pair, rel=1e-5), "measured")
    assert found[0] == pytest.approx(3.03, abs=0.01)
    assert slowdown("P100", "resnet18-cifar10-bs128", "lm-wikitext2-bs5")[0] == pytest.approx(1.40, abs=0.01)
    pairs, key = gavel_slowdowns("K80"), "('ResNet-50 (batch size 64)', 1)"
    others = [value for (one, _), value in pairs.items() if one == key]
    assert (key, "('Transformer (batch size 128)', 1)") not in pairs
    found = slowdown("K80", "resnet50-imagenet-bs64", "transformer-multi30k-bs128")
    assert found == (pytest.approx(statistics.median(others), rel=1e-5), "assumed")
    pairs = gavel_slowdowns("V100")
    inflicted = [value for (_, other), value in pairs.items() if other == "('LM (batch size 5)', 1)"]
    beside = slowdown("V100", "vgg16-imagenet-global256", "lm-wikitext2-bs5")
    assert beside == (pytest.approx(statistics.median(inflicted), rel=1e-5), "assumed")
    neither = slowdown("V100", "vgg16-imagenet-global256", "gpt2-imdb-global128")
    assert neither == (pytest.approx(statistics.median(pairs.values()), rel=1e-5), "assumed")
    table = {
        (r["gpu_type"], r["application"], r["other"]): (r["slowdown"], r["method"]) for r in rows("colocation.csv")
    }
    for (gpu_type, one, other), (value, method) in table.items():
        if gpu_type in LIKE:
            assert method == "assumed"
            assert value == table[LIKE[gpu_type], one, other][0]
    assert len(table) == 15 * 14 * 14
    assert all(float(value) >= 1.0 for value, _ in table.values())


def test_a_uniform_inflation_on_half_a_gpu_has_the_measured_median_and_less_of_it_adds_the_others_up():
    greatest = {(r["gpu_type"], r["fraction"]): float(r["max_inflation"]) for r in rows("inflation.csv")}
    for gpu_type, like in {"K80": "K80", "P100": "P100", "V100": "V100", **LIKE}.items():
        median = statistics.median(gavel_slowdowns(like).values())
        half = greatest[gpu_type, "0.5"]
        assert (1.01 + half) / 2 == pytest.approx(median, rel=1e-5)
        assert greatest[gpu_type, "0.25"] == pytest.approx(1 + 3 * (half - 1), rel=1e-5)
        assert greatest[gpu_type, "0.125"] == pytest.approx(1 + 7 * (half - 1), rel=1e-5)


def test_types_from_data_sheets_and_mlperf_are_scaled_from_the_nearest_type():
    lines = (COMMITTED / "applications.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if line.split(",")[1] in ("gpu_type", *MEASURED_TYPES)]
    found = hashlib.sha256("".join(kept).encode()).hexdigest()
    assert found == "8a6d4c537346e8b9d958d121782b4e7eea162733369efd6f1ff93c40e0a1c8bd"
    assert len(kept) == 1 + 14 * 5 * 8
    t4, l4 = (seconds("yolov3-voc-global64", gpu_type, 1)[0] for gpu_type in ("T4", "L4"))
    assert t4 / l4 == pytest.approx(math.sqrt(121 / 65 * 300 / 320), rel=1e-5)
    a100, method = seconds("vgg16-imagenet-global256", "A100", 1)
    h100, scaled = seconds("vgg16-imagenet-global256", "H100", 1)
    assert (method, scaled) == ("measured", "scaled")
    assert a100 / h100 == pytest.approx(1 / 0.469, rel=2e-3)
    assert seconds("vgg16-imagenet-global256", "H100-air", 1)[0] == h100
    assert seconds("vgg16-imagenet-global256", "H100", 8)[0] / h100 == pytest.approx(
        seconds("vgg16-imagenet-global256", "A100", 8)[0] / a100, rel=1e-5
    )


def test_the_report_says_how_far_data_sheets_are_off_and_why_cells_are_dropped(built):
    lines = {
        line.split(" against ")[0].split()[-1]: line
        for line in built[1].splitlines()
        if line.startswith("data sheet speed")
    }
    assert set(lines) == {*MEASURED_TYPES, "H100", "H200", "A10", "L4", "L40S"}
    errors = {"V100": "-22%", "T4": "+14%", "A100": "+28%", "P100": "-44%", "K80": "-56%"}
    errors |= {"H100": "+23%", "H200": "+29%", "L40S": "+39%"}
    assert all(f": {error} (" in lines[gpu_type] for gpu_type, error in errors.items())
    report = built[1].splitlines()
    assert any(line.startswith("dropped elasticflow/throughputs_A100/resnet50_cifar10.csv") for line in report)
    assert any("v100 ('ResNet-18 (batch size 16)', 2)" in line and "1.15 x 2" in line for line in report)
    assert any(line.startswith("dropped pollux/cifar10/placements.csv placement 44") for line in report)
    assert any(line.startswith("workers of one job on shared GPUs: ") for line in report)
    assert all(": " in line for line in report)


def test_power_is_what_acme_measured_of_the_a100_and_scaled_for_others():
    with (DATA / "acme_power" / "power_quantiles.csv").open(encoding="utf-8", newline="") as file:
        quantiles = {row["quantile"]: row for row in csv.DictReader(file)}
    row = next(row for row in rows("gpu_types.csv") if row["name"] == "A100")
    base, idle, busy = (float(row[f"{name}_w"]) for name in ("node_base_power", "idle_gpu_power", "gpu_power"))
    quiet, loaded = (
        tuple(float(quantiles[q][f"seren_{what}_power_w"]) for what in ("gpu_server", "gpu"))
        for q in ("0.01001", "0.89990")
    )
    assert (base + 8 * idle, idle) == quiet
    factor = (loaded[0] - quiet[0]) / (8 * (loaded[1] - quiet[1]))
    assert factor == pytest.approx(1.279, abs=5e-4)
    board = 400.0 * float(row["source"].split("TDP (400 W, SXM4) x ")[1].split(",")[0])
    assert busy == pytest.approx(idle + factor * (board - idle), rel=2e-3)
    found = {row["name"]: row for row in rows("gpu_types.csv")}
    tdp = {"K80": 150, "P100": 250, "V100": 250, "T4": 70, "A10": 150, "H100": 700, "B200": 1000, "GB200": 1200}
    for name, watts in tdp.items():
        assert float(found[name]["idle_gpu_power_w"]) == pytest.approx(60.0 * watts / 400)
        assert "assumed" in found[name]["source"]
    assert float(found["L40S"]["node_base_power_w"]) == pytest.approx(941 / 3300 * 1400, rel=1e-5)
