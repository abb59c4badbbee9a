"""MLPerf's applications: R1 to R4 of the issue on energy, recomputed from the public runs where they are there."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.model import Configuration, EpochDistribution
from gpusched_env.workload import Scenario, load_scenario, make_instance
from gpusched_env.workload.tables import read_table
from gpusched_env.workload.tables.applications import builtin_applications, builtin_gpu_types
from gpusched_env.workload.tables.own_applications import read_histograms
from refusals import refused

DATA = Path(__file__).parents[3] / "shared" / "data" / "mlperf_training"
public = pytest.mark.skipif(not DATA.is_dir(), reason="the public measurements are not beside the repository")
UNET3D, LORA = "mlperf-unet3d-b56", "mlperf-llama2-lora-b8"


def power() -> dict[tuple[str, str, int], dict[str, float]]:
    """Seconds of an epoch, W of a node and kWh of an epoch, by application, GPU type and nodes."""
    found = {}
    for row in read_table("mlperf_power.csv"):
        run_s, epochs, node_w, nodes = (float(row[key]) for key in ("run_s", "epochs", "node_w", "nodes"))
        key = row["application"], row["gpu_type"], int(nodes)
        found[key] = {"s": run_s / epochs, "w": node_w, "kwh": run_s * node_w * nodes / 3.6e6 / epochs, "run_s": run_s}
    return found


R1 = {
    (LORA, 8): (5.30, 7159, 5822, 1.227, 0.012),
    (LORA, 64): (32.4, 7159, 5083, 1.403, 0.043),
    ("mlperf-resnet50-b3200", 8): (5.25, 7046, 5811, 1.256, -0.003),
    ("mlperf-ssd-b256", 8): (5.73, 6862, 6044, 1.229, -0.027),
    (UNET3D, 9): (6.72, 7207, 6405, 1.189, -0.025),
}
"""Speed-up, W of one node, W of each of n, energy of n over that of one, error of the rule on the W of each of n."""


@pytest.mark.parametrize(("name", "nodes"), R1)
def test_r1_more_nodes_are_faster_and_cost_more_energy_as_measured(name: str, nodes: int) -> None:
    one, several = power()[name, "H100", 1], power()[name, "H100", nodes]
    speed_up, one_w, several_w, energy, _ = R1[name, nodes]
    assert one["s"] / several["s"] == pytest.approx(speed_up, rel=2e-3)
    assert (round(one["w"]), round(several["w"])) == (one_w, several_w)
    assert several["kwh"] / one["kwh"] == pytest.approx(energy, abs=1e-3)


@pytest.mark.parametrize(("name", "nodes"), R1)
def test_r1_the_rule_of_waiting_power_is_within_five_percent(name: str, nodes: int) -> None:
    """An instance with the measured times saves what P(n) = 0.48 P + (P(1) - 0.48 P) · efficiency says."""
    one, several = power()[name, "H100", 1], power()[name, "H100", nodes]
    times = {"H100": {"8": one["s"], f"{nodes}*8": several["s"]}}
    scenario = Scenario(
        applications=[{"name": name, "max_epochs": 10.0, "seconds_per_epoch": times}],
        cluster={"pools": [{"gpu_type": "H100", "nodes": nodes}]},
        jobs={"count": 2, "gpu_counts": [8], "node_counts": [1, nodes], "application_power": "measured"},
        arrivals={"kind": "exponential", "lambda_s": 1000.0},
    )
    instance = make_instance(scenario, 0)
    saved = dict(zip(instance.configurations, instance.saved_kw[0], strict=True))
    full = instance.gpu_types[0].power_w(8)
    one_w = full - 1000.0 * saved[Configuration("H100", 8)]
    each_w = full - 1000.0 * saved[Configuration("H100", 8, nodes)] / nodes
    assert one_w == pytest.approx(one["w"], rel=1e-3), "measured"
    efficiency = one["s"] / (nodes * several["s"])
    assert each_w == pytest.approx(0.48 * full + (one_w - 0.48 * full) * efficiency, rel=1e-6)
    assert each_w / several["w"] - 1.0 == pytest.approx(R1[name, nodes][-1], abs=0.01)
    assert abs(each_w / several["w"] - 1.0) < 0.05


R3 = {"A100": 0.469, "H200": 1.136, "L40S": 0.270, "L40": 0.243, "A30": 0.193, "B200": 1.95, "GB200": 2.03}
"""Speed beside eight H100: the best submission's mean progress in a second, geometric mean over the benchmarks."""


@pytest.mark.parametrize("gpu_type", R3)
def test_r3_built_in_applications_are_as_fast_within_a_tenth(gpu_type: str) -> None:
    ratios = [
        a.seconds_per_epoch["H100", 1] / a.seconds_per_epoch[gpu_type, 1] for a in builtin_applications().values()
    ]
    assert math.exp(fmean(map(math.log, ratios))) == pytest.approx(R3[gpu_type], rel=0.1)


R4 = {
    "H100": ((2204, 2247), (6859, 7207)),
    "H100-air": ((2502, 2502), (8491, 8491)),
    "B200": ((2719, 2969), (9572, 10045)),
}


@pytest.mark.parametrize("gpu_type", R4)
def test_r4_a_node_draws_idle_and_full_what_was_measured_within_eight_percent(gpu_type: str) -> None:
    v = builtin_gpu_types()[gpu_type]
    idle_w = v.node_base_power_w + v.max_gpus_per_node * v.idle_gpu_power_w
    for found, measured in zip((idle_w, v.power_w(8)), R4[gpu_type], strict=True):
        assert all(found == pytest.approx(watts, rel=0.08) for watts in measured)


@public
def test_r4_full_nodes_are_what_the_public_readings_say() -> None:
    with (DATA / "power_runs.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["submitter"] == "smc-ac-power" and row["nodes"] == "1"]
    by_name: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        by_name[row["benchmark"]].append(float(row["mean_w_per_node"]))
    means = [fmean(values) for values in by_name.values()]
    assert (round(min(means)), round(max(means))) == (6859, 7207)
    assert builtin_gpu_types()["H100"].power_w(8) == pytest.approx(max(means), rel=1e-5)


def test_an_l4_draws_more_and_its_server_follows_it_less_than_the_rule_said() -> None:
    l4 = builtin_gpu_types()["L4"]
    assert l4.gpu_power_w == pytest.approx(16.6 + 1.0789 * (70.0 - 16.6), rel=1e-3)


def test_only_unet3d_and_stable_diffusion_need_epochs_that_vary_by_a_tenth_or_more() -> None:
    spread = {}
    for name, distribution in read_histograms("mlperf").items():
        mid, masses = (distribution.edges[1:] + distribution.edges[:-1]) / 2.0, distribution.masses
        mean = float(mid @ masses)
        spread[name] = math.sqrt(float((mid - mean) ** 2 @ masses)) / mean
    assert {name for name, cv in spread.items() if cv > 0.1} == {UNET3D, "mlperf-stable-diffusion-b256"}
    assert spread[UNET3D] == pytest.approx(0.29, abs=0.02)


def test_unet3d_needs_28_percent_of_its_longest_run_in_the_mean() -> None:
    assert read_histograms("mlperf")[UNET3D].mean == pytest.approx(0.28, abs=0.01)


def test_every_application_has_its_quantiles_and_as_many_epochs_as_the_longest_run() -> None:
    rows = read_table("mlperf_epochs.csv")
    longest = {row["application"]: float(row["epochs"]) for row in rows if row["probability"] == "1"}
    known = load_scenario("mlperf").catalogue().applications
    ours = {name: a for name, a in known.items() if name.startswith("mlperf-")}
    assert {name: a.max_epochs for name, a in ours.items()} == longest


def test_more_whole_nodes_are_always_faster_and_parts_of_a_node_slower() -> None:
    known = load_scenario("mlperf").catalogue().applications
    for name, application in known.items():
        if name.startswith("mlperf-"):
            for (v, gpus), seconds in application.seconds_per_epoch.items():
                half = application.seconds_per_epoch.get((v, gpus // 2), math.inf)
                assert half > seconds
                assert half >= 2.0 * seconds / 1.15 or half == math.inf
                several = [(n, s) for (w, n, _), s in sorted(application.whole_nodes_s.items()) if w == v]
                assert [s for _, s in several] == sorted((s for _, s in several), reverse=True)
                assert all(s < seconds for _, s in several) or gpus < builtin_gpu_types()[v].max_gpus_per_node


def test_quantiles_of_two_points_make_a_uniform_distribution_and_equal_ones_a_mass() -> None:
    uniform = EpochDistribution.from_quantiles([0.0, 1.0], [0.5, 1.0], bins=4)
    assert uniform.masses == pytest.approx([0.0, 0.0, 0.5, 0.5])
    jump = EpochDistribution.from_quantiles([0.0, 0.2, 0.8, 1.0], [0.1, 0.3, 0.3, 1.0], bins=10)
    assert jump.masses[:3].sum() == pytest.approx(0.8), "0.3 is the edge at which the third bin ends"


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=12), st.integers(1, 60))
def test_a_distribution_made_of_quantiles_has_them(values: list[float], bins: int) -> None:
    x = [*sorted(values)[:-1], 1.0]
    p = np.linspace(0.0, 1.0, len(x))
    made = EpochDistribution.from_quantiles(p, x, bins)
    cdf = np.concatenate([[0.0], np.cumsum(made.masses)])
    for edge, below in zip(made.edges, cdf, strict=True):
        inside = [(q, v) for q, v in zip(p, x, strict=True) if v <= edge]
        above = [(q, v) for q, v in zip(p, x, strict=True) if v > edge]
        assert (inside[-1][0] if inside else 0.0) - 1e-9 <= below <= (above[0][0] if above else 1.0) + 1e-9


@pytest.mark.parametrize(
    ("p", "x", "field"),
    [
        ([0.0, 0.5], [0.1, 1.0], "probabilities"), ([0.0, 1.0], [0.0, 1.0], "fractions"),
        ([0.0, 0.5, 1.0], [0.5, 0.4, 1.0], "fractions"), ([0.0, 1.0], [0.5, 0.9], "fractions"),
    ],
)  # fmt: skip
def test_quantiles_out_of_order_are_refused(p: list[float], x: list[float], field: str) -> None:
    with refused(f"distribution.{field}"):
        EpochDistribution.from_quantiles(p, x)
