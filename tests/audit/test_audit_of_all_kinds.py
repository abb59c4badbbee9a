"""Runs with shared GPUs, several nodes, interference and restarts: the audit agrees, and finds changes."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from compiled_policies import POLICIES
from crowded import Whatever, crowded
from gpusched_env.audit import audit
from gpusched_env.formats.run_folder import write_run
from gpusched_env.simulator import layout as at
from gpusched_env.simulator import simulate
from instances import with_host_memory, with_switching

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpusched_env import Result
    from gpusched_env.audit import Difference

Row = dict[str, str]


def kinds_of(result: Result) -> Counter[str]:
    index = result.log[:, at.LOG_CONFIG].astype(int)
    return Counter(result.instance.configurations[c].kind for c in index)


def fewest(kinds: Counter[str]) -> int:
    return min(kinds[kind] for kind in ("single-node", "multi-node", "shared"))


@pytest.mark.slow
@pytest.mark.parametrize("interference", [False, True])
@pytest.mark.parametrize("restart_s", [0.0, 5.0])
@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_audits_clean(tmp_path: Path, preemption: bool, restart_s: float, interference: bool) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(12):
        instance = crowded(seed, restart_s, interference)
        result = simulate(instance, Whatever(preemption), seed=seed, review_s=20.0)
        write_run(result, tmp_path / "run")
        assert audit(tmp_path / "run") == [], seed
        kinds += kinds_of(result)
    assert fewest(kinds) >= 10


@pytest.mark.parametrize("interference", [False, True])
@pytest.mark.parametrize("name", POLICIES)
def test_a_run_of_every_policy_audits_clean(tmp_path: Path, name: str, interference: bool) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(4):
        result = simulate(crowded(seed, interference=interference), POLICIES[name], seed=seed)
        write_run(result, tmp_path / "run")
        assert audit(tmp_path / "run") == [], seed
        kinds += kinds_of(result)
    assert kinds["single-node"] > 0
    assert kinds["shared"] + kinds["multi-node"] > 0 or name == "fill"  # which shares only where there is a model


@pytest.mark.slow
@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_whose_switches_cost_by_distance_audits_clean(tmp_path: Path, preemption: bool) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(12):
        result = simulate(with_switching(crowded(seed), seed), Whatever(preemption), seed=seed, review_s=5.0)
        write_run(result, tmp_path / "run")
        assert audit(tmp_path / "run") == [], seed
        kinds += kinds_of(result)
    assert fewest(kinds) >= 10


@pytest.mark.parametrize("seed", range(4))
def test_any_run_with_host_memory_audits_clean_and_one_without_is_found_out(tmp_path: Path, seed: int) -> None:
    instance = with_host_memory(with_switching(crowded(seed), seed), seed)
    write_run(simulate(instance, Whatever(), seed=seed, review_s=5.0), tmp_path / "run")
    assert audit(tmp_path / "run") == []
    path = tmp_path / "run" / "instance.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["host_memory"]["pool_gib"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert any("ready_s" in difference.what for difference in audit(tmp_path / "run"))


@pytest.mark.parametrize("column", ["start_s", "resume_s", "restart_s"])
def test_a_run_whose_jobs_waited_for_less_than_they_should_is_found_out(tmp_path: Path, column: str) -> None:
    write_run(simulate(with_switching(crowded(1), 1), Whatever(), seed=1, review_s=5.0), tmp_path / "run")
    path = tmp_path / "run" / "instance.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["jobs"][column] = [seconds + 0.5 for seconds in document["jobs"][column]]
    path.write_text(json.dumps(document), encoding="utf-8")
    found = [difference for difference in audit(tmp_path / "run") if "ready_s" in difference.what]
    assert len(found) > 3


def test_a_run_with_distances_is_found_out_if_its_instance_tells_none_apart(tmp_path: Path) -> None:
    write_run(simulate(with_switching(crowded(1), 1), Whatever(), seed=1, review_s=5.0), tmp_path / "run")
    path = tmp_path / "run" / "instance.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    del document["jobs"]["resume_s"]
    path.write_text(json.dumps(document), encoding="utf-8")
    assert any("ready_s" in difference.what for difference in audit(tmp_path / "run"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the first run that has enough of every kind."""
    folder = tmp_path_factory.mktemp("runs") / "clean"
    results = (simulate(crowded(seed), Whatever(), seed=seed) for seed in range(100))
    write_run(next(result for result in results if fewest(kinds_of(result)) >= 10), folder)
    return folder


@pytest.fixture
def folder(clean: Path, tmp_path: Path) -> Path:
    shutil.copytree(clean, tmp_path / "run")
    return tmp_path / "run"


def audit_with(folder: Path, index: int, change: Callable[[Row], Row | None]) -> list[Difference]:
    """Audit the run with another row of intervals.csv (None: without it), which is then put back."""
    path = folder / "intervals.csv"
    before = path.read_text(encoding="utf-8")
    rows = list(csv.DictReader(before.splitlines()))
    rows[index : index + 1] = [row for row in (change(rows[index]),) if row is not None]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    found = audit(folder)
    path.write_text(before, encoding="utf-8")
    return found


def rows_of(folder: Path, which: Callable[[Row], bool]) -> list[int]:
    with (folder / "intervals.csv").open(encoding="utf-8", newline="") as file:
        return [index for index, row in enumerate(csv.DictReader(file)) if which(row)]


def is_shared(row: Row) -> bool:
    return row["gpu"] != "-1"


def is_on_several(row: Row) -> bool:
    return "*" in row["configuration"]


@pytest.mark.parametrize("column", ["start_s", "ready_s", "end_s", "epochs"])
@pytest.mark.parametrize("which", [is_shared, is_on_several])
def test_a_wrong_time_or_progress_of_any_interval_is_found(
    folder: Path, which: Callable[[Row], bool], column: str
) -> None:
    def change(row: Row) -> Row:
        return row | {column: repr(float(row[column]) * (1 + 1e-6) + 1e-6)}

    for index in rows_of(folder, which)[::7]:
        assert audit_with(folder, index, change), index


def test_a_share_that_is_recorded_on_another_gpu_is_found(folder: Path) -> None:
    """Its own speed and those of the jobs beside it, or their bills, are not what they would be there."""

    def change(row: Row) -> Row:
        return row | {"gpu": "1" if row["gpu"] == "0" else "0"}

    instance = json.loads((folder / "instance.json").read_text(encoding="utf-8"))
    shared = rows_of(folder, lambda row: is_shared(row) and instance["nodes"]["gpus"][int(row["node"])] > 1)
    found = [index for index in shared if audit_with(folder, index, change)]
    # A job that is alone on its GPU all the time may as well be on another one of the node that nobody shares.
    assert len(found) > 0.5 * len(shared)


def test_one_of_several_nodes_that_is_left_out_is_found(folder: Path) -> None:
    for index in rows_of(folder, is_on_several)[::5]:
        found = audit_with(folder, index, lambda _: None)
        assert "nodes held at once, and different nodes to hold" in {difference.what for difference in found}


def test_one_of_several_nodes_that_is_another_one_is_found(folder: Path) -> None:
    for index in rows_of(folder, is_on_several)[::5]:
        assert audit_with(folder, index, lambda row: row | {"node": str((int(row["node"]) + 1) % 6)}), index


def test_another_share_is_found(folder: Path) -> None:
    def change(row: Row) -> Row:
        name = row["configuration"]
        return row | {"configuration": name[:-1] + ("2" if name.endswith("3") else "3")}

    for index in rows_of(folder, is_shared)[::7]:
        assert audit_with(folder, index, change), index


@pytest.mark.parametrize("column", ["energy_eur", "switches"])
def test_a_wrong_attribution_or_number_of_switches_of_any_job_is_the_only_difference(folder: Path, column: str) -> None:
    path = folder / "jobs.csv"
    lines = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
    place = lines[0].index(column)
    for job, line in enumerate(lines[1:]):
        changed = [list(other) for other in lines]
        changed[job + 1][place] = repr(float(line[place]) * (1 + 1e-8) + (column == "switches"))
        path.write_text("\n".join(map(",".join, changed)), encoding="utf-8")
        (found,) = audit(folder)
        assert (found.where, found.what) == (f"jobs.csv line {job + 2} (job {job})", column)
