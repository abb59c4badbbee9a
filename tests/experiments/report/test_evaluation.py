"""`evaluate` returns the costs of one policy as arrays: those of its runs, and of a comparison."""

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_experiments import compare, evaluate
from refusals import refused

FIGURES = ("energy_eur", "tardiness_eur", "total_eur", "late_jobs", "mean_completion_s", "switches", "rounds")
SEEDS = (3, 1)


def test_the_arrays_are_those_of_runs_and_of_a_comparison_in_the_order_of_the_seeds():
    results = []
    found = evaluate("edf", "tiny", SEEDS, on_result=results.append)
    assert (found.policy, found.seeds.tolist()) == ("edf", [3, 1])
    tiny = load_scenario("tiny")
    runs = [simulate(make_instance(tiny, seed), make_policy("edf"), seed=seed) for seed in SEEDS]
    assert found.total_eur.tolist() == [run.total_eur for run in runs] == [run.total_eur for run in results]
    assert found.switches.tolist() == [run.switches.sum() for run in runs]
    compared = compare("edf", "tiny", SEEDS)
    for name in FIGURES:
        values = getattr(found, name)
        assert values.shape == (2,)
        assert values.tolist() == [getattr(run, name) for run in compared]
    assert found.energy_eur.dtype == found.decision_s.dtype == np.float64
    assert found.late_jobs.dtype == found.rounds.dtype == found.seeds.dtype == np.int64
    assert found.energy_eur[0] != found.energy_eur[1]


def test_a_workload_is_a_scenario_an_instance_or_a_function_and_a_policy_an_object_too():
    tiny, policy = load_scenario("tiny"), make_policy("fifo")
    total = evaluate("fifo", "tiny", 2).total_eur.tolist()
    assert evaluate(policy, tiny, 2).total_eur.tolist() == total
    assert evaluate(policy, lambda seed: make_instance(tiny, seed), 2).total_eur.tolist() == total
    assert evaluate(policy, make_instance(tiny, 1), (7, 1)).total_eur[1] == total[1]


@pytest.mark.parametrize(
    ("arguments", "field", "value"),
    [
        (("nobody", "tiny", 1), "policy", "nobody"),
        ((3, "tiny", 1), "policy", 3),
        (("edf", "nowhere", 1), "scenario", "nowhere"),
        (("edf", "tiny", ()), "seeds", []),
        (("edf", "tiny", (1, 1)), "seeds", [1, 1]),
        (("edf", "tiny", (-1,)), "seeds[0]", -1),
        (("edf", "tiny", 0), "seeds", 0),
    ],
)
def test_bad_input_is_named(arguments, field, value):
    with refused(field, value):
        evaluate(*arguments)
