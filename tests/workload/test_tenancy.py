"""Private clusters and virtual ones: the same cluster, told otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoints import play
from gpusched_baselines import HiveD, make_policy
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuClusterVectorEnv,
    GpuType,
    Instance,
    Job,
    Node,
    Tenant,
    Tenants,
    simulate,
)
from gpusched_env.audit import audit
from gpusched_env.formats.run_folder import read_run, write_run
from gpusched_env.workload import Scenario, make_instance, scenario_toml, with_tenancy
from gpusched_env.workload.scenario.scenario_file import load_scenario
from refusals import ANY, refused
from run_files import audited, loaded_again
from vector_twins import Twins, assert_same

if TYPE_CHECKING:
    from pathlib import Path

V100 = GpuType("V100", 300.0, 200.0, 32.0, 8)
CERTAIN = EpochDistribution.certain()
TENANTS = (Tenant("a", (Cells("V100", 8, 1), Cells("V100", 4, 1))), Tenant("b", (Cells("V100", 4, 1),)))


def cluster(jobs: int = 12, seed: int = 0, restart_s: float = 0.0) -> Instance:
    """Make two nodes of 8 GPUs: one and a half are tenant a's, a half is b's; jobs on 1, 2, 4 or 8 GPUs."""
    rng = np.random.default_rng(seed)
    sizes = [Configuration("V100", g) for g in (1, 2, 4, 8)]
    made = []
    for i in range(jobs):
        tenant = int(rng.integers(2))
        most = int(rng.integers(1, 4 if tenant else 5))
        times = {size: 3600.0 / size.gpus_per_node**0.8 for size in sizes[:most]}
        due = float(rng.uniform(4000, 9000))
        made.append(Job(60.0 * i, 60.0 * i + due, 1e-3, 1.0, CERTAIN, 1.0, times, tenant=tenant, restart_s=restart_s))
    return Instance.from_jobs([V100], [Node("V100", 8)] * 2, made, mechanisms=[Tenants(TENANTS, "quota")])


def test_private_clusters_have_a_node_for_each_cell_and_jobs_their_own_tenants():
    shared = cluster()
    private = with_tenancy(shared, "private")
    assert [(n.gpu_type, n.gpus) for n in private.nodes] == [("a/V100", 8), ("a/V100", 4), ("b/V100", 4)]
    assert [(v.owner, v.hardware) for v in private.gpu_types] == [("a", "V100"), ("b", "V100")]
    of_a = np.array([c.gpu_type == "a/V100" for c in private.configurations])
    may = np.isfinite(private.jobs.seconds_per_epoch)
    np.testing.assert_array_equal(may[:, of_a].any(axis=1), shared.jobs.tenant == 0)
    np.testing.assert_array_equal(may[:, ~of_a].any(axis=1), shared.jobs.tenant == 1)


@pytest.mark.parametrize("policy", ["fifo", "edf", "priority"])
def test_in_cells_every_job_ends_as_in_its_tenants_private_cluster(policy: str):
    for seed in range(3):
        shared = cluster(seed=seed)
        private = simulate(with_tenancy(shared, "private"), make_policy(policy))
        cells = simulate(with_tenancy(shared, "cells"), make_policy(policy))
        assert cells.completion_s.tolist() == private.completion_s.tolist()
        assert cells.energy_eur < private.energy_eur  # halves of two tenants share a host
    inner = make_policy(policy)
    assert simulate(with_tenancy(shared, "cells"), HiveD(inner)).completion_s.tolist() == cells.completion_s.tolist()


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        (None, ("tenants", [])),
        (Cells("V100", 8, 3), ("tenants' cells of V100", ANY, "cells that fit into")),
        (Cells("V100", 3, 1), ("tenants' cells of V100", 3, "a half of 8 GPUs")),
    ],
)
def test_what_cannot_be_divided_is_refused(cells: Cells | None, error: tuple) -> None:
    nobodys = cluster().without("tenants")
    shared = replace(nobodys, jobs=replace(cluster().jobs, tenant=np.zeros(12, dtype=np.int64)))
    with refused(*error):
        with_tenancy(shared.with_mechanisms(Tenants((Tenant("a", (cells,)),))) if cells else shared, "cells")
    with refused("instance.tenancy", "private"):
        with_tenancy(with_tenancy(cluster(), "private"), "cells")


def lending(seed: int, restart_s: float = 0.0) -> Instance:
    """Make virtual clusters in which every third job is opportunistic."""
    shared = cluster(20, seed, restart_s)
    return with_tenancy(replace(shared, jobs=replace(shared.jobs, opportunistic=np.arange(20) % 3 == 0)), "cells")


def test_instances_with_cells_are_kept_in_files(tmp_path: Path) -> None:
    instance = lending(0)
    assert loaded_again(instance, tmp_path) == instance


POLICIES = ("cells-fifo", "fifo", "edf:preemptive", "sts", "sts-x", "gittins", "greedy:fill")


@given(st.integers(0, 50), st.sampled_from(POLICIES), st.sampled_from([0.0, 90.0]))
@settings(max_examples=24, deadline=None)
def test_the_audit_finds_nothing_in_runs_with_cells(
    tmp_path_factory: pytest.TempPathFactory, seed: int, policy: str, restart_s: float
) -> None:
    folder = tmp_path_factory.mktemp("run") / "run"
    assert audited(simulate(lending(seed, restart_s), make_policy(policy), seed=seed), folder) == []
    assert "host" in read_run(folder).intervals.columns


def test_the_audit_finds_a_cell_that_lies_where_there_is_no_room(tmp_path: Path) -> None:
    write_run(simulate(lending(1), make_policy("cells-fifo")), tmp_path / "run")
    path = tmp_path / "run" / "intervals.csv"
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    place = header.split(",").index("host")
    moved = [row.split(",") for row in rows]
    for row in moved:
        row[place] = "0"
    path.write_text("\n".join([header, *(",".join(row) for row in moved)]) + "\n", encoding="utf-8")
    found = " ".join(str(difference) for difference in audit(tmp_path / "run"))
    assert "GPUs of used cells and of opportunistic jobs, and GPUs of the host" in found
    assert "host of a host" in found


@pytest.mark.parametrize("preemption", [True, False])
def test_both_environments_do_the_same_with_cells_and_quotas(*, preemption: bool) -> None:
    for instance in (lending(2), cluster(20, 5)):
        twins = Twins(None, 1, instance=instance, preemption=preemption)
        twins.play(400, np.random.default_rng(4), twins.reset(seed=0))


def test_a_vector_environment_goes_on_from_a_checkpoint_with_cells() -> None:
    env, other = (GpuClusterVectorEnv(2, instance=lending(3)) for _ in range(2))
    env.reset(seed=0)
    play(env, 40, 0)
    other.set_state(env.get_state())
    assert_same(play(other, 20, 1), play(env, 20, 1))


SECTION = """
tenancy = "cells"
[cluster]
nodes = 4
gpu_types = ["V100"]
gpus_per_node = 8
[jobs]
count = 30
gpu_counts = [1, 2, 4]
opportunistic = 0.3
[[tenants]]
name = "research"
share = 3.0
cells = { V100 = [8, 8, 4] }
[[tenants]]
name = "product"
cells = { V100 = [4, 8] }
"""


def test_a_scenario_says_who_shares_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SECTION, encoding="utf-8")
    scenario = load_scenario(tmp_path / "s.toml")
    instance = make_instance(scenario, 0)
    assert [t.name for t in Tenants.of(instance).tenants] == ["research", "product"]
    assert [t.gpus("V100") for t in Tenants.of(instance).tenants] == [20, 12]
    assert 15 <= int(np.sum(instance.jobs.tenant == 0)) < 30
    opportunistic = np.array([c.gpu_type == "opportunistic/V100" for c in instance.configurations])
    may = np.isfinite(instance.jobs.seconds_per_epoch)
    np.testing.assert_array_equal(may[:, opportunistic].any(axis=1), instance.jobs.opportunistic)
    (tmp_path / "again.toml").write_text(scenario_toml(scenario), encoding="utf-8")
    assert load_scenario(tmp_path / "again.toml") == scenario


def test_tenants_leave_all_else_that_is_drawn_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SECTION, encoding="utf-8")
    names = make_instance(load_scenario(tmp_path / "s.toml").replace({"tenancy": "none"}), 0)
    nobody = make_instance(load_scenario(tmp_path / "s.toml").replace({"tenancy": "none", "tenants": ()}), 0)
    assert replace(names.jobs, tenant=nobody.jobs.tenant) == nobody.jobs


def test_a_cluster_without_tenants_stays_as_it_is_with_no_tenancy() -> None:
    nobodys = make_instance(load_scenario("tiny"), 0)
    assert with_tenancy(nobodys, "none") is nobodys


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"tenants": 5}, ("tenants", 5)),
        ({"tenants": ("a",)}, ("tenants", "a", "a sequence of Tenant")),
        ({"racks": 5}, ("racks", 5)),
        ({"hosts": "x"}, ("hosts", "x")),
    ],
)
def test_tenants_of_another_kind_are_refused(fields: dict[str, object], error: tuple) -> None:
    with refused(*error):
        Tenants(**fields)


def test_a_tenancy_needs_tenants() -> None:
    with refused("tenants", [], "at least one with tenancy"):
        Scenario(tenancy="quota")
