"""Simulations of the rollout policy are those of the simulator, and its decisions use only known information."""

from dataclasses import replace

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_baselines import StsX
from gpusched_baselines.registry import make_policy
from gpusched_baselines.rollout_policy import RolloutPolicy
from gpusched_baselines.rollout_policy.samples import Order, deviations, plan_of, same_plan
from gpusched_baselines.rollout_policy.simulation import (
    BASES,
    CONFIG,
    TIMER,
    SimulationCopy,
    new_copy,
    reset,
    simulate_copy,
)
from gpusched_env import Instance, Result, Tenants, load_scenario, make_instance, simulate
from gpusched_env.model import Cells, Tenant
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_experiments.report.warm_up import tiny_instance
from instances import random_instance
from policies import QUICK_LOOK
from run_files import audited
from untouched import arrays, assert_unchanged

QUICK = RolloutPolicy(QUICK_LOOK)


def begun(instance: Instance) -> tuple[State, SimulationCopy]:
    state = begin_run(instance)
    return state, new_copy(state.board, 0)


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("seed", [1, 8])
def test_a_simulation_with_the_true_epochs_costs_what_the_simulator_charges(name, seed):
    """All jobs are submitted at the beginning. STS-X's memory of the first round may change its later ones."""
    instance = random_instance(seed, span_s=0.0, kinds=True, restart_s=20.0)
    state, copy = begun(instance)
    outcome = np.full((len(instance.jobs), at.OUTCOME_COLUMNS), np.inf)
    outcome[:, at.NEEDED] = instance.jobs.epochs_needed
    rate = StsX().rates(state.board)
    cost, _ = simulate_copy(copy, outcome, rate, plan_of(copy, rate, BASES[name]), BASES[name], np.inf, 10_000)
    assert cost == pytest.approx(simulate(instance, make_policy(name)).total_eur, rel=1e-3)


def test_a_simulation_stops_in_time():
    state, copy = begun(random_instance(1, span_s=0.0))
    rate, base = StsX().rates(state.board), BASES["sts-x"]
    outcome = np.full((12, at.OUTCOME_COLUMNS), np.inf)
    outcome[:, at.NEEDED] = state.board.jobs[:, at.MAX_EPOCHS]
    plan = plan_of(copy, rate, base)
    assert simulate_copy(copy, outcome, rate, plan, base, 5.0, 1000)[1] == 5.0
    assert simulate_copy(copy, outcome, rate, plan, base, np.inf, 1)[1] == 0.0


def test_a_job_that_must_wait_waits_for_a_while_and_others_are_planned_without_it():
    state, copy = begun(random_instance(1, span_s=0.0))
    rate, base = StsX().rates(state.board), BASES["sts-x"]
    own = plan_of(copy, rate, base)
    job = int(np.flatnonzero(own[:, CONFIG] >= 0)[0])
    plan = plan_of(copy, rate, base, Order(job, -1))
    assert plan[job, CONFIG] == -1
    assert 0.0 < plan[job, TIMER] < np.inf
    assert same_plan(plan_of(copy, rate, base), own)


def test_deviations_differ_from_the_plan_and_from_one_another():
    state, copy = begun(random_instance(3, span_s=0.0, kinds=True))
    rate, base = StsX().rates(state.board), BASES["sts-x"]
    own = plan_of(copy, rate, base)
    found = deviations(copy, rate, base, own, 30, np.random.default_rng(0))
    assert len(found) > 5
    assert len({plan[:, :TIMER].tobytes() for plan in [own, *found]}) == len(found) + 1


@pytest.mark.parametrize("name", ["quota", "cells", "hosts", "prices"])
def test_a_simulation_begins_with_the_arrays_of_mechanisms_that_the_round_has(name):
    quotas = random_instance(1).with_mechanisms(Tenants((Tenant("a", (Cells("T0", 1, 1),)),), "quota"))
    instances = {"quota": quotas, "prices": tiny_instance(energy=True)}
    _, copy = begun(instances.get(name) or make_instance(load_scenario("cells").replace({"jobs.count": 5}), 1))
    array, before = getattr(copy.work, name), getattr(copy.start, name).copy()
    assert before.size
    array[...] = -7
    reset(copy.start, copy.work)
    np.testing.assert_array_equal(array, before)


def test_simulations_leave_the_run_as_it_is():
    state, _ = begun(random_instance(4, kinds=True, interference=True))
    before = arrays(state)
    QUICK.choose(state.view, int(state.view.active[0]))
    assert_unchanged(state, before)


def until(result: Result, time_s: float) -> list[list[float]]:
    return result.log[result.log[:, at.LOG_START] < time_s][:, [at.LOG_JOB, at.LOG_NODE, at.LOG_CONFIG]].tolist()


@pytest.mark.parametrize("seed", [1, 5])
def test_decisions_do_not_depend_on_what_jobs_will_need(seed):
    instance = random_instance(seed, jobs=8)
    jobs = instance.jobs
    other = replace(instance, jobs=replace(jobs, epochs_needed=jobs.max_epochs))
    first, second = simulate(instance, QUICK), simulate(other, QUICK)
    ended = min(first.completion_s.min(), second.completion_s.min())
    seen = sorted(until(first, ended))
    assert seen
    assert seen == sorted(until(second, ended))


@pytest.mark.parametrize("seed", [1, 2])
def test_runs_pass_the_audit_and_are_the_same_again(seed, tmp_path):
    instance = random_instance(seed, jobs=10, kinds=True, interference=True, restart_s=10.0)
    result = simulate(instance, QUICK)
    assert audited(result, tmp_path / "run") == []
    np.testing.assert_array_equal(simulate(instance, QUICK, seed=1).log, result.log)
