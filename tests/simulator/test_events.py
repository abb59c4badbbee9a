"""Events: submissions, completions, timers, milestones, reviews, and their times."""

from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import DispatchPolicy, RandomGreedy, edf
from gpusched_env import StalledError, simulate
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator import layout as at
from instances import HOUR, random_instance, three_jobs
from refusals import refused


def begun(*, milestones: int = 0, review_s: float | None = None) -> State:
    """Begin a run of the three jobs: all submitted at 0, A on one GPU of node 0, the others waiting."""
    state = State(three_jobs(), Asking(milestones=milestones), review_s=review_s)
    assert state.advance()
    state.begin_round(preemption=False)
    state.view.place(0, 0)
    return state


def next_round(state: State) -> float:
    state.commit_round()
    assert state.advance()
    state.begin_round(preemption=False)
    return state.view.now_s


def test_the_next_event_is_the_completion():
    """A needs two of its four epochs, an hour each."""
    state = begun()
    assert next_round(state) == 2 * HOUR
    assert state.view.jobs[0, at.END_S] == 2 * HOUR
    assert state.view.active.tolist() == [1, 2]


@pytest.mark.parametrize("wait_s", [1e-3, 0.5, 1800.0])
def test_a_wake_up_is_an_event_once(wait_s):
    state = begun()
    state.view.set_timer(0, wait_s)
    assert next_round(state) == wait_s
    assert state.view.jobs[0, at.EPOCHS] == pytest.approx(wait_s / HOUR)
    assert next_round(state) == 2 * HOUR


def test_milestones_and_reviews_are_events_and_a_wake_up_in_the_past_is_none():
    state = begun()
    state.view.set_timer(0, 0.0)
    assert next_round(state) == 2 * HOUR
    # Eight milestones of four epochs: every half hour, until A is done after two epochs.
    state = begun(milestones=8)
    assert [next_round(state) for _ in range(4)] == [0.5 * HOUR, 1.0 * HOUR, 1.5 * HOUR, 2.0 * HOUR]
    state = begun(review_s=0.75 * HOUR)
    assert [next_round(state) for _ in range(3)] == [0.75 * HOUR, 1.5 * HOUR, 2.0 * HOUR]


def test_a_review_interval_that_rounds_badly_ends():
    assert np.isfinite(simulate(random_instance(0), edf(), review_s=0.7).total_eur)


def test_rounding_does_not_tear_a_wake_up_from_the_completion_it_was_set_for():
    """A timer just before the end belongs to the completion: the job is not asked again."""
    state = begun()
    state.view.set_timer(0, 2 * HOUR * (1 - 1e-16) - 1e-12)
    next_round(state)
    assert not np.isnan(state.view.jobs[0, at.END_S])


def test_a_policy_that_never_starts_a_job_is_stopped():
    class Lazy(DispatchPolicy):
        def decide(self, view, rng):
            """Do nothing."""

    with pytest.raises(StalledError, match="lazy leaves 3 jobs waiting"):
        simulate(three_jobs(), Lazy("lazy", "due"))


@pytest.mark.parametrize("seed", [-1, 1.5, "0", None, True, 2**63])
def test_a_seed_that_is_no_whole_number_in_range_is_refused(seed):
    with refused("seed", seed, ">= 0 and < 2^63"):
        simulate(three_jobs(), edf(), seed=seed)


@pytest.mark.parametrize("policy", ["edf", edf, DispatchPolicy, None])
def test_what_is_no_policy_is_refused_with_what_makes_one(policy):
    with refused("policy", policy, "make_policy"):
        simulate(three_jobs(), policy)


def test_what_simulate_takes():
    with refused("instance", "tiny", "make_instance"):
        simulate("tiny", edf())
    assert simulate(three_jobs(), edf(), seed=np.int64(2**63 - 1)).seed == 2**63 - 1
    with refused("job_order", "first", "1 finite number, one for each active job$"):
        simulate(random_instance(0, jobs=1), DispatchPolicy("bad", lambda _: "first"))
    rule = DispatchPolicy("last", lambda jobs: np.where(jobs.due_s > 2 * HOUR, np.inf, 0.0))
    assert simulate(three_jobs(), rule).start_s[2] == 0.0


@pytest.mark.parametrize(
    "keys", [["a", "b", "c"], [1.0, float("nan"), 2.0], [1, 2], [[1], [2, 3], [4]], None, 7.0, [1j, 2j, 3j]]
)
def test_a_rule_that_gives_no_number_for_each_job_is_refused(keys):
    with refused("job_order", keys, "3 finite numbers, one for each active job$"):
        simulate(three_jobs(), DispatchPolicy("bad", lambda _: keys))


def test_free_energy_is_not_taken_for_standing_still():
    """At a price of 0 nothing costs anything while it runs, for more events than a stalled run would be given."""
    free = replace(random_instance(0, jobs=40, span_s=0.0), energy_price_eur_per_kwh=0.0)
    assert simulate(free, edf(), review_s=0.02).energy_eur == 0.0


def test_a_policy_that_wakes_often_and_starts_late_is_not_stopped():
    """It looks every 10 s, 20,000 times, before it starts the jobs."""

    class Patient(DispatchPolicy):
        def decide(self, view, rng):
            if view.now_s < 2e5:
                view.set_timer(int(view.active[0]), view.now_s + 10.0)
            else:
                super().decide(view, rng)

    assert simulate(three_jobs(), Patient("patient", "due")).start_s.min() >= 2e5


@pytest.mark.parametrize("review_s", [0.0, 1.1e12])
def test_a_wrong_review_interval_is_named(review_s):
    with refused("review_s", review_s):
        State(three_jobs(), review_s=review_s)


def test_what_a_policy_may_do_is_checked():
    state = begun()
    view = state.view
    with refused("job", 7):
        view.place(7, 0)
    with refused("configuration", 2):
        view.place(1, 2)
    with refused("job", -1):
        view.release(-1)
    for time_s in (float("nan"), -5.0, 1.1e12):
        with refused("time_s", time_s):
            view.set_timer(1, time_s)
    assert view.place(1, 0)
    assert not view.place(2, 1)
    assert view.waiting.tolist() == [2]
    view.release(1)
    assert view.waiting.tolist() == [1, 2]


def test_the_log_grows_as_needed():
    instance = random_instance(1, jobs=40, nodes=3)
    result = simulate(instance, RandomGreedy(constructions=50), review_s=5.0)
    assert len(result.log) > 4 * len(instance.jobs)
    assert result.log[:, at.LOG_EPOCHS].sum() == pytest.approx(instance.jobs.epochs_needed.sum())
