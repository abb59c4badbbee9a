from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env import Tenants
from gpusched_env.formats.instance_file import load_instance, save_instance
from gpusched_env.mechanisms.shares.model import Interference
from gpusched_env.model import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    JobTable,
    Node,
    Tenant,
    single_node_configurations,
)
from instances import with_switching
from refusals import refused
from run_files import edited, loaded_again

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def make_instance(jobs: int = 12, seed: int = 0) -> Instance:
    """Random jobs on three GPU types with 8 GPUs a node: 24 single-node configurations, a share, two whole nodes."""
    rng = np.random.default_rng(seed)
    types = [GpuType(f"T{v}", 150.0 + 70 * v, 200.0, (16.0, 32.0, 40.0)[v], 8) for v in range(3)]
    nodes = [Node(f"T{n % 3}", 8) for n in range(6)]
    single = single_node_configurations(types, nodes)
    configurations = (*single, Configuration("T0", 1, share=0.3), Configuration("T2", 8, nodes=2))
    distributions = tuple(
        EpochDistribution.from_masses(rng.dirichlet(np.ones(100)), family=family) for family in ("histogram", "beta")
    )
    seconds = rng.uniform(10.0, 500.0, (jobs, len(configurations)))
    seconds[rng.random(seconds.shape) < 0.2] = np.inf
    seconds[:, 0] = 1.0 / 3.0
    submission = np.sort(rng.uniform(0.0, 1e6, jobs))
    table = JobTable(
        submission_s=submission,
        due_s=submission + rng.uniform(0.0, 1e5, jobs),
        tardiness_weight_eur_per_s=rng.uniform(0.025, 0.044, jobs),
        max_epochs=np.full(jobs, 100.0),
        epochs_needed=rng.uniform(1.0, 100.0, jobs),
        memory_gib=rng.choice([8.0, 15.9], jobs),
        seconds_per_epoch=seconds,
        restart_s=rng.uniform(0.0, 90.0, jobs),
        application=rng.integers(0, 2, jobs),
        applications=("résnet, 50", 'l"m'),
        distribution=rng.integers(0, 2, jobs),
        distributions=distributions,
    )
    return Instance(
        tuple(types),
        tuple(nodes),
        configurations,
        table,
        energy_price_eur_per_kwh=0.1 + 0.2,
        pue=1.1,
        mechanisms=(Interference(rng.uniform(1.0, 3.0, (3, 2, 2))),),
        name="a name",
        seed=2**100,
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "instance.json"
    save_instance(make_instance(), path)
    return path


@pytest.mark.parametrize("seed", range(3))
def test_a_loaded_instance_equals_the_saved_one_to_the_last_bit(tmp_path: Path, seed: int) -> None:
    instance = make_instance(seed=seed)
    save_instance(instance, tmp_path / "i.json")
    loaded = load_instance(tmp_path / "i.json")
    assert loaded == instance
    for column in fields(JobTable):
        before, after = getattr(instance.jobs, column.name), getattr(loaded.jobs, column.name)
        if isinstance(before, np.ndarray):
            assert after.dtype == before.dtype
            assert after.tobytes() == before.tobytes(), column.name
        else:
            assert after == before
    for column in fields(Instance):
        if column.name != "jobs":
            assert getattr(loaded, column.name) == getattr(instance, column.name)


def test_switching_costs_go_to_the_file_where_there_are_any(tmp_path: Path) -> None:
    plain = make_instance()
    switching = with_switching(plain, 4)
    for instance, there in ((plain, set()), (switching, {"start_s", "resume_s"})):
        save_instance(instance, tmp_path / "i.json")
        columns = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))["jobs"].keys()
        assert columns & {"start_s", "resume_s"} == there
        assert load_instance(tmp_path / "i.json") == instance
    assert switching != replace(switching, jobs=replace(switching.jobs, resume_s=None))


def test_the_label_of_opportunistic_jobs_goes_to_the_file_where_there_are_any(tmp_path: Path) -> None:
    plain = make_instance()
    labelled = replace(plain, jobs=replace(plain.jobs, opportunistic=np.arange(12) % 3 == 0))
    for instance, there in ((plain, False), (labelled, True)):
        save_instance(instance, tmp_path / "i.json")
        columns = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))["jobs"]
        assert ("opportunistic" in columns) == there
        assert load_instance(tmp_path / "i.json") == instance
    columns["opportunistic"][4] = 1
    (tmp_path / "i.json").write_text(json.dumps(json.loads((tmp_path / "i.json").read_text()) | {"jobs": columns}))
    with refused(f"{tmp_path}/i.json: jobs.opportunistic[4]", 1):
        load_instance(tmp_path / "i.json")


def test_a_column_of_switching_costs_must_be_as_long_as_the_others(tmp_path: Path) -> None:
    save_instance(with_switching(make_instance(), 4), tmp_path / "i.json")
    with edited(tmp_path / "i.json") as document:
        document["jobs"]["resume_s"].pop()
    with refused(f"{tmp_path}/i.json: jobs.resume_s", "11 values", "12"):
        load_instance(tmp_path / "i.json")


def test_an_instance_without_interference_has_null_there(tmp_path: Path) -> None:
    instance = make_instance().without("shares")
    save_instance(instance, tmp_path / "i.json")
    assert json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))["interference"] is None
    assert load_instance(tmp_path / "i.json") == instance


def test_a_changed_instance_is_not_equal_to_the_loaded_one(saved: Path) -> None:
    other = replace(make_instance(), pue=np.nextafter(1.1, 2.0).item())
    assert load_instance(saved) != other


def test_saving_twice_gives_the_same_bytes(saved: Path, tmp_path: Path) -> None:
    save_instance(load_instance(saved), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == saved.read_bytes()


def test_the_file_is_columnar_holds_each_distribution_once_and_writes_inf_as_null(saved: Path) -> None:
    document = json.loads(saved.read_text(encoding="utf-8"))
    seconds = make_instance().jobs.seconds_per_epoch
    assert (document["format"], document["version"]) == ("gpusched instance", 2)
    assert [entry["family"] for entry in document["distributions"]] == ["histogram", "beta"]
    assert len(document["jobs"]["submission_s"]) == 12
    nulls = [
        (j, c) for j, row in enumerate(document["jobs"]["seconds_per_epoch"]) for c, v in enumerate(row) if v is None
    ]
    assert nulls == [tuple(place) for place in np.argwhere(np.isinf(seconds)).tolist()]
    assert nulls


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99, 0.9999])
def test_a_truncated_file_is_one_error_that_names_the_file(saved: Path, share: float) -> None:
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * (len(content) - 3))])
    with refused(f"{saved}: file", allowed="a whole JSON file"):
        load_instance(saved)


def test_a_missing_file_is_one_error(tmp_path: Path) -> None:
    with refused(f"{tmp_path}/nothing.json: file", "No such file or directory"):
        load_instance(tmp_path / "nothing.json")


def _set(*keys: str | int, to: Any) -> Callable[[dict[str, Any]], None]:
    def edit(document: dict[str, Any]) -> None:
        place: Any = document
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = to

    return edit


EDITS = {
    "format": _set("format", to="something else"),
    "version": _set("version", to=1),
    "pue": _set("pue", to=0.5),
    "restart_s": _set("restart_s", to=12.0),
    "jobs.restart_s[4]": _set("jobs", "restart_s", 4, to="12"),
    "jobs[4].restart_s": _set("jobs", "restart_s", 4, to=-1.0),
    "interference": _set("interference", to=[]),
    "interference.slowdown": lambda d: d["interference"].pop("slowdown"),
    "interference.slowdown[1]": lambda d: d["interference"]["slowdown"][1].pop(),
    "interference.slowdown[2][1]": lambda d: d["interference"]["slowdown"][2][1].pop(),
    "interference.slowdown[2][1][0]": _set("interference", "slowdown", 2, 1, 0, to="2"),
    "interference.slowdown[2, 1, 0]": _set("interference", "slowdown", 2, 1, 0, to=0.5),
    "seed": _set("seed", to=1.5),
    "energy_price_eur_per_kwh": lambda d: d.pop("energy_price_eur_per_kwh"),
    "colour": _set("colour", to="red"),
    "gpu_types.gpu_power_w[1]": _set("gpu_types", "gpu_power_w", 1, to=-1.0),
    "gpu_types.name": lambda d: d["gpu_types"].pop("name"),
    "gpu_types.memory_gib": lambda d: d["gpu_types"]["memory_gib"].pop(),
    "nodes.gpus[3]": _set("nodes", "gpus", 3, to=0),
    "nodes.gpus[2]": _set("nodes", "gpus", 2, to=8.5),
    "nodes[4].gpu_type": _set("nodes", "gpu_type", 4, to="H100"),
    "configurations.share[5]": _set("configurations", "share", 5, to=2.0),
    "configurations[0]": _set("configurations", "nodes", 0, to=2),
    "jobs": _set("jobs", to=[]),
    "jobs.due_s": _set("jobs", "due_s", to=[1.0]),
    "jobs.due_s[7]": _set("jobs", "due_s", 7, to="tomorrow"),
    "jobs.memory_gib[1]": _set("jobs", "memory_gib", 1, to=True),
    "jobs.max_epochs[1]": _set("jobs", "max_epochs", 1, to=10**400),
    "jobs.application[2]": _set("jobs", "application", 2, to=2**70),
    "jobs[3].due_s": _set("jobs", "due_s", 3, to=0.0),
    "jobs[5].epochs_needed": _set("jobs", "epochs_needed", 5, to=101.0),
    "jobs[6].distribution": _set("jobs", "distribution", 6, to=9),
    "jobs.submission_s": lambda d: d["jobs"].pop("submission_s"),
    "jobs.seconds_per_epoch[4]": lambda d: d["jobs"]["seconds_per_epoch"][4].pop(),
    "jobs.seconds_per_epoch": lambda d: d["jobs"]["seconds_per_epoch"].pop(),
    "jobs[2].seconds_per_epoch": _set("jobs", "seconds_per_epoch", 2, 0, to=-1.0),
    "distributions[1].survival": _set("distributions", 1, "survival", 50, to=2.0),
    "distributions[0].edges": lambda d: d["distributions"][0].pop("edges"),
    "distributions[0].family": _set("distributions", 0, "family", to=None),
    "applications[1]": _set("applications", 1, to=1),
}


@pytest.mark.parametrize("field", EDITS)
def test_an_edited_file_is_one_error_that_names_the_field(saved: Path, field: str) -> None:
    with edited(saved) as document:
        EDITS[field](document)
    with refused(f"{saved}: {field}"):
        load_instance(saved)


@pytest.mark.parametrize(
    ("constant", "field", "value"), [("NaN", "file", "NaN"), ("Infinity", "file", "Infinity"), ("1e999", "pue", np.inf)]
)
def test_numbers_that_are_not_finite_are_refused(saved: Path, constant: str, field: str, value: object) -> None:
    text = saved.read_text(encoding="utf-8")
    saved.write_text(text.replace('"pue": 1.1', f'"pue": {constant}'), encoding="utf-8")
    with refused(f"{saved}: {field}", value):
        load_instance(saved)


def shared_by_tenants() -> Instance:
    tenants = (Tenant("a", (Cells("T0", 4, 2), Cells("T1", 8, 1))), Tenant("b", (Cells("T2", 1, 16),)))
    made = make_instance()
    jobs = replace(made.jobs, tenant=np.arange(12) % 2)
    return replace(made, jobs=jobs).with_mechanisms(Tenants(tenants))


def test_tenants_their_cells_and_their_jobs_are_kept(tmp_path: Path) -> None:
    instance = shared_by_tenants()
    save_instance(instance, tmp_path / "i.json")
    loaded = load_instance(tmp_path / "i.json")
    assert Tenants.of(loaded) == Tenants.of(instance)
    assert loaded.jobs == instance.jobs


def test_a_model_of_tenants_says_something_and_a_file_that_says_nothing_of_them_has_none(tmp_path: Path) -> None:
    with refused("tenants", []):
        make_instance().with_mechanisms(Tenants())
    save_instance(make_instance(), tmp_path / "i.json")
    document = json.loads((tmp_path / "i.json").read_text(encoding="utf-8")) | {"tenancy": "none", "tenants": []}
    (tmp_path / "i.json").write_text(json.dumps(document), encoding="utf-8")
    assert load_instance(tmp_path / "i.json").find("tenants") is None


def test_racks_are_kept(tmp_path: Path) -> None:
    instance = shared_by_tenants()
    racks = tuple(n // 2 if n < 2 and instance.nodes[0] == instance.nodes[1] else n for n in range(len(instance.nodes)))
    model = replace(Tenants.of(instance), racks=racks)
    assert Tenants.of(loaded_again(instance.with_mechanisms(model), tmp_path)) == model
    save_instance(instance, tmp_path / "i.json")
    assert "racks" not in json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))


def test_without_tenants_nothing_of_them_is_written(tmp_path: Path) -> None:
    save_instance(make_instance(), tmp_path / "i.json")
    document = json.loads((tmp_path / "i.json").read_text(encoding="utf-8"))
    assert not {"tenants", "tenancy"} & document.keys()
    assert "tenant" not in document["jobs"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d.pop("tenancy"), "tenancy"),
        (lambda d: d["tenants"][0].pop("cells"), "tenants[0].cells"),
        (lambda d: d["tenants"][1]["cells"][0].pop(), "tenants[1].cells[0]"),
        (lambda d: d["tenants"][0].update(cells=[["T0", 0, 1]]), "tenants[0].gpus"),
        (lambda d: d["tenants"][0].update(name=""), "tenants[0].name"),
        (lambda d: d["jobs"]["tenant"].pop(), "jobs.tenant"),
        (lambda d: d["jobs"]["tenant"].__setitem__(0, 7), "jobs[0].tenant"),
    ],
)
def test_a_broken_field_of_tenants_is_named(tmp_path: Path, change: Callable[[Any], Any], field: str) -> None:
    save_instance(shared_by_tenants(), tmp_path / "i.json")
    with edited(tmp_path / "i.json") as document:
        change(document)
    with refused(f"{tmp_path}/i.json: {field}"):
        load_instance(tmp_path / "i.json")
