"""The program of a static instance: exact on instances that can be worked out, a bound on all."""

from dataclasses import replace

import numpy as np
import pytest

from compiled_policies import POLICIES
from gpusched_baselines import clairvoyant_bound
from gpusched_baselines.solvers import SolverFailedError
from gpusched_env import Configuration, Instance
from gpusched_env.simulator import View, simulate
from gpusched_reproductions.certify import StaticCertificate, certify_static
from gpusched_reproductions.certify.patterns import Patterns
from gpusched_reproductions.certify.static import StaticSolution, refuse_spread, solve_static
from instances import HOUR, random_instance
from refusals import refused
from small_instances import hours_job, kilowatt_cluster, small_random_instance

pytest.importorskip("pyomo", reason="Pyomo is not installed: pip install 'gpusched-env[solvers]'")
pytest.importorskip("highspy", reason="highspy is not installed: pip install 'gpusched-env[solvers]'")

ONE, TWO = Configuration("V", 1), Configuration("V", 2)
HALF = Configuration("V", 1, share=0.5)


def assert_solved(found: StaticCertificate, eur: float) -> None:
    assert found.bound_eur == pytest.approx(eur, rel=1e-4)
    assert found.best_eur == pytest.approx(eur, rel=1e-4)
    assert found.bound_eur <= found.best_eur


def test_optima_by_hand():
    """3 h on one GPU for 3 €, 2 h on two for 4 €; due after 2.5 h, it runs half of its epoch on each."""
    job = hours_job(2.5, {ONE: 3.0, TWO: 2.0})
    found = certify_static(kilowatt_cluster([job], [2], [ONE, TWO]))
    assert_solved(found, 3.5)
    assert sorted(stay.held for stay in found.schedule.stays) == [(0,), (1,)]
    assert found.schedule.completion_s == pytest.approx([2.5 * HOUR])
    # An hour of tardiness costs 50 cents: less than the euro that saving it costs.
    job = hours_job(2.0, {ONE: 3.0, TWO: 2.0}, weight_eur_per_h=0.5)
    assert_solved(certify_static(kilowatt_cluster([job], [2], [ONE, TWO])), 3.0 + 0.5)
    # Smith's rule: 1 h at 9 €/h, 2 h at 10, 3 h at 6. Energy 6 €, tardiness 9 + 3 · 10 + 6 · 6 €.
    jobs = [hours_job(0.0, {ONE: hours}, weight) for hours, weight in ((3.0, 6.0), (1.0, 9.0), (2.0, 10.0))]
    assert_solved(certify_static(kilowatt_cluster(jobs, [1], [ONE])), 6.0 + 9.0 + 30.0 + 36.0)
    # One shared GPU: the first job ends in time after 1 h, the second one goes on for an hour, alone and late.
    jobs = [hours_job(1.0, {HALF: 1.0}), hours_job(1.0, {HALF: 2.0})]
    assert_solved(certify_static(kilowatt_cluster(jobs, [1], [HALF])), 2.0 + 100.0)


def test_a_bound_above_a_schedule_is_an_error(monkeypatch):
    def too_high(*problem: object) -> StaticSolution:
        solution = solve_static(*problem)
        return replace(solution, bound_eur=1.01 * solution.bound_eur)

    monkeypatch.setattr("gpusched_reproductions.certify.static.solve_static", too_high)
    with pytest.raises(SolverFailedError, match="above a schedule"):
        certify_static(kilowatt_cluster([hours_job(9.0, {ONE: 1.0})], [1], [ONE]))


def test_no_policy_costs_less_than_the_bound():
    for seed in range(12):
        instance = small_random_instance(seed, kinds=seed % 2 == 1)
        found = certify_static(instance, limit_s=10.0)
        for name, policy in POLICIES.items():
            cost = simulate(instance, policy, seed=seed).total_eur
            assert cost >= found.bound_eur * (1.0 - 1e-6), (seed, name)


def test_it_is_no_weaker_than_the_clairvoyant_bound_and_meets_its_own_schedule():
    met = 0
    for seed in range(12):
        instance = small_random_instance(seed, kinds=seed % 2 == 1)
        found = certify_static(instance, limit_s=10.0)
        assert found.bound_eur >= clairvoyant_bound(instance) * (1.0 - 1e-6)
        met += found.best_eur <= found.bound_eur * (1.0 + 1e-4)
    assert met >= 10


class Following:
    """Places what a schedule says, when it says so."""

    name, preemption = "following", True

    def __init__(self, found: StaticCertificate) -> None:
        self.stays = found.schedule.stays

    def decide(self, view: View, rng: np.random.Generator) -> None:
        now = max((s for s in self.stays if s.start_s <= view.now_s + 1e-6), key=lambda s: s.start_s)
        configurations = view.configurations
        active = set(view.active.tolist())
        wanted = [(j, c) for j, c in enumerate(now.held) if c >= 0 and j in active]
        for job, config in sorted(wanted, key=lambda pair: -configurations[pair[1]].gpus):
            assert view.place(job, config)
        following = [s.start_s for s in self.stays if s.start_s > view.now_s + 1e-6]
        for job in active:
            view.set_timer(job, min(following, default=np.inf))


def without_base_power(instance: Instance) -> Instance:
    """Make the place of a job not matter: nodes draw nothing beside their GPUs."""
    types = [type(v)(v.name, v.gpu_power_w, 0.0, v.memory_gib, v.max_gpus_per_node) for v in instance.gpu_types]
    jobs = instance.jobs
    return Instance(tuple(types), instance.nodes, instance.configurations, jobs)


def test_in_the_simulator_its_schedule_costs_what_it_says():
    late = 0
    for seed in range(24):
        instance = without_base_power(small_random_instance(seed))
        found = certify_static(instance, limit_s=10.0)
        result = simulate(instance, Following(found))
        assert result.energy_eur == pytest.approx(found.schedule.energy_eur, rel=1e-6), seed
        assert result.tardiness_eur == pytest.approx(found.schedule.tardiness_eur, rel=1e-6, abs=1e-6), seed
        assert result.completion_s == pytest.approx(found.schedule.completion_s, rel=1e-6)
        late += result.late_jobs
    assert late >= 3


def test_finer_boundaries_never_weaken_the_bound():
    instance = small_random_instance(3)
    patterns = Patterns.of(instance).undominated()
    horizon = instance.jobs.due_s.max()
    bounds = [
        solve_static(instance.jobs, patterns, np.linspace(0.0, 2.0 * horizon, count)).bound_eur
        for count in (2, 3, 5, 9)
    ]
    assert np.all(np.diff(bounds) >= -1e-6 * bounds[-1])


def test_jobs_that_come_later_or_slow_one_another_down_and_spread_gpus_are_refused():
    with refused("jobs.submission_s"):
        certify_static(random_instance(0, jobs=3))
    with refused("interference", "a model"):
        certify_static(random_instance(0, jobs=3, span_s=0.0, kinds=True, interference=True))
    instance = random_instance(0, jobs=3, spread=True)
    with refused("configurations", ["T0~2", "T0~3", "T0~5", "T1~2", "T1~3", "T1~5"], "none that is spread"):
        refuse_spread(instance)
