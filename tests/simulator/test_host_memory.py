"""States of paused jobs in the host memory of nodes, and GPUs that share a link: jobs of 100 s of work, by hand.

Three nodes of two GPUs; every configuration takes 10 s an epoch, of which a job needs 10. Starting takes 3 s,
continuing where the state is 2 s, a restart 7 s. A state has 10 GiB, which leave and come back in 1 s.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_baselines import make_policy
from gpusched_env import (
    Configuration,
    EpochDistribution,
    GpuType,
    HostMemory,
    Instance,
    Job,
    Node,
    Scenario,
    make_instance,
    simulate,
)
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.switching import pause_s, switch_s
from refusals import refused
from run_files import audited, loaded_again
from scripted import Place, Scripted

CONFIGURATIONS = (Configuration("V", 1), Configuration("V", 2), Configuration("V", 2, nodes=2))
ONE, TWO, SEVERAL = range(3)
A, B = 0, 1
STATE_GIB = 10.0
FAST = 2.0 * STATE_GIB * 2.0**30 / 1e9  # [GB/s]: a state leaves and comes back in 1 s
HERE, THERE, ELSEWHERE, BOTH = (ONE, 0, None), (TWO, 0, None), (ONE, 1, None), (SEVERAL, 0, None)


def cluster(memory: HostMemory | None, jobs: int = 2) -> Instance:
    seconds = dict.fromkeys(CONFIGURATIONS, 10.0)
    distribution = EpochDistribution.certain()
    job = Job(0.0, 1e6, 0.0, 10.0, distribution, 10.0, seconds, start_s=3.0, resume_s=2.0, state_gib=STATE_GIB)
    gpu_type, nodes = GpuType("V", 1000.0, 0.0, 16.0, 2), [Node("V", 2)] * 3
    return Instance.from_jobs(
        [gpu_type], nodes, [job] * jobs, CONFIGURATIONS, restart_s=7.0, mechanisms=() if memory is None else (memory,)
    )


def completions_s(
    tmp_path: Path, memory: HostMemory | None, steps: dict[float, dict[int, Place]], jobs: int = 1
) -> list[float]:
    result = simulate(cluster(memory, jobs), Scripted(steps))
    assert audited(result, tmp_path / "run") == []
    return [pytest.approx(each) for each in result.completion_s.tolist()]


ROOM, NONE = HostMemory(15.0), HostMemory(9.0)


@pytest.mark.parametrize(("memory", "expected"), [(None, 115.0), (ROOM, 115.0), (NONE, 120.0)])
def test_a_paused_job_continues_only_if_its_state_had_room(tmp_path, memory, expected):
    """47 s are done at 50 s; back at 60 s it goes on at 62 s, or after a restart at 67 s."""
    steps = {0.0: {A: HERE}, 50.0: {}, 60.0: {A: HERE}}
    assert completions_s(tmp_path, memory, steps) == [expected]


STEPS = {
    "of two that pause the first one gets the room": (
        ROOM, {0.0: {A: HERE, B: HERE}, 50.0: {}, 60.0: {A: HERE, B: HERE}}, [115.0, 120.0],
    ),  # the next: A is away from 50 s to 60 s, B from 60 s to 70 s; both continue
    "a job that begins again leaves its room to the one that pauses": (
        ROOM, {0.0: {A: HERE, B: HERE}, 50.0: {B: HERE}, 60.0: {A: HERE}, 70.0: {A: HERE, B: HERE}}, [115.0, 115.0],
    ),
    "every node has a pool of its own": (
        ROOM, {0.0: {A: HERE, B: ELSEWHERE}, 50.0: {}, 60.0: {A: HERE, B: ELSEWHERE}}, [115.0, 115.0],
    ),
    "a state on several nodes is not kept": (HostMemory(1000.0), {0.0: {A: BOTH}, 50.0: {}, 60.0: {A: BOTH}}, [120.0]),
}  # fmt: skip


@pytest.mark.parametrize("rule", STEPS)
def test_who_gets_the_room(tmp_path, rule):
    memory, steps, expected = STEPS[rule]
    assert completions_s(tmp_path, memory, steps, len(expected)) == expected


def test_a_job_that_ran_again_after_its_state_was_dropped_continues_again(tmp_path):
    """Ready again at 67 s, it is away from 80 s to 90 s, when B, which has ended, leaves room: but none is needed."""
    steps = {
        0.0: {A: HERE, B: HERE},
        50.0: {},
        60.0: {B: HERE},  # restarts, and is ready at 67 s
        80.0: {A: HERE},  # continues; B pauses, and there is room now
        90.0: {A: HERE, B: HERE},
    }
    assert completions_s(tmp_path, ROOM, steps, 2) == [135.0, 132.0]


def test_a_pause_before_it_was_ready_elsewhere_needs_room_where_the_state_is(tmp_path):
    steps = {0.0: {A: HERE}, 50.0: {A: ELSEWHERE}, 53.0: {}, 60.0: {A: HERE}}
    assert completions_s(tmp_path, ROOM, steps) == [115.0]
    assert completions_s(tmp_path / "none", NONE, steps) == [120.0]


@pytest.mark.parametrize(
    ("place", "gpus_per_link", "bandwidth", "expected"),
    [(HERE, 2, FAST, 115.0), (THERE, 1, FAST, 115.0), (THERE, 2, FAST, 116.0), (THERE, 8, FAST, 116.0),
     (THERE, 2, FAST / 100.0, 120.0)],
)  # fmt: skip
def test_gpus_of_a_link_send_one_after_the_other(tmp_path, place, gpus_per_link, bandwidth, expected):
    """A second GPU on the link takes 1 s more; no more than a restart is needed."""
    memory = HostMemory(gpus_per_link=gpus_per_link, bandwidth_gb_per_s=bandwidth)
    steps = {0.0: {A: place}, 50.0: {}, 60.0: {A: place}}
    assert completions_s(tmp_path, memory, steps) == [expected]


def test_what_a_pause_would_cost_is_seen_before_and_what_it_did_after():
    """With room for one state of two jobs on node 0; the second one's is dropped."""
    state = State(cluster(ROOM))
    policy = Scripted({0.0: {A: HERE, B: HERE}, 50.0: {}})
    state.advance()
    for _ in range(2):
        state.begin_round(True)
        if state.view.now_s > 0.0:
            assert [pause_s(state.board, job) for job in (A, B)] == [2.0, 2.0]
        policy.decide(state.view, np.random.default_rng(0))
        state.commit_round()
        if state.view.now_s < 50.0:
            state.advance()
    state.begin_round(True)
    assert [switch_s(state.board, job, ONE) for job in (A, B)] == [2.0, 7.0]
    assert state.view.jobs[[A, B], at.PREFERRED_NODE].tolist() == [0.0, -1.0]
    assert state.board.nodes[:, at.POOL_FREE].tolist() == [5 * 2**30, 15 * 2**30, 15 * 2**30]
    assert pause_s(state.board, B) == 7.0


def switched(seed: int, **settings: object) -> Instance:
    jobs, arrivals = {"jobs.count": 12, "cluster.nodes": 2}, {"arrivals.kind": "poisson", "arrivals.mean_gap_s": 300.0}
    own = {"switching.model": "pipelined"} | {f"switching.{name}": value for name, value in settings.items()}
    return make_instance(Scenario().replace(jobs | arrivals | own), seed)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 1000))
def test_the_audit_agrees_on_drawn_workloads(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("run")
    result = simulate(switched(seed, pool_gib=1.0, gpus_per_link=2), make_policy("time-slice"), seed=seed)
    assert audited(result, folder / "run") == []


def test_a_small_pool_and_shared_links_lengthen_drawn_runs():
    policy = make_policy("time-slice")
    waits = [
        simulate(switched(3, **own), policy).log[:, [at.LOG_START, at.LOG_READY]]
        for own in ({}, {"gpus_per_link": 8}, {"pool_gib": 0.5})
    ]
    free, shared, small = (float((each[:, 1] - each[:, 0]).sum()) for each in waits)
    assert free < shared < small


def test_an_instance_file_keeps_the_memory(tmp_path):
    for memory in (None, ROOM, HostMemory(gpus_per_link=4)):
        assert loaded_again(cluster(memory), tmp_path) == cluster(memory)


def test_wrong_values_are_named():
    with refused("host_memory.pool_gib", 0.0):
        HostMemory(0.0)
    with refused("host_memory.gpus_per_link", 0):
        HostMemory(gpus_per_link=0)
    with refused("host_memory.bandwidth_gb_per_s", 0.0):
        HostMemory(bandwidth_gb_per_s=0.0)
