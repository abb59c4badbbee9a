"""STS with other solvers: the same decisions with the plans of any solver."""

import copy
import pickle
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from gpusched_baselines import SingleJobProblem, Sts
from gpusched_baselines.planning.single_job import solve_exactly, undominated
from gpusched_baselines.solvers import FallbackSolver, SolverFallbackWarning
from gpusched_env import Instance
from gpusched_env.simulator import Result, simulate
from instances import random_instance, three_jobs
from refusals import refused
from single_job import random_single_job, two_speeds


def by_python(solver=solve_exactly, **options: object) -> Sts:
    """Make an STS that takes the Python path with `solver`."""
    policy = Sts(solver="highs", **options)
    object.__setattr__(policy, "_solve", FallbackSolver("mine", solver))
    return policy


def instances() -> list[Instance]:
    plain = [random_instance(seed, jobs=15) for seed in range(8)]
    kinds = [random_instance(seed, jobs=15, nodes=6, kinds=True, restart_s=30.0) for seed in range(8)]
    return [three_jobs(), *plain, *kinds, random_instance(3, kinds=True, interference=True)]


def assert_same(one: Result, other: Result) -> None:
    assert np.array_equal(one.log, other.log)
    assert one.total_eur == other.total_eur
    assert one.rounds == other.rounds


@pytest.mark.parametrize("rank", ["expected", "published"])
def test_with_exact_plans_the_python_path_decides_what_the_compiled_one_does(rank):
    switches = 0
    for instance in instances():
        compiled = simulate(instance, Sts(rank=rank))
        assert_same(simulate(instance, by_python(rank=rank)), compiled)
        switches += int(compiled.switches.sum())
    assert switches > 100


def test_with_highs_it_costs_what_it_costs_with_the_exact_solver():
    pytest.importorskip("highspy", reason="highspy is not installed: pip install 'gpusched-env[solvers]'")
    pytest.importorskip("pyomo", reason="Pyomo is not installed: pip install 'gpusched-env[solvers]'")
    policy = Sts(solver="highs")
    for seed in range(3):
        instance = random_instance(seed, jobs=10)
        assert simulate(instance, policy).total_eur == pytest.approx(simulate(instance, Sts()).total_eur, rel=1e-6)
    assert policy.fallbacks == 0


def test_without_the_solver_the_exact_one_plans_and_one_warning_appears(monkeypatch):
    monkeypatch.setitem(sys.modules, "cyipopt", None)
    policy = Sts(solver="ipopt")
    with pytest.warns(SolverFallbackWarning, match="coinor-libipopt-dev") as said:
        results = [simulate(random_instance(seed), policy) for seed in range(3)]
    assert len(said) == 1
    assert policy.fallbacks > 3
    for seed, result in enumerate(results):
        assert_same(result, simulate(random_instance(seed), Sts()))


def test_a_solver_that_fails_leaves_no_round_undecided():
    calls = iter(range(10**6))

    def every_other(problem: SingleJobProblem):
        if next(calls) % 2:
            raise RuntimeError("no")
        return solve_exactly(problem)

    policy = by_python(every_other)
    with pytest.warns(SolverFallbackWarning, match="mine failed: RuntimeError: no"):
        result = simulate(random_instance(2), policy)
    assert_same(result, simulate(random_instance(2), Sts()))
    assert policy.fallbacks > 0


def test_the_name_has_the_solver_unless_it_is_given_or_exact_also_in_another_process():
    made = [Sts(), Sts(solver="highs"), Sts(solver="nlp"), Sts(solver="ipopt", name="mine")]
    assert [policy.name for policy in made] == ["sts", "sts:highs", "sts:nlp", "mine"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = Sts(solver="exact")
        simulate(three_jobs(), policy)
    assert policy == Sts()
    assert policy.fallbacks == 0
    policy = pickle.loads(pickle.dumps(Sts(solver="ipopt")))  # noqa: S301 - our own bytes
    assert (policy.name, policy.solver, policy.fallbacks) == ("sts:ipopt", "ipopt", 0)


HOUR = 3600.0


def test_dominated_configurations_are_left_out_the_rest_goes_from_slow_to_fast_and_may_be_no_choice():
    tau = np.array([5.0, 10.0, 7.0, np.inf, 7.0, 12.0, 6.0])
    price = np.array([4.0, 1.0, 3.5, 0.0, 2.0, 1.0, 3.9])  # 2 costs more than 4, and 5 is slower than 1 for as much
    assert undominated(tau, price).tolist() == [1, 4, 6, 0]
    assert undominated(np.array([3.0, 3.0]), np.array([1.0, 1.0])).tolist() == [0]
    assert two_speeds(4.0 * HOUR).problem.plan_without_choice().status == "slack"
    assert two_speeds(2.6 * HOUR).problem.plan_without_choice().status == "late"
    assert two_speeds(3.5 * HOUR).problem.plan_without_choice() is None


def test_a_plan_costs_what_its_breakpoints_say():
    """2 epochs for 1 € each, then, half as likely, ½ for 1 € and 1½ for 19/15 €."""
    plan = two_speeds(3.5 * HOUR).problem.plan_at(np.array([0.0, 2.5, 4.0]))
    assert plan.expected_cost_eur == pytest.approx(2.0 + 0.5 * (0.5 + 1.5 * 19 / 15))
    assert plan.worst_case_s == pytest.approx(3.5 * HOUR)
    assert [(s.configuration, s.start_epoch, s.end_epoch) for s in plan.segments] == [(0, 0.0, 2.5), (1, 2.5, 4.0)]


def test_a_problem_keeps_what_it_was_given_whatever_becomes_of_the_arrays():
    job = random_single_job(3)
    problem, tau = job.problem, job.tau.copy()
    job.tau[:] = 0.0
    for made in (problem, copy.deepcopy(problem), pickle.loads(pickle.dumps(problem))):  # noqa: S301 - our own bytes
        assert made.seconds_per_epoch.tolist() == tau.tolist()
        with pytest.raises(ValueError, match="read-only"):
            made.seconds_per_epoch[0] = 1.0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"seconds_per_epoch": [0.0, 1.0]}, "seconds_per_epoch"),
        ({"seconds_per_epoch": [np.inf, np.inf]}, "seconds_per_epoch"),
        ({"cost_eur_per_epoch": [1.0]}, "cost_eur_per_epoch"),
        ({"cost_eur_per_epoch": [1.0, np.nan]}, "cost_eur_per_epoch"),
        ({"max_epochs": 0.0}, "max_epochs"),
        ({"time_left_s": np.nan}, "time_left_s"),
        ({"epochs_done": 4.0}, "epochs_done"),
    ],
)
def test_what_is_no_problem_is_refused_where_it_is_made(change, field):
    with refused(field):
        replace(two_speeds(3.5 * HOUR).problem, **change)
