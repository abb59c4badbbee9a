"""Futures in which nodes fail: what is drawn, forecasts against Daly's formula, and policies that simulate them."""

from __future__ import annotations

import numpy as np
import pytest

from failing_nodes import DAY, HOUR, ONE, cluster
from gpusched_baselines import make_policy
from gpusched_baselines.rollout_policy.simulation import new_copy, with_future
from gpusched_env import InputError, Instance, load_scenario, make_instance, simulate
from gpusched_env.mechanisms.failures import state as of
from gpusched_env.mechanisms.failures.checkpoints import expected_factor
from gpusched_env.mechanisms.failures.futures import draw, new_job_rows
from gpusched_env.mechanisms.failures.model import NAME, Expected, Failures
from gpusched_env.simulator import State
from gpusched_env.simulator.builds import FORCED, with_mechanisms
from gpusched_operations.forecast import ArrivalModel, ForecastSettings, forecast


@pytest.fixture(autouse=True)
def _smallest_build(monkeypatch):
    """Use the smallest builds, since no other test has one with this mechanism."""
    monkeypatch.setenv(FORCED, "")


def state_at(instance: Instance, time_s: float) -> State:
    """Return the state before the round at the first event from a time on [s], under EDF."""
    policy, state = make_policy("edf"), State(instance)
    while state.advance() and state.view.now_s < time_s:
        state.begin_round(policy.preemption)
        policy.decide(state.view, np.random.default_rng(0))
        state.commit_round()
    return state


def end_s(state: State, samples: int = 1, **settings: object) -> np.ndarray:
    """Return the ends of the jobs in rollouts of EDF [s], (D, A)."""
    own = ForecastSettings(samples, **settings)  # type: ignore[arg-type]
    return forecast(state, make_policy("edf"), np.random.default_rng(0), own).outcomes.end_s


def hours(state: State, samples: int = 1, **settings: object) -> np.ndarray:
    return end_s(state, samples, **settings) / HOUR


FAILING = Expected(0.0, HOUR)


class TestDrawnOutages:
    def test_a_node_that_is_announced_goes_down_then_and_one_that_is_down_comes_back(self):
        instance = cluster([(0, 1.0, 4.0, 9.0), (1, 2.0, 2.0, 50.0)], (0.0, 20.0, ONE), (2.5, 5.0, ONE), nodes=3,
                           expected=(FAILING,))  # fmt: skip
        state = state_at(instance, 2.4 * HOUR)
        assert state.view.now_s == 2.5 * HOUR
        rows = draw(state.board, np.inf, np.random.default_rng(0))["timeline"]
        assert int(state.board.passed[0]) == 2  # the notice of node 0, and the failure of node 1
        events = [(int(row[of.NODE]), int(row[of.EVENT])) for row in rows[2:]]
        assert sorted(events) == [(0, of.UP), (0, of.DOWN), (1, of.UP)]  # no node fails again: the rate is 0
        down = next(row for row in rows[2:] if row[of.EVENT] == of.DOWN)
        assert down[[of.TIME, of.DOWN_S, of.ROW_STOPS]].tolist() == [4.0 * HOUR, HOUR, 1.0]
        assert (rows[2:, of.TIME] >= 2.5 * HOUR).all()

    def test_nodes_are_down_for_the_expected_part_of_the_time(self):
        state = State(cluster([], nodes=50, expected=(Expected(2.0, 3.0 * HOUR),)))
        down_s, events = down_times(state, 50)
        assert down_s / (50 * 40.0 * DAY) == pytest.approx(3.0 / (12.0 + 3.0), rel=0.05)
        assert set(events) == {of.UP, of.DOWN}

    def test_spot_nodes_leave_with_notice_and_come_back(self):
        """8 h and a notice of 1 h in use, 3 h away."""
        state = State(cluster([], nodes=50, expected=(Expected(0.0, HOUR, 3.0, HOUR, 3.0 * HOUR),)))
        down_s, events = down_times(state, 50)
        assert down_s / (50 * 40.0 * DAY) == pytest.approx(3.0 / (9.0 + 3.0), rel=0.05)
        assert set(events) == {of.UP, of.NOTICE, of.DOWN}

    def test_what_is_expected_must_be_known(self):
        state = state_at(cluster([(1, 0.5, 0.5, 9.0)], (0.0, 9.0, ONE), (1.0, 5.0, ONE)), 0.9 * HOUR)
        with pytest.raises(InputError, match=r"failures.expected = None"):
            end_s(state)

    def test_expectations_are_checked(self):
        with pytest.raises(InputError, match=r"failures.expected.*1 values"):
            cluster([], expected=(FAILING, FAILING))
        with pytest.raises(InputError, match=r"failures.expected\[0\].repair_s"):
            Failures((), (0.0,), expected=(Expected(0.0, 0.0),))
        with pytest.raises(InputError, match=r"failures.expected\[0\].leave_per_day"):
            Failures((), (0.0,), expected=(Expected(0.0, 1.0, -1.0),))

    def test_a_scenario_has_them_unless_there_are_spare_nodes(self):
        scenario = load_scenario("track:failures")
        own = make_instance(scenario, 0).of(Failures)
        assert tuple(each.fail_per_day + each.leave_per_day for each in own.expected) == own.per_node_day
        assert Failures.of_fields(own.fields()) == own
        spare = scenario.replace({"failures.spares": 1})
        assert make_instance(spare, 0).of(Failures).expected is None


def down_times(state: State, nodes: int) -> tuple[float, list[float]]:
    """Return the seconds in which nodes are down within 40 days of a drawn future, and its events."""
    rows, total = draw(state.board, 40.0 * DAY, np.random.default_rng(1))["timeline"], 0.0
    for node in range(nodes):
        own = rows[(rows[:, of.NODE] == node) & (rows[:, of.EVENT] != of.NOTICE)]
        assert (np.diff(own[:, of.TIME]) >= 0.0).all()
        assert (own[::2, of.EVENT] == of.DOWN).all()
        assert (own[1::2, of.EVENT] == of.UP).all()
        total += (np.minimum(own[1::2, of.TIME], 40.0 * DAY) - own[::2, of.TIME]).sum()
    return total, rows[:, of.EVENT].tolist()


class TestForecastsWithFailures:
    def test_the_mean_end_is_that_of_dalys_formula(self):
        work, per_day, repair_s, writing_s = 30.0, 3.0, 0.25 * HOUR, 180.0
        instance = cluster(
            [], (0.0, work, ONE), nodes=1, per_day=per_day, writing_s=writing_s, expected=(Expected(per_day, repair_s),)
        )
        found = end_s(state_at(instance, 0.0), 1000, seed=5).mean()
        # A restart begins once the node is up again: each failure costs the repair and the restart.
        between_s = DAY / per_day
        factor = expected_factor(HOUR, writing_s, between_s, 300.0)
        failures = work * HOUR * factor / between_s
        assert found == pytest.approx(work * HOUR * factor + failures * repair_s, rel=0.03)

    def test_announced_outages_lose_no_work(self):
        """A node leaves every 4 h, with notice for a checkpoint: each time a restart, and no work is lost."""
        instance = cluster(
            [], (0.0, 40.0, ONE), nodes=1, per_day=6.0, planned=False, writing_s=0.0, interval_s=50.0 * HOUR,
            expected=(Expected(0.0, HOUR, 6.0, 60.0, 0.5 * HOUR),),
        )  # fmt: skip
        found = hours(state_at(instance, 0.0), 400, seed=2).mean()
        # No node takes jobs in its minute of notice, in which a job that runs goes on.
        assert found == pytest.approx(40.0 + 40.0 / 4.0 * (0.5 + 300.0 / 3600.0), rel=0.03)

    def test_the_next_outages_change_nothing(self):
        jobs = (0.0, 9.0, ONE), (0.2, 5.0, ONE), (1.0, 7.0, ONE)
        ends = []
        for later in ((0, 3.0, 3.0, 90.0), (1, 1.5, 2.5, 4.0)):
            instance = cluster([(1, 0.5, 0.5, 1.25), later], *jobs, expected=(Expected(2.0, HOUR),))
            ends.append(end_s(state_at(instance, 0.9 * HOUR), 20))
        assert (ends[0] == ends[1]).all()
        assert np.isfinite(ends[0]).all()
        assert (np.ptp(ends[0], axis=0) > HOUR).all()

    @pytest.mark.parametrize("up", [2.5, 7.0])
    def test_between_a_notice_and_its_outage_the_forecast_is_the_run(self, up):
        """The node empties at 2.5 h: at once it is up again, or for long; there is another one for the job."""
        instance = cluster([(0, 2.0, 2.5, up)], (0.0, 10.0, ONE), (2.45, 1.0, ONE), expected=(Expected(0.0, HOUR),))
        state = state_at(instance, 2.2 * HOUR)
        assert state.view.now_s == 2.45 * HOUR
        run = simulate(instance, make_policy("edf"))
        if up == 2.5:
            assert end_s(state, 3) == pytest.approx(np.tile(run.completion_s, (3, 1)))
        else:  # how long it is down is drawn, and nothing that was done is lost
            assert (end_s(state, 3)[:, 1] == run.completion_s[1]).all()
            assert (end_s(state, 50)[:, 0] > run.completion_s[0] - 4.0 * HOUR).all()
            assert end_s(state, 50)[:, 0].min() < run.completion_s[0]

    def test_without_failures_to_come_all_rollouts_are_the_run(self):
        instance = cluster([(1, 0.5, 0.5, 1.0)], (0.0, 9.0, ONE), (1.0, 5.0, ONE), expected=(FAILING,))
        state = state_at(instance, 0.9 * HOUR)
        rolled = end_s(state, 5)
        run = simulate(instance, make_policy("edf"))
        # Node 1 is up again at 1 h, which the state shows already.
        assert rolled == pytest.approx(np.tile(run.completion_s, (5, 1)))

    def test_jobs_to_come_have_rows_of_their_own(self):
        instance = make_instance(load_scenario("track:failures"), 3)
        state = state_at(instance, 20.0 * HOUR)
        arrivals = ArrivalModel.of_history(state.board)
        settings = ForecastSettings(2, seed=4, horizon_s=10.0 * HOUR)
        made = forecast(state, make_policy("edf"), np.random.default_rng(0), settings, arrivals)
        assert (made.outcomes.came > 0).all()
        rows = new_job_rows(state.board, 3)["saved"]
        assert (rows == State(instance).board.saved[:3]).all()


class TestPoliciesThatSimulate:
    def test_they_run_where_nodes_fail(self):
        jobs = [(float(i) / 4.0, 3.0, ONE) for i in range(8)]
        outages = [(1, 0.5, 0.5, 2.0), (0, 4.0, 4.0, 5.0)]
        instance = cluster(outages, *jobs, expected=(Expected(1.0, HOUR),))
        for policy in ("rollout", "sts-x:tuned"):
            assert np.isfinite(simulate(instance, make_policy(policy)).completion_s).all()

    def test_each_sample_has_a_future_which_all_alternatives_share(self):
        state = state_at(cluster([], (0.0, 9.0, ONE), (1.0, 5.0, ONE), expected=(Expected(9.0, HOUR),)), 0.9 * HOUR)
        state.begin_round(True)
        copy = new_copy(state.board, 2)
        drawn = [with_future(copy, *key).hidden.timeline for key in ((1, 0), (1, 0), (1, 1), (2, 0))]
        assert drawn[0].tobytes() == drawn[1].tobytes()
        assert len({each.tobytes() for each in drawn}) == 3
        assert len(copy.start.saved) == len(copy.start.jobs) == 4

    def test_a_board_with_the_mechanism_and_no_failures_is_simulated(self):
        instance = make_instance(load_scenario("tiny"), 0)
        state = State(instance, build=with_mechanisms({NAME}))
        state.advance()
        assert np.isfinite(end_s(state, 2)).all()
        state.begin_round(True)
        assert len(with_future(new_copy(state.board, 2), 0, 0).hidden.timeline) == 0
