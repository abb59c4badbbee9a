"""Asking a policy changes nothing, and what it chooses job by job is what it decides in rounds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusched_baselines import Sts, StsPriced, StsX, make_policy
from gpusched_baselines.planning.single_job import solve_exactly
from gpusched_baselines.registry import POLICIES
from gpusched_baselines.rollout_policy import RolloutPolicy
from gpusched_baselines.solvers import FallbackSolver
from gpusched_env import Instance, JobPolicy, simulate
from gpusched_env.simulator import State
from gpusched_env.simulator.choice import Choice
from gpusched_env.simulator.ordering import ask_order
from gpusched_env.simulator.policy import memory_columns
from instances import random_instance
from policies import QUICK_LOOK, JobByJob
from untouched import arrays, assert_unchanged


def askable(name: str) -> JobPolicy:
    """Make a policy; solvers are replaced by the exact one, so that none need be installed."""
    policy: Any = make_policy(name)
    if isinstance(policy, RolloutPolicy):
        policy = replace(policy, settings=QUICK_LOOK)
    if isinstance(policy, Sts | StsPriced):  # its last step needs the end of a round, which `choose` does not have
        policy = replace(policy, postprocess=False)
    if isinstance(policy, Sts) and policy.solver != "exact":
        object.__setattr__(policy, "_solve", FallbackSolver("mine", solve_exactly))
    return policy


ASKABLE = [name for name in POLICIES if isinstance(make_policy(name), JobPolicy)]


def instances() -> dict[str, Instance]:
    """Make instances with restarts, shared GPUs and several nodes, and all of them with slow-downs."""
    return {
        "plain": random_instance(1, jobs=15),
        "restarts": random_instance(2, jobs=25, nodes=4, span_s=2000.0, restart_s=30.0),
        "kinds": random_instance(3, jobs=25, nodes=6, kinds=True),
        "all": random_instance(4, jobs=25, nodes=5, span_s=2000.0, kinds=True, interference=True, restart_s=5.0),
    }


def test_most_policies_can_be_asked():
    assert {"fifo", "edf", "priority", "edf:mean", "sts", "sts-x", "sts:highs"} <= set(ASKABLE)


@pytest.mark.parametrize("name", ASKABLE)
@pytest.mark.parametrize("kind", ["plain", "all"])
def test_choosing_changes_nothing_but_memory(name, kind):
    policy, made, asked = askable(name), instances()[kind], 0
    state = State(made, memory_columns=memory_columns(policy, made))
    while state.advance() and asked < 150:
        state.begin_round(policy.preemption)
        for job in ask_order(state.view, policy.job_order, waiting_only=not policy.preemption).tolist():
            before = arrays(state)
            choice = policy.choose(state.view, job)
            assert_unchanged(state, before)
            state.view.apply(job, choice)
            if choice.config >= 0:
                state.view.place(job, choice.config)
            asked += 1
        state.commit_round()
    assert asked > 10


def test_sts_x_asked_in_a_round_that_others_have_begun_changes_nothing():
    """The first job of a round has left its place and holds something when STS-X is asked, for the second."""
    policy, state, asked = StsX(), State(instances()["all"]), 0
    while state.advance():
        state.begin_round(policy.preemption)
        order = ask_order(state.view, policy.job_order, waiting_only=False).tolist()
        for first in order[:1]:
            state.view.apply(first, Choice(0, leaves=True))
            any(state.view.place(first, c) for c in np.flatnonzero(np.isfinite(state.view.tau[first])).tolist())
        for job in order[1:]:
            before = arrays(state)
            choice = policy.choose(state.view, job)
            assert_unchanged(state, before)
            state.view.apply(job, choice)
            if choice.config >= 0:
                state.view.place(job, choice.config)
            asked += 1
        state.commit_round()
    assert asked > 100


KEEPERS = {"antman", "fill"}  # they change a job only for another on its GPU, which these instances do not have


@pytest.mark.parametrize("name", ASKABLE)
def test_what_is_chosen_job_by_job_is_what_is_decided_in_rounds(name):
    switches = 0
    for instance in instances().values():
        whole, single = simulate(instance, askable(name)), simulate(instance, JobByJob(askable(name)))
        assert single.log.tobytes() == whole.log.tobytes()
        assert (single.total_eur, single.rounds) == (whole.total_eur, whole.rounds)
        switches += int(whole.switches.sum())
    assert switches > 0 or not askable(name).preemption or name in KEEPERS
