"""An episode in which nothing runs is truncated after so many idle reviews; all others are as they were."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from gpusched_env import ENVIRONMENT_ID, GpuClusterEnv, StalledError, make_instance, rollout
from gpusched_env.simulator import Choice
from gpusched_env.simulator import layout as at
from refusals import refused
from vector_twins import few_jobs

JOBS = 3


def make(**settings: object) -> GpuClusterEnv:
    return GpuClusterEnv(few_jobs(JOBS), **settings)


def wait(env: GpuClusterEnv, seed: int = 0) -> list[tuple]:
    """Make every job wait until the episode is over; return all results of the steps."""
    env.reset(seed=seed)
    rows: list[tuple] = []
    while not rows or not (rows[-1][2] or rows[-1][3]):
        rows.append(env.step(0))
    return rows


@pytest.mark.parametrize("limit", [1, 2, 24])
def test_an_episode_of_waiting_is_truncated_after_so_many_reviews_an_hour_apart(limit):
    """All jobs are known at the last submission; the first review comes an hour later, each round asks all jobs."""
    env = make(**({} if limit == 24 else {"max_idle_reviews": limit}))
    rows = wait(env)
    last = env.instance.jobs.submission_s.max()
    assert rows[-1][4]["time_s"] == pytest.approx(last + 3600.0 * limit)
    assert rows[-1][2:4] == (False, True)
    assert [row[4]["stalled"] for row in rows] == [False] * (len(rows) - 1) + [True]
    reviews = [row for row in rows if row[4]["time_s"] > last]
    assert len(reviews) == (limit - 1) * JOBS + 1


def test_the_waiting_is_paid_for_and_the_last_infos_have_the_totals():
    env = make()
    rows = wait(env)
    jobs, info = env.instance.jobs, rows[-1][4]
    late_s = np.maximum(0.0, info["time_s"] - jobs.due_s)
    assert late_s.any()
    assert info["total_energy_eur"] == 0.0
    paid = float(np.sum(jobs.tardiness_weight_eur_per_s * late_s))
    assert info["total_tardiness_eur"] == pytest.approx(paid, rel=1e-12)
    assert sum(row[1] for row in rows) == pytest.approx(-info["total_tardiness_eur"], rel=1e-12)


def test_what_is_seen_at_the_end_is_what_the_agent_would_have_been_asked_next():
    """So a learner can put a value to what is left."""
    env, patient = make(), make(max_idle_reviews=None)
    rows = wait(env)
    patient.reset(seed=0)
    for row in rows:
        same = patient.step(0)
        assert all(np.array_equal(row[0][key], same[0][key]) for key in row[0])
        assert (row[1], row[2]) == same[1:3]
        assert row[4]["job"] == same[4]["job"] >= 0
        assert np.array_equal(row[4]["action_mask"], same[4]["action_mask"])
        assert not same[3]


def test_a_truncated_episode_has_to_be_reset_and_has_no_result():
    env = make()
    wait(env)
    for call in (lambda: env.step(0), env.result):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()
    _, info = env.reset(seed=1)
    assert not info["stalled"]
    assert not env.step(0)[3]


def test_a_job_that_runs_begins_the_count_anew():
    env = make(max_idle_reviews=3, milestones=0)
    _, info = env.reset(seed=0)
    last, idle = env.instance.jobs.submission_s.max(), []
    for _ in range(200):
        count = env.view.count
        next_is_third = count[at.IDLE] == 2 and count[at.ASKED] == 0
        action = int(np.flatnonzero(info["action_mask"])[-1]) if next_is_third else 0
        _, _, terminated, truncated, info = env.step(action)
        idle.append(int(env.view.count[at.IDLE]))
        if terminated or truncated:
            break
    assert terminated
    assert not truncated
    assert max(idle) == 2
    assert info["time_s"] > last


def test_waiting_for_jobs_that_are_still_to_come_is_no_stall():
    env = GpuClusterEnv(few_jobs(2, **{"arrivals.kind": "poisson", "arrivals.lambda_s": 1e6}), max_idle_reviews=1)
    rows = wait(env, seed=3)
    assert rows[-1][4]["time_s"] == pytest.approx(env.instance.jobs.submission_s.max() + 3600.0)


def test_without_a_limit_an_episode_goes_on():
    env = make(max_idle_reviews=None)
    env.reset(seed=0)
    assert not any(env.step(0)[3] for _ in range(400))
    assert env.max_idle_reviews is None


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "24"])
def test_a_limit_out_of_its_range_is_named(value):
    with refused("max_idle_reviews", value):
        make(max_idle_reviews=value)


def test_gymnasium_makes_it_by_name():
    env = gymnasium.make(ENVIRONMENT_ID, scenario=few_jobs(JOBS), max_idle_reviews=2)
    env.reset(seed=0)
    assert any(env.step(0)[3] for _ in range(20))


class Lazy:
    """Starts nothing until `hours` after the last submission."""

    name, preemption, job_order = "lazy", True, "pressure"

    def __init__(self, hours: float, last_s: float) -> None:
        self.until_s = last_s + 3600.0 * hours

    def decide(self, view, rng):
        pytest.fail("a policy that is rolled out is asked job by job")

    def choose(self, view, job):
        fits = np.flatnonzero(np.isfinite(view.board.tau[job]))
        late = view.clock[at.NOW] >= self.until_s
        return Choice(int(fits[0]) if late else -1, self.until_s if late else view.clock[at.NOW] + 3600.0, False)


def test_a_policy_that_is_rolled_out_may_wait_longer_than_an_agent():
    instance = make_instance(few_jobs(JOBS), 0)
    env = make(milestones=0)
    result, _ = rollout(env, Lazy(40.0, instance.jobs.submission_s.max()), instance=instance)
    assert result.start_s.min() >= 40 * 3600.0
    assert env.max_idle_reviews == 24


def test_a_policy_that_waits_for_ever_is_stopped_as_by_simulate():
    instance = make_instance(few_jobs(JOBS), 0)
    with pytest.raises(StalledError, match="policy lazy leaves 3 jobs waiting"):
        rollout(make(milestones=0), Lazy(1e9, 0.0), instance=instance)
