"""What the section `switching` of a scenario makes of the seconds of applications."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gpusched_env import HostMemory, Scenario, make_instance
from gpusched_env.workload import builtin_applications, scenario_toml
from refusals import refused

BERT, RESNET = "bert-squad-global384", "resnet50-imagenet-bs64"
PUBLISHED = Path("../shared/data/pipeswitch/pipeswitch_v100.csv")


def costs(application: str, **values: object) -> tuple[float, float | None, float]:
    """Return start, resume and restart of the jobs of a scenario with one application."""
    made = {f"switching.{name}": value for name, value in values.items() if not name.startswith("restart")}
    more = {name: value for name, value in values.items() if name.startswith("restart")}
    scenario = Scenario().replace({"jobs.applications": [application], "jobs.count": 2, **made, **more})
    jobs = make_instance(scenario, 0).jobs
    return jobs.start_s[0].item(), None if jobs.resume_s is None else jobs.resume_s[0].item(), jobs.restart_s[0].item()


def test_by_default_nothing_is_told_apart():
    assert costs(BERT) == (0.0, None, 0.0)
    assert costs(BERT, restart_s=30.0) == (0.0, None, 30.0)


def test_the_models_are_in_the_order_in_which_they_were_made_faster():
    """BERT has 110 million parameters of 16 B, 1.76 GB, which take 0.1467 s at 12 GB/s; ResNet-50 25.6 of 12 B."""
    assert costs(BERT, model="free") == (0.0, 0.0, 0.0)
    assert costs(BERT, model="stop-start") == (6.4, 6.4, 6.4)
    assert costs(BERT, model="one-process") == pytest.approx((0.19, 0.15 + 2 * 1.76 / 12, 6.4), abs=1e-5)
    assert costs(BERT, model="pipelined") == pytest.approx((0.003, 0.003 + 2 * 1.76 / 12, 6.4), abs=1e-5)
    assert costs(RESNET, model="pipelined")[1] == pytest.approx(0.003 + 2 * 25.6e6 * 12 / 12e9, abs=1e-4)


def test_half_the_bandwidth_takes_twice_as_long():
    slow, fast = costs(BERT, model="pipelined", bandwidth_gb_per_s=6.0)[1], costs(BERT, model="pipelined")[1]
    assert slow is not None
    assert fast is not None
    assert slow - 0.003 == pytest.approx(2.0 * (fast - 0.003))


def test_own_numbers_take_the_place_of_the_models():
    assert costs(BERT, model="stop-start", restart_s="measured") == (120.0, 120.0, 120.0)
    assert costs(BERT, model="pipelined", restart_s=9.0, start_s=1.0, resume_s=2.0) == (1.0, 2.0, 9.0)
    assert costs(BERT, model="stop-start", restart_by_application={BERT: 8.0}) == (8.0, 8.0, 8.0)
    assert costs(BERT, resume_s=2.0) == (0.0, 2.0, 0.0)


@pytest.mark.parametrize(
    ("values", "within"),
    [
        ({"restart_s": 30.0}, ""),
        ({"restart_s": "measured"}, ""),
        ({"restart_by_application": {BERT: 8.0}}, ""),
        ({"start_s": 1.0}, "switching."),
        ({"resume_s": 1.0}, "switching."),
    ],
)
def test_where_switches_are_free_nothing_may_say_what_they_cost(values, within):
    ((name, value),) = values.items()
    with refused(f"{within}{name}", value, "'free'"):
        costs(BERT, model="free", **values)


def test_by_layers_computing_hides_what_comes_back():
    """ResNet-50's 0.307 GB leave in 26 ms, and come back while its iteration computes; BERT's 1.76 GB do not."""
    start, resume, restart = costs(RESNET, model="pipelined", start_up="layers")
    assert resume is not None
    assert 0.0 < start < 0.003
    assert 25.6e6 * 12 / 12e9 < resume < 25.6e6 * 12 / 12e9 + 0.002
    assert restart == 6.4
    constant, by_layers = (costs(BERT, model="pipelined", start_up=each)[1] for each in ("constant", "layers"))
    assert constant is not None
    assert by_layers is not None
    assert 1.76 / 12 < by_layers < constant


def test_a_model_of_unknown_layers_keeps_the_constant():
    other = "deepspeech2-librispeech-global64"
    assert costs(other, model="pipelined", start_up="layers") == costs(other, model="pipelined")


def test_host_memory_is_in_the_instance_where_a_scenario_limits_it():
    scenario = Scenario().replace({"jobs.count": 2, "switching.model": "pipelined"})
    assert make_instance(scenario, 0).of(HostMemory) is None
    limited = make_instance(scenario.replace({"switching.pool_gib": 8.0, "switching.gpus_per_link": 2}), 0)
    assert limited.of(HostMemory) == HostMemory(8.0, 2, 12.0)
    assert (limited.jobs.state_gib > 0.1).all()


@pytest.mark.parametrize(
    ("name", "value", "model"),
    [("start_up", "layers", "one-process"), ("pool_gib", 8.0, "stop-start"), ("gpus_per_link", 2, None)],
)
def test_only_models_that_move_states_have_links_pools_and_layers(name, value, model):
    with refused(f"switching.{name}", value):
        Scenario().replace({"switching.model": model, f"switching.{name}": value})


@pytest.mark.parametrize("values", [{"model": "fast"}, {"start_s": -1.0}, {"bandwidth_gb_per_s": 0.0}, {"speed": 1}])
def test_a_wrong_setting_is_named(values):
    ((name, value),) = values.items()
    with refused(f"switching.{name}", value):
        costs(BERT, **values)


def test_a_scenario_file_shows_the_section():
    assert "[switching]\n# model = " in scenario_toml(Scenario())


def test_own_applications_say_what_is_moved():
    own = {"name": "mine", "max_epochs": 3, "seconds": {"V100": [60.0]}, "state_gib": 1.5}
    scenario = Scenario(applications=[own], cluster={"gpu_types": ["V100"]}, switching={"model": "pipelined"})
    jobs = make_instance(scenario, 0).jobs
    assert jobs.resume_s is not None
    assert jobs.resume_s[0] == pytest.approx(0.003 + 2 * 1.5 * 2**30 / 12e9)
    assert jobs.restart_s[0] == 6.4


def test_every_built_in_application_has_a_state():
    assert all(0.1 < application.state_gib < 2.0 for application in builtin_applications().values())


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published figures are not beside the repository")
def test_the_seconds_are_what_the_log_has():
    """Overheads are latencies less those of a model that is ready; one process also sends the model, of so many MB."""
    with PUBLISHED.open(encoding="utf-8") as file:
        rows = {row[1]: [float(x) for x in row[2:5]] for row in csv.reader(file) if row[0] in {"5", "9"}}
    ready, megabytes = rows["ready_model"], (241.0, 100.0, 440.0)
    stop_start = [(a - b) / 1e3 for a, b in zip(rows["kill_restart"], ready, strict=True)]
    one = [(a - b) / 1e3 for a, b in zip(rows["stop_next (one process)"], ready, strict=True)]
    assert sum(stop_start) / 3 == pytest.approx(6.4, abs=0.1)
    moved = [seconds - mb / 12e3 for seconds, mb in zip(one, megabytes, strict=True)]
    assert sum(moved) / 3 == pytest.approx(0.15, abs=0.005)
    assert max(one) == pytest.approx(0.19, abs=0.005)
