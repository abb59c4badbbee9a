from __future__ import annotations

import csv
import math
import pickle
from importlib.resources import files

import pytest

from gpusched_env.model import Configuration
from gpusched_env.workload.tables import applications as loader
from gpusched_env.workload.tables.applications import Application, builtin_applications, builtin_gpu_types
from refusals import refused

SCALED = {"H100", "H200", "A10", "L4", "L40S", "H100-air", "B200", "GB200", "L40", "A30"}
GPU_TYPES = {"K80", "P100", "V100", "T4", "A100"} | SCALED
DATA = files("gpusched_env").joinpath("workload", "tables", "data")
UNSOURCED = {"arrival_profiles.csv", "mlperf_epochs.csv", "published_epochs.csv"}  # numbers drawn from traces and runs


def table(name: str) -> list[dict[str, str]]:
    with DATA.joinpath(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_there_are_at_least_ten_applications_of_at_least_eight_models() -> None:
    names = list(builtin_applications())
    assert len(names) >= 10
    assert len({name.split("-")[0] for name in names}) >= 8


def test_every_application_has_every_gpu_type_with_one_to_eight_gpus() -> None:
    expected = {(gpu_type, gpus) for gpu_type in GPU_TYPES for gpus in range(1, 9)}
    for application in builtin_applications().values():
        assert set(application.seconds_per_epoch) == expected


def test_all_numbers_are_finite_and_positive() -> None:
    for application in builtin_applications().values():
        values = [application.max_epochs, application.memory_gib, *application.seconds_per_epoch.values()]
        assert all(math.isfinite(value) and value > 0 for value in values)
    assert set(builtin_gpu_types()) == GPU_TYPES


@pytest.mark.parametrize(
    "name", sorted({file.name for file in DATA.iterdir() if file.name.endswith(".csv")} - UNSOURCED)
)
def test_every_row_names_its_source(name: str) -> None:
    assert all(row["source"].strip() for row in table(name))


def test_every_time_names_how_it_was_found() -> None:
    rows = table("applications.csv")
    assert {row["method"] for row in rows} == {"measured", "interpolated", "scaled"}
    assert len({row["application"] for row in rows if row["method"] == "measured"}) == len(builtin_applications())


def test_types_that_were_not_measured_are_scaled_throughout() -> None:
    methods = {row["method"] for row in table("applications.csv") if row["gpu_type"] in SCALED}
    assert methods == {"scaled"}


def test_idle_gpus_draw_less_than_busy_ones_and_more_than_nothing() -> None:
    for gpu_type in builtin_gpu_types().values():
        assert 0.0 < gpu_type.idle_gpu_power_w < 0.25 * gpu_type.gpu_power_w


def test_a_node_of_a100_draws_1421_w_before_a_gpu_is_busy() -> None:
    a100 = builtin_gpu_types()["A100"]
    assert a100.power_w(1) - a100.gpu_power_w + a100.idle_gpu_power_w == pytest.approx(1421.0)


def test_restarts_take_15_to_250_seconds_and_name_their_source() -> None:
    restarts = {name: application.restart_s for name, application in builtin_applications().items()}
    assert all(15.0 <= seconds <= 250.0 for seconds in restarts.values())
    assert restarts["resnet50-imagenet-bs64"] == 250.0
    assert restarts["deepspeech2-librispeech-global64"] == 25.0
    assert all("restart: Sia" in row["source"] for row in table("application_facts.csv"))


def test_measured_falls_are_kept() -> None:
    language_model = builtin_applications()["lm-wikitext2-bs5"].seconds_per_epoch
    assert language_model["P100", 2] > language_model["P100", 1]
    yolo = builtin_applications()["yolov3-voc-global64"].seconds_per_epoch
    assert yolo["T4", 8] > yolo["T4", 4]


def test_no_speed_up_is_much_above_linear() -> None:
    for application in builtin_applications().values():
        times = application.seconds_per_epoch
        assert all(times[gpu, 1] / seconds <= 1.15 * gpus for (gpu, gpus), seconds in times.items())


def test_a_full_run_on_one_v100_takes_one_hour_to_three_days() -> None:
    for application in builtin_applications().values():
        hours = application.max_epochs * application.seconds_per_epoch["V100", 1] / 3600
        assert 1 <= hours <= 72


def test_every_application_fits_every_gpu_type() -> None:
    smallest = min(gpu_type.memory_gib for gpu_type in builtin_gpu_types().values())
    assert all(application.memory_gib < smallest for application in builtin_applications().values())


def test_what_is_handed_out_cannot_change_what_the_next_caller_gets() -> None:
    builtin_applications().clear()
    builtin_gpu_types().clear()
    application = next(iter(builtin_applications().values()))
    assert builtin_gpu_types()
    with pytest.raises(TypeError):
        application.seconds_per_epoch["V100", 1] = 0.0  # type: ignore[index]


def test_an_application_survives_pickling() -> None:
    application = builtin_applications()["resnet50-imagenet-bs64"]
    assert application.whole_nodes_s
    assert application.restart_s > 0.0
    assert pickle.loads(pickle.dumps(application)) == application  # noqa: S301


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_time_names_its_field(seconds: float) -> None:
    with refused("applications.a.seconds_per_epoch[V100, 1]", seconds):
        Application("a", 10.0, 1.0, {("V100", 1): seconds})


def test_bad_facts_name_their_field() -> None:
    with refused("applications.a.max_epochs", 0.0):
        Application("a", 0.0, 1.0, {("V100", 1): 1.0})
    with refused("applications.a.memory_gib", -1.0):
        Application("a", 1.0, -1.0, {("V100", 1): 1.0})
    with refused("applications.a.restart_s", -1.0):
        Application("a", 1.0, 1.0, {("V100", 1): 1.0}, restart_s=-1.0)
    with refused("applications.a.seconds_per_epoch", allowed="at least one entry"):
        Application("a", 1.0, 1.0, {})


def test_a_damaged_table_names_the_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"application": "a", "gpu_type": "V100", "gpus": "1", "seconds_per_epoch": "soon"}
    times = ("applications.csv", ("application", "gpu_type", "gpus"), "seconds_per_epoch")
    monkeypatch.setattr(loader, "read_table", lambda _: [row])
    with refused("applications.csv.a.V100.seconds_per_epoch", "soon"):
        loader._table(*times)
    monkeypatch.setattr(loader, "read_table", lambda _: [row | {"gpus": "one"}])
    with refused("applications.csv.a.V100.gpus", "one"):
        loader._table(*times)
    monkeypatch.setattr(loader, "read_table", lambda _: [row | {"seconds_per_epoch": "1"}] * 2)
    with refused("applications.csv.a.V100.gpus", 1):
        loader._table(*times)


def test_the_time_on_a_configuration_is_that_on_its_gpus_or_on_its_whole_nodes() -> None:
    times, nodes = {("V100", 1): 10.0, ("V100", 8): 2.0}, {("V100", 2, 8): 1.5}
    application = Application("a", 10.0, 1.0, times, nodes)
    assert application.time_s(Configuration("V100", 8)) == 2.0
    assert application.time_s(Configuration("V100", 1, share=0.5)) == 10.0, "alone on the GPU"
    assert application.time_s(Configuration("V100", 8, nodes=2)) == 1.5
    for unknown in (Configuration("V100", 2), Configuration("V100", 4, nodes=2), Configuration("T4", 8, nodes=2)):
        assert application.time_s(unknown) == math.inf
    with refused("applications.a.whole_nodes_s[V100, 2, 8]", 0.0):
        Application("a", 10.0, 1.0, times, {("V100", 2, 8): 0.0})


def test_whole_nodes_are_those_of_the_built_in_types() -> None:
    most = {name: gpu_type.max_gpus_per_node for name, gpu_type in builtin_gpu_types().items()}
    known = [key for application in builtin_applications().values() for key in application.whole_nodes_s]
    assert {gpu_type for gpu_type, _, _ in known} == {"A100", "T4"}
    assert all(nodes > 1 and gpus == most[gpu_type] for gpu_type, nodes, gpus in known)
