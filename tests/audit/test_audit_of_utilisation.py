"""Runs in which jobs divide the time of GPUs by utilisation and priority: the audit agrees, and finds changes."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from crowded import Whatever, crowded
from gpusched_env.audit import audit
from gpusched_env.formats.instance_file import load_instance, save_instance
from gpusched_env.formats.run_folder import write_run
from gpusched_env.simulator import simulate
from instances import by_utilisation
from refusals import refused
from run_files import audited, edited, loaded_again


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_audits_clean(tmp_path, preemption, power, table):
    guaranteed = 0
    for seed in range(6):
        instance = by_utilisation(crowded(seed), power=power, table=table)
        result = simulate(instance, Whatever(preemption), seed=seed, review_s=20.0)
        assert audited(result, tmp_path / "run") == [], seed
        guaranteed += sum("!" in name for name in result.intervals()["configuration"])
    assert guaranteed > 20


def written(tmp_path: Path) -> Path:
    write_run(simulate(by_utilisation(crowded(3)), Whatever(), seed=3), tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            lambda model: model["utilisation"][0].__setitem__(0, 0.5 * model["utilisation"][0][0]),
            {"epochs done in the interval"},
        ),
        (lambda model: model.update(overhead=0.5), {"epochs done in the interval"}),
        (lambda model: model.update(filled=0.1), {"epochs done in the interval"}),
        (lambda model: model.update(idle_power_w=[0.0] * len(model["utilisation"])), {"energy_eur"}),
    ],
)
def test_another_model_is_found(tmp_path, change, what):
    path = written(tmp_path) / "instance.json"
    with edited(path) as document:
        change(document["interference"])
    assert what <= {difference.what for difference in audit(tmp_path / "run")}


def test_another_table_of_what_is_filled_is_found(tmp_path):
    assert audited(simulate(by_utilisation(crowded(3), table=True), Whatever(), seed=3), tmp_path / "run") == []
    path = tmp_path / "run" / "instance.json"
    with edited(path) as document:
        document["interference"]["filled"] = [
            [part / 2.0 for part in row] for row in document["interference"]["filled"]
        ]
    assert "epochs done in the interval" in {difference.what for difference in audit(tmp_path / "run")}


def test_a_guest_that_says_it_was_a_host_is_found(tmp_path):
    path = written(tmp_path) / "intervals.csv"
    text = path.read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    hosts = {row["configuration"] for row in rows if "!" in row["configuration"]}
    guest = next(
        row["configuration"] for row in rows if "x0." in row["configuration"] and row["configuration"] not in hosts
    )
    host = next(name for name in hosts if name[:2] == guest[:2])
    path.write_text(text.replace(f",{guest},", f",{host},"), encoding="utf-8")
    assert audit(tmp_path / "run")


def test_an_instance_file_keeps_utilisations_and_priorities(tmp_path):
    for power in (True, False):
        instance = by_utilisation(crowded(0), power=power)
        assert loaded_again(instance, tmp_path) == instance
    instance = by_utilisation(crowded(0), table=True)
    assert loaded_again(instance, tmp_path) == instance
    assert instance != by_utilisation(crowded(0))
    fastest = replace(crowded(0).interference, fastest=True)
    assert loaded_again(replace(crowded(0), interference=fastest), tmp_path).interference == fastest


@pytest.mark.parametrize("field", ["utilisation", "overhead", "filled", "least_speed", "idle_power_w", "fastest"])
@pytest.mark.parametrize("value", [-1.0, "x", [[7.0]]])
def test_what_a_file_says_wrong_of_utilisations_is_named(tmp_path, field, value):
    path = tmp_path / "one.json"
    save_instance(by_utilisation(crowded(0)), path)
    with edited(path) as document:
        document["interference"][field] = value
    entry = {"utilisation": "[0, 0]", "idle_power_w": "[0]"}.get(field, "") if isinstance(value, list) else ""
    with refused(f"{path}: interference.{field}{entry}"):
        load_instance(path)
