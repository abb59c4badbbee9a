"""The published nonlinear program: as described, and its result after ten iterations of Ipopt."""

import sys

import numpy as np
import pytest
from scipy.integrate import quad

from gpusched_baselines import SingleJobProblem, Sts
from gpusched_baselines.solvers import FallbackSolver, SolverFailedError, SolverMissingError, solve_ipopt
from gpusched_baselines.solvers import ipopt as published
from gpusched_baselines.solvers.ipopt import Iterate, as_read, minimise
from gpusched_baselines.solvers.smoothed_program import PublishedProgram, SmoothedSurvival
from gpusched_env import EpochDistribution, simulate
from instances import HOUR, random_instance
from single_job import tight_single_jobs, two_speeds

TIGHT = two_speeds(3.5 * HOUR).problem  # epochs of 1 h for 1 € or 40 min for 19/15 €; S is 1, then ½; four epochs


@pytest.fixture
def _needs_ipopt():
    pytest.importorskip("cyipopt", reason="cyipopt is not installed: pip install 'gpusched-env[ipopt]'")


def stopping_at(monkeypatch: pytest.MonkeyPatch, *point: float) -> None:
    """Make Ipopt stop at `point`."""
    monkeypatch.setattr(published, "load_cyipopt", lambda: None)
    monkeypatch.setattr(published, "minimise", lambda *_: Iterate(np.array(point), -1, "out of iterations"))


def test_ramps_are_before_the_edges_and_bins_without_mass_are_joined_to_the_next():
    """Masses ½, 0, 0, ½: bins of ¼ and ¾, so ramps of 0.0025 and 0.0075, down to ½ at ¼ and to 0 at 1."""
    edges, survival = np.linspace(0.0, 1.0, 5), np.array([1.0, 0.5, 0.5, 0.5])
    smoothed = SmoothedSurvival.published(edges, survival)
    assert smoothed.knots == pytest.approx([0.0, 0.2475, 0.25, 0.9925, 1.0])
    assert smoothed.values == pytest.approx([1.0, 1.0, 0.5, 0.5, 0.0])
    assert smoothed.value(np.array([0.24875, 0.25, 0.99625])) == pytest.approx([0.75, 0.5, 0.25])
    assert smoothed.integral(np.array([1.0]))[0] == pytest.approx(0.625 - 0.5 * (0.0025 + 0.0075) / 2)


def test_after_the_last_bin_with_mass_nothing_is_left():
    smoothed = SmoothedSurvival.published(np.array([0.0, 0.5, 0.75, 1.0]), np.array([1.0, 0.4, 0.0]))
    assert smoothed.knots == pytest.approx([0.0, 0.495, 0.5, 0.7475, 0.75, 1.0])
    assert smoothed.values == pytest.approx([1.0, 1.0, 0.4, 0.4, 0.0, 0.0])
    expected, _ = quad(lambda y: float(smoothed.value(np.array([y]))[0]), 0.0, 1.0, points=smoothed.knots[1:-1])
    assert smoothed.integral(np.array([1.0]))[0] == pytest.approx(expected)


def test_the_program_has_all_breakpoints_as_variables_and_the_due_date_as_an_equality():
    program = PublishedProgram.of(TIGHT)
    assert program.start.tolist() == [0.0, 0.0, 0.0]
    low, high = program.constraint_bounds
    assert low.tolist() == [3.5 * HOUR, 0.0, 4.0, -np.inf, -np.inf]
    assert high.tolist() == [3.5 * HOUR, 0.0, 4.0, 0.0, 0.0]
    assert program.constraints(np.array([0.5, 3.0, 2.0])) == pytest.approx([2.5 * HOUR - 2400.0, 0.5, 2.0, -2.5, 1.0])


def test_configurations_that_others_dominate_take_part_and_go_by_speed():
    tau, price = [2.0, 1.0, 2.0, np.inf, 1.5], [1.0, 2.0, 0.9, 1.0, 3.0]
    problem = SingleJobProblem(tau, price, EpochDistribution.from_masses([1.0]), 10.0, 15.0)
    assert PublishedProgram.of(problem).configurations.tolist() == [2, 0, 4, 1]


def test_derivatives_are_those_of_the_functions():
    rng = np.random.default_rng(0)
    for job in tight_single_jobs(20):
        program = PublishedProgram.of(job.problem)
        count = len(program.tau) + 1
        x, step = rng.uniform(0.0, job.largest, count), 1e-7 * job.largest
        dense = np.zeros((len(program.constraint_bounds[0]), count))
        dense[program.jacobianstructure()] = program.jacobian(x)
        second = program.hessian(x, np.zeros(len(dense)), 2.0)
        for k in range(count):
            ahead, behind = x + step * np.eye(count)[k], x - step * np.eye(count)[k]
            slope = (program.objective(ahead) - program.objective(behind)) / (2.0 * step)
            assert program.gradient(x)[k] == pytest.approx(slope, rel=1e-4, abs=1e-6)
            change = (program.constraints(ahead) - program.constraints(behind)) / (2.0 * step)
            assert dense[:, k] == pytest.approx(change, rel=1e-6, abs=1e-6)
            curved = (program.gradient(ahead) - program.gradient(behind))[k] / step
            assert second[k] == pytest.approx(curved, rel=1e-3, abs=1e-3)


def test_an_iterate_out_of_order_is_read_as_it_is_followed():
    """Of 0, 3, 1, 5: the first runs to 3; the second would end at 1 and runs nothing; the third runs to the end."""
    tau, price = [3.0, 2.0, 1.0], [1.0, 2.0, 3.0]
    problem = SingleJobProblem(tau, price, EpochDistribution.from_masses([1.0]), 4.0, 8.0)
    assert as_read(np.array([0.0, 3.0, 1.0, 5.0]), problem).tolist() == [0.0, 3.0, 3.0, 4.0]
    assert as_read(np.array([-1.0, -0.5, 7.0, 2.0]), problem).tolist() == [0.0, 0.0, 4.0, 4.0]


def test_an_iterate_that_misses_the_due_date_is_used_as_it_is_with_its_own_objective(monkeypatch):
    """Three epochs of 1 h and one of 40 min: 10 min late. The point ends at 3.9, and its cost is that until there."""
    stopping_at(monkeypatch, 0.0, 3.0, 3.9)
    plan = FallbackSolver("ipopt")(TIGHT)
    assert [(s.configuration, s.end_epoch) for s in plan.segments] == [(0, 3.0), (1, 4.0)]
    assert plan.worst_case_s == pytest.approx(3 * HOUR + 2400.0)
    ramp = 0.01 * 2.0 * 0.5 * 0.5  # of the first bin's edge: a hundredth of two epochs, half of ½ lost on average
    assert plan.expected_cost_eur == pytest.approx(2.0 - ramp + 0.5 * 1.0 + 0.5 * 0.9 * 19 / 15)


def test_an_answer_that_is_not_finite_is_an_error(monkeypatch):
    stopping_at(monkeypatch, 0.0, np.nan, 4.0)
    with pytest.raises(SolverFailedError, match="not finite"):
        solve_ipopt(*two_speeds(3.5 * HOUR).arguments)


@pytest.mark.usefixtures("_needs_ipopt")
def test_to_convergence_the_program_has_the_optimum_of_the_exact_solver_but_for_its_ramps():
    for job in tight_single_jobs(40):
        program, exact = PublishedProgram.of(job.problem), job.exactly()
        stopped = minimise(program, 3000, {})
        if stopped.status == 0:
            assert program.objective(stopped.point) < exact.expected_cost_eur * 1.01
            assert program.constraints(stopped.point)[0] == pytest.approx(job.time_left, rel=1e-6)


@pytest.mark.usefixtures("_needs_ipopt")
def test_every_answer_is_a_plan_from_the_present_epoch_to_the_last():
    unlike = 0
    for job in tight_single_jobs(60):
        plan = solve_ipopt(*job.arguments)
        assert (plan.status, plan.segments[0].start_epoch, plan.segments[-1].end_epoch) == (
            "tight",
            job.done,
            job.largest,
        )
        for now, following in zip(plan.segments[:-1], plan.segments[1:], strict=True):
            assert now.end_epoch == following.start_epoch
            assert job.tau[now.configuration] >= job.tau[following.configuration]
        unlike += plan.segments[0].end_epoch != pytest.approx(job.exactly().segments[0].end_epoch, rel=1e-3)
    assert unlike > 10


@pytest.mark.usefixtures("_needs_ipopt")
@pytest.mark.parametrize(("hours", "status", "config"), [(4.0, "slack", 0), (2.6, "late", 1)])
def test_slack_takes_the_cheapest_and_late_the_fastest(hours, status, config):
    plan = solve_ipopt(*two_speeds(hours * HOUR).arguments)
    assert (plan.status, [s.configuration for s in plan.segments]) == (status, [config])


@pytest.mark.parametrize("hours", [3.5, 9.0])
def test_without_cyipopt_the_message_names_the_command_that_installs_it(monkeypatch, hours):
    monkeypatch.setitem(sys.modules, "cyipopt", None)
    with pytest.raises(SolverMissingError, match="apt-get install coinor-libipopt-dev"):
        solve_ipopt(*two_speeds(hours * HOUR).arguments)


@pytest.mark.parametrize("solver", ["ipopt", "nlp", "nlp-10"])
def test_with_ipopt_every_round_is_decided(solver):
    pytest.importorskip("cyipopt", reason="cyipopt is not installed: pip install 'gpusched-env[ipopt]'")
    policy = Sts(solver=solver)
    for seed in range(3):
        result = simulate(random_instance(seed, jobs=10, kinds=True), policy)
        assert np.all(np.isfinite(result.completion_s))
    assert policy.fallbacks == 0
