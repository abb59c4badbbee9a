"""What starts, changes, pauses and returns cost, by distance: one job of 100 s of work, worked out by hand.

Three nodes of two GPUs; every configuration takes 10 s an epoch, of which the job needs 10. Starting takes 3 s, going
on on the same nodes 2 s, going on elsewhere 7 s.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpusched_baselines import make_policy
from gpusched_env import Configuration, GpuType, Instance, Job, Node, simulate
from gpusched_env.simulator import Choice, State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.placement.held_nodes import add_to_mark
from gpusched_env.simulator.switching import longest_switch_s, switch_s
from instances import CERTAIN, random_instance
from run_files import audited
from scripted import Place, Scripted

CONFIGURATIONS = (
    Configuration("V", 1),
    Configuration("V", 2),
    Configuration("V", 1, share=0.5),
    Configuration("V", 1, share=0.25),
    Configuration("V", 2, nodes=2),
)
ONE, TWO, HALF, QUARTER, SEVERAL = range(5)
START_S, RESUME_S, RESTART_S = 3.0, 2.0, 7.0
A, B = 0, 1


def cluster(resume_s: float | None = RESUME_S, start_s: float = START_S, jobs: int = 1) -> Instance:
    """Make the instance: all jobs are there at the beginning, and are alike."""
    gpu_type = GpuType("V", 1000.0, 0.0, 16.0, 2)
    seconds = dict.fromkeys(CONFIGURATIONS, 10.0)
    job = Job(0.0, 1e6, 0.0, 10.0, CERTAIN, 10.0, seconds, start_s=start_s, resume_s=resume_s)
    return Instance.from_jobs([gpu_type], [Node("V", 2)] * 3, [job] * jobs, CONFIGURATIONS, restart_s=RESTART_S)


def completion_s(
    tmp_path: Path, steps: Mapping[float, Place | None], instance: Instance, others: Mapping[float, Place] | None = None
) -> float:
    """Do the steps with job A, and others with job B; audit the run, and say when A ended."""
    plan: dict[float, dict[int, Place]] = {}
    for time in sorted({*steps, *(others or {})}):
        of_a = steps[max(t for t in steps if t <= time)]
        of_b = (others or {}).get(max((t for t in others or {} if t <= time), default=-1.0))
        plan[time] = ({B: of_b} if of_b else {}) | ({A: of_a} if of_a else {})
    result = simulate(instance, Scripted(plan))
    assert audited(result, tmp_path / "run") == []
    return float(result.completion_s[A])


HERE, ELSEWHERE = (ONE, 0, None), (ONE, 1, None)
BY_HAND: dict[str, tuple[dict[float, Place | None], float]] = {
    "a first start takes 3 s": ({0.0: HERE}, 103.0),
    "47 s are done at 50 s; on the same node it goes on at 52 s": ({0.0: HERE, 50.0: (TWO, 0, None)}, 105.0),
    "on another node it goes on at 57 s": ({0.0: HERE, 50.0: ELSEWHERE}, 110.0),
    "after a pause, on the same node, at 62 s": ({0.0: HERE, 50.0: None, 60.0: HERE}, 115.0),
    "after a pause, on another node, at 67 s": ({0.0: HERE, 50.0: None, 60.0: ELSEWHERE}, 120.0),
    "its last node counts, not its first": ({0.0: HERE, 50.0: ELSEWHERE, 60.0: None, 70.0: ELSEWHERE}, 122.0),
    "and back on its first it must restart": ({0.0: HERE, 50.0: ELSEWHERE, 60.0: None, 70.0: HERE}, 127.0),
    "back before it was ready elsewhere it goes on": ({0.0: HERE, 50.0: ELSEWHERE, 53.0: HERE}, 108.0),
    "a change before it was ready there is a restart": ({0.0: HERE, 50.0: ELSEWHERE, 53.0: (TWO, 1, None)}, 113.0),
    "a start broken off is a start again": ({0.0: HERE, 2.0: None, 10.0: ELSEWHERE}, 113.0),
    "a start broken off by a change too": ({0.0: HERE, 2.0: (TWO, 0, None)}, 105.0),
    "another share of the same GPU costs nothing": ({0.0: (HALF, 0, 0), 50.0: (QUARTER, 0, 0)}, 103.0),
    "and cuts no start short": ({0.0: (HALF, 0, 0), 1.0: (QUARTER, 0, 0)}, 103.0),
    "nor a restart": ({0.0: (HALF, 0, 0), 50.0: (HALF, 1, 0), 53.0: (QUARTER, 1, 0)}, 110.0),
    "a share of another GPU of the node goes on": ({0.0: (HALF, 0, 0), 50.0: (QUARTER, 0, 1)}, 105.0),
    "so do whole GPUs of the node": ({0.0: (HALF, 0, 0), 50.0: HERE}, 105.0),
    "and a share of the same GPU after a pause": ({0.0: (HALF, 0, 0), 50.0: None, 60.0: (HALF, 0, 0)}, 115.0),
    "several nodes, the same after a pause": ({0.0: (SEVERAL, 0, None), 50.0: None, 60.0: (SEVERAL, 0, None)}, 115.0),
    "from one node to several": ({0.0: HERE, 50.0: (SEVERAL, 0, None)}, 110.0),
    "from several nodes to one": ({0.0: (SEVERAL, 0, None), 50.0: HERE}, 110.0),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_every_distance_costs_what_it_should(tmp_path, case):
    steps, expected = BY_HAND[case]
    assert completion_s(tmp_path, steps, cluster()) == pytest.approx(expected, abs=1e-9)


def test_several_nodes_of_which_one_is_another_are_a_restart(tmp_path):
    """A leaves nodes 0 and 1 at 50 s and comes back on 0 and 2 at 60 s, since B is on node 1 by then."""
    steps: dict[float, Place | None] = {0.0: (SEVERAL, 0, None), 50.0: None, 60.0: (SEVERAL, 0, None)}
    assert completion_s(tmp_path, steps, cluster(jobs=2), {50.0: (TWO, 1, None)}) == pytest.approx(120.0)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ({0.0: HERE, 50.0: (TWO, 0, None)}, 110.0),
        ({0.0: HERE, 50.0: None, 60.0: HERE}, 120.0),
        ({0.0: (HALF, 0, 0), 50.0: (QUARTER, 0, 0)}, 110.0),
        ({0.0: HERE, 2.0: (TWO, 0, None)}, 105.0),
    ],
)
def test_where_distances_are_not_plan_apart_every_change_is_a_restart(tmp_path, steps, expected):
    assert completion_s(tmp_path, steps, cluster(resume_s=None)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("resume_s", "returns_to"), [(RESUME_S, 1), (None, 0)])
def test_a_paused_job_comes_back_to_its_last_node_where_that_is_cheaper(resume_s, returns_to):
    """It ran on node 1; placement would take node 0, the first that is empty, for a new job."""
    steps = {0.0: {A: ELSEWHERE}, 50.0: {}}
    state = State(cluster(resume_s))
    state.advance()
    policy = Scripted(steps)
    for _ in range(2):
        state.begin_round(True)
        policy.decide(state.view, np.random.default_rng(0))
        state.commit_round()
        state.advance() if state.view.now_s < 50.0 else None
    state.begin_round(True)
    state.view.place(A, ONE)
    assert state.view.jobs[A, at.NODE] == returns_to


def test_one_job_with_a_resume_tells_distances_apart_for_all():
    seconds = dict.fromkeys(CONFIGURATIONS, 10.0)
    jobs = [Job(0.0, 1e6, 0.0, 10.0, CERTAIN, 10.0, seconds, resume_s=resume) for resume in (1.0, None)]
    one = Instance.from_jobs(
        [GpuType("V", 1000.0, 0.0, 16.0, 2)], [Node("V", 2)] * 3, jobs, CONFIGURATIONS, restart_s=9
    )
    assert one.jobs.resume_s is not None
    assert one.jobs.resume_s.tolist() == [1.0, 9.0]


def test_what_a_switch_would_cost_is_plan_before():
    """A has half of GPU 0 of node 0, B all of node 1; A has worked since 3 s."""
    state = State(cluster(jobs=2))
    state.advance()
    policy = Scripted({0.0: {A: (HALF, 0, 0), B: (TWO, 1, None)}, 50.0: {}})
    state.begin_round(True)
    policy.decide(state.view, np.random.default_rng(0))
    costs = [switch_s(state.board, A, config) for config in range(5)]
    assert costs == [START_S] * 5
    state.commit_round()
    state.advance()
    state.begin_round(False)
    costs = [switch_s(state.board, A, config) for config in range(5)]
    assert costs == [RESUME_S, RESUME_S, 0.0, 0.0, RESTART_S]
    assert longest_switch_s(state.board, A) == RESTART_S
    state.view.release(B)
    state.view.release(A)
    assert [switch_s(state.board, A, config) for config in range(5)] == [RESUME_S, RESUME_S, 0.0, 0.0, RESTART_S]
    state.view.apply(B, Choice(ONE, node=0))
    state.view.place(B, ONE)
    assert [switch_s(state.board, A, config) for config in range(5)] == [RESUME_S, RESTART_S, 0.0, 0.0, RESTART_S]


@pytest.mark.parametrize("name", ["edf:preemptive", "greedy", "sts", "sts-x", "atc", "las"])
def test_costs_that_are_all_alike_change_no_run(name):
    """Policies without shares to change cannot tell an instance with equal costs from one with a restart only."""
    policy = make_policy(name)
    for seed in range(4):
        instance = random_instance(seed, jobs=20, nodes=4, span_s=600.0, restart_s=20.0)
        by_distance = replace(instance, jobs=replace(instance.jobs, resume_s=instance.jobs.restart_s))
        one, other = simulate(instance, policy, seed=seed), simulate(by_distance, policy, seed=seed)
        np.testing.assert_array_equal(one.log, other.log)


@pytest.mark.parametrize(("first", "second"), [(0, 1), (5, 999_999)])
def test_marks_tell_one_node_and_two_apart(first, second):
    """A mark is a number in base 1,000,003 whose digits are the nodes, from 1."""
    assert add_to_mark(0, first) == first + 1
    assert add_to_mark(add_to_mark(0, first), second) == (first + 1) * 1_000_003 + second + 1
