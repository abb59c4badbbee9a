import copy
from dataclasses import dataclass, replace
from functools import partial

import pytest

from gpusched_baselines.bounds.capacity import clairvoyant_bound, non_clairvoyant_bound
from gpusched_baselines.dispatching.dispatch import DispatchPolicy
from gpusched_baselines.registry import make_policy, policy_names
from gpusched_env.simulator import simulate
from gpusched_env.simulator.policy import can_decide
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report import compare, compared_run, comparison, evaluation, summarise
from gpusched_experiments.report.warm_up import tiny_instance, warm_up
from refusals import ANY, refused

TINY = partial(make_instance, load_scenario("tiny"))


def without_times(runs):
    return [replace(run, decision_s=0.0) for run in runs]


def test_every_policy_runs_on_the_same_instance_of_every_seed():
    runs = compare([make_policy("fifo"), make_policy("greedy")], TINY, [3, 1])
    assert [(run.seed, run.policy) for run in runs] == [(3, "fifo"), (3, "greedy"), (1, "fifo"), (1, "greedy")]
    for run in runs:
        result = simulate(TINY(run.seed), make_policy(run.policy), seed=run.seed)
        assert (run.energy_eur, run.tardiness_eur, run.total_eur) == (
            result.energy_eur,
            result.tardiness_eur,
            result.total_eur,
        )
        assert (run.late_jobs, run.rounds, run.jobs) == (result.late_jobs, result.rounds, 10)
        assert run.switches == result.switches.sum()
        assert run.mean_completion_s == result.mean_completion_s
        assert run.clairvoyant_eur == clairvoyant_bound(TINY(run.seed))
        assert run.non_clairvoyant_eur == non_clairvoyant_bound(TINY(run.seed))


def test_progress_is_reported_once_a_run_and_whole_results_are_those_of_the_first_seed():
    seen = []
    runs = compare([make_policy("edf")], TINY, range(3), on_run=seen.append)
    assert tuple(seen) == runs
    seen = []
    runs = compare([make_policy("edf"), make_policy("greedy")], TINY, [3, 1], on_result=seen.append)
    assert sorted((result.policy, result.seed) for result in seen) == [("edf", 3), ("greedy", 3)]
    for result in seen:
        again = simulate(TINY(3), make_policy(result.policy), seed=3)
        assert result.intervals().equals(again.intervals())
    assert without_times(runs) == without_times(compare([make_policy("edf"), make_policy("greedy")], TINY, [3, 1]))


def test_runs_that_are_finished_already_are_not_run_again(monkeypatch):
    policies = [make_policy("edf"), make_policy("greedy")]
    whole = compare(policies, TINY, [3, 1])
    ran = []

    def spied(instance, policy, **others):
        ran.append((instance.seed, policy.name))
        return simulate(instance, policy, **others)

    monkeypatch.setattr(evaluation, "simulate", spied)
    known = [whole[0], whole[1], whole[3], replace(whole[0], seed=77)]
    assert without_times(compare(policies, TINY, [3, 1], known=known)) == without_times(whole)
    assert ran == [(1, "edf")]


def test_an_instance_is_made_and_its_bounds_computed_once_a_seed_however_many_policies_run_on_it(monkeypatch):
    made, bounded = [], []

    def make(seed):
        made.append(seed)
        return TINY(seed)

    def spied(instance):
        bounded.append(instance.seed)
        return clairvoyant_bound(instance)

    monkeypatch.setattr(compared_run, "clairvoyant_bound", spied)
    runs = compare([make_policy("edf"), make_policy("fifo")], make, [3, 1])
    assert made == bounded == [3, 1]
    assert without_times(runs) == without_times(compare([make_policy("edf"), make_policy("fifo")], TINY, [3, 1]))


def test_a_warm_up_runs_every_policy_so_that_jobs_wait_and_a_rule_that_cannot_be_sent_is_named():
    warm_up([make_policy(name) for name in policy_names()])
    assert can_decide(make_policy("as-traced"), tiny_instance())
    result = simulate(tiny_instance(), make_policy("fifo"))
    assert (result.start_s > result.instance.jobs.submission_s).any()
    mine = DispatchPolicy("mine", lambda jobs: jobs.due_s)
    with refused("workers", 2, "1, since policy mine"):
        compare([mine], TINY, [0], workers=2)


def test_a_policy_runs_on_the_tiny_instance_before_it_is_measured():
    seen = []

    @dataclass(frozen=True)
    class Spy:
        name: str = "spy"
        preemption: bool = False

        def decide(self, view, rng):
            seen.append(len(view.jobs))
            make_policy("edf").decide(view, rng)

    compare([Spy()], TINY, [0])
    assert seen[0] == len(tiny_instance().jobs)
    assert seen[-1] == 10


@pytest.mark.parametrize(
    ("policies", "seeds", "workers", "field"),
    [
        ([], [0], 1, "policies"),
        (["edf", "edf"], [0], 1, "policies"),
        (["edf"], [], 1, "seeds"),
        (["edf"], [1, 1], 1, "seeds"),
        (["edf"], [-1], 1, "seeds[0]"),
        (["edf"], [0], 0, "workers"),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(policies, seeds, workers, field):
    with refused(field):
        compare([make_policy(name) for name in policies], TINY, seeds, workers=workers)


@pytest.mark.parametrize("make", [lambda _: "tiny", lambda _: load_scenario("tiny"), lambda path: path, lambda _: TINY])
def test_names_numbers_and_paths_stand_for_what_they_name(make, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "tiny"')
    made = compare([make_policy("edf"), make_policy("fifo")], TINY, [0, 1])
    mine = DispatchPolicy("fifo", lambda jobs: jobs.submission_s)
    for policies, seeds in ((["edf", "fifo"], 2), (("edf", mine), iter([0, 1]))):
        runs = compare(policies, make(path), seeds)
        assert [replace(run, decision_s=0.0, co2_kg=None) for run in runs] == [
            replace(run, decision_s=0.0, co2_kg=None) for run in made
        ]
    assert without_times(compare(TINY, ["edf", "fifo"], 2)) == without_times(made)


def test_a_scenario_says_what_is_billed_and_an_instance_is_run_on_every_seed():
    emits = load_scenario("tiny").replace({"prices.co2_g_per_kwh": 300.0})
    (run,) = compare("edf", emits, 1)
    assert run.co2_kg == pytest.approx(0.3 * run.metrics.energy_kwh)
    runs = compare("edf", replace(TINY(3), name=""), 2)
    assert runs[0].energy_eur == runs[1].energy_eur == compare("edf", TINY, [3])[0].energy_eur
    assert "all ran on the one instance of no name" in str(runs)


def test_a_comparison_is_printed_as_a_table_with_savings_against_the_first_policy_or_the_one_named():
    runs = compare(["fifo", "edf"], "tiny", 2)
    assert isinstance(runs, tuple)
    assert [len(runs), runs.reference] == [4, "fifo"]
    fifo, edf = summarise(runs, "fifo")
    assert repr(runs.rows) == repr((fifo, edf))
    lines = str(runs).splitlines()
    assert lines[0].split("  ")[0] == "policy"
    assert [word for word in lines[0].split("  ") if word] == [
        "policy", "energy €", "tardiness €", "total €", "late jobs", "saving vs fifo",
    ]  # fmt: skip
    assert lines[2].split() == [
        "edf", f"{edf.energy_eur:,.2f}", f"{edf.tardiness_eur:,.2f}", f"{edf.total_eur:,.2f}",
        f"{edf.late_jobs:g}", f"{edf.saving:+.1%}",
    ]  # fmt: skip
    assert len({len(line) for line in lines[:3]}) == 1
    assert "saving vs edf" in repr(compare(["fifo", "edf"], "tiny", 2, reference="edf"))
    assert runs._repr_html_().count("<tr>") == 3
    assert copy.deepcopy(runs).reference == "fifo"


class NoPolicy:
    """It decides nothing."""


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"policies": ["edf", "fastest"]}, ("policy", "fastest", "one of .*FILE.py:Class")),
        ({"policies": "edf,fifo"}, ("policy", "edf,fifo", "one of .*fifo")),
        ({"policies": ["edf", NoPolicy]}, ("policies[1]", ANY, r"an object of the class: NoPolicy\(\)")),
        ({"policies": [object()]}, ("policies[0]", ANY, "object lacks name, preemption, decide")),
        ({"policies": 3}, ("policies[0]", 3)),
        ({"workload": "nowhere"}, ("scenario", "nowhere", "one of")),
        ({"workload": 3}, ("scenario", 3)),
        ({"seeds": 0}, ("seeds", 0, "a whole number >= 1")),
        ({"seeds": "0-3"}, ("seeds[0]", "0", "a whole number >= 0")),
        ({"reference": "sts"}, ("reference", "sts", "one of the policies compared: edf")),
    ],
)
def test_a_name_that_is_none_is_said_before_anything_is_run(arguments, error, monkeypatch):
    monkeypatch.setattr(comparison, "call_all", None)
    with refused(*error):
        compare(**({"policies": ["edf"], "workload": "tiny", "seeds": 1} | arguments))
