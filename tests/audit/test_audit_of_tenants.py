"""The audit of runs of several tenants: quotas are counted again, from the folder alone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusched_baselines import HiveD, make_policy
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Job,
    JobTable,
    Node,
    Tenant,
    Tenants,
)
from gpusched_env import simulate as run
from gpusched_env.audit import audit
from gpusched_env.formats.run_folder import write_run
from gpusched_env.workload import with_tenancy
from refusals import refused
from run_files import edited

CERTAIN = EpochDistribution.certain()


def folder_of(where: Path) -> Path:
    """Run two tenants, of 4 GPUs each by quota, on a node of 8; the second is at its quota once."""
    times = {Configuration("V100", 2): 100.0}
    jobs = [Job(0.0, 1e4, 1e-3, 1.0, CERTAIN, 1.0, times, tenant=t) for t in (0, 1, 1, 1)]
    tenants = [Tenant(name, (Cells("V100", 4, 1),)) for name in "ab"]
    node = GpuType("V100", 300.0, 200.0, 32.0, 8)
    instance = Instance.from_jobs([node], [Node("V100", 8)], jobs, mechanisms=[Tenants(tenants, "quota")])
    write_run(run(instance, make_policy("fifo")), where / "run")
    return where / "run"


def changed(folder: Path, change: Callable[[Any], object]) -> Path:
    with edited(folder / "instance.json") as document:
        change(document)
    return folder


def test_a_run_within_quotas_is_clean(tmp_path):
    assert audit(folder_of(tmp_path)) == []


def test_a_tenant_beyond_its_quota_is_found(tmp_path):
    folder = changed(folder_of(tmp_path), lambda d: d["tenants"][1].update(cells=[["V100", 1, 3]]))
    found = [str(difference) for difference in audit(folder)]
    assert found == [
        "intervals.csv (tenant b from 0.0 s): GPUs of V100 held, and the tenant's quota: recorded 4.0, recomputed 3"
    ]


def test_quotas_bind_only_where_there_are_quotas(tmp_path):
    folder = changed(folder_of(tmp_path), lambda d: d.update(tenancy="none", tenants=[{"name": "a", "cells": []}] * 0))
    with refused("instance.json: jobs.tenant[1]", 1):
        audit(folder)
    folder = changed(folder, lambda d: d["jobs"].pop("tenant"))
    assert audit(folder) == []


def test_cells_and_lent_gpus_that_take_one_gpu_more_than_their_host_has_are_found(tmp_path):
    """A cell of four GPUs and a job on four of the rest fill a host of eight; one of seven would be too small."""
    types = [GpuType(f"{owner}'s", 300.0, 200.0, 32.0, 8, owner=owner, hardware="V100") for owner in ("a", "")]
    jobs = [Job(0.0, 1e4, 1e-3, 1.0, CERTAIN, 1.0, {Configuration(v.name, 4): 100.0}) for v in types]
    nodes = [Node("a's", 4), Node("'s", 8)]
    instance = Instance(
        types, nodes, (c := tuple(Configuration(v.name, 4) for v in types)), JobTable.from_jobs(jobs, c),
        mechanisms=(Tenants((Tenant("a", (Cells("V100", 4, 1),)),), "cells", 1),),
    )  # fmt: skip
    write_run(run(instance, make_policy("fifo")), folder := tmp_path / "run")
    assert audit(folder) == []
    found = [str(difference) for difference in audit(changed(folder, lambda d: d["nodes"].update(gpus=[4, 7])))]
    assert found[-1] == (
        "intervals.csv (host 0 from 0.0 s): GPUs of used cells and of opportunistic jobs, and GPUs of the host: "
        "recorded 8, recomputed 7"
    )


def racks_of_two(where: Path, *jobs: tuple[int, int]) -> Path:
    """Run jobs of a tenant and so many nodes of 4 on two racks of two: a has a cell of a rack, b two of a node."""
    offers = [Configuration("V100", 4), Configuration("V100", 4, 2)]
    tenants = [Tenant("a", (Cells("V100", 8, 1),)), Tenant("b", (Cells("V100", 4, 2),))]
    rows = [Job(0.0, 1e4, 1e-3, 1.0, CERTAIN, 1.0, {offers[k - 1]: 100.0}, tenant=t) for t, k in jobs]
    made = Instance.from_jobs(
        [GpuType("V100", 300.0, 200.0, 32.0, 4)],
        [Node("V100", 4)] * 4,
        rows,
        offers,
        mechanisms=[Tenants(tenants, racks=(0, 0, 1, 1))],
    )
    instance = with_tenancy(made, "cells")
    write_run(run(instance, HiveD()), where / "run")
    return where / "run"


@pytest.mark.parametrize(
    ("jobs", "racks", "says"),
    [
        ([(0, 2)], [0, 0, 1, 2, 3, 4, 3, 4], "cell 0 from 0.0 s): parts of racks that a cell has"),
        ([(0, 1), (1, 1)], [0, 0, 1, 2, 3, 4, 3, 4], "cell 0 from 0.0 s): other cells in its part of a rack"),
    ],
)
def test_a_cell_of_several_nodes_that_is_not_alone_in_one_rack_is_found(tmp_path, jobs, racks, says):
    folder = racks_of_two(tmp_path, *jobs)
    assert audit(folder) == []
    found = [str(difference) for difference in audit(changed(folder, lambda d: d.update(racks=racks)))]
    assert [says in each for each in found] == [True]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda d: d.update(racks=[0, 1]), "racks"),
        (lambda d: d.update(tenancy="more"), "tenancy"),
        (lambda d: d.pop("tenancy"), "tenancy"),
        (lambda d: d["tenants"][0].update(size=3), "tenants[0].size"),
        (lambda d: d["tenants"][0].update(cells=[["V100", 0, 1]]), "tenants[0].cells[0]"),
        (lambda d: d["tenants"].append(d["tenants"][0]), "tenants"),
        (lambda d: d["jobs"]["tenant"].__setitem__(0, 2), "jobs.tenant[0]"),
    ],
)
def test_what_no_tenants_can_be_is_refused(tmp_path, change, field):
    with refused(f"instance.json: {field}"):
        audit(changed(folder_of(tmp_path), change))
