"""Cells in runs: their binding, the jobs that they preempt, and the attribution of the host's cost."""

from dataclasses import replace

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines import make_policy
from gpusched_baselines.planning.capacity import gpus_of_types
from gpusched_env import (
    Cells,
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Job,
    Node,
    Tenant,
    Tenants,
    simulate,
)
from gpusched_env.observation.notes import Notes, bring_up_to_date
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.kernels import place
from gpusched_env.simulator.rounds import keeps_gpus
from instances import random_instance
from refusals import refused

CERTAIN = EpochDistribution.certain()


def job(name: str, gpus: int, seconds: float = 3600.0, at_s: float = 0.0) -> Job:
    times = {Configuration(name, gpus): seconds}
    return Job(at_s, 1e7, 0.0, 1.0, CERTAIN, 1.0, times, tenant="ab".find(name[0]) if name[1] == "/" else 0)


def cluster(*jobs: Job, hosts: int = 1, cells: str = "aabb", size: int = 4) -> Instance:
    """Make hosts of 8 GPUs, and cells of `size` GPUs on them for the tenants named."""
    rows = [Node(f"{name}/V100", size) for name in cells]
    names = sorted(set(cells))
    types = [GpuType(f"{name}/V100", 300.0, 200.0, 32.0, 8, owner=name, hardware="V100") for name in names]
    types.append(GpuType("opportunistic/V100", 300.0, 200.0, 32.0, 8, hardware="V100"))
    pools = [Node("opportunistic/V100", 8)] * hosts
    tenants = tuple(Tenant(name, (Cells("V100", size, cells.count(name)),)) for name in names)
    made = Instance.from_jobs(types, rows + pools, jobs, energy_price_eur_per_kwh=1.0, pue=1.0)
    return made.with_mechanisms(Tenants(tenants, "cells", hosts))


def test_two_tenants_halves_of_a_host_share_its_base_power():
    alone = simulate(cluster(job("a/V100", 4), cells="ab"), make_policy("fifo"))
    assert alone.energy_eur == pytest.approx(0.2 + 4 * 0.3)
    both = simulate(cluster(job("a/V100", 4), job("b/V100", 2), cells="ab"), make_policy("fifo"))
    assert both.energy_eur == pytest.approx(0.2 + 6 * 0.3)
    assert both.job_energy_eur.tolist() == pytest.approx([2.0 * 4 / 6, 2.0 * 2 / 6])
    assert both.intervals()["host"].to_list() == [0, 0]


def test_the_gpus_of_types_are_those_of_all_nodes_hosts_too():
    board = begin_run(cluster(job("a/V100", 4), cells="aab", hosts=2)).board
    assert gpus_of_types(board).tolist() == [8.0, 4.0, 16.0]


def test_a_job_whose_cell_is_bound_to_another_host_does_not_keep_its_gpus():
    state = begin_run(cluster(job("a/V100", 4), cells="ab", hosts=2))
    board, config = state.board, int(np.flatnonzero(np.isfinite(state.board.tau[0]))[0])
    assert place(board, 0, config)
    state.commit_round()
    state.begin_round(False)
    assert keeps_gpus(board, 0)
    board.cells[int(board.jobs[0, at.NODE]), at.CELL_HOST] += 1
    assert not keeps_gpus(board, 0)


@pytest.mark.parametrize("cells", [True, False])
def test_jobs_are_counted_again_where_a_cell_may_take_gpus_from_those_asked_before(cells):
    state = begin_run(cluster(job("a/V100", 4), hosts=2) if cells else random_instance(3, jobs=8))
    notes = Notes.of(state.board)
    assert [bool(bring_up_to_date(state.board, notes)) for _ in range(2)] == [True, cells]


def test_a_tenant_gets_its_cells_and_no_more_and_an_opportunistic_job_only_what_is_left():
    result = simulate(cluster(*[job("a/V100", 4)] * 3, hosts=2), make_policy("fifo"))
    assert result.completion_s.tolist() == [3600.0, 3600.0, 7200.0]
    instance = cluster(job("a/V100", 4), job("opportunistic/V100", 8, at_s=60.0), cells="ab")
    result = simulate(instance, make_policy("fifo"))
    assert result.completion_s.tolist() == [3600.0, 7200.0]


def test_an_opportunistic_job_runs_where_no_cell_is_in_use_and_makes_room_for_one():
    instance = cluster(job("opportunistic/V100", 8, 7200.0), job("a/V100", 4, at_s=1800.0), cells="ab")
    result = simulate(instance, make_policy("fifo"))
    assert result.completion_s.tolist() == [5400.0 + 5400.0, 5400.0]
    assert result.start_s.tolist() == [0.0, 1800.0]


def test_of_the_opportunistic_jobs_on_a_host_a_cell_drives_out_the_last_submitted():
    """The first two hold two GPUs each, the third one four: it has done 500 s of 7,200 when the cell comes."""
    opportunistic = [
        job("opportunistic/V100", 2, 7200.0),
        job("opportunistic/V100", 2, 7200.0, at_s=50.0),
        job("opportunistic/V100", 4, 7200.0, at_s=100.0),
    ]
    result = simulate(cluster(*opportunistic, job("a/V100", 4, at_s=600.0), cells="ab"), make_policy("fifo"))
    assert result.completion_s.tolist() == [7200.0, 7250.0, 4200.0 + 6700.0, 4200.0]


def test_a_cell_is_laid_where_it_drives_out_fewest():
    instance = cluster(job("opportunistic/V100", 4), job("a/V100", 4, at_s=600.0), hosts=2, cells="abbb")
    result = simulate(instance, make_policy("fifo"))
    assert result.completion_s.tolist() == [3600.0, 4200.0]
    assert result.intervals()["host"].to_list() == [0, 1]


@pytest.mark.parametrize("policy", ["fifo", "edf:preemptive", "gittins"])
def test_a_cell_stays_where_it_lies_while_it_is_used(policy):
    jobs = [job("a/V100", 2, 5000.0), job("b/V100", 4, 900.0, 10.0), job("a/V100", 2, 900.0, 20.0)]
    result = simulate(cluster(*jobs, job("b/V100", 4, 60.0, 30.0), hosts=2), make_policy(policy))
    rows = result.intervals()
    of_first = rows.filter(rows["job"] == 0)
    assert len(of_first) == 1
    assert result.switches.tolist() == [0, 0, 0, 0]


def test_a_cell_without_jobs_is_let_go():
    state = begin_run(cluster(job("a/V100", 4), cells="ab"), preemption=False)
    assert state.view.place(0, 3)
    state.commit_round()
    assert state.view.cells[:, at.CELL_HOST].tolist() == [0, -1, 0]
    assert state.view.nodes[:, at.FREE].tolist() == [0, 4, 4]
    assert not state.advance()
    state.begin_round(preemption=False)
    assert state.view.cells[:, at.CELL_HOST].tolist() == [-1, -1, 0]
    assert state.view.nodes[:, at.FREE].tolist() == [4, 4, 8]


def test_cells_that_do_not_fit_on_the_hosts_are_refused():
    with refused("nodes", allowed="cells that fit into"):
        cluster(job("a/V100", 4), cells="aab")
    with refused("nodes", 3, "a half of 8 GPUs"):
        cluster(job("a/V100", 3), cells="ab", size=3)


@pytest.mark.parametrize(
    ("owners", "error"),
    [
        (("", "b", ""), ("gpu_types[0].owner", "", "one of a, b: nodes[0] is a cell")),
        (("a", "c", ""), ("gpu_types[1].owner", "c", "one of a, b: nodes[1] is a cell")),
        (("a", "b", "b"), ("gpu_types[2].owner", "b", "none: nodes[2] is a host")),
    ],
)
def test_owners_are_tenants_who_have_cells(owners: tuple[str, ...], error: tuple) -> None:
    made = cluster(job("a/V100", 4), cells="ab")
    types = tuple(replace(v, owner=owner) for v, owner in zip(made.gpu_types, owners, strict=True))
    with refused(*error):
        replace(made, gpu_types=types)
