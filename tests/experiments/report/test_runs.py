import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import load_scenario, make_instance, simulate
from gpusched_experiments import compare, evaluate
from gpusched_experiments.report.processes import PROCESSES, call_all
from gpusched_experiments.report.run import Runs
from refusals import refused


def run(policy, seed, cost=1.0, **labels):
    return labels, policy, seed, {"energy_eur": cost}


RUNS = Runs.of((run("edf", 0, 5.0, nodes=10), run("sts", 0, 3.0, nodes=10), run("edf", 1, 7.0, nodes=20)))


def test_runs_are_chosen_by_policy_and_labels_and_added_up_by_seed():
    assert RUNS.where("edf").by_seed("energy_eur") == {0: 5.0, 1: 7.0}
    assert RUNS.where("edf", nodes=20).by_seed("energy_eur") == {1: 7.0}
    assert len(RUNS.where(nodes=10)) == 2
    assert len(RUNS.where("sts", nodes=20)) == 0
    assert len(RUNS.where(arrivals="high")) == 0
    assert RUNS.labels("nodes") == (10, 20)
    assert RUNS.labels("arrivals") == ()
    assert RUNS.policies == ("edf", "sts")
    assert RUNS.where(nodes=10).by_seed("energy_eur") == {0: 8.0}
    none = Runs.of(())
    assert (len(none), none.policies, none.labels("nodes"), none.by_seed("energy_eur")) == (0, (), (), {})
    assert list(none.groups("nodes")) == []


def test_groups_are_the_runs_of_a_policy_in_one_place_beside_those_of_others():
    edf, sts, far = RUNS.groups("nodes")
    assert [(g.policy, g.labels, len(g.own)) for g in (edf, sts, far)] == [
        ("edf", {"nodes": 10}, 1), ("sts", {"nodes": 10}, 1), ("edf", {"nodes": 20}, 1),
    ]  # fmt: skip
    assert sts.beside("edf").by_seed("energy_eur") == {0: 5.0}
    assert edf.beside(nodes=20).by_seed("energy_eur") == {1: 7.0}
    assert len(far.beside("sts")) == 0


def test_every_combination_of_labels_has_its_part_even_if_nothing_ran_there():
    runs = Runs.of((run("edf", 0, nodes=10, arrivals="high"), run("edf", 0, nodes=20, arrivals="low")))
    assert [len(part) for part in runs.parts("nodes", "arrivals")] == [1, 0, 0, 1]


def test_a_label_may_be_named_like_a_measure_and_labels_that_differ_in_kind_are_texts():
    runs = Runs.of((run("edf", 0, energy_eur="flat"), run("edf", 1, energy_eur=0.5)))
    assert runs.labels("energy_eur") == ("flat", "0.5")
    assert runs.where(energy_eur=0.5).by_seed("energy_eur") == {1: 1.0}


def test_in_this_process_calls_are_made_in_their_order_and_need_not_be_picklable():
    assert list(call_all([lambda: "a", lambda: "b"], (), 1)) == [(0, "a"), (1, "b")]
    assert list(call_all([], (), 2)) == []
    assert PROCESSES.cores() >= 1


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


def test_the_total_is_energy_and_tardiness():
    results = []
    found = evaluate("fifo", "tiny", (0,), on_result=results.append)
    assert found.tardiness_eur[0] > 0.0
    assert found.total_eur.tolist() == [results[0].total_eur]


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
