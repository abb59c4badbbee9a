"""The program of a decision round, against brute force."""

from dataclasses import replace

import numpy as np
import pytest

from compiled_policies import POLICIES
from first_rounds import begin_run
from gpusched_baselines.search.proxy_parts import POSTPONED, proxy_cost
from gpusched_env import Configuration, Instance
from gpusched_env.simulator import View
from gpusched_reproductions.certify import certify_round
from gpusched_reproductions.certify.patterns import Patterns
from instances import HOUR, random_instance
from small_instances import hours_job, kilowatt_cluster

pytest.importorskip("pyomo", reason="Pyomo is not installed: pip install 'gpusched-env[solvers]'")
pytest.importorskip("highspy", reason="highspy is not installed: pip install 'gpusched-env[solvers]'")

ONE, TWO = Configuration("V", 1), Configuration("V", 2)


def first_round(instance: Instance) -> View:
    state = begin_run(instance, record=False)
    return state.view


def brute_force(instance: Instance) -> float:
    """Take the least proxy cost over all patterns of jobs that have done nothing yet."""
    patterns, jobs = Patterns.of(instance), instance.jobs
    seconds = jobs.max_epochs[:, None] * jobs.seconds_per_epoch
    slowest = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    best = np.inf
    for held, rate in zip(patterns.held, patterns.rate_eur_per_s, strict=True):
        runs = held >= 0
        first = min(seconds[runs, held[runs]], default=0.0)
        running = np.maximum(0.0, first - jobs.due_s)
        postponed = POSTPONED * np.maximum(0.0, slowest - jobs.due_s)
        late = jobs.tardiness_weight_eur_per_s * np.where(runs, running, postponed)
        best = min(best, rate * first + late.sum())
    return best


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("kinds", [False, True])
def test_it_equals_brute_force(kinds, late):
    for seed in range(15):
        instance = random_instance(seed, jobs=3, nodes=3, types=1 + seed % 2, span_s=0.0, kinds=kinds)
        if late:
            instance = replace(instance, jobs=replace(instance.jobs, due_s=0.3 * instance.jobs.due_s))
        found = certify_round(first_round(instance))
        expected = brute_force(instance)
        assert found.best_eur == pytest.approx(expected, rel=1e-6, abs=1e-9), seed
        assert found.bound_eur == pytest.approx(expected, rel=1e-6, abs=1e-9), seed


def test_a_round_worked_by_hand():
    """Alone on both GPUs, a job ends first after 1 h, for 2 €, but the other one waits and weighs a hundred times.

    Side by side the first one ends after 2 h, for 4 €; the other one is then an hour late, for 3 €.
    """
    jobs = [hours_job(5.0, {ONE: 2.0, TWO: 1.0}, 1.0), hours_job(1.0, {ONE: 4.0, TWO: 3.0}, 3.0)]
    found = certify_round(first_round(kilowatt_cluster(jobs, [2], [ONE, TWO])))
    assert found.held == (0, 0)
    assert found.best_eur == pytest.approx(4.0 + 3.0)


def test_if_waiting_costs_nothing_nothing_runs_and_out_of_time_there_is_still_a_bound():
    found = certify_round(first_round(kilowatt_cluster([hours_job(9.0, {ONE: 2.0})], [1], [ONE])))
    assert (found.held, found.best_eur, found.bound_eur) == ((-1,), 0.0, 0.0)
    instance = random_instance(1, jobs=5, nodes=3, span_s=0.0)
    short, long = certify_round(first_round(instance), limit_s=1e-9), certify_round(first_round(instance))
    assert short.bound_eur <= long.bound_eur <= long.best_eur <= short.best_eur


def test_no_policy_decides_a_round_for_less_than_the_bound():
    for seed in range(10):
        instance = random_instance(seed, jobs=5, nodes=3, span_s=0.0, kinds=seed % 2 == 1)
        found = certify_round(first_round(instance))
        for name, policy in POLICIES.items():
            view = first_round(instance)
            policy.decide(view, np.random.default_rng(seed))
            cost = proxy_cost(view.board, view.active)
            assert cost >= found.bound_eur * (1.0 - 1e-6), (seed, name)


def test_in_the_middle_of_a_run_only_the_epochs_left_count():
    """After 1 h of 2 the job can be done in half an hour on two GPUs, for 1 €, or late in an hour on one."""
    job = hours_job(1.5, {ONE: 2.0, TWO: 1.0})
    state = begin_run(kilowatt_cluster([job], [2], [ONE, TWO]), review_s=HOUR)
    state.view.place(0, 0)
    state.commit_round()
    state.advance()
    state.begin_round(True)
    found = certify_round(state.view)
    assert found.best_eur == pytest.approx(1.0)
    assert found.held == (1,)
