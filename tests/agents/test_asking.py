"""Asking an agent changes nothing, and what it chooses job by job is what it decides in rounds."""

from __future__ import annotations

import numpy as np

from agent_networks import network, policy
from gpusched_env import load_scenario, make_instance
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.ordering import ask_order
from untouched import arrays, assert_unchanged


def test_choosing_changes_nothing_and_is_what_rounds_decide():
    instance = make_instance(load_scenario("default"), 3)
    agent = policy(instance, network(instance), due_date_timers=True, consolidation=True)
    whole, single, asked = State(instance), State(instance), 0
    while asked < 150 and whole.advance() and single.advance():
        for state in (whole, single):
            state.begin_round(agent.preemption)
        agent.decide(whole.view, np.random.default_rng(0))
        for job in ask_order(single.view, agent.job_order, waiting_only=not agent.preemption).tolist():
            before = arrays(single)
            choice = agent.choose(single.view, job)
            assert_unchanged(single, before)
            single.view.apply(job, choice)
            if choice.config >= 0:
                single.view.place(job, choice.config)
            single.board.count[at.ASKED] += 1
            asked += 1
        assert_unchanged(single, arrays(whole))
        for state in (whole, single):
            state.commit_round()
    assert asked >= 150
