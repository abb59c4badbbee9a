"""The plan under prices: by hand, and against a linear program, a greedy solution, enumeration, no prices."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from gpusched_baselines import PricedJobProblem, SingleJobProblem, solve_priced_job, solve_single_job
from gpusched_baselines.planning.priced_plan import CONTINUES, PricedJob, PricedPath, path_cost
from gpusched_env import EpochDistribution
from refusals import refused

HOUR = 3600.0
SURE = EpochDistribution.from_masses(np.ones(1), np.array([0.0, 1.0]))
GPUS = np.array([1.0, 2.0, 4.0, 8.0])


def problem(
    hours: float, price: list[float], speed: tuple[float, ...] = (1.0,), kwh: tuple[float, ...] = (1.0,), **rest: object
) -> PricedJobProblem:
    """Make a job of two epochs that are sure, with `speed` epochs per hour for `kwh` each, due in so many hours."""
    job = SingleJobProblem(HOUR / np.array(speed), np.array(kwh), SURE, 2.0, hours * HOUR)
    return PricedJobProblem(job, np.full(len(price), HOUR), np.array(price), **rest)  # type: ignore[arg-type]


def random_problem(seed: int, trend: int = 0) -> PricedJobProblem:
    """Make a job of 2 to 8 hours in 4 to 20 hourly prices, never falling with `trend` 1 and never rising with -1."""
    rng = np.random.default_rng(seed)
    hours = rng.uniform(2.0, 8.0)
    tau = GPUS ** -rng.uniform(0.6, 0.95)
    tau *= hours * HOUR / 100.0 / tau[-1]
    bins = int(rng.integers(1, 12))
    known = EpochDistribution.from_masses(rng.dirichlet(np.ones(bins)), np.linspace(0.0, 1.0, bins + 1))
    left = float(rng.uniform(1.3, 2.5) * hours * HOUR)
    price = rng.uniform(0.2, 3.0, int(np.ceil(left / HOUR)))
    if trend:
        price = np.sort(price)[::trend]
    job = SingleJobProblem(tau, tau * (0.3 + 0.5 * GPUS) / HOUR, known, 100.0, left)
    return PricedJobProblem(job, np.full(len(price), HOUR), price)


def linear_program(case: PricedJobProblem) -> float:
    """Return the least cost over shares of every bin in every period and configuration, in any order."""
    job, (seconds, price) = case.job, case.until(case.job.time_left_s)
    epochs = np.diff(job.edges) * job.max_epochs
    power, speed = job.cost_eur_per_epoch / job.seconds_per_epoch, 1.0 / job.seconds_per_epoch
    shape = len(seconds), len(epochs), len(speed)
    cost = price[:, None, None] * job.survival[None, :, None] * power[None, None, :] * HOUR
    time = np.kron(np.eye(shape[0]), np.ones(shape[1] * shape[2]))
    done = np.kron(np.ones(shape[0]), np.kron(np.eye(shape[1]), speed * HOUR))
    found = linprog(cost.ravel(), A_ub=time, b_ub=seconds / HOUR, A_eq=done, b_eq=epochs, method="highs-ds")
    assert found.status == 0
    return float(found.fun)


def bought(case: PricedJobProblem) -> np.ndarray:
    """Return the epochs of each period if all are needed: the cheapest edges of hulls, by price times slope."""
    job, (seconds, price) = case.job, case.until(case.job.time_left_s)
    hull = case.configurations
    speed = np.append(0.0, 1.0 / job.seconds_per_epoch[hull])
    slope = np.diff(np.append(0.0, (job.cost_eur_per_epoch / job.seconds_per_epoch)[hull])) / np.diff(speed)
    epochs, left = np.zeros(len(seconds)), job.max_epochs
    items = sorted((price[h] * slope[k], h, k) for h, k in product(range(len(seconds)), range(len(hull))))
    for _, h, k in items:
        taken = min(left, seconds[h] * (speed[k + 1] - speed[k]))
        epochs[h] += taken
        left -= taken
    return epochs


def cost_of(case: PricedJobProblem, epochs: np.ndarray) -> float:
    """Return the expected cost of doing so many epochs in each period, (H,)."""
    job, hull, (seconds, price) = case.job, case.configurations, case.until(case.job.time_left_s)
    tau, each = job.seconds_per_epoch[hull], job.cost_eur_per_epoch[hull]
    slope = np.append(np.diff(each) / -np.diff(tau), 0.0)
    own = PricedJob(np.array([tau, each, slope]), job.curve, np.array([0.0, job.max_epochs]), 0.0, True)
    at = np.minimum(np.append(0.0, np.cumsum(epochs)), job.max_epochs)
    at[-1] = job.max_epochs
    return path_cost(own, PricedPath(at, np.full(len(seconds), CONTINUES)), seconds * (1.0 + 1e-9), price)


def test_a_job_waits_for_the_two_cheapest_hours_and_buys_speed_in_them():
    plan = solve_priced_job(problem(3, [3.0, 1.0, 2.0]))
    assert plan.expected_cost_eur == pytest.approx(3.0)
    assert [period.run_s for period in plan.periods] == [0.0, HOUR, HOUR]
    assert [period.restarts for period in plan.periods] == [False, True, False]
    assert plan.status == "slack"
    # 1 epoch an hour for 1 kWh, or 2 for 1.5 kWh each: a second epoch costs 2 € in the hour at 1 €, else 3 €.
    plan = solve_priced_job(problem(2, [3.0, 1.0], (1.0, 2.0), (1.0, 1.5)))
    assert plan.expected_cost_eur == pytest.approx(3.0)
    assert plan.periods[0].segments == ()
    assert solve_priced_job(problem(2, [-5.0, 1.0])).expected_cost_eur == pytest.approx(1.0)


def test_it_pauses_between_cheap_hours_and_a_restart_is_paid_for_once():
    """Of 4 h at 1, 9, 1, 1 €: without restarts 2 €. With one of 6 min the third hour has time for 0.9 epochs."""
    assert solve_priced_job(problem(4, [1.0, 9.0, 1.0, 1.0], runs=True)).expected_cost_eur == pytest.approx(2.0)
    slow = problem(4, [1.0, 9.0, 3.0, 1.0], runs=True, restart_s=360.0)
    plan = solve_priced_job(slow, 400)  # 1 in the first hour; 0.9 + restart in the third, 0.1 at 1 in the last
    assert plan.expected_cost_eur == pytest.approx(1.0 + 3.0 * 0.1 + 1.0 * 1.0, rel=1e-2)
    assert [period.restarts for period in plan.periods] == [False, False, True, False]
    # Half an hour to restart and two of work fit into the three hours at 1 €, if only the first has a restart.
    plan = solve_priced_job(problem(4, [9.0, 1.0, 1.0, 1.0], restart_s=0.5 * HOUR), 400)
    assert plan.expected_cost_eur == pytest.approx(2.5, rel=1e-2)
    assert [period.restarts for period in plan.periods] == [False, True, False, False]


def test_epochs_that_few_jobs_need_are_left_to_costly_hours():
    """Half of the jobs end after one of two epochs: 1 h at 2 € and 1/2 h at 3 €, whatever else; waiting costs more."""
    half = EpochDistribution.from_masses(np.array([0.5, 0.5]), np.array([0.0, 0.5, 1.0]))
    case = problem(3, [2.0, 3.0, 2.5])
    case = replace(case, job=replace(case.job, distribution=half))
    assert solve_priced_job(case).expected_cost_eur == pytest.approx(2.0 + 0.5 * 2.5)


def test_tardiness_is_bought_where_it_costs_less():
    """Two hours at 9 €, then 1 €: with 2 € an hour late, both epochs are late for 2 · (1 + 2) €; with 20 none is."""
    case = problem(2, [9.0, 9.0], tardiness_weight_eur_per_s=2.0 / HOUR)
    case = replace(case, period_s=np.array([HOUR, HOUR - 1.0, 1.0]), price=np.array([9.0, 9.0, 1.0]))
    plan = solve_priced_job(case)
    assert plan.expected_cost_eur == pytest.approx(6.0, rel=1e-3)
    assert plan.expected_tardiness_eur == pytest.approx(4.0, rel=1e-3)
    late = replace(case, tardiness_weight_eur_per_s=20.0 / HOUR)
    assert solve_priced_job(late).expected_tardiness_eur == pytest.approx(0.0, abs=0.05)


def test_a_due_date_that_no_plan_meets_gets_the_fastest_configuration():
    plan = solve_priced_job(problem(0.5, [1.0, 3.0], (1.0, 2.0), (1.0, 1.5)))
    assert plan.status == "late"
    assert [s.configuration for period in plan.periods for s in period.segments] == [1]
    past = problem(-1.0, [1.0], tardiness_weight_eur_per_s=1.0 / HOUR)
    assert solve_priced_job(past).expected_cost_eur == pytest.approx(2.0 * (1.0 + 1.0))


@pytest.mark.parametrize("seed", range(12))
def test_at_a_constant_price_it_is_the_exact_plan(seed):
    case = random_problem(seed)
    case = replace(case, price=np.ones_like(case.price))
    job = case.job
    exact = solve_single_job(job.seconds_per_epoch, job.cost_eur_per_epoch, job.distribution, 100.0, job.time_left_s)
    assert solve_priced_job(case).expected_cost_eur == pytest.approx(exact.expected_cost_eur, rel=1e-6)
    assert linear_program(case) == pytest.approx(exact.expected_cost_eur, rel=1e-6)


@pytest.mark.parametrize("seed", [0, 2, 9, 10])
def test_at_rising_prices_the_linear_program_is_exact(seed):
    case = random_problem(seed, trend=1)
    bound = linear_program(case)
    costs = [solve_priced_job(case, points).expected_cost_eur / bound for points in (40, 400, 1600)]
    assert min(costs) >= 1.0 - 1e-7
    assert costs[0] <= 1.004
    assert costs[-1] <= 1.001  # what the grid of epochs costs


def test_at_falling_prices_the_linear_program_is_too_low():
    """It runs the last, unlikely epochs in the first, costly hours."""
    parts = []
    for seed in range(12):
        case = random_problem(seed, trend=-1)
        parts.append(linear_program(case) / solve_priced_job(case, 200).expected_cost_eur)
    assert max(parts) <= 1.0 + 1e-7
    assert 0.5 < min(parts) < 0.75


@pytest.mark.parametrize("seed", range(12))
def test_with_a_known_length_buying_the_cheapest_edges_is_exact(seed):
    case = random_problem(seed)
    case = replace(case, job=replace(case.job, distribution=SURE))
    best = cost_of(case, bought(case))
    assert best == pytest.approx(linear_program(case), rel=1e-6)
    assert best * (1.0 - 1e-6) <= solve_priced_job(case, 400).expected_cost_eur <= best * 1.006


@pytest.mark.parametrize("seed", range(4))
def test_no_enumerated_plan_costs_less(seed):
    """All ways to be at one of 13 points after each of four hours, their stages solved by a linear program."""
    rng = np.random.default_rng(seed)
    known = EpochDistribution.from_masses(rng.dirichlet(np.ones(3)), np.linspace(0.0, 1.0, 4))
    tau, kwh = np.array([0.5, 0.25]) * HOUR, np.array([1.0, 1.6])
    case = PricedJobProblem(
        SingleJobProblem(tau, kwh, known, 6.0, 4.0 * HOUR), np.full(4, HOUR), rng.uniform(0.2, 3.0, 4)
    )
    points, edges = np.linspace(0.0, 6.0, 13), known.edges * 6.0
    stage = np.full((13, 13), np.inf)
    for i, j in product(range(13), range(13)):
        lengths = np.clip(np.minimum(edges[1:], points[j]) - np.maximum(edges[:-1], points[i]), 0.0, None)
        if j >= i and lengths.sum() * tau[1] <= HOUR * (1.0 + 1e-12):
            cost = (known.survival * lengths)[:, None] * kwh
            found = linprog(
                cost.ravel(),
                A_ub=(lengths[:, None] * tau).reshape(1, -1) / HOUR,
                b_ub=[1.0 + 1e-12],
                A_eq=np.kron(np.eye(3), np.ones(2)),
                b_eq=np.ones(3),
            )
            stage[i, j] = found.fun
    ways = (w for w in product(range(13), repeat=3) if w[0] <= w[1] <= w[2])
    best = min(sum(p * stage[a, b] for p, a, b in zip(case.price, (0, *w), (*w, 12), strict=True)) for w in ways)
    cost = solve_priced_job(case, 12).expected_cost_eur
    assert cost <= best * (1.0 + 1e-9)
    assert cost >= linear_program(case) * (1.0 - 1e-7)
    assert solve_priced_job(case, 12).expected_cost_eur == pytest.approx(best, rel=0.02)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.0, 600.0), st.booleans())
def test_a_plan_is_feasible_and_costs_no_more_than_without_regard_to_prices(seed, restart_s, runs):
    case = replace(random_problem(seed), restart_s=restart_s, runs=runs)
    plan = solve_priced_job(case)
    epochs = [s for period in plan.periods for s in period.segments]
    assert sum(s.end_epoch - s.start_epoch for s in epochs) == pytest.approx(100.0)
    assert all(a.end_epoch == pytest.approx(b.start_epoch) for a, b in pairwise(epochs))
    assert all(period.run_s <= period.end_s - period.start_s + 1e-5 for period in plan.periods)
    job = case.job
    blind = solve_single_job(
        job.seconds_per_epoch, job.cost_eur_per_epoch, job.distribution, 100.0, job.time_left_s - restart_s
    )
    assert plan.expected_cost_eur <= blind.expected_cost_eur * case.price.max() * 1.2


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 10.0))
def test_all_prices_times_a_number_are_the_cost_times_it(seed, factor):
    case = random_problem(seed)
    more = replace(case, price=case.price * factor)
    assert solve_priced_job(more).expected_cost_eur == pytest.approx(factor * solve_priced_job(case).expected_cost_eur)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_whole_periods_of_slack_more_never_cost_more(seed):
    case = random_problem(seed)
    more = replace(
        case,
        job=replace(case.job, time_left_s=(len(case.price) + 2) * HOUR),
        period_s=np.full(len(case.price) + 2, HOUR),
        price=np.append(case.price, [3.0, 3.0]),
    )
    assert solve_priced_job(more).expected_cost_eur <= solve_priced_job(case).expected_cost_eur * 1.004  # the grid


def test_bad_problems_are_refused():
    case = problem(3, [3.0, 1.0, 2.0])
    for field, value in (("period_s", np.zeros(3)), ("price", np.ones(2)), ("restart_s", -1.0)):
        with refused(field):
            replace(case, **{field: value})
    with refused("points", 0):
        solve_priced_job(case, 0)
