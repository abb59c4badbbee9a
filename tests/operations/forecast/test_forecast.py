"""Forecasts: worked out by hand, equal to the simulator where nothing is random, and the same however they are made."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_agents.any_policy import make_any_policy
from gpusched_env import Configuration, EpochDistribution, GpuType, Instance, Job, Node, simulate
from gpusched_env.mechanisms.cap.model import PowerCap
from gpusched_env.mechanisms.prices.model import DemandCharge, PriceSeries
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.policy import can_decide, memory_columns
from gpusched_operations.forecast import ArrivalModel, Draws, ForecastSettings, RollOuts, compiled, forecast, rollout
from gpusched_operations.forecast.draws import stratified
from gpusched_operations.forecast.forecast import json_cluster, json_difference, json_rows, quantiles_of
from instances import random_instance
from refusals import refused

if TYPE_CHECKING:
    from gpusched_env.simulator import Policy
    from gpusched_operations.forecast import Outcomes

ONE = Configuration("V", 1)
GPU = GpuType("V", gpu_power_w=900.0, node_base_power_w=100.0, memory_gib=16.0, max_gpus_per_node=1)
TENTHS = EpochDistribution.from_masses([1.0] * 10)
COMPILED = ("fifo", "edf", "edf:preemptive", "edf:conditional-mean", "sts", "sts:published", "atc", "las", "sts-x")


def tenths_job(submission_s: float = 0.0, due_s: float = 650.0) -> Job:
    """Make a job that needs 1 to 10 epochs, each as likely, of 100 s each."""
    return Job(submission_s, due_s, 0.01, 10.0, TENTHS, 10.0, {ONE: 100.0})


def instance_of(*jobs: Job, nodes: int = 1) -> Instance:
    """Make an instance of nodes of one GPU of 1 kW; a kWh costs 1 €."""
    return Instance.from_jobs([GPU], [Node("V", 1)] * nodes, jobs, energy_price_eur_per_kwh=1.0, pue=1.0)


def begun(instance: Instance, policy: Policy, submitted: int = 1) -> State:
    """Run until so many jobs are submitted, to just before the round."""
    state = State(instance, record=False, memory_columns=memory_columns(policy, instance))
    rng = np.random.default_rng(0)
    while state.advance() and (state.board.count[at.SUBMITTED] < submitted or not state.board.count[at.ACTIVE]):
        if state.board.count[at.ACTIVE]:
            state.begin_round(policy.preemption)
            policy.decide(state.view, rng)
            state.commit_round()
    return state


def outcomes_of(state: State, policy: Policy, draws: Draws, coming: int = 0, **settings: float) -> Outcomes:
    return RollOuts(state, policy, np.random.default_rng(0), coming).run_all(draws, **settings)  # type: ignore[arg-type]


def assert_same(one: Outcomes, other: Outcomes) -> None:
    for name in ("start_s", "end_s", "energy_eur", "tardiness_eur", "until_s", "came", "stalled"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


def test_the_quantiles_of_one_job_are_those_of_its_distribution():
    policy = make_any_policy("fifo")
    state = begun(instance_of(tenths_job()), policy)
    made = forecast(state, policy, np.random.default_rng(0), ForecastSettings(samples=100))
    np.testing.assert_allclose(made.end_s[:, 0], [100.0, 550.0, 1000.0], rtol=1e-12)
    assert made.start_s.tolist() == [[0.0], [0.0], [0.0]]
    assert made.late.tolist() == [0.4]  # it needs 7, 8, 9 or 10 epochs
    told = json_rows(made)[0]
    assert told["expected_energy_eur"] == pytest.approx(5.5 * 100.0 / 3600.0)  # 1 kW
    assert told["expected_kwh"] == pytest.approx(5.5 * 100.0 / 3600.0)
    assert told["expected_tardiness_eur"] == pytest.approx(0.01 * (50.0 + 150.0 + 250.0 + 350.0) / 10.0)
    assert json_cluster(made)["expected_late_jobs"] == pytest.approx(0.4)


def test_needs_are_drawn_given_the_epochs_done():
    policy = make_any_policy("fifo")
    needs_all = replace(instance_of(tenths_job(), tenths_job(450.0)))
    state = begun(needs_all, policy, submitted=2)
    assert state.board.clock[at.NOW] == 450.0
    made = forecast(state, policy, np.random.default_rng(0), ForecastSettings(samples=100))
    ends = np.unique(made.outcomes.end_s[:, 0], return_counts=True)
    np.testing.assert_allclose(ends[0], [500.0, 600.0, 700.0, 800.0, 900.0, 1000.0], rtol=1e-12)
    assert set(ends[1].tolist()) <= {16, 17}
    assert made.outcomes.energy_eur[:, 0].max() == pytest.approx(550.0 / 3600.0)  # from now on only


def test_the_second_of_two_jobs_on_one_gpu_starts_when_the_first_ends():
    policy = make_any_policy("fifo")
    state = begun(instance_of(tenths_job(), tenths_job()), policy, submitted=2)
    outcomes = outcomes_of(state, policy, Draws.of(state, stratified(3, 50, 2)))
    np.testing.assert_array_equal(outcomes.start_s[:, 1], outcomes.end_s[:, 0])
    assert len(np.unique(outcomes.end_s[:, 0])) == 10


@pytest.mark.parametrize("name", [*COMPILED, "greedy", "random-greedy", "time-slice", "gavel:las", "agent:default"])
def test_certain_needs_give_the_schedule_of_the_simulator(name: str):
    policy = make_any_policy(name)
    made = random_instance(5, jobs=6, span_s=1500.0, restart_s=20.0)
    table = made.jobs
    certain = replace(
        table,
        max_epochs=table.epochs_needed,
        distribution=np.zeros(len(table), dtype=np.int64),
        distributions=(EpochDistribution.certain(),),
    )
    instance = replace(made, jobs=certain)
    if not can_decide(policy, instance):
        instance = replace(instance_of(*(tenths_job(60.0 * i) for i in range(5)), nodes=2))
        one = replace(instance.jobs, distribution=np.zeros(5, dtype=np.int64), distributions=certain.distributions)
        instance = replace(instance, jobs=one)
        if not can_decide(policy, instance):
            pytest.skip(f"{name} decides on neither")
    result, checked = simulate(instance, policy, seed=0, record=False), []
    state = State(instance, record=False, memory_columns=memory_columns(policy, instance))
    rng = np.random.default_rng(0)
    while state.advance():
        if not state.board.count[at.ACTIVE]:
            continue
        if state.board.count[at.SUBMITTED] == len(instance.jobs) and len(checked) < 3:
            present = state.board.active[: state.board.count[at.ACTIVE]].copy()
            before = state.board.jobs.copy()
            found = forecast(state, policy, rng, ForecastSettings(samples=2)).outcomes
            np.testing.assert_array_equal(state.board.jobs, before)
            for draw in range(2):
                np.testing.assert_array_equal(found.end_s[draw], result.completion_s[present])
                np.testing.assert_array_equal(found.start_s[draw], result.start_s[present])
                energy = result.job_energy_eur[present] - before[present, at.ENERGY]
                np.testing.assert_array_equal(found.energy_eur[draw], energy)
            checked.append(present)
        state.begin_round(policy.preemption)
        policy.decide(state.view, rng)
        state.commit_round()
    assert checked


@pytest.mark.parametrize("kinds", [False, True])
@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_roll_out_is_that_of_its_policy(name: str, kinds: bool, monkeypatch: pytest.MonkeyPatch):
    policy = make_any_policy(name)
    state = begun(random_instance(7, jobs=10, span_s=2000.0, restart_s=30.0, kinds=kinds), policy, submitted=6)
    in_python = kinds and name == "sts-x"  # whose rates of shares follow the active jobs
    assert (compiled.compiled_run(policy, state.board) is None) == in_python
    arrivals = ArrivalModel.of_history(state.board)
    assert arrivals is not None
    present = int(state.board.count[at.ACTIVE])
    draws = Draws.of(state, stratified(1, 4, present), arrivals.drawn(state, 4, 5, 1))
    own = outcomes_of(state, policy, draws, 5)
    monkeypatch.setattr(rollout, "compiled_run", lambda *_: None)
    assert_same(own, outcomes_of(state, policy, draws, 5))


def test_under_a_cap_sts_x_chooses_limits_in_python():
    policy, made = make_any_policy("sts-x"), instance_of(tenths_job())
    assert compiled.compiled_run(policy, begun(made, policy).board) is not None
    assert compiled.compiled_run(policy, begun(made.with_mechanisms(PowerCap((0.0,), (5.0,))), policy).board) is None


def test_threads_and_the_time_there_is_decide_only_how_many_and_how_soon():
    policy = make_any_policy("edf")
    state = begun(random_instance(7, jobs=10, span_s=2000.0), policy, submitted=6)
    draws = Draws.of(state, stratified(1, 12, int(state.board.count[at.ACTIVE])))
    all_of_them = outcomes_of(state, policy, draws)
    assert_same(all_of_them, outcomes_of(state, policy, draws, threads=3))
    one = outcomes_of(state, policy, draws, longest_s=0.0)
    assert one.end_s.tolist() == all_of_them.end_s[:1].tolist()


def test_the_same_seed_gives_the_same_forecast_and_another_one_another():
    policy = make_any_policy("sts")
    state = begun(random_instance(7, jobs=10, span_s=2000.0), policy, submitted=6)

    def made(seed: int) -> Outcomes:
        settings = ForecastSettings(samples=8, seed=seed)
        like = ArrivalModel.of_history(state.board)
        return forecast(state, policy, np.random.default_rng(0), settings, like).outcomes

    assert_same(made(4), made(4))
    assert not np.array_equal(made(4).end_s, made(5).end_s)


def test_what_is_not_over_at_the_horizon_has_no_end_yet():
    policy = make_any_policy("fifo")
    state = begun(instance_of(tenths_job(), tenths_job(due_s=450.0)), policy, submitted=2)
    settings = ForecastSettings(samples=100, horizon_s=500.0)
    made = forecast(state, policy, np.random.default_rng(0), settings)
    assert np.isinf(made.end_s[2]).all()
    assert json_rows(made)[0]["end_s"] == [100.0, None, None]  # the 50th needs 5 epochs, the 51st more
    runs_on = np.isinf(made.outcomes.end_s[:, 0])
    assert runs_on.sum() == 50
    assert set(made.outcomes.until_s[runs_on].tolist()) == {500.0}
    np.testing.assert_allclose(made.outcomes.energy_eur[runs_on, 0], 500.0 / 3600.0)
    assert np.isnan(made.late[0])  # due after the horizon, and not always over by then
    assert made.late[1] == pytest.approx((made.outcomes.end_s[:, 1] > 450.0).mean())
    assert json_cluster(made)["expected_late_jobs"] == pytest.approx(made.late[1])


def test_jobs_to_come_do_not_delay_those_before_them_first_come_first_served():
    policy = make_any_policy("fifo")
    state = begun(instance_of(*(tenths_job(10.0 * i) for i in range(4)), nodes=2), policy, submitted=4)
    arrivals = ArrivalModel.of_history(state.board)
    assert arrivals is not None
    assert arrivals.per_s == pytest.approx(3 / 30.0)
    assert arrivals.like.tolist() == [1, 2, 3]
    settings = ForecastSettings(samples=20)
    alone = forecast(state, policy, np.random.default_rng(0), settings).outcomes
    among = forecast(state, policy, np.random.default_rng(0), settings, arrivals).outcomes
    np.testing.assert_allclose(among.end_s, alone.end_s, rtol=1e-12)
    assert among.came.min() > 0
    assert not alone.came.any()


def test_jobs_to_come_that_are_due_sooner_delay_the_others():
    policy = make_any_policy("edf")
    late_due = [tenths_job(0.0, 40_000.0), tenths_job(0.0, 50_000.0), tenths_job(10.0, 100.0)]
    state = begun(instance_of(*late_due), policy, submitted=3)
    settings = ForecastSettings(samples=20)
    urgent = ArrivalModel(1.0 / 500.0, np.array([2]))
    alone = forecast(state, policy, np.random.default_rng(0), settings).outcomes
    among = forecast(state, policy, np.random.default_rng(0), settings, urgent).outcomes
    assert among.end_s.mean() > alone.end_s.mean()
    np.testing.assert_allclose(among.end_s[:, 0], alone.end_s[:, 0], rtol=1e-12)  # it runs already


def test_jobs_to_come_arrive_at_the_rate_that_is_given():
    state = begun(instance_of(*(tenths_job(100.0 * i) for i in range(5)), nodes=5), make_any_policy("fifo"), 5)
    rows, tau, quantiles = ArrivalModel(0.01, np.arange(5)).drawn(state, 400, 50, 0)
    assert rows.shape[:2] == tau.shape[:2] == quantiles.shape == (400, 50)
    come = rows[..., at.SUBMISSION] - 400.0
    assert np.mean(come[:, -1]) == pytest.approx(5000.0, rel=0.05)
    assert np.std(come[:, -1]) == pytest.approx(100.0 * 50**0.5, rel=0.1)  # a Poisson process
    slack = rows[..., at.DUE] - rows[..., at.SUBMISSION]
    np.testing.assert_allclose(np.unique(slack.round(6)), [250.0, 350.0, 450.0, 550.0, 650.0])
    assert np.isnan(rows[..., at.START_S]).all()
    assert (rows[..., at.CONFIG] == -1.0).all()


def test_a_history_comes_again_in_pieces_at_a_mean_rate_as_uncertain_as_it_is_short():
    times = [0.0, 10.0, 10.0, 10.0, 400.0, 410.0, 410.0, 410.0, 800.0]  # bursts of four, every 400 s
    jobs = [tenths_job(time, due_s=time + 600.0 + i) for i, time in enumerate(times)]
    state = begun(instance_of(*jobs, nodes=9), make_any_policy("fifo"), 9)
    arrivals = ArrivalModel.of_history(state.board)
    assert arrivals is not None
    assert arrivals.gaps_s is not None
    assert arrivals.gaps_s.tolist() == np.diff(times).tolist()
    rows, _, _ = arrivals.drawn(state, 600, 80, 0)
    come = rows[..., at.SUBMISSION] - 800.0
    which = (rows[..., at.DUE] - rows[..., at.SUBMISSION] - 600.0).round().astype(np.int64)
    after = which[:, 1:][which[:, :-1] == 2]
    assert np.mean(after == 3) > 0.4  # the job after the third is the fourth, but for ends of pieces
    assert set(np.unique(which).tolist()) == set(range(1, 9))
    gaps = np.diff(come, axis=1)
    assert np.all(gaps[which[:, 1:] == 3] < 1e-6)  # that comes at the same time
    mean = come[:, -1].mean()
    assert mean == pytest.approx(80 * 100.0, rel=0.1)
    assert 0.1 < np.std(come[:, -1]) / mean < 0.5


def test_quantiles_are_order_statistics_that_hold_a_further_sample():
    nine = np.arange(1.0, 10.0)[:, None]
    assert quantiles_of(nine, (0.1, 0.5, 0.9)).ravel().tolist() == [1.0, 5.0, 9.0]
    nineteen = np.arange(1.0, 20.0)[:, None]
    assert quantiles_of(nineteen, (0.1, 0.25, 0.5, 0.75, 0.9)).ravel().tolist() == [2.0, 5.0, 10.0, 15.0, 18.0]
    rng = np.random.default_rng(0)
    drawn = rng.exponential(size=(20, 4000))
    low, high = quantiles_of(drawn[:19], (0.1, 0.9))
    assert np.mean((low <= drawn[19]) & (drawn[19] <= high)) == pytest.approx(0.8, abs=0.02)
    assert math.isinf(quantiles_of(np.array([1.0, np.inf]), (0.5,))[0])


def test_a_difference_is_of_the_same_draws():
    policy = make_any_policy("fifo")
    jobs = [tenths_job() for _ in range(4)]
    rng, settings = np.random.default_rng(0), ForecastSettings(samples=30)
    one = forecast(begun(instance_of(*jobs), policy, 4), policy, rng, settings)
    two = forecast(begun(instance_of(*jobs, nodes=2), policy, 4), policy, rng, settings)
    assert (two.outcomes.end_s <= one.outcomes.end_s).all()
    told = json_difference(two, one)
    assert told["end_s"][2] < 0.0
    assert told["expected_late_jobs"] < 0.0


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("samples", {"samples": 0}),
        ("samples", {"samples": 10_001}),
        ("quantiles", {"quantiles": (0.5, 0.1)}),
        ("quantiles", {"quantiles": ()}),
        ("quantiles", {"quantiles": (0.0, 0.5)}),
        ("seed", {"seed": -1}),
        ("horizon_s", {"horizon_s": 0.0}),
        ("longest_s", {"longest_s": -1.0}),
    ],
)
def test_settings_out_of_their_range_are_refused(field: str, given: dict[str, object]):
    with refused(field):
        ForecastSettings(**given)  # type: ignore[arg-type]


def test_arrivals_need_a_rate_and_a_job_that_they_are_like():
    with refused("arrivals.per_s"):
        ArrivalModel(0.0, np.array([0]))
    with refused("arrivals.like"):
        ArrivalModel(1.0, np.array([], dtype=np.int64))
    state = State(instance_of(tenths_job()), record=False)
    state.advance()
    assert ArrivalModel.of_history(state.board) is None


@pytest.mark.parametrize("published", [None, np.arange(-48, 24) * 3600.0])
def test_a_demand_charge_is_forecast_at_the_meter(published):
    """Prices and PUE are flat, so that their forecast is exact: 1 kW · 1.5 · 10 €/kW, and 1 kWh · 1.5 · 0.20 €."""
    hours = np.arange(-48, 24) * 3600.0
    prices = PriceSeries(
        hours, np.full(72, 0.2), pue=np.full(72, 1.5), published_s=published, demand=DemandCharge(10.0, 900.0)
    )
    job = Job(0.0, 90_000.0, 0.01, 2.0, EpochDistribution.certain(), 2.0, {ONE: 1800.0})
    instance = Instance.from_jobs(
        [GPU], [Node("V", 1)], [job], mechanisms=[prices], energy_price_eur_per_kwh=0.2, pue=1.5
    )
    policy = make_any_policy("edf")
    assert simulate(instance, policy).energy_eur == pytest.approx(15.3)
    found = forecast(begun(instance, policy), policy, np.random.default_rng(0), ForecastSettings(samples=2))
    assert found.outcomes.energy_eur.sum(axis=1) == pytest.approx(15.3)
