"""Shares of several GPUs: blocks of a node, consecutive nodes, the speed of the slowest GPU, charges; by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from first_rounds import begin_run
from fixed import Fixed
from gpusched_baselines import AntMan, make_policy
from gpusched_env import (
    Configuration,
    EpochDistribution,
    GpuType,
    Instance,
    Job,
    Node,
    SharedMemory,
    Tenants,
    UtilisationModel,
)
from gpusched_env.audit import audit
from gpusched_env.formats import write_run
from gpusched_env.simulator import Result, State, simulate
from gpusched_env.simulator.kernels import has_room, speed_now
from refusals import refused

CERTAIN = EpochDistribution.certain()
GPU = GpuType("V", gpu_power_w=1000.0, node_base_power_w=1000.0, memory_gib=16.0, max_gpus_per_node=4)
FIRST_4, FIRST_2, FIRST_8 = (Configuration("V", g, n, 0.6, 1) for g, n in ((4, 1), (2, 1), (4, 2)))
SECOND_1, SECOND_2, SECOND_8 = (Configuration("V", g, n, 0.4) for g, n in ((1, 1), (2, 1), (4, 2)))
CONFIGS = (FIRST_4, FIRST_2, FIRST_8, SECOND_1, SECOND_2, SECOND_8)


def instance_of(
    configs: tuple[Configuration, ...], utilisations: tuple[float, ...], nodes: int = 1, **model
) -> Instance:
    """Make jobs of 1,000 epochs, a second each alone, each with one configuration and an application of its own."""
    jobs = [
        Job(
            0.0, 1e6, 0.001, 1000.0, CERTAIN, 1000.0, {config: 1.0}, application=f"{i}",
            opportunistic="!" not in config.name,
        )
        for i, config in enumerate(configs)
    ]  # fmt: skip
    return Instance.from_jobs(
        [GPU], [Node("V", 4)] * nodes, jobs, CONFIGS, energy_price_eur_per_kwh=1.0, pue=1.0,
        mechanisms=[UtilisationModel(np.array([utilisations]), **model)],
    )  # fmt: skip


def run(instance: Instance, configs: tuple[Configuration, ...]) -> Result:
    return simulate(instance, Fixed(tuple(CONFIGS.index(config) for config in configs)))


def audited(result: Result, folder: Path) -> list:
    write_run(result, folder / "run")
    return audit(folder / "run")


def test_names_tell_gpus_nodes_shares_and_priorities():
    assert [c.name for c in CONFIGS[:3]] == ["Vx4x0.6!", "Vx2x0.6!", "2*Vx4x0.6!"]
    assert [c.name for c in CONFIGS[3:]] == ["Vx0.4", "Vx2x0.4", "2*Vx4x0.4"]
    assert (FIRST_4.kind, FIRST_8.kind, FIRST_8.gpus) == ("shared", "shared", 4.8)
    instance = instance_of((FIRST_4,), (0.5,))
    with refused("configurations[0]", "Vx4x0.6!", "shares of one GPU"):
        replace(instance, nodes=(*instance.nodes, *instance.nodes), mechanisms=(*instance.mechanisms, Tenants(hosts=1)))


def test_an_opportunistic_job_beside_a_job_of_four_gpus_uses_what_that_leaves_on_its_own(tmp_path):
    """The guaranteed job at 1 / 1.03 of its speed, beside another on one of its GPUs; that at 0.85 · 0.5 / 0.85."""
    configs = (FIRST_4, SECOND_1)
    result = run(instance_of(configs, (0.5, 0.85)), configs)
    second_s = 1030.0 + (1000.0 - 1030.0 * 0.5)
    assert result.completion_s == pytest.approx([1030.0, second_s])
    assert result.intervals()["gpu"].to_list() == [0, 0]
    assert audited(result, tmp_path) == []


def test_a_job_on_several_gpus_is_as_fast_as_on_the_slowest():
    """A job of two GPUs, whose guaranteed jobs leave it 0.85 · 0.2 of one and 0.85 · 0.7 of the other."""
    one = Configuration("V", 1, share=0.6, priority=1)
    configs = (one, one, SECOND_2)
    instance = instance_of((FIRST_4, FIRST_4, SECOND_2), (0.8, 0.3, 1.0))
    jobs = replace(
        instance.jobs, seconds_per_epoch=np.column_stack([instance.jobs.seconds_per_epoch, [1.0, 1.0, np.inf]])
    )
    instance = replace(instance, configurations=(*CONFIGS, one), jobs=jobs)
    result = simulate(instance, Fixed((6, 6, CONFIGS.index(SECOND_2))))
    assert result.intervals()["gpu"].to_list() == [0, 1, 0]
    assert configs[2].gpus_per_node == 2
    assert result.completion_s == pytest.approx([1030.0, 1030.0, 1030.0 + 1000.0 - 1030.0 * 0.85 * 0.2])
    state = begin_run(instance)
    for job in (0, 1):
        state.view.place(job, 6)
    assert speed_now(state.board, 2, CONFIGS.index(SECOND_2)) == pytest.approx(0.85 * 0.2)


def test_blocks_begin_at_multiples_of_their_size_and_do_not_overlap(tmp_path):
    configs = (SECOND_1, FIRST_2, FIRST_2, SECOND_2)
    result = run(instance_of(configs, (0.1, 0.2, 0.3, 0.4)), configs)
    first = dict(zip(result.intervals()["job"].to_list(), result.intervals()["gpu"].to_list(), strict=True))
    assert (first[1], first[2]) == (0, 2)
    assert first[3] in (0, 2)
    assert audited(result, tmp_path) == []


def test_a_share_has_room_in_a_block_and_on_consecutive_whole_nodes_only():
    board = State(instance_of((FIRST_2,), (0.5,), nodes=2)).board
    two, eight = CONFIGS.index(FIRST_2), CONFIGS.index(FIRST_8)
    assert [has_room(board, two, 0, slot, False) for slot in range(4)] == [True, False, True, False]
    assert [has_room(board, eight, node, 0, False) for node in range(2)] == [True, False]


def test_two_jobs_of_two_whole_nodes_share_all_their_gpus(tmp_path):
    configs = (FIRST_8, SECOND_8)
    result = run(instance_of(configs, (0.5, 0.85), nodes=3), configs)
    assert result.completion_s == pytest.approx([1030.0, 1030.0 + 1000.0 - 1030.0 * 0.5])
    rows = result.intervals()
    assert sorted(zip(rows["job"].to_list(), rows["node"].to_list(), strict=True)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert audited(result, tmp_path) == []


def test_each_gpu_of_a_share_is_charged_by_share():
    """Four GPUs and their node draw 5 kW: the first pays for 0.6 of one GPU and three, the other for 0.4 of one."""
    configs = (FIRST_4, SECOND_1)
    result = run(instance_of(configs, (0.5, 0.85)), configs)
    alone_s = result.completion_s[1] - 1030.0
    first = 5.0 * (3.6 / 4.0) * 1030.0 / 3600.0
    second = 5.0 * (0.4 / 4.0) * 1030.0 / 3600.0 + 2.0 * alone_s / 3600.0
    assert result.job_energy_eur == pytest.approx([first, second])


def test_antman_keeps_nodes_for_a_gang_and_fills_its_gpus_with_opportunistic_jobs():
    """Two guaranteed jobs of four GPUs take turns; others of one and two GPUs run beside the first at once."""
    configs = (FIRST_4, FIRST_4, SECOND_1, SECOND_2)
    result = simulate(instance_of(configs, (0.2, 0.2, 0.2, 0.2)), AntMan())
    assert result.start_s.tolist() == [0.0, pytest.approx(1030.0, abs=1.0), 0.0, 0.0]


@pytest.mark.parametrize(
    "name", ["antman", "fill", "pack", "fifo", "sts", "sts-x", "local-search", "tiresias", "sept:worst"]
)
def test_any_policy_runs_and_audits_clean_with_memory_that_moves(name, tmp_path):
    rng = np.random.default_rng(len(name))
    configs = [CONFIGS[i] for i in rng.integers(0, len(CONFIGS), 16)]
    jobs = [
        Job(
            float(at), float(at) + 300.0, 0.001, 60.0, CERTAIN, 60.0, {config: 1.0}, 8.0, "ab"[i % 2], 5.0,
            opportunistic="!" not in config.name, resume_s=2.0, start_s=float(i % 3),
        )
        for i, (at, config) in enumerate(zip(rng.uniform(0.0, 200.0, 16), configs, strict=True))
    ]  # fmt: skip
    own = SharedMemory(np.array([12.0, 14.0]), np.array([3.0, 8.0]), np.array([[0.5, 0.2]]), adapt_s=7.0)
    model = UtilisationModel(np.array([[0.3, 0.8]]), idle_power_w=np.array([60.0]), memory=own)
    instance = Instance.from_jobs([GPU], [Node("V", 4)] * 2, jobs, CONFIGS, mechanisms=[model])
    assert audited(simulate(instance, make_policy(name)), tmp_path) == []
