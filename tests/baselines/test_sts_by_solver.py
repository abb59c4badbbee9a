"""STS with other solvers: the same decisions with the plans of any solver."""

import pickle
import sys
import warnings

import numpy as np
import pytest

from gpusched_baselines import SingleJobProblem, Sts
from gpusched_baselines.planning.single_job import solve_exactly
from gpusched_baselines.solvers import FallbackSolver, SolverFallbackWarning
from gpusched_env import Instance
from gpusched_env.simulator import Result, simulate
from instances import random_instance, three_jobs


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


def test_the_name_has_the_solver_unless_it_is_given():
    made = [Sts(), Sts(solver="highs"), Sts(solver="nlp"), Sts(solver="ipopt", name="mine")]
    assert [policy.name for policy in made] == ["sts", "sts-highs", "sts-nlp", "mine"]


def test_the_exact_solver_is_the_compiled_one():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy = Sts(solver="exact")
        simulate(three_jobs(), policy)
    assert policy == Sts()
    assert policy.fallbacks == 0


def test_it_can_be_sent_to_another_process():
    policy = pickle.loads(pickle.dumps(Sts(solver="ipopt")))  # noqa: S301 - our own bytes
    assert (policy.name, policy.solver, policy.fallbacks) == ("sts-ipopt", "ipopt", 0)
