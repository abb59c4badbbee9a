"""STS-X: which jobs run, which wait, and where; by hand on nodes of two GPUs."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from books import check_books
from first_rounds import begin_run
from gpusched_baselines import StsX, make_policy
from gpusched_baselines.dispatching.idle_gpus import give_by_gain
from gpusched_baselines.registry import ablation_names
from gpusched_baselines.sts_x.appraisal import WAIT_LOAD, _write_due_load
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, Result, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator import kernels as sim
from gpusched_env.simulator import layout as at
from gpusched_env.workload import load_track, make_instance
from instances import CERTAIN, HOUR, random_instance

ONE, TWO, HALF = Configuration("V", 1), Configuration("V", 2), Configuration("V", 1, share=0.5)
# A busy GPU costs 1 €/h, a node that is on 2 €/h more; an epoch takes an hour on one GPU, and as long on two.
V = GpuType("V", gpu_power_w=1000.0, node_base_power_w=2000.0, memory_gib=16.0, max_gpus_per_node=2)


def job(submission_h: float, due_h: float, epochs: float = 1.0, weight: float = 0.001, **more: object) -> Job:
    facts = {"seconds_per_epoch": {ONE: HOUR, TWO: HOUR}, **more}
    return Job(submission_h * HOUR, due_h * HOUR, weight, epochs, CERTAIN, epochs, **facts)


def cluster(jobs: list[Job], nodes: int = 2, restart_s: float = 0.0, types: tuple[GpuType, ...] = (V,)) -> Instance:
    every = [Node(v.name, 2) for v in types for _ in range(nodes)]
    return Instance.from_jobs(types, every, jobs, energy_price_eur_per_kwh=1.0, pue=1.0, restart_s=restart_s)


def starts_h(result: Result) -> list[float]:
    return (result.start_s / HOUR).round(3).tolist()


def test_a_job_with_slack_waits_for_others_and_starts_when_its_slack_ends():
    """Alone it would not fill a node. It may wait until 1 % of its hour before its latest start, 3 h."""
    result = simulate(cluster([job(0, 4)]), StsX())
    assert starts_h(result) == [pytest.approx(2.99, abs=0.001)]
    assert result.late_jobs == 0


def test_two_jobs_with_slack_fill_a_node_at_once_and_one_joins_a_node_that_is_on():
    result = simulate(cluster([job(0, 4), job(1, 9)]), StsX())
    assert starts_h(result) == [1.0, 1.0]
    assert result.energy_eur == pytest.approx(4.0)
    # The first job has no slack: its node is on from 0 to 3 h, and the second one comes at 1 h.
    result = simulate(cluster([job(0, 3, epochs=3), job(1, 9)]), StsX())
    assert starts_h(result) == [0.0, 1.0]
    assert result.energy_eur == pytest.approx(3 * 3 + 1)


def test_jobs_wait_less_where_other_work_is_due():
    """Six jobs of an hour are due in two: 3 of 4 GPUs; without its own 0.5, 1.4 times 2.5 of 4 are taken."""
    state = State(cluster([job(0, 2)] * 6 + [job(0, 8)]))
    state.advance()
    due_load = np.empty(7)
    _write_due_load(state.board, np.arange(7), due_load)
    assert due_load.tolist() == pytest.approx([WAIT_LOAD * 2.5 / 4] * 6 + [1.0])


def test_a_job_is_decided_again_when_its_slack_has_ended_which_falls_with_the_time_left_for_waiting():
    """Two jobs of an hour are due in one; 1.4 · (2 - 1/8) of 4 GPUs are taken from the 8 h of the third one.

    2.75 h are left for it, 1 h of work and a hundredth of that; its slack falls by 0.34375 h an hour.
    """
    state = begin_run(cluster([job(0, 1), job(0, 1), job(0, 8)]))
    StsX()._plan(state.view)
    planned = state.board.memory[2, [sim.PLANNED, sim.TIMER]].tolist()
    assert planned == [-1.0, pytest.approx((2.75 - 1.0 - 0.00999) / 0.34375 * HOUR)]


def test_a_due_date_years_away_is_waited_for_and_without_waiting_a_job_starts_at_once():
    due_h = 50_000.0
    result = simulate(cluster([job(0, due_h)]), StsX())
    assert starts_h(result) == [pytest.approx(due_h - 1.01, abs=0.01)]
    assert starts_h(simulate(cluster([job(0, 4)]), StsX(waits=False))) == [0.0]


def test_the_type_is_chosen_by_what_it_costs_in_a_full_node():
    """Alone V costs 3 €/h and W 2.5; in a full node V costs 2 €/h a GPU, W 2.25. Two jobs without slack share a V."""
    other = GpuType("W", gpu_power_w=2000.0, node_base_power_w=500.0, memory_gib=16.0, max_gpus_per_node=2)
    seconds = {ONE: HOUR, Configuration("W", 1): HOUR}
    jobs = [job(0, 1, seconds_per_epoch=seconds) for _ in range(2)]
    instance = cluster(jobs, nodes=1, types=(V, other))
    held = {
        policy.name: simulate(instance, policy).intervals()["configuration"].to_list()
        for policy in (StsX(), make_policy("sts"))
    }
    assert held == {"sts-x": ["Vx1", "Vx1"], "sts": ["Wx1", "Wx1"]}


def half_empty_nodes(restart_s: float = 0.0) -> Instance:
    """Make two pairs of jobs without slack, a moment apart; of each pair one ends after 1 h, the other after 9 h.

    The long ones have nine times the weight, so that a second is worth as much for their GPU-seconds at first.
    """
    long = {"epochs": 9, "weight": 0.009}
    jobs = [job(0, 1), job(0, 9, **long), job(0.01, 1.01), job(0.01, 9.01, **long)]
    return cluster(jobs, restart_s=restart_s)


def test_jobs_move_together_so_that_a_node_can_be_switched_off_if_they_need_not_restart():
    """From 1.01 h on, one node with both that are left costs 4 €/h; two nodes with one each would cost 6."""
    result = simulate(half_empty_nodes(), StsX())
    assert result.switches.sum() > 0
    assert result.energy_eur == pytest.approx(4 + 0.01 * 3 + 7.99 * 4 + 0.01 * 3 + 4)
    result = simulate(half_empty_nodes(restart_s=60.0), StsX())
    assert result.switches.sum() == 0
    assert result.late_jobs == 0


def test_idle_gpus_make_a_job_faster_that_pays_for_the_node_alone():
    """On two GPUs an epoch takes 40 minutes: 4 €/h · 2/3 h is less than 3 €/h · 1 h."""
    alone = job(0, 2, epochs=2, seconds_per_epoch={ONE: HOUR, TWO: HOUR * 2 / 3})
    assert simulate(cluster([alone]), StsX()).energy_eur == pytest.approx(2 * 2 / 3 * 4)


def shares_of_two(jobs: int, half_s: float, seconds: dict[Configuration, float]) -> Instance:
    """Jobs of one epoch, due when one that starts at once on half a GPU ends, on a node of two GPUs."""
    every = [job(0, half_s / HOUR, seconds_per_epoch={HALF: half_s, **seconds}) for _ in range(jobs)]
    return Instance.from_jobs([V], [Node("V", 2)], every, [HALF, *seconds], energy_price_eur_per_kwh=1.0, pue=1.0)


@pytest.mark.parametrize(("both_h", "eur"), [(0.7, 0.7 * 4), (0.8, 3.0)])
def test_idle_gpus_lift_a_job_from_a_share_where_an_epoch_gets_cheaper(both_h, eur):
    """By full nodes half a GPU is cheapest: 2 € for an hour. Alone on the node it costs 3 €, both GPUs 4 €/h."""
    result = simulate(shares_of_two(1, HOUR, {TWO: both_h * HOUR}), StsX())
    assert result.energy_eur == pytest.approx(eur)


@pytest.mark.parametrize(("holders", "config"), [(1.0, 1), (2.0, 0)])
def test_a_share_costs_less_of_its_gpu_where_others_are_expected_there(holders, config):
    """It costs 2 + 1 € of the first hour, or 2 + 0.5 €; both GPUs cost 2.8 €."""
    state = begin_run(shares_of_two(1, HOUR, {TWO: 0.7 * HOUR}))
    sim.place(state.board, 0, 0)
    give_by_gain(state.board, np.array([0]), np.zeros(1), holders)
    check_books(state.view, capacity=False)
    assert (state.board.jobs[0, at.CONFIG], state.board.nodes[0, at.FREE]) == (config, 1 - config)


def test_one_of_two_jobs_leaves_a_shared_gpu_for_an_idle_one():
    """Each pays half of the node's 2 €/h: half a GPU costs 1.5 € for an hour, a whole one 1 € for half an hour."""
    state = begin_run(shares_of_two(2, HOUR, {ONE: 0.5 * HOUR}))
    for each in range(2):
        sim.place(state.board, each, 0)
    give_by_gain(state.board, np.arange(2), np.zeros(2), 2.0)
    check_books(state.view, capacity=False)
    assert state.board.jobs[:2, at.CONFIG].tolist() == [1.0, 0.0]
    assert state.board.nodes[0, at.FREE] == 0


def one_gpu(jobs: list[Job]) -> Instance:
    """Make an instance of a single GPU; the jobs may use nothing else."""
    return Instance.from_jobs([V], [Node("V", 1)], jobs, [ONE], energy_price_eur_per_kwh=1.0, pue=1.0)


def test_of_jobs_that_must_be_late_the_one_that_loses_most_for_its_time_goes_first():
    """One GPU: ten hours of weight 0.002 €/s or one of 0.001: 0.0002 €/s an hour against 0.001."""
    alone = {"seconds_per_epoch": {ONE: HOUR}}
    instance = one_gpu([job(0, 0.5, epochs=10, weight=0.002, **alone), job(0, 0.5, weight=0.001, **alone)])
    assert starts_h(simulate(instance, StsX())) == [1.0, 0.0]
    # One GPU, 0.001 €/s each, over 3,600.00002 s or 3,600.
    instance = one_gpu([job(0, 0.5, seconds_per_epoch={ONE: HOUR + more}) for more in (2e-5, 0.0)])
    assert starts_h(simulate(instance, StsX())) == [1.0, 0.0]


def test_a_second_is_worth_its_weight_times_the_probability_of_being_late():
    """One GPU, so the plan is what it is, 1.5 h in expectation. Half of the first kind of job end within an hour.

    The others are late from 1.5 h on. So a second costs ½ · 0.0024 €/s, over 1.5 h: 0.0008 an hour. The second job is
    late for certain, which costs 0.001 €/s, over an hour. By weight alone it would be 0.0016 against 0.001; by slack,
    minus half an hour against 24 minutes.
    """
    halves = EpochDistribution(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]))
    perhaps = Job(0.0, 1.5 * HOUR, 0.0024, 2.0, halves, 2.0, seconds_per_epoch={ONE: HOUR})
    instance = one_gpu([perhaps, job(0, 0.6, seconds_per_epoch={ONE: HOUR})])
    assert starts_h(simulate(instance, StsX())) == [1.0, 0.0]


def test_a_job_is_late_where_being_in_time_costs_more():
    """Two GPUs save 6 minutes. They cost 4 €/h · 0.9 h = 3.6 €, one 3 €/h · 1 h and 0.1 h late at 3.6 €/h: 3.36 €."""
    instance = cluster([job(0, 0.9, seconds_per_epoch={ONE: HOUR, TWO: 0.9 * HOUR})])
    late, in_time = simulate(instance, StsX()), simulate(instance, StsX(guarantees=True))
    assert (late.late_jobs, in_time.late_jobs) == (1, 0)
    assert (late.energy_eur, late.tardiness_eur) == (pytest.approx(3.0), pytest.approx(0.36))
    assert (in_time.energy_eur, in_time.tardiness_eur) == (pytest.approx(3.6), 0.0)


def test_where_gpus_are_short_a_job_takes_fewer_of_them():
    """On two GPUs a job is in time, at 0.8 € more for 0.3 h, which are worth 1.08 €; but eight jobs have eight GPUs.

    All at once, each on one GPU: 8 · 2 € and 8 · 0.3 h late. In two turns: 8 · 2.8 €, and four that are 0.7 h late.
    """
    one = job(0, 0.7, seconds_per_epoch={ONE: HOUR, TWO: 0.7 * HOUR})
    alone, full = cluster([one], nodes=4), cluster([one] * 8, nodes=4)
    assert set(simulate(alone, StsX()).intervals()["configuration"]) == {"Vx2"}
    result, greedy = simulate(full, StsX()), simulate(full, StsX(priced=False))
    assert set(result.intervals()["configuration"]) == {"Vx1"}
    assert result.total_eur == pytest.approx(8 * 2 + 8 * 0.3 * 3.6)
    assert set(greedy.intervals()["configuration"]) == {"Vx2"}
    assert greedy.total_eur == pytest.approx(8 * 2.8 + 4 * 0.7 * 3.6)


def test_a_job_that_keeps_its_configuration_stays_although_others_come_before_it():
    """Two short jobs with less slack fill the node that is on; it would move, and lose 60 s by that."""
    instance = cluster([job(0, 9.005, epochs=9), job(0.01, 1.01), job(0.01, 1.01)], restart_s=60.0)
    result = simulate(instance, StsX())
    assert (result.switches.tolist(), result.late_jobs) == ([0, 0, 0], 0)
    assert result.intervals().filter(result.intervals()["job"] == 0)["node"].to_list() == [0]


def test_shares_are_part_of_the_hull():
    """Half a GPU takes 1.1 times as long: two jobs share one. With four jobs it is expected to cost 1 / 1.2 of it."""
    seconds = {ONE: HOUR, HALF: 1.1 * HOUR}
    jobs = [job(0, 1.3, seconds_per_epoch=seconds) for _ in range(4)]
    instance = Instance.from_jobs([V], [Node("V", 2)], jobs, [ONE, HALF], energy_price_eur_per_kwh=1.0, pue=1.0)
    result = simulate(instance, StsX())
    assert set(result.intervals()["configuration"]) == {"Vx0.5"}
    assert result.energy_eur == pytest.approx(1.1 * 4)


def test_planning_a_round_changes_only_memory_and_timers():
    instance = random_instance(4, jobs=30, nodes=4, kinds=True, interference=True, restart_s=5.0)
    checked = 0

    class Watched(StsX):
        def decide(self, view, rng):
            nonlocal checked
            before = [view.nodes.copy(), view.capacity.copy(), np.delete(view.jobs, at.TIMER_S, axis=1)]
            self._plan(view)
            after = [view.nodes, view.capacity, np.delete(view.jobs, at.TIMER_S, axis=1)]
            for then, now in zip(before, after, strict=True):
                np.testing.assert_array_equal(now, then)
            checked += 1
            super().decide(view, rng)

    simulate(instance, Watched())
    assert checked > 30


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    span_s=st.sampled_from([0.0, 500.0, 20_000.0]),
    restart_s=st.sampled_from([0.0, 7.5, 300.0]),
    kinds=st.booleans(),
)
@example(seed=214, span_s=500.0, restart_s=0.0, kinds=False)  # timers that fell short of the end of the slack
def test_jobs_do_not_take_turns_for_ever(seed, span_s, restart_s, kinds):
    instance = random_instance(seed, jobs=25, nodes=3, span_s=span_s, restart_s=restart_s, kinds=kinds)

    def check(state: State) -> None:
        assert state.board.count[at.ROUND] < 60 * len(instance.jobs)

    simulate(instance, StsX(), record=False, on_round=check)


@pytest.mark.parametrize("name", ablation_names("sts-x"))
def test_an_ablation_lacks_one_part(name):
    policy = make_policy(name)
    parts = [field.name for field in fields(StsX) if field.name != "name"]
    assert sum(getattr(policy, part) != getattr(StsX(), part) for part in parts) == 1
    assert policy.name == name


def test_free_energy_is_the_limit_of_cheap_energy():
    """Only tardiness has a cost: GPUs still count, since other jobs need them."""
    track = load_track("lognormal").scenario.replace({"jobs.count": 60, "arrivals.rate": 2.0})
    instance = make_instance(track, 0)
    free, cheap, edf = (
        simulate(replace(instance, energy_price_eur_per_kwh=price), policy, record=False)
        for price, policy in ((0.0, StsX()), (1e-9, StsX()), (0.0, make_policy("edf")))
    )
    assert free.energy_eur == 0.0
    assert free.tardiness_eur <= 1.1 * cheap.tardiness_eur + 0.05
    assert free.tardiness_eur < edf.tardiness_eur
