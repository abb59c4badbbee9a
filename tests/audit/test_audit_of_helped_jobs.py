"""Runs in which spare machines help jobs on several nodes: the audit agrees, and finds changes."""

import csv
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowded import Whatever
from fixed import Fixed
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Synchronisation
from gpusched_env.audit import Difference, audit
from gpusched_env.formats.run_folder import write_run
from gpusched_env.simulator import simulate
from helpers import helped_instance
from refusals import refused
from run_files import audited, edited

CERTAIN = EpochDistribution.certain()


@pytest.mark.parametrize("varied", [False, True])
@pytest.mark.parametrize("interference", [False, True])
@pytest.mark.parametrize("preemption", [False, True])
def test_any_run_audits_clean(tmp_path, preemption, interference, varied):
    helped = 0
    for seed in range(8):
        instance = helped_instance(
            seed, jobs=25, types=1 + seed % 2, span_s=500.0, restart_s=5.0, interference=interference, varied=varied
        )
        result = simulate(instance, Whatever(preemption), seed=seed, review_s=20.0)
        assert audited(result, tmp_path / "run") == [], seed
        alone = simulate(replace(instance, mechanisms=()), Whatever(preemption), seed=seed)
        helped += result.total_eur != alone.total_eur
    assert helped >= 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a run by hand of one job on three nodes, and one beside it for half of the time."""
    three, one = Configuration("V", 1, nodes=3), Configuration("V", 1)
    gpu = GpuType("V", 1000.0, 0.0, 16.0, 1)
    jobs = [
        Job(0.0, 9e5, 0.001, 4.0, CERTAIN, 4.0, {three: 3600.0}),
        Job(0.0, 9e5, 0.001, 1.0, CERTAIN, 1.0, {one: 7200.0}),
    ]
    own = Synchronisation(np.array([[3.0]]), np.array([[1.5]]), 1)
    instance = Instance.from_jobs([gpu], [Node("V", 1)] * 5, jobs, [one, three], mechanisms=(own,))

    write_run(simulate(instance, Fixed((1, 0))), tmp_path / "run")
    return tmp_path / "run"


def edit(folder: Path, change: Callable[[dict], object]) -> list[Difference]:
    other = folder.with_name("other")
    shutil.rmtree(other, ignore_errors=True)
    shutil.copytree(folder, other)
    with edited(other / "instance.json") as document:
        change(document)
    return audit(other)


def test_a_run_by_hand_says_what_the_formula_says(folder):
    """Without help an iteration takes 1 + 1.5 · 4/3 = 3 s; with k of 3: 1 + 1.5 · 12/(9 + k)."""
    with (folder / "intervals.csv").open(encoding="utf-8", newline="") as file:
        end_s = float(next(csv.DictReader(file))["end_s"])
    two, one = (1.0 + 18.0 / 11.0) / 3.0, (1.0 + 18.0 / 10.0) / 3.0
    assert end_s == pytest.approx(7200.0 + (4.0 - 2.0 / two) * 3600.0 * one, rel=1e-12)
    assert audit(folder) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["synchronisation"].update(cpu_machines=0),
        lambda d: d["synchronisation"]["compute_s"][0].__setitem__(0, 3.001),
        lambda d: d["synchronisation"]["sync_s"][0].__setitem__(0, 1.499),
        lambda d: d["synchronisation"].update(backend="parameter-server"),
        lambda d: d["synchronisation"].update(core_nodes=2.9),
        lambda d: d["synchronisation"].update(inside_s=[[1.9]]),
        lambda d: d.pop("synchronisation"),
    ],
)
def test_epochs_under_another_help_are_found(folder, change):
    assert {difference.what for difference in edit(folder, change)} >= {"epochs done in the interval"}


def test_the_power_of_cpu_machines_that_the_bill_leaves_out_is_found(folder):
    """One of three machines that help is a CPU machine, the others none: a neighbour is there for two hours."""
    found = edit(folder, lambda d: d["synchronisation"].update(cpu_machine_w=1.0))
    assert {difference.what for difference in found} == {"energy_eur", "total_eur"}
    assert {difference.where for difference in found} == {"run.json", "jobs.csv line 2 (job 0)"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d["synchronisation"].update(backend="ring"), "backend"),
        (lambda d: d["synchronisation"].update(core_nodes=0.0), "core_nodes"),
        (lambda d: d["synchronisation"].update(cpu_machine_w=-1.0), "cpu_machine_w"),
        (lambda d: d["synchronisation"].update(cpu_machines=-1), "cpu_machines"),
        (lambda d: d["synchronisation"].update(colour="red"), "colour"),
        (lambda d: d["synchronisation"].pop("sync_s"), "sync_s"),
        (lambda d: d["synchronisation"]["compute_s"][0].__setitem__(0, 0.0), "compute_s[V][0]"),
        (lambda d: d["synchronisation"]["sync_s"].append([1.0]), "sync_s"),
    ],
)
def test_an_instance_that_cannot_be_is_refused(folder, change, field):
    with refused(f"instance.json: synchronisation.{field}"):
        edit(folder, change)
