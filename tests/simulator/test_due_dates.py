"""Timers of due dates: by hand, as a property, and in episodes.

By hand, an epoch of the one job takes 10 h on one GPU, 6 h on two and 4 h on four; a busy GPU costs 1 €/h. So one GPU
is cheapest (10 €), then two (12 €), then four (16 €). A timer leaves 0.9 % of the worst-case execution time.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from any_instance import AnyInstance
from gpusched_env import Configuration, GpuType, Instance, Interference, Job, Node
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.due_dates import LEAST_MARGIN, MARGIN, due_date_timer_s
from instances import HOUR, random_instance
from small_instances import CERTAIN, hours_job, kilowatt_cluster

ONE, TWO, FOUR = Configuration("V", 1), Configuration("V", 2), Configuration("V", 4)
HALF = Configuration("V", 1, share=0.5)
HOURS = {ONE: 10.0, TWO: 6.0, FOUR: 4.0}
NEVER = np.inf


def with_job(due_h: float, *, restart_h: float = 0.0, base_w: float = 0.0, hours: dict | None = None) -> Instance:
    job = replace(hours_job(due_h, HOURS if hours is None else hours), restart_s=restart_h * HOUR)
    return kilowatt_cluster([job], [4], [ONE, TWO, FOUR], base_w)


def timer_h(instance: Instance, held: int = -1, *, done: float = 0.0, started: bool = False, now_h: float = 0.0):
    """Return the timer of the one job [h], which holds configuration `held` and has done so many epochs."""
    state = State(instance)
    state.advance()
    board = state.board
    board.jobs[0, [at.CONFIG, at.EPOCHS, at.START_S]] = held, done, 0.0 if started else np.nan
    board.clock[at.NOW] = now_h * HOUR
    return due_date_timer_s(board, 0) / HOUR


@pytest.mark.parametrize(
    ("due_h", "timer"),
    [
        (20.0, 20.0 - 1.009 * 10.0),  # one GPU must start at 10 h
        (10.11, 0.02),
        (10.09, 10.09 - 1.009 * 6.0),  # one GPU has less than 1 % left: two must start at 4.09 h
        (6.05, 6.05 - 1.009 * 4.0),
        (4.05, 4.05 - 1.009 * 4.0),
        (4.03, NEVER),  # four GPUs have less than 1 % left: nothing to wait for
        (3.0, NEVER),
    ],
)
def test_a_job_that_waits_is_asked_when_the_cheapest_must_start(due_h, timer):
    assert timer_h(with_job(due_h)) == pytest.approx(timer)


def test_time_and_epochs_that_are_gone_count():
    """At 3 h with half of the epoch done one GPU needs 5 h more: it must start at 20 h - 1.009 · 5 h."""
    assert timer_h(with_job(20.0), done=0.5, now_h=3.0) == pytest.approx(20.0 - 5.045)


def test_cheapest_is_meant_in_full_nodes():
    """A node draws 1 kW besides: alone on it two GPUs (18 €) are cheaper than one (20 €).

    In full nodes a GPU costs 1.25 €/h, and one is the cheapest again (12.5 €).
    """
    assert timer_h(with_job(20.0, base_w=1000.0)) == pytest.approx(20.0 - 10.09)


def test_a_configuration_that_the_job_may_not_use_does_not_count():
    assert timer_h(with_job(20.0, hours={TWO: 6.0, FOUR: 4.0})) == pytest.approx(20.0 - 6.054)


@pytest.mark.parametrize(
    ("held", "due_h"), [(0, 10.0), (0, 20.0), (1, 6.0), (2, 4.0), (0, 4.03), (1, 3.0), (2, 3.9)]
)  # the last three: nothing is in time any more
def test_a_job_in_time_as_it_runs_or_late_in_any_case_needs_no_wake_up(held, due_h):
    assert timer_h(with_job(due_h), held) == NEVER


def test_a_job_that_runs_too_slowly_is_asked_when_it_must_change_over():
    """On one GPU, due at 8 h: two are next. After 4.9316 h it has 0.50684 to do: 3.0410 h on two, 3.0684 with 0.9 %."""
    timer = timer_h(with_job(8.0), 0)
    assert timer == pytest.approx(4.93158, abs=1e-5)
    assert timer + 1.009 * (1.0 - timer / 10.0) * 6.0 == pytest.approx(8.0)


def test_a_job_that_runs_too_slowly_changes_over_to_what_is_in_time_now():
    """On two GPUs, due at 5 h: only four are in time. s + 1.009 · (1 - s / 6) · 4 = 5 at s = 2.9450."""
    assert timer_h(with_job(5.0), 1) == pytest.approx(0.964 / (1.0 - 4.036 / 6.0))


def test_restarts_on_the_way_are_taken_off_the_time_left():
    """They take 0.1 h: none before the first start, one after a pause, two if it runs (now, perhaps, and then)."""
    instance = with_job(20.0, restart_h=0.1)
    assert timer_h(instance) == pytest.approx(20.0 - 10.09)
    assert timer_h(instance, started=True) == pytest.approx(19.9 - 10.09)
    late = with_job(8.0, restart_h=0.1)
    assert timer_h(late, 0, started=True) == pytest.approx((7.8 - 6.054) / (1.0 - 6.054 / 10.0))


def test_the_state_knows_every_jobs_cheapest_configuration_in_full_nodes_once_it_is_submitted():
    """A node draws 1 kW besides; alone on it two GPUs would be cheaper than one for the first job."""
    later = replace(hours_job(20.0, {TWO: 6.0, FOUR: 2.0}), submission_s=5.0)
    state = State(kilowatt_cluster([hours_job(20.0, HOURS), later], [4], [ONE, TWO, FOUR], 1000.0))
    state.advance()
    columns = [at.CHEAPEST, at.CHEAPEST_TAU]
    np.testing.assert_array_equal(state.view.jobs[:, columns], [[0, 10.0 * HOUR], [np.nan, np.nan]])
    state.begin_round(preemption=True)
    state.commit_round()
    state.advance()
    np.testing.assert_array_equal(state.view.jobs[:, columns], [[0, 10.0 * HOUR], [2, 2.0 * HOUR]])


def test_where_energy_is_free_the_fastest_counts_as_cheapest():
    state = State(replace(with_job(20.0), energy_price_eur_per_kwh=0.0))
    state.advance()
    assert state.view.jobs[0, [at.CHEAPEST, at.CHEAPEST_TAU]].tolist() == [2, 4.0 * HOUR]


def test_an_environment_asks_at_these_times():
    """Waiting, the job is asked when one, two and four GPUs must start (due at 20 h), and then every hour."""
    env = AnyInstance(with_job(20.0), milestones=0, due_date_timers=True)
    env.reset()
    times = [env.step(0)[4]["time_s"] / HOUR for _ in range(5)]
    assert times == pytest.approx([20.0 - 10.09, 20.0 - 6.054, 20.0 - 4.036, 16.964, 17.964])


def test_a_decision_takes_the_place_of_a_wake_up_that_was_asked_for():
    env = AnyInstance(with_job(20.0), milestones=0, due_date_timers=True)
    env.reset()
    env.set_timer(0, 60.0)
    assert env.step(0)[4]["time_s"] / HOUR == pytest.approx(20.0 - 10.09)


def test_without_preemption_a_job_that_runs_brings_rounds_for_those_that_wait():
    """Job 0 runs on one GPU, too slowly; job 1 waits. At 4.9316 h, when job 0 should change over, job 1 is asked."""
    instance = kilowatt_cluster([hours_job(8.0, HOURS), hours_job(99.0, HOURS)], [4], [ONE, TWO, FOUR])
    env = AnyInstance(instance, milestones=0, due_date_timers=True, preemption=False)
    env.reset()
    env.step(1)
    info = env.step(0)[4]
    assert (info["job"], info["time_s"] / HOUR) == (1, pytest.approx(4.93158, abs=1e-5))


def test_a_job_that_is_faster_than_planned_is_not_asked_again_and_again():
    """Half a GPU takes 10 h beside another job, 5 h alone, as here; due at 4.5 h: it plans to change over to 4 h.

    At each timer it has done twice as much as was planned, so it has time left, two thirds of what it had before.
    """
    gpu_type = GpuType("V", 1000.0, 0.0, 16.0, 4)
    job = Job(0.0, 4.5 * HOUR, 0.01, 1.0, CERTAIN, 1.0, {HALF: 5.0 * HOUR, FOUR: 4.0 * HOUR})
    twice = Interference(np.full((1, 1, 1), 2.0))
    instance = Instance.from_jobs([gpu_type], [Node("V", 4)], [job], [HALF, FOUR], interference=twice)
    env = AnyInstance(instance, milestones=0, due_date_timers=True)
    env.reset()
    times, over = [0.0], False
    while not over:
        _, _, over, _, info = env.step(1)
        times.append(info["time_s"] / HOUR)
    assert times[-1] == pytest.approx(5.0)
    assert 5 < len(times) < 20


def alone(seed: int, restart_s: float) -> Instance:
    instance = random_instance(seed, jobs=1, restart_s=restart_s, kinds=seed % 2 == 1, interference=seed % 4 == 3)
    return replace(instance, jobs=replace(instance.jobs, epochs_needed=instance.jobs.max_epochs))


def cheapest_in_time(state: State, time_left: float) -> int:
    """Return the cheapest configuration in full nodes that has `LEAST_MARGIN` to spare in so many seconds; -1: none."""
    jobs, tau = state.view.jobs, state.view.tau[0].tolist()
    rate = state.view.least_rate[int(jobs[0, at.APPLICATION])].tolist()
    left = float(jobs[0, at.MAX_EPOCHS] - jobs[0, at.EPOCHS])
    in_time = [c for c in range(len(tau)) if (1.0 + LEAST_MARGIN) * left * tau[c] < time_left]
    return min(in_time, key=lambda c: tau[c] * rate[c], default=-1)


def until_the_next_event(state: State, config: int, timer_s: float | None = None) -> bool:
    """Return job 0 a configuration (-1: none) until the next event; say whether it has work left.

    It wakes at `timer_s`, by default in time for its due date.
    """
    view = state.view
    state.begin_round(preemption=True)
    assert config < 0 or view.place(0, config)
    view.set_timer(0, due_date_timer_s(state.board, 0) if timer_s is None else timer_s)
    state.commit_round()
    return state.advance()


def assert_in_time(state: State) -> None:
    assert state.view.jobs[0, at.END_S] <= state.view.jobs[0, at.DUE] + 1e-6


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000), restart_s=st.sampled_from([0.0, 5.0, 50.0]), paused=st.booleans())
def test_a_job_that_waits_until_it_is_asked_and_takes_the_cheapest_meets_its_due_date(seed, restart_s, paused):
    """It needs all its epochs. With `paused` it ran for two seconds before, and coming back costs a restart."""
    state = State(alone(seed, restart_s))
    state.advance()
    if paused:
        assume(until_the_next_event(state, 0, state.view.now_s + 2.0))
    jobs, view, before = state.view.jobs, state.view, state.view.now_s
    overhead = restart_s if paused else 0.0
    chosen = cheapest_in_time(state, jobs[0, at.DUE] - before - overhead)
    assume(chosen >= 0)
    assert until_the_next_event(state, -1)
    assert view.now_s > before
    seconds = (jobs[0, at.MAX_EPOCHS] - jobs[0, at.EPOCHS]) * view.tau[0, chosen]
    assert jobs[0, at.DUE] - view.now_s - overhead - seconds == pytest.approx(MARGIN * seconds, abs=1e-6)
    assert not until_the_next_event(state, chosen)
    assert_in_time(state)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    restart_s=st.sampled_from([0.0, 5.0, 50.0]),
    again=st.booleans(),
    which=st.integers(0, 99),
)
def test_a_job_that_runs_too_slowly_until_it_is_asked_and_changes_over_meets_its_due_date(
    seed, restart_s, again, which
):
    """It needs all its epochs. With `again` it ran for two seconds before: its slow time begins by a restart."""
    state = State(alone(seed, restart_s))
    state.advance()
    if again:
        assume(until_the_next_event(state, 0, state.view.now_s + 2.0))
    jobs, view, before = state.view.jobs, state.view, state.view.now_s
    left, time_left = jobs[0, at.MAX_EPOCHS] - jobs[0, at.EPOCHS], jobs[0, at.DUE] - before
    slow = [c for c in range(view.tau.shape[1]) if time_left + 1e-6 < left * view.tau[0, c] < np.inf]
    chosen = cheapest_in_time(state, time_left - 2.0 * restart_s)
    assume(slow and chosen >= 0)
    if until_the_next_event(state, slow[which % len(slow)]):  # else it was faster than planned, alone on a shared GPU
        assert before < view.now_s < jobs[0, at.DUE]
        assert not until_the_next_event(state, chosen)
    assert_in_time(state)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    preemption=st.booleans(),
    kinds=st.booleans(),
    restart_s=st.sampled_from([0.0, 5.0]),
    milestones=st.sampled_from([0, 4]),
)
def test_episodes_with_wake_ups_end_and_no_two_rounds_crowd(seed, preemption, kinds, restart_s, milestones):
    """Jobs mostly go on as they are, so that many are asked again because of their due dates."""
    instance = random_instance(seed, restart_s=restart_s, kinds=kinds, interference=kinds)
    env = AnyInstance(instance, preemption=preemption, milestones=milestones, due_date_timers=True)
    rng, info, over, times = np.random.default_rng(seed), env.reset()[1], False, [0.0]
    while not over:
        keeps = int(env.view.jobs[env.job, at.OLD_CONFIG]) + 1
        allowed = np.flatnonzero(info["action_mask"])
        action = keeps if keeps in allowed and rng.random() < 0.9 else int(rng.choice(allowed))
        _, _, over, _, info = env.step(action)
        if info["time_s"] > times[-1]:
            times.append(info["time_s"])
    assert env.view.count[at.DONE] == len(instance.jobs)
    assert min(after - before for before, after in itertools.pairwise(times)) > 1e-6
