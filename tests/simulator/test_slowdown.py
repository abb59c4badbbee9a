"""Jobs that share a GPU: what they cost and, with an interference model, how they slow each other down; by hand."""

import numpy as np
import pytest

from fixed import Fixed
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Interference, Job, Node, Result, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at

HOUR = 3600.0
HALF, ONE = Configuration("V", 1, share=0.5), Configuration("V", 1)
CERTAIN = EpochDistribution.certain()


def two_jobs(interference: Interference | None, second_s: float = 0.0, restart_s: float = 0.0) -> Instance:
    """Make two jobs of 2 and 4 epochs, an hour each on half a GPU, alone; a busy GPU costs 1 €/h, the node 1 €/h."""
    gpu = GpuType("V", gpu_power_w=1000.0, node_base_power_w=1000.0, memory_gib=16.0, max_gpus_per_node=2)
    seconds = {HALF: HOUR}
    jobs = [
        Job(0.0, 20 * HOUR, 0.001, 2.0, CERTAIN, 2.0, seconds, application="A"),
        Job(second_s, 20 * HOUR, 0.001, 4.0, CERTAIN, 4.0, seconds, application="B"),
    ]
    return Instance.from_jobs(
        [gpu], [Node("V", 2)], jobs, [HALF], energy_price_eur_per_kwh=1.0, pue=1.0, interference=interference,
        restart_s=restart_s,
    )  # fmt: skip


def slow(a_beside_b: float, b_beside_a: float) -> Interference:
    return Interference(np.array([[[1.0, a_beside_b], [b_beside_a, 1.0]]]))


def run(instance: Instance) -> Result:
    return simulate(instance, Fixed((0, 0)))


def test_a_shared_gpu_is_one_busy_gpu_and_its_cost_is_split_by_share():
    """Both run from 0 to 2 h on one GPU (2 €/h in all), then B alone to 4 h: it pays for the whole GPU."""
    result = run(two_jobs(None))
    assert result.completion_s.tolist() == [2 * HOUR, 4 * HOUR]
    assert result.energy_eur == pytest.approx(8.0)
    assert result.job_energy_eur == pytest.approx([2.0, 6.0])


def test_pairs_slow_each_other_down_while_both_are_there():
    """A takes 1.5 h an epoch beside B: done at 3 h. B takes 2 h beside A: 1.5 epochs by then, 2.5 more alone."""
    result = run(two_jobs(slow(1.5, 2.0)))
    assert result.completion_s == pytest.approx([3.0 * HOUR, 5.5 * HOUR])
    assert result.energy_eur == pytest.approx(11.0)
    assert result.job_energy_eur == pytest.approx([3.0, 8.0])
    # A runs alone for 1 h (1 epoch), then at 1.5 h an epoch: done at 2.5 h.
    result = run(two_jobs(slow(1.5, 2.0), second_s=HOUR))
    assert result.completion_s == pytest.approx([2.5 * HOUR, (2.5 + 3.25) * HOUR])
    assert result.switches.tolist() == [0, 0]
    assert len(result.log) == 2  # one interval each: a change of speed begins no new one


def test_policies_plan_with_the_worst_that_there_can_be():
    """Both may share, so the worst beside A is B, and beside B another B."""
    interference = Interference(np.array([[[1.0, 1.5], [1.2, 2.0]]]))
    state = State(two_jobs(interference))
    state.advance()
    assert state.view.tau[:, 0].tolist() == [1.5 * HOUR, 2.0 * HOUR]
    assert state.view.jobs[:, at.MIN_TAU].tolist() == [1.5 * HOUR, 2.0 * HOUR]


def test_what_is_planned_beside_neighbours_and_excesses_add_up():
    gpu = GpuType("V", 1000.0, 0.0, 16.0, 2)
    jobs = [
        Job(0.0, 9 * HOUR, 0.0, 1.0, CERTAIN, 1.0, {ONE: HOUR, HALF: HOUR}, application="A"),
        Job(0.0, 9 * HOUR, 0.0, 1.0, CERTAIN, 1.0, {ONE: HOUR, HALF: HOUR}, application="B", memory_gib=9.0),
    ]
    interference = Interference(np.array([[[1.2, 1.9], [1.5, 1.9]]]))
    state = State(Instance.from_jobs([gpu], [Node("V", 2)], jobs, [ONE, HALF], interference=interference))
    state.advance()
    assert state.view.tau.tolist() == [[HOUR, 1.2 * HOUR], [HOUR, np.inf]]
    quarter = Configuration("V", 1, share=0.25)
    gpu = GpuType("V", 1000.0, 0.0, 16.0, 2)
    jobs = [Job(0.0, 9 * HOUR, 0.0, 1.0, CERTAIN, 1.0, {quarter: HOUR, HALF: HOUR, ONE: HOUR}, application="A")]
    interference = Interference(np.array([[[1.2]]]))
    instance = Instance.from_jobs([gpu], [Node("V", 2)], jobs, [ONE, HALF, quarter], interference=interference)
    state = State(instance)
    state.advance()
    assert state.view.tau[0].tolist() == pytest.approx([HOUR, 1.4 * HOUR, 1.6 * HOUR])
    # Three jobs on a GPU, each 20 % slower beside one other: 40 % beside two.
    third = Configuration("V", 1, share=1 / 3)
    gpu = GpuType("V", 1000.0, 0.0, 16.0, 1)
    jobs = [Job(0.0, 9 * HOUR, 0.0, 1.0, CERTAIN, 1.0, {third: HOUR}, application="A") for _ in range(3)]
    interference = Interference(np.array([[[1.2]]]))
    instance = Instance.from_jobs([gpu], [Node("V", 1)], jobs, [third], interference=interference)
    assert simulate(instance, Fixed((0, 0, 0))).completion_s == pytest.approx([1.4 * HOUR] * 3)


def test_a_restart_delays_progress_at_the_speed_of_then():
    """A moves to the other GPU of the node at 1 h, and B, which comes then, joins it: A restarts for half an hour."""
    instance = two_jobs(slow(1.5, 1.0), second_s=HOUR, restart_s=HOUR / 2)

    class Moves:
        name = "moves"
        preemption = True

        def decide(self, view, rng):
            if view.now_s == HOUR:
                view.board.jobs[0, at.PREFERRED_SLOT] = 1.0
            for job in view.active:
                view.place(int(job), 0)

    result = simulate(instance, Moves())
    # A: 1 epoch by 1 h, a restart to 1.5 h, 1 epoch at 1.5 h beside B: done at 3 h.
    assert result.completion_s[0] == pytest.approx(3.0 * HOUR)
    assert result.switches.tolist() == [1, 0]
    assert sorted(result.log[:, [at.LOG_JOB, at.LOG_SLOT]].tolist()) == [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]


def test_jobs_have_their_own_restart_overhead():
    """One whole GPU each; both change from one GPU to two and back is not needed: they only move once."""
    two = Configuration("V", 2)
    gpu = GpuType("V", 1000.0, 0.0, 16.0, 2)
    jobs = [
        Job(0.0, 9 * HOUR, 0.0, 2.0, CERTAIN, 2.0, {ONE: HOUR, two: HOUR}, restart_s=restart_s)
        for restart_s in (600.0, None)
    ]

    class Grow:
        name = "grow"
        preemption = True

        def decide(self, view, rng):
            for job in view.active:
                view.place(int(job), 0 if view.now_s < HOUR else 1)
                view.set_timer(int(job), HOUR if view.now_s < HOUR else np.inf)

    instance = Instance.from_jobs([gpu], [Node("V", 2), Node("V", 2)], jobs, [ONE, two], restart_s=60.0)
    assert simulate(instance, Grow()).completion_s == pytest.approx([2 * HOUR + 600.0, 2 * HOUR + 60.0])
