"""Futures in which nodes fail: what is drawn, forecasts against Daly's formula, and policies that simulate them."""

from __future__ import annotations

import numpy as np
import pytest

from failing_nodes import DAY, HOUR, ONE, cluster
from gpusched_baselines import make_policy
from gpusched_env import InputError, Instance, load_scenario, make_instance, simulate
from gpusched_env.mechanisms.failures import state as of
from gpusched_env.mechanisms.failures.checkpoints import expected_factor
from gpusched_env.mechanisms.failures.futures import draw
from gpusched_env.mechanisms.failures.model import Failures
from gpusched_env.simulator import State
from gpusched_env.simulator.builds import FORCED
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


class TestDrawnOutages:
    def test_a_node_that_is_announced_goes_down_then_and_one_that_is_down_comes_back(self):
        instance = cluster([(0, 1.0, 4.0, 9.0), (1, 2.0, 2.0, 50.0)], (0.0, 20.0, ONE), (2.5, 5.0, ONE), nodes=3,
                           outage_s=(HOUR,))  # fmt: skip
        state = state_at(instance, 2.4 * HOUR)
        assert state.view.now_s == 2.5 * HOUR
        rows = draw(state.board, np.inf, np.random.default_rng(0))["timeline"]
        assert int(state.board.passed[0]) == 2  # the notice of node 0, and the failure of node 1
        events = [(int(row[of.NODE]), int(row[of.EVENT])) for row in rows[2:]]
        assert sorted(events) == [(0, of.UP), (0, of.DOWN), (1, of.UP)]  # no node fails again: the rate is 0
        down = next(row for row in rows[2:] if row[of.EVENT] == of.DOWN)
        assert (down[of.TIME], down[of.STOPS]) == (4.0 * HOUR, 1.0)
        assert (rows[2:, of.TIME] >= 2.5 * HOUR).all()

    def test_nodes_are_down_for_the_expected_part_of_the_time(self):
        state = State(cluster([], nodes=50, per_day=2.0, outage_s=(3.0 * HOUR,)))
        rows = draw(state.board, 40.0 * DAY, np.random.default_rng(1))["timeline"]
        down_s = 0.0
        for node in range(50):
            own = rows[rows[:, of.NODE] == node]
            assert (np.diff(own[:, of.TIME]) >= 0.0).all()
            assert (own[::2, of.EVENT] == of.DOWN).all()
            assert (own[1::2, of.EVENT] == of.UP).all()
            ends = own[1::2, of.TIME] if len(own) % 2 == 0 else np.append(own[1::2, of.TIME], 40.0 * DAY)
            down_s += (np.minimum(ends, 40.0 * DAY) - own[::2, of.TIME]).sum()
        assert down_s / (50 * 40.0 * DAY) == pytest.approx(3.0 / (12.0 + 3.0), rel=0.05)

    def test_the_length_of_outages_must_be_known(self):
        state = state_at(cluster([(1, 0.5, 0.5, 9.0)], (0.0, 9.0, ONE), (1.0, 5.0, ONE)), 0.9 * HOUR)
        with pytest.raises(InputError, match=r"failures.outage_s"):
            end_s(state)

    def test_lengths_are_one_for_each_type(self):
        with pytest.raises(InputError, match=r"failures.outage_s.*1 numbers"):
            cluster([], outage_s=(1.0, 2.0))
        with pytest.raises(InputError, match=r"failures.outage_s\[0\]"):
            Failures((), (0.0,), outage_s=(0.0,))

    def test_a_scenario_has_them_unless_there_are_spare_nodes(self):
        scenario = load_scenario("track:failures")
        lengths = make_instance(scenario, 0).of(Failures).outage_s
        assert len(lengths) == 3
        spare = scenario.replace({"failures.spares": 1})
        assert make_instance(spare, 0).of(Failures).outage_s is None


class TestForecastsWithFailures:
    def test_the_mean_end_is_that_of_dalys_formula(self):
        work, per_day, outage_s, writing_s = 30.0, 3.0, 0.25 * HOUR, 180.0
        instance = cluster(
            [], (0.0, work, ONE), nodes=1, per_day=per_day, writing_s=writing_s, interval_s=HOUR, outage_s=(outage_s,)
        )
        found = end_s(state_at(instance, 0.0), 1000, seed=5).mean()
        # A restart begins once the node is up again: each failure costs the outage and the restart.
        between_s = DAY / per_day
        factor = expected_factor(HOUR, writing_s, between_s, 300.0)
        failures = work * HOUR * factor / between_s
        assert found == pytest.approx(work * HOUR * factor + failures * outage_s, rel=0.03)

    def test_the_next_outages_change_nothing(self):
        jobs = (0.0, 9.0, ONE), (0.2, 5.0, ONE), (1.0, 7.0, ONE)
        ends = []
        for later in ((0, 3.0, 3.0, 90.0), (1, 1.5, 2.5, 4.0)):
            instance = cluster([(1, 0.5, 0.5, 1.25), later], *jobs, per_day=2.0, outage_s=(HOUR,))
            ends.append(end_s(state_at(instance, 0.9 * HOUR), 20))
        assert (ends[0] == ends[1]).all()
        assert np.isfinite(ends[0]).all()
        assert (np.ptp(ends[0], axis=0) > HOUR).all()

    def test_without_failures_to_come_all_rollouts_are_the_run(self):
        instance = cluster([(1, 0.5, 0.5, 1.0)], (0.0, 9.0, ONE), (1.0, 5.0, ONE), outage_s=(HOUR,))
        state = state_at(instance, 0.9 * HOUR)
        rolled = end_s(state, 5)
        run = simulate(instance, make_policy("edf"))
        # Node 1 is up again at 1 h, which the state shows already.
        assert rolled == pytest.approx(np.tile(run.completion_s, (5, 1)))

    def test_jobs_to_come_fail_like_others(self):
        instance = make_instance(load_scenario("track:failures"), 3)
        state = state_at(instance, 20.0 * HOUR)
        arrivals = ArrivalModel.of_history(state.board)
        settings = ForecastSettings(2, seed=4, horizon_s=10.0 * HOUR)
        made = forecast(state, make_policy("edf"), np.random.default_rng(0), settings, arrivals)
        assert made.coming > 0
        assert np.isfinite(made.outcomes.energy_eur).all()


@pytest.mark.parametrize("policy", ["rollout", "sts-x:tuned"])
def test_policies_that_simulate_the_future_run_where_nodes_fail(policy):
    jobs = [(float(i) / 4.0, 3.0, ONE) for i in range(8)]
    instance = cluster([(1, 0.5, 0.5, 2.0), (0, 4.0, 4.0, 5.0)], *jobs, per_day=1.0, outage_s=(HOUR,))
    result = simulate(instance, make_policy(policy))
    assert np.isfinite(result.completion_s).all()
