"""Samples follow the distribution given the epochs done."""

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines.rollout_policy.samples import SampledArrivals, needed, sample_outcome, uniforms
from gpusched_baselines.rollout_policy.simulation import new_copy
from gpusched_env import Configuration, EpochDistribution, Instance, Job
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from small_instances import kilowatt_cluster

ONE = Configuration("V", 1)
HALVES = EpochDistribution(np.array([0.0, 0.5, 0.75, 1.0]), np.array([1.0, 0.5, 0.25]))  # 50, 75 or 100 of 100 epochs


def begun(times: tuple[float, ...] = (0.0, 0.0)) -> State:
    """Open the first round of jobs of 100 epochs of a second, all submitted except those of later `times`."""
    jobs = [Job(time, 1e4, 0.001, 100.0, HALVES, 100.0, {ONE: 1.0}) for time in times]
    return begin_run(kilowatt(jobs))


def kilowatt(jobs: list[Job]) -> Instance:
    return kilowatt_cluster(jobs, (2,), (ONE,))


@pytest.mark.parametrize(
    ("done", "shares"), [(0.0, (0.5, 0.25, 0.25)), (50.0, (0.0, 0.5, 0.5)), (80.0, (0.0, 0.0, 1.0))]
)
def test_epochs_needed_follow_the_distribution_given_those_done(done, shares):
    board = begun().board
    board.jobs[0, at.EPOCHS] = done
    found = [needed(board, 0, u) for u in (np.arange(400) + 0.5) / 400]
    assert [found.count(epochs) / 400 for epochs in (50.0, 75.0, 100.0)] == pytest.approx(shares, abs=0.003)


def test_draws_of_a_job_are_even():
    drawn = uniforms(np.random.default_rng(3), 5, 40)
    np.testing.assert_array_equal(np.sort((drawn * 5).astype(int), axis=0), np.tile(np.arange(5)[:, None], (1, 40)))


def test_a_job_that_runs_will_be_complete_when_its_sampled_epochs_are_done():
    """After 10 s at a second an epoch, 50 epochs end at 50 s."""
    state = begun((0.0, 10.0))
    state.view.place(0, 0)
    state.commit_round()
    state.advance()
    state.begin_round(True)
    copy = new_copy(state.board, 0)
    outcome = np.zeros((2, at.OUTCOME_COLUMNS))
    sample_outcome(copy.start, np.array([0.9, 0.1]), outcome)
    np.testing.assert_array_equal(outcome, [[50.0, 50.0], [100.0, np.inf]])


def test_jobs_that_may_come_are_like_those_that_came_at_the_rate_at_which_they_came():
    """Jobs arrived at 0 s and 10 s: so they arrive every 10 s in the mean, with the same time to the due date."""
    state = begun((0.0, 10.0))
    state.commit_round()
    state.advance()
    state.begin_round(True)
    copy = new_copy(state.board, 50)
    arrivals, outcome = SampledArrivals(state.board, copy, np.random.default_rng(0), 200), np.full((52, 2), np.nan)
    arrivals.come(copy, 7, outcome)
    rows = copy.hidden.jobs[2:]
    assert np.all(rows[:, at.SUBMISSION] > 10.0)
    assert np.all(np.diff(rows[:, at.SUBMISSION]) >= 0.0)
    assert set(np.round(rows[:, at.DUE] - rows[:, at.SUBMISSION], 6)) == {1e4, 1e4 - 10.0}
    assert set(outcome[2:, at.NEEDED]) == {50.0, 75.0, 100.0}
    assert arrivals.jobs[:, -1, at.SUBMISSION].mean() == pytest.approx(510.0, rel=0.05)
