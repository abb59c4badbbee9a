"""Solvers that fail: the exact one is used, with one warning."""

import pickle
import sys
import time
import warnings
from dataclasses import replace

import pytest

from gpusched_baselines import Plan, SingleJobProblem
from gpusched_baselines.planning.single_job import solve_exactly
from gpusched_baselines.solvers import (
    FallbackSolver,
    HighsSolver,
    SolverFailedError,
    SolverFallbackWarning,
    SolverMissingError,
    solve_highs,
)
from gpusched_baselines.solvers.bin_program import repaired
from gpusched_env import InputError
from refusals import refused
from single_job import random_single_job, two_speeds

TIGHT = two_speeds(3.5 * 3600.0).problem
EXACT = solve_exactly(TIGHT)


def raising(error: Exception):
    def solver(_: SingleJobProblem) -> Plan:
        raise error

    return solver


def giving(**changes: object):
    return lambda _: replace(EXACT, **changes)


def with_cut_segments(*cut: slice):
    return giving(segments=EXACT.segments[cut[0]])


FAILING = {
    "an exception": raising(ZeroDivisionError("no step")),
    "a wrong input of its own": raising(InputError("width", 2.0, "a number in (0, 1]")),
    "a bad status": raising(SolverFailedError("X", "restoration failed")),
    "a cost that is not finite": giving(expected_cost_eur=float("nan")),
    "a plan that ends early": with_cut_segments(slice(0, 1)),
    "a plan that begins late": with_cut_segments(slice(1, 2)),
    "no plan": giving(segments=()),
    "a plan that is late": giving(worst_case_s=EXACT.worst_case_s * 1.01),
}


@pytest.mark.parametrize("solver", FAILING.values(), ids=FAILING.keys())
def test_the_exact_plan_is_used_and_one_warning_appears(solver):
    fallback = FallbackSolver("nlp", solver)
    with pytest.warns(SolverFallbackWarning, match="exact solver is used instead") as said:
        plans = [fallback(TIGHT) for _ in range(3)]
    assert plans == [EXACT] * 3
    assert len(said) == 1
    assert (fallback.solves, fallback.fallbacks) == (3, 3)


def test_a_solver_that_works_is_left_alone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fallback = FallbackSolver("exact")
        assert fallback(TIGHT) == EXACT
    assert (fallback.solves, fallback.fallbacks) == (1, 0)


def test_one_failure_does_not_end_the_use_of_a_solver():
    answers = iter([RuntimeError("once"), None])

    def moody(_: SingleJobProblem) -> Plan:
        error = next(answers)
        if error is not None:
            raise error
        return replace(EXACT, expected_cost_eur=77.0)

    fallback = FallbackSolver("ipopt", moody)
    with pytest.warns(SolverFallbackWarning):
        assert fallback(TIGHT) == EXACT
    assert fallback(TIGHT).expected_cost_eur == 77.0
    assert (fallback.solves, fallback.fallbacks) == (2, 1)


def test_a_missing_solver_is_asked_for_once():
    asked = []

    def missing(problem: SingleJobProblem) -> Plan:
        asked.append(problem)
        raise SolverMissingError("Ipopt", "cyipopt", "ipopt", ("coinor-libipopt-dev",))

    fallback = FallbackSolver("ipopt", missing)
    with pytest.warns(SolverFallbackWarning, match="coinor-libipopt-dev"):
        assert [fallback(TIGHT) for _ in range(5)] == [EXACT] * 5
    assert (len(asked), fallback.fallbacks) == (1, 5)


@pytest.mark.parametrize(("name", "module"), [("ipopt", "cyipopt"), ("highs", "highspy")])
def test_a_package_that_is_not_there_makes_the_exact_solver_answer(monkeypatch, name, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.warns(SolverFallbackWarning, match=f"needs the package {module}"):
        assert FallbackSolver(name)(TIGHT) == EXACT


def test_an_unknown_solver_is_named_and_errors_survive_the_way_from_another_process():
    with refused("solver", "simplex", "one of exact, highs, ipopt"):
        FallbackSolver("simplex")
    missing = SolverMissingError("Ipopt", "cyipopt", "ipopt", ("gcc",), "no library")
    for error in (missing, SolverFailedError("HiGHS", "time limit")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own bytes


@pytest.mark.parametrize("name", ["exact", "highs", "ipopt", "nlp", "nlp-10"])
def test_it_can_be_sent_to_another_process(name):
    copy = pickle.loads(pickle.dumps(FallbackSolver(name)))  # noqa: S301 - our own bytes
    assert (copy.name, copy.solves) == (name, 0)


def test_the_time_in_the_solver_is_counted_also_where_it_fails(monkeypatch):
    def slowly(problem: SingleJobProblem) -> Plan:
        now_s[0] += 20.0
        if problem is not TIGHT:
            raise SolverFailedError("X", "too hard")
        return EXACT

    now_s = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now_s[0])
    fallback = FallbackSolver("nlp", slowly)
    fallback(TIGHT)
    with pytest.warns(SolverFallbackWarning):
        fallback(replace(TIGHT))
    assert fallback.solver_s == 40.0


HOUR = 3600.0


@pytest.mark.usefixtures("_needs_highs")
def test_it_equals_the_exact_solver_on_three_hundred_problems():
    solver, statuses = HighsSolver(), {"slack": 0, "tight": 0, "late": 0}
    for seed in range(300):
        job = random_single_job(seed)
        plan, exact = solver(job.problem), job.exactly()
        statuses[plan.status] += 1
        assert plan.status == exact.status, seed
        assert plan.expected_cost_eur == pytest.approx(exact.expected_cost_eur, rel=1e-7), seed
        assert plan.status == "late" or plan.worst_case_s <= job.time_left + 1e-6
        assert plan.segments[0].start_epoch == job.done
        assert plan.segments[-1].end_epoch == job.largest
    assert min(statuses.values()) > 15, statuses


@pytest.mark.usefixtures("_needs_highs")
def test_a_solver_that_is_used_again_gives_what_a_fresh_one_gives():
    solver = HighsSolver()
    for seed in range(40):
        job = random_single_job(seed)
        again, fresh = solver(job.problem), solve_highs(*job.arguments)
        assert again.expected_cost_eur == pytest.approx(fresh.expected_cost_eur, rel=1e-9)


@pytest.mark.parametrize("package", ["highspy", "pyomo.environ"])
@pytest.mark.parametrize("hours", [3.5, 9.0])
def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch, package, hours):
    for name in ("highspy", "pyomo.environ", "pyomo.contrib.solver.solvers.highs"):
        if name == package or package.startswith("pyomo"):
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SolverMissingError, match=r"HiGHS needs .* pip install \"gpusched-env\[solvers\]\""):
        solve_highs(*two_speeds(hours * HOUR).arguments)


def test_results_are_repaired_to_plans_in_time():
    assert repaired(two_speeds(3.5 * HOUR).problem, [2.0]).tolist() == [0.0, 2.0, 4.0]
    # At most 2.5 epochs can be slow.
    assert repaired(two_speeds(3.5 * HOUR).problem, [3.7]) == pytest.approx([0.0, 2.5, 4.0])
    assert repaired(two_speeds(3.5 * HOUR).problem, [99.0]) == pytest.approx([0.0, 2.5, 4.0])
    job = two_speeds(3.9 * HOUR)
    three = SingleJobProblem([3600.0, 3000.0, 2400.0], [1.0, 1.1, 1.3], job.distribution, 4.0, 3.9 * HOUR, 0.0)
    assert repaired(three, [2.0, -1.0]).tolist() == [0.0, 0.0, 2.0, 4.0]
    only = two_speeds(4.0 * 2400.0).problem
    assert repaired(only, [3.0]) == pytest.approx([0.0, 0.0, 4.0])
