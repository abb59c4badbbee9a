"""A checkpoint: going on from it gives the same steps, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from checkpoints import parts_of, play
from gpusched_env import GpuClusterVectorEnv, make_instance
from gpusched_env.envs.vector.checkpoint import NAMES
from gpusched_env.simulator import layout as at
from gpusched_env.workload import load_scenario
from refusals import refused
from vector_twins import all_kinds, assert_same, few_jobs, helped, priced, profiled, random_actions

SCENARIOS = [all_kinds(3), all_kinds(5, 6)]
SETTINGS = {"due_date_timers": True, "milestones": 2}


def make(envs: int = 4, **more: object) -> GpuClusterVectorEnv:
    return GpuClusterVectorEnv(envs, SCENARIOS, **(SETTINGS | more))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("steps", [0, 1, 37, 90])
def test_going_on_from_a_checkpoint_gives_the_same_steps(mode, steps):
    env = make(autoreset_mode=mode)
    env.reset(seed=8)
    play(env, steps, 0)
    state, observations, masks = env.get_state(), env.observations(), env.action_masks()
    expected = play(env, 120, 1)
    other = make(autoreset_mode=mode)
    other.set_state(state)
    assert_same(other.observations(), observations)
    assert_same(other.action_masks(), masks)
    assert_same(play(other, 120, 1), expected)
    env.set_state(state)
    assert_same(play(env, 120, 1), expected)


def test_going_on_from_a_file_gives_the_same_steps(tmp_path):
    env, other = make(2), make(2)
    env.reset(seed=8)
    play(env, 30, 0)
    np.savez(tmp_path / "state.npz", **env.get_state())
    other.set_state(dict(np.load(tmp_path / "state.npz", allow_pickle=False)))
    assert_same(play(other, 60, 1), play(env, 60, 1))


def test_a_checkpoint_keeps_what_has_been_profiled():
    env, other = (GpuClusterVectorEnv(2, profiled()) for _ in range(2))
    env.reset(seed=8)
    play(env, 40, 0)
    state, masks = env.get_state(), env.action_masks()
    other.set_state(state)
    assert_same(other.action_masks(), masks)
    assert_same(play(other, 60, 1), play(env, 60, 1))


def test_a_checkpoint_keeps_the_meter_and_what_is_published():
    env, other = (GpuClusterVectorEnv(2, priced(8, 1)) for _ in range(2))
    env.reset(seed=8)
    play(env, 40, 0)
    state = env.get_state()
    other.set_state(state)
    for one, two in zip(env.views, other.views, strict=True):
        np.testing.assert_array_equal(one.prices, two.prices)
        assert one.clock[at.KWH] == two.clock[at.KWH] > 0.0
        assert one.clock[at.PEAK_KW] == two.clock[at.PEAK_KW] > 0.0
    assert_same(play(other, 60, 1), play(env, 60, 1))


def test_a_checkpoint_is_plain_arrays_and_a_copy():
    env = make()
    env.reset(seed=8)
    state = env.get_state()
    assert all(type(array) is np.ndarray and array.dtype != np.object_ for array in state.values())
    copies = {name: array.copy() for name, array in state.items()}
    play(env, 20, 0)
    assert_same(state, copies)
    env.set_state(state)
    play(env, 20, 0)
    assert_same(state, copies)


def test_going_on_where_spare_machines_help_gives_the_same_steps():
    env = GpuClusterVectorEnv(2, [helped(6)], **SETTINGS)
    env.reset(seed=8)
    helped_jobs = 0
    for _ in range(40):
        play(env, 3, 0)
        helped_jobs += sum(int(np.sum(view.board.jobs[:, at.SLOWDOWN] < 1.0)) for view in env.views)
        state = env.get_state()
        other = GpuClusterVectorEnv(2, [helped(6)], **SETTINGS)
        other.set_state(state)
        assert_same(other.observations(), env.observations())
    assert helped_jobs > 0
    assert_same(play(other, 60, 1), play(env, 60, 1))


def test_nothing_stays_of_a_larger_instance_that_was_there_before():
    env = make(2)
    env.reset(seed=1, options={"instance": make_instance(all_kinds(30, 9), 0)})
    env.reset(seed=2)
    play(env, 10, 0)
    state = env.get_state()
    smaller = make(2)
    smaller.reset(seed=2)
    assert {name: array.shape for name, array in state.items()} == {
        name: array.shape for name, array in smaller.get_state().items()
    }
    expected = play(env, 40, 1)
    other = make(2)
    other.set_state(state)
    assert_same(play(other, 40, 1), expected)


def test_an_instance_that_was_given_has_no_seed_to_come_back_from():
    env = make(2)
    env.reset(options={"instance": make_instance(SCENARIOS[0], 3)})
    with refused("instances[0]", "multi-node"):
        env.get_state()


@pytest.mark.parametrize(
    "arguments",
    [
        {"envs": 3}, {"milestones": 3}, {"due_date_timers": False}, {"preemption": False}, {"idle_review_s": 60.0},
        {"max_idle_reviews": 6}, {"max_episode_steps": 15}, {"step_limit": 15},
    ],
)  # fmt: skip
def test_a_checkpoint_of_other_arguments_is_refused(arguments):
    env, other = make(), make(**arguments)
    env.reset(seed=0)
    with refused("state", "a state with other arguments"):
        other.set_state(env.get_state())


@pytest.mark.parametrize(
    ("one", "another"), [(few_jobs(), few_jobs(restart_s=1.0)), ("few-jobs", load_scenario("few-jobs"))]
)
def test_a_checkpoint_of_another_scenario_or_of_its_track_is_refused(one, another):
    env, other = (GpuClusterVectorEnv(2, each, step_limit=None) for each in (one, another))
    env.reset(seed=0)
    with refused("state", "a state with other arguments"):
        other.set_state(env.get_state())


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("jobs"),
        lambda state: state.update(jobs=state["jobs"].astype(np.float32)),
        lambda state: state.update(jobs=state["jobs"][np.newaxis]),
        lambda state: state.update(nodes=state["nodes"][:-2]),
        lambda state: state.update(memory=state["memory"][:0]),
        lambda state: state.update(generator=state["generator"][:, :3]),
        lambda state: state.update(ended=state["ended"][:2]),
        lambda state: state.update(clock=np.array("yesterday")),
    ],
)
def test_arrays_that_are_no_checkpoint_are_refused_and_the_environment_stays_as_it_was(change):
    env = make()
    env.reset(seed=0)
    play(env, 12, 0)
    state, before = env.get_state(), env.get_state()
    change(state)
    with refused("state" if "jobs" in state else "state['jobs']"):
        env.set_state(state)
    assert_same(env.get_state(), before)
    play(env, 5, 0)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"cells"}))  # there are none here
def test_a_checkpoint_with_one_byte_changed_is_refused_whichever_array_it_is_in(name):
    """Also a policy's memory, of which nothing else says what it must be."""
    env = make(2)
    env.reset(seed=0)
    play(env, 12, 0)
    state, before = env.get_state(), env.get_state()
    assert state[name].size
    state[name].view(np.uint8).flat[-1] ^= 1
    with refused("state"):
        env.set_state(state)
    assert_same(env.get_state(), before)


SHARED = {"jobs.gpu_counts": [1, 2], "sharing.fractions": [0.5, 0.25], "restart_s": 30.0}
KINDS = {
    "plain": few_jobs(12, 2, **{"cluster.gpus_per_node": 4}),
    "shared": few_jobs(12, 2, **SHARED),
    "multi-node": all_kinds(12, 6),
    "switching": few_jobs(12, 2, **SHARED, **{"switching.start_s": 10.0, "switching.resume_s": 20.0}),
    "host memory": few_jobs(
        12, 2, **{"switching.model": "pipelined", "switching.pool_gib": 0.5, "switching.gpus_per_link": 2}
    ),
}


SPOILERS = {
    np.dtype(np.float64): (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 0.5, 3.0, 99.0, 1e9, 1e300, -1e300),
    np.dtype(np.int64): (-1, 0, 1, 3, 99, 2**40, 2**62, 2**63 - 1, -(2**63)),
}


def spoil_one_number(env: GpuClusterVectorEnv, state: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    """Change a number anywhere: to one that occurs nowhere, or to a close one."""
    i = int(rng.integers(env.num_envs))
    parts = parts_of(env, state, i)
    name = str(rng.choice([name for name, array in parts.items() if array.size]))
    array = parts[name]
    index = tuple(int(rng.integers(length)) for length in array.shape)
    draw, whole = rng.random(), array.dtype == np.int64
    if draw < 0.5:
        array[index] = rng.choice(SPOILERS[array.dtype])
    elif draw < 0.75:
        array[index] = rng.choice(array.ravel())
    else:
        array[index] += rng.choice([-1, 1]) * (1 if whole else 10.0 ** rng.uniform(-6, 3))


@pytest.mark.parametrize("preemption", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [3, 60])
def test_a_checkpoint_with_one_number_changed_is_refused_and_the_environment_stays_as_it_was(kind, preemption, steps):
    """Kernels follow what is in it without looking: it must be a state that a run was in."""
    rng = np.random.default_rng(steps)
    env, other = (GpuClusterVectorEnv(2, KINDS[kind], preemption=preemption, milestones=2) for _ in range(2))
    env.reset(seed=steps)
    play(env, steps, steps)
    other.reset(seed=0)
    before = other.get_state()
    for _ in range(60):
        state, honest = env.get_state(), env.get_state()
        spoil_one_number(env, state, rng)
        if all(state[name].tobytes() == honest[name].tobytes() for name in state):
            continue
        with refused("state"):
            other.set_state(state)
        assert_same(other.get_state(), before)


def meddle(env: GpuClusterVectorEnv, rng: np.random.Generator) -> None:
    """Do what a policy may do through its view, also to jobs other than the current one."""
    for view in env.views:
        for job in view.active.tolist():
            act = rng.random()
            if act < 0.2:
                view.set_timer(job, float(rng.choice([np.inf, -np.inf, 0.0, view.now_s + 50.0, 1e12])))
            elif act < 0.4:
                view.clear_preferred_node(job)
            elif act < 0.6:
                view.release(job)
            elif act < 0.9:
                view.place(job, int(rng.choice(np.flatnonzero(np.isfinite(view.tau[job])))))


@pytest.mark.parametrize("mode", ["NextStep", "Disabled"])
@pytest.mark.parametrize("preemption", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("meddles", [False, True])
def test_honest_states_are_taken_and_go_on_bit_for_bit(kind, preemption, mode, meddles):
    """At any third step of an episode, also at its end, and after a policy has done something through a view."""
    settings = {"preemption": preemption, "consolidation": meddles, "due_date_timers": not meddles}
    env, other = (GpuClusterVectorEnv(2, KINDS[kind], autoreset_mode=mode, **settings) for _ in range(2))
    env.reset(seed=1)
    rng, ended = np.random.default_rng(0), np.zeros(2, dtype=bool)
    for step in range(150):
        if meddles and step % 3 == 0:
            meddle(env, rng)
        if step % 3 == 0 or ended.any():
            other.set_state(env.get_state())
            assert_same(other.observations(), env.observations())
            assert_same(other.jobs, env.jobs)
            assert_same(other.get_state(), env.get_state())
        if mode == "Disabled" and ended.any():
            again = {"reset_mask": ended}
            assert_same(other.reset(options=again), env.reset(options=again))
        actions = random_actions(env.action_masks(), rng)
        stepped = env.step(actions)
        assert_same(other.step(actions), stepped)
        ended = stepped[2]


def test_no_mapping_is_no_checkpoint():
    with refused("state['jobs']", None):
        make().set_state(None)


def test_a_generator_goes_on_in_the_middle_of_a_word():
    """Seeds are drawn in halves of 64 bits: the half that is left belongs to the state."""
    env = GpuClusterVectorEnv(1, few_jobs(1))
    env.reset(seed=0)
    env.reset()
    state = env.get_state()
    assert state["generator"][0, 4] == 1
    other = GpuClusterVectorEnv(1, few_jobs(1))
    other.set_state(state)
    env.reset()
    other.reset()
    assert env.instances == other.instances
    assert other.np_random_seed == (-1,)
    assert AutoresetMode.NEXT_STEP is env.autoreset_mode


def test_a_default_that_is_given_is_no_other_argument():
    one, other = GpuClusterVectorEnv(2, few_jobs()), GpuClusterVectorEnv(2, few_jobs(), flat=False, preemption=True)
    one.reset(seed=0)
    other.set_state(one.get_state())
    assert_same(one.observations(), other.observations())
