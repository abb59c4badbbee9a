from dataclasses import dataclass, replace
from functools import partial

import pytest

from gpusched_baselines.bounds.per_job import clairvoyant_bound, non_clairvoyant_bound
from gpusched_baselines.dispatching.dispatch import DispatchPolicy
from gpusched_baselines.registry import make_policy, policy_names
from gpusched_env.errors import InputError
from gpusched_env.simulator import simulate
from gpusched_env.simulator.policy import can_decide
from gpusched_env.workload import load_scenario, make_instance
from gpusched_experiments.report import compare, comparison
from gpusched_experiments.report.warm_up import tiny_instance, warm_up

TINY = partial(make_instance, load_scenario("tiny"))


def without_times(runs):
    return [replace(run, decision_s=0.0) for run in runs]


def test_every_policy_runs_on_the_same_instance_of_every_seed():
    runs = compare(TINY, [make_policy("fifo"), make_policy("greedy")], [3, 1])
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


@pytest.mark.slow
def test_the_number_of_processes_changes_nothing():
    policies = [make_policy("edf"), make_policy("random-greedy")]
    alone, together = (compare(TINY, policies, range(3), workers=workers) for workers in (1, 2))
    assert without_times(alone) == without_times(together)


def test_progress_is_told_once_a_run():
    seen = []
    runs = compare(TINY, [make_policy("edf")], range(3), on_run=seen.append)
    assert tuple(seen) == runs


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_whole_results_are_those_of_the_first_seed_with_their_intervals(workers):
    seen = []
    runs = compare(
        TINY, [make_policy("edf"), make_policy("greedy")], [3, 1], workers=workers, on_result=seen.append
    )  # fmt: skip
    assert sorted((result.policy, result.seed) for result in seen) == [("edf", 3), ("greedy", 3)]
    for result in seen:
        again = simulate(TINY(3), make_policy(result.policy), seed=3)
        assert result.intervals().equals(again.intervals())
    assert without_times(runs) == without_times(compare(TINY, [make_policy("edf"), make_policy("greedy")], [3, 1]))


def test_runs_that_are_finished_already_are_not_run_again(monkeypatch):
    policies = [make_policy("edf"), make_policy("greedy")]
    whole = compare(TINY, policies, [3, 1])
    ran = []

    def spied(instance, policy, **others):
        ran.append((instance.seed, policy.name))
        return simulate(instance, policy, **others)

    monkeypatch.setattr(comparison, "simulate", spied)
    known = [whole[0], whole[1], whole[3], replace(whole[0], seed=77)]
    assert without_times(compare(TINY, policies, [3, 1], known=known)) == without_times(whole)
    assert ran == [(1, "edf")]


def test_bounds_are_computed_once_a_seed(monkeypatch):
    seen = []

    def spied(instance):
        seen.append(instance.seed)
        return clairvoyant_bound(instance)

    monkeypatch.setattr(comparison, "clairvoyant_bound", spied)
    runs = compare(TINY, [make_policy("edf"), make_policy("fifo")], [3, 1])
    assert seen == [3, 1]
    assert [run.clairvoyant_eur for run in runs] == [clairvoyant_bound(TINY(seed)) for seed in (3, 3, 1, 1)]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_instance_is_made_once_a_seed_however_many_policies_run_on_it(workers):
    made = []

    def make(seed):
        made.append(seed)
        return TINY(seed)

    runs = compare(make, [make_policy("edf"), make_policy("fifo")], [3, 1], workers=workers)
    assert made == [3, 1]
    assert without_times(runs) == without_times(compare(TINY, [make_policy("edf"), make_policy("fifo")], [3, 1]))


def test_a_warm_up_runs_every_policy_so_that_jobs_wait():
    warm_up([make_policy(name) for name in policy_names()])
    assert can_decide(make_policy("as-traced"), tiny_instance())
    result = simulate(tiny_instance(), make_policy("fifo"))
    assert (result.start_s > result.instance.jobs.submission_s).any()


def test_a_policy_runs_on_the_tiny_instance_before_it_is_measured():
    seen = []

    @dataclass(frozen=True)
    class Spy:
        name: str = "spy"
        preemption: bool = False

        def decide(self, view, rng):
            seen.append(len(view.jobs))
            make_policy("edf").decide(view, rng)

    compare(TINY, [Spy()], [0])
    assert seen[0] == len(tiny_instance().jobs)
    assert seen[-1] == 10


@pytest.mark.parametrize(
    ("policies", "seeds", "workers", "field"),
    [
        ([], [0], 1, "policies"),
        (["edf", "edf"], [0], 1, "policies"),
        (["edf"], [], 1, "seeds"),
        (["edf"], [1, 1], 1, "seeds"),
        (["edf"], [-1], 1, r"seeds\[0\]"),
        (["edf"], [0], 0, "workers"),
    ],
)
def test_a_comparison_that_makes_no_sense_is_refused(policies, seeds, workers, field):
    with pytest.raises(InputError, match=f"^{field} = "):
        compare(TINY, [make_policy(name) for name in policies], seeds, workers=workers)


def test_a_rule_that_cannot_be_sent_to_other_processes_is_named():
    mine = DispatchPolicy("mine", lambda jobs: jobs.due_s)
    with pytest.raises(InputError, match="workers = 2; allowed: 1, since policy mine"):
        compare(TINY, [mine], [0], workers=2)
