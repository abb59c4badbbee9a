"""The linear program by HiGHS against the exact solver."""

import sys

import pytest

from gpusched_baselines.solvers import HighsSolver, SolverMissingError, solve_highs
from single_job import random_single_job, two_speeds

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
