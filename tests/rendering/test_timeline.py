"""One node of 2 GPUs and two jobs, each of 10 epochs at 10 s on one GPU and 5 s on two.

Job 0 comes at 0 and is due at 40; job 1 comes at 20 and is due at 200. The script gives a job that is alone both
GPUs, and two jobs one each. Job 0: both from 0 to 20 (4 epochs), then one for the other 6 epochs, until 80: late.
Job 1: one from 20 to 80 (6 epochs), then both for the other 4, until 100.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from first_rounds import begin_run
from gpusched_env.model import Configuration, EpochDistribution, GpuType, Instance, Job, Node
from gpusched_env.rendering import render_text
from gpusched_env.rendering.timeline import Timeline
from gpusched_env.simulator import State, simulate

ONE, TWO = Configuration("A", 1), Configuration("A", 2)


@dataclass(frozen=True)
class Script:
    name: str = "script"
    preemption: bool = True

    def decide(self, view, rng):
        active = list(view.active)
        for job in active:
            view.place(job, 1 if len(active) == 1 else 0)


def instance(restart_s=0.0):
    distribution = EpochDistribution.from_masses([1.0])
    seconds = {ONE: 10.0, TWO: 5.0}
    jobs = [
        Job(0.0, 40.0, 0.01, 10.0, distribution, 10.0, seconds),
        Job(20.0, 200.0, 0.01, 10.0, distribution, 10.0, seconds),
    ]
    return Instance.from_jobs([GpuType("A", 100.0, 100.0, 16.0)], [Node("A", 2)], jobs, restart_s=restart_s)


def state_in_round(number, *, commit=False):
    state = State(instance())
    rng = np.random.default_rng(0)
    for _ in range(number - 1):
        state.advance()
        state.begin_round(preemption=True)
        Script().decide(state.view, rng)
        state.commit_round()
    state.advance()
    state.begin_round(preemption=True)
    if commit:
        Script().decide(state.view, rng)
        state.commit_round()
    return state


def bars(timeline):
    return [(bar.job, bar.runs, bar.start_s, bar.end_s) for bar in timeline.bars]


def test_a_finished_run_shows_every_interval_on_its_own_gpus():
    timeline = Timeline.of(simulate(instance(), Script()))
    assert bars(timeline) == [
        (0, ((0, 2),), 0.0, 20.0),
        (0, ((0, 1),), 20.0, 80.0),
        (1, ((1, 1),), 20.0, 80.0),
        (1, ((0, 2),), 80.0, 100.0),
    ]
    assert not timeline.running
    assert timeline.now_s == 100.0
    assert timeline.policy == "script"


def test_late_is_what_ended_after_its_due_date():
    assert Timeline.of(simulate(instance(), Script())).late.tolist() == [True, False]


def test_the_restart_after_a_change_is_part_of_the_bar():
    timeline = Timeline.of(simulate(instance(restart_s=3.0), Script()))
    assert [(bar.start_s, bar.ready_s) for bar in timeline.bars][:3] == [(0.0, 0.0), (20.0, 23.0), (20.0, 20.0)]


@pytest.mark.parametrize("commit", [False, True])
def test_a_run_that_goes_on_shows_what_was_held_up_to_now(commit):
    timeline = Timeline.of(state_in_round(2, commit=commit))
    assert bars(timeline) == [(0, ((0, 2),), 0.0, 20.0)]
    assert timeline.running
    assert timeline.submitted.tolist() == [True, True]


def test_what_goes_on_unchanged_is_one_bar():
    state = state_in_round(3)
    state.view.place(1, 0)
    assert bars(Timeline.of(state, ahead_s=4.0))[-1] == (1, ((1, 1),), 20.0, 84.0)


def test_an_unfinished_job_is_late_once_its_due_date_is_past():
    state = state_in_round(2, commit=True)
    assert Timeline.of(state).late.tolist() == [False, False]
    state.board.clock[0] = 41.0
    assert Timeline.of(state).late.tolist() == [True, False]


def test_the_text_says_who_holds_what_and_who_waits():
    state = state_in_round(2)
    state.view.place(0, 1)
    lines = render_text(state).splitlines()
    energy = 20.0 / 3600.0 * 0.3 * 0.172 * 1.58  # 20 s at 100 W + 2 * 100 W
    assert lines[0] == "time 20 s (20 s), round 2"
    assert lines[1] == f"cost {energy:.2f} € = energy {energy:.2f} € + tardiness 0.00 €"
    assert lines[2] == "jobs 0 done, 2 active, 0 to come, of 2"
    assert lines[4] == "node 0  A  [##]  job 0 x2"
    assert lines[6] == "waiting: 1"
    assert lines[7] == "  job 1  due at 200 s, due in 3 min, 0% of its epochs done"


def test_the_text_marks_late_jobs():
    state = state_in_round(2)
    state.board.clock[0] = 41.0
    assert "  job 0!  due at 40 s, late by 1 s, 40% of its epochs done" in render_text(state).splitlines()


def test_the_text_lists_at_most_20_waiting_jobs():
    distribution = EpochDistribution.from_masses([1.0])
    jobs = [Job(0.0, 100.0 + i, 0.01, 1.0, distribution, 1.0, {ONE: 1.0}) for i in range(25)]
    state = begin_run(Instance.from_jobs([GpuType("A", 100.0, 0.0, 16.0)], [Node("A", 1)], jobs), preemption=False)
    lines = render_text(state).splitlines()
    assert "waiting: 25" in lines
    assert lines[-1] == "  and 5 more"
    assert sum(line.startswith("  job") for line in lines) == 20
