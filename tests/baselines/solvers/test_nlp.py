"""Our form of the nonlinear program by Ipopt, against the exact solver and the smoothed problem's own optimum."""

import sys
from itertools import pairwise

import numpy as np
import pytest

from gpusched_baselines import Plan, solve_single_job
from gpusched_baselines.solvers import SolverFailedError, SolverMissingError, solve_nlp
from gpusched_baselines.solvers.smoothed_program import SmoothedSurvival
from gpusched_env import EpochDistribution
from refusals import refused
from single_job import SingleJob, random_single_job, tight_single_jobs, two_speeds

HOUR = 3600.0
STEPS = 40  # of a ramp


@pytest.fixture
def _needs_ipopt():
    pytest.importorskip("cyipopt", reason="cyipopt is not installed: pip install 'gpusched-env[ipopt]'")


def smoothed_survival(job: SingleJob) -> SmoothedSurvival:
    return SmoothedSurvival.of(job.distribution.edges, job.distribution.survival)


def smoothed_cost(job: SingleJob, plan: Plan) -> float:
    """Return what a plan costs if the epochs needed follow the smoothed survival function."""
    smoothed = smoothed_survival(job)
    ends = np.array([[s.start_epoch, s.end_epoch] for s in plan.segments]) / job.largest
    epochs = np.diff(smoothed.integral(ends.ravel()).reshape(-1, 2), axis=1)[:, 0]
    return float(np.dot(job.price[[s.configuration for s in plan.segments]], epochs)) * job.largest / job.problem.alive


def smoothed_optimum(job: SingleJob) -> float:
    """Solve the smoothed problem by the exact solver: its ramps cut into small steps."""
    smoothed = smoothed_survival(job)
    knots = smoothed.knots
    parts = [np.linspace(a, b, STEPS, endpoint=False) for a, b in pairwise(knots) if b > a]
    edges = np.unique(np.append(np.concatenate(parts), 1.0))
    middle = smoothed.value(0.5 * (edges[:-1] + edges[1:]))
    fine = EpochDistribution(edges, middle / middle[0])
    plan = solve_single_job(job.tau, job.price, fine, job.largest, job.time_left, job.done)
    return smoothed_cost(job, plan)


@pytest.mark.usefixtures("_needs_ipopt")
def test_converged_it_finds_the_optimum_of_the_smoothed_problem():
    for job in tight_single_jobs(100):
        plan = solve_nlp(*job.arguments, iterations=None)
        assert smoothed_cost(job, plan) == pytest.approx(smoothed_optimum(job), rel=1e-4)


@pytest.mark.usefixtures("_needs_ipopt")
@pytest.mark.parametrize("iterations", [1, 3, 10, None])
def test_every_plan_is_a_plan_and_none_costs_less_than_the_exact_one(iterations):
    for seed in range(150):
        job = random_single_job(seed)
        plan, exact = solve_nlp(*job.arguments, iterations=iterations), job.exactly()
        assert plan.status == exact.status, seed
        assert plan.expected_cost_eur >= exact.expected_cost_eur * (1.0 - 1e-9), seed
        assert plan.status == "late" or plan.worst_case_s <= job.time_left + 1e-6, seed
        assert (plan.segments[0].start_epoch, plan.segments[-1].end_epoch) == (job.done, job.largest)
        for now, following in zip(plan.segments[:-1], plan.segments[1:], strict=True):
            assert now.end_epoch == following.start_epoch
            assert job.tau[now.configuration] > job.tau[following.configuration]


@pytest.mark.usefixtures("_needs_ipopt")
def test_converged_it_is_close_to_the_exact_optimum_and_after_ten_iterations_less_so():
    jobs = tight_single_jobs(100)
    exact = np.array([job.exactly().expected_cost_eur for job in jobs])
    above = {
        iterations: np.array([solve_nlp(*job.arguments, iterations=iterations).expected_cost_eur for job in jobs])
        / exact
        - 1.0
        for iterations in (10, None)
    }
    assert above[None].max() < 2e-3
    assert above[10].mean() > 2.0 * above[None].mean()


@pytest.mark.usefixtures("_needs_ipopt")
def test_a_worked_example():
    plan = solve_nlp(*two_speeds(3.5 * HOUR).arguments, iterations=None)
    assert (plan.status, plan.expected_cost_eur) == ("tight", pytest.approx(3.2, rel=1e-5))
    assert plan.segments[0].end_epoch == pytest.approx(2.5, rel=1e-4)


@pytest.mark.usefixtures("_needs_ipopt")
@pytest.mark.parametrize(("hours", "status", "config"), [(4.0, "slack", 0), (2.6, "late", 1)])
def test_slack_takes_the_cheapest_and_late_the_fastest(hours, status, config):
    plan = solve_nlp(*two_speeds(hours * HOUR).arguments)
    assert (plan.status, [s.configuration for s in plan.segments]) == (status, [config])


@pytest.mark.usefixtures("_needs_ipopt")
def test_a_solver_that_gives_up_is_an_error(monkeypatch):
    monkeypatch.setattr("gpusched_baselines.solvers.ipopt.MOST_ITERATIONS", 1)
    with pytest.raises(SolverFailedError, match="Ipopt failed"):
        solve_nlp(*tight_single_jobs(1)[0].arguments, iterations=None)


@pytest.mark.parametrize("hours", [3.5, 9.0])
def test_without_cyipopt_the_message_names_the_command_that_installs_it(monkeypatch, hours):
    monkeypatch.setitem(sys.modules, "cyipopt", None)
    with pytest.raises(SolverMissingError) as caught:
        solve_nlp(*two_speeds(hours * HOUR).arguments)
    assert 'pip install "gpusched-env[ipopt]"' in str(caught.value)
    assert "apt-get install coinor-libipopt-dev pkg-config liblapack-dev libblas-dev" in str(caught.value)


def test_a_cyipopt_that_finds_no_ipopt_is_an_error_that_names_it(monkeypatch):
    def broken(_: str) -> None:
        raise ImportError("libipopt.so.1: cannot open shared object file")

    monkeypatch.setattr("gpusched_baselines.solvers.errors.import_module", broken)
    with pytest.raises(SolverMissingError, match=r"libipopt\.so\.1"):
        solve_nlp(*two_speeds(3.5 * HOUR).arguments)


@pytest.mark.parametrize("iterations", [0, -1, 2.5])
def test_a_number_of_iterations_that_is_none_is_named(iterations):
    with refused("iterations", iterations):
        solve_nlp(*two_speeds(3.5 * HOUR).arguments, iterations=iterations)
