"""The smoothed survival function, and the derivatives of the program made from it."""

import numpy as np
import pytest
from scipy.integrate import quad

from gpusched_baselines.solvers.smoothed_program import SmoothedProgram, SmoothedSurvival
from refusals import refused
from single_job import tight_single_jobs

HALVES = SmoothedSurvival.of(np.array([0.0, 0.5, 1.0]), np.array([1.0, 0.5]), 0.01)


def test_a_step_becomes_a_ramp_of_one_percent_of_a_bin_around_the_edge():
    x = np.array([0.0, 0.4974, 0.4975, 0.49875, 0.5, 0.5025, 0.6, 1.0])
    assert HALVES.value(x) == pytest.approx([1.0, 1.0, 1.0, 0.875, 0.75, 0.5, 0.5, 0.5])
    assert HALVES.slope(np.array([0.1, 0.5, 0.9])) == pytest.approx([0.0, -100.0, 0.0])


def test_beyond_a_ramp_the_integral_is_that_of_the_steps():
    assert HALVES.integral(np.array([0.0, 0.25, 0.6, 1.0])) == pytest.approx([0.0, 0.25, 0.55, 0.75])
    assert HALVES.integral(np.array([0.5])) == pytest.approx([0.5 - 0.0025 * 0.125])


def test_the_integral_is_the_integral_of_the_value():
    edges = np.array([0.0, 0.1, 0.15, 0.6, 1.0])
    smoothed = SmoothedSurvival.of(edges, np.array([1.0, 0.7, 0.7, 0.1]), 0.3)
    for x in (0.05, 0.11, 0.14, 0.5, 0.61, 1.0):
        expected, _ = quad(lambda y: float(smoothed.value(np.array([y]))[0]), 0.0, x, points=smoothed.knots[1:-1])
        assert smoothed.integral(np.array([x]))[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("width", [0.0, 1.5, np.nan])
def test_a_width_out_of_range_is_refused(width):
    with refused("width", width):
        SmoothedSurvival.of(np.array([0.0, 1.0]), np.array([1.0]), width)


def programs() -> list[SmoothedProgram]:
    """Make programs with wide ramps, so that random points are within them."""
    return [SmoothedProgram.of(job.problem, width=0.8) for job in tight_single_jobs(60)]


def points_off_the_knots(program: SmoothedProgram, rng: np.random.Generator) -> np.ndarray:
    while True:
        x = np.sort(rng.uniform(program.done, 1.0, len(program.start)))
        if np.abs(x[:, None] - program.smoothed.knots[None, :]).min() > 1e-5:
            return x


def differences(function, x: np.ndarray, step: float) -> np.ndarray:
    units = np.eye(len(x)) * step
    return np.array([(function(x + unit) - function(x - unit)) / (2 * step) for unit in units])


def test_first_and_second_derivatives_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    curved = 0
    for program in programs():
        x = points_off_the_knots(program, rng)
        assert program.gradient(x) == pytest.approx(differences(program.objective, x, 1e-6), abs=1e-7)
        second = differences(program.gradient, x, 1e-6)
        assert np.diag(program.hessian(x, np.empty(0), 1.0)) == pytest.approx(second, abs=1e-4)
        assert program.hessian(x, np.empty(0), 2.5) == pytest.approx(2.5 * np.diag(second), abs=1e-3)
        assert np.all(program.hessian(x, np.empty(0), 1.0) >= 0.0)
        curved += bool(np.any(program.hessian(x, np.empty(0), 1.0) > 0.0))
    assert curved > 20


def test_the_jacobian_is_that_of_finite_differences():
    rng = np.random.default_rng(1)
    for program in programs():
        x = points_off_the_knots(program, rng)
        expected = differences(program.constraints, x, 1e-6).T
        found = np.zeros_like(expected)
        found[program.jacobianstructure()] = program.jacobian(x)
        assert found == pytest.approx(expected, abs=1e-7)


def test_the_constraints_are_the_time_and_the_order():
    problem = tight_single_jobs(1)[0].problem
    program = SmoothedProgram.of(problem)
    starts = np.linspace(problem.epochs_done, problem.max_epochs, len(problem.tau) + 1)
    seconds = program.constraints(program.start)[0] * problem.tau[0] * problem.max_epochs
    assert seconds == pytest.approx(problem.worst_case_s(starts))
    assert program.constraint_bounds[1][0] * problem.tau[0] * problem.max_epochs == pytest.approx(problem.time_left_s)
    assert np.all(program.constraints(program.start)[1:] < 0.0)
