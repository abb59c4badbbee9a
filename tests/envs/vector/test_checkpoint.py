"""A checkpoint: going on from it gives the same steps, bit for bit, here and in another process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from gpusched_env import GpuClusterVectorEnv, InputError, make_instance
from gpusched_env.simulator import layout as at
from vector_twins import all_kinds, assert_same, few_jobs, random_actions

SCENARIOS = [all_kinds(3), all_kinds(5, 6)]
SETTINGS = {"deadline_wake_ups": True, "milestones": 2}


def make(envs: int = 4, **more: object) -> GpuClusterVectorEnv:
    return GpuClusterVectorEnv(envs, SCENARIOS, **(SETTINGS | more))


def play(env: GpuClusterVectorEnv, steps: int, seed: int) -> list[tuple]:
    rng = np.random.default_rng(seed)
    return [env.step(random_actions(env.action_masks(), rng)) for _ in range(steps)]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("steps", [0, 1, 37, 90])
def test_going_on_from_a_checkpoint_gives_the_same_steps(mode, steps):
    env = make(autoreset_mode=mode)
    env.reset(seed=8)
    play(env, steps, 0)
    state, observations, masks = env.get_state(), env.observations(), env.action_masks()
    expected = play(env, 120, 1)
    other = make(autoreset_mode=mode, threads=1)
    other.set_state(state)
    assert_same(other.observations(), observations)
    assert_same(other.action_masks(), masks)
    assert_same(play(other, 120, 1), expected)
    env.set_state(state)
    assert_same(play(env, 120, 1), expected)


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


def test_another_process_goes_on_from_the_file(tmp_path):
    env = make(2)
    env.reset(seed=8)
    play(env, 30, 0)
    np.savez(tmp_path / "state.npz", **env.get_state())
    expected = [float(rewards.sum()) for _, rewards, *_ in play(env, 60, 1)]
    code = (
        "import sys, numpy as np; from test_checkpoint import make, play\n"
        "env = make(2); env.set_state(dict(np.load(sys.argv[1], allow_pickle=False)))\n"
        "print([float(r.sum()).hex() for _, r, *_ in play(env, 60, 1)])"
    )
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2] / "support")]
    program = f"import sys; sys.path[:0] = {folders!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "state.npz")], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str([value.hex() for value in expected])


def test_a_larger_batch_than_the_instances_need_comes_back_too():
    """Padding, and the columns of shared GPUs, stay where the checkpoint has them."""
    env = make(2)
    env.reset(seed=1, options={"instance": make_instance(all_kinds(30, 9), 0)})
    env.reset(seed=2)
    play(env, 10, 0)
    state = env.get_state()
    expected = play(env, 40, 1)
    other = make(2)
    other.set_state(state)
    assert_same(play(other, 40, 1), expected)


def test_an_instance_that_was_given_has_no_seed_to_come_back_from():
    env = make(2)
    env.reset(options={"instance": make_instance(SCENARIOS[0], 3)})
    with pytest.raises(InputError, match=r"instances\[0\]"):
        env.get_state()


@pytest.mark.parametrize(
    "arguments",
    [{"envs": 3}, {"milestones": 3}, {"deadline_wake_ups": False}, {"preemption": False}, {"idle_review_s": 60.0}],
)
def test_a_checkpoint_of_other_arguments_is_refused(arguments):
    env, other = make(), make(**arguments)
    env.reset(seed=0)
    with pytest.raises(InputError, match="state"):
        other.set_state(env.get_state())


def test_a_checkpoint_of_another_scenario_is_refused():
    env, other = GpuClusterVectorEnv(2, few_jobs()), GpuClusterVectorEnv(2, few_jobs(restart_s=1.0))
    env.reset(seed=0)
    with pytest.raises(InputError, match="other arguments"):
        other.set_state(env.get_state())


def spoil(name: str, *index: object, to: object):
    def change(state: dict[str, np.ndarray]) -> None:
        state[name][index] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state.pop("jobs"),
        lambda state: state.update(jobs=state["jobs"].astype(np.float32)),
        lambda state: state.update(jobs=state["jobs"][:, :1]),
        lambda state: state.update(nodes=state["nodes"][:, :, :-2]),
        lambda state: state.update(generator=state["generator"][:, :3]),
        lambda state: state.update(ended=state["ended"][:2]),
        lambda state: state.update(clock="yesterday"),
        spoil("generator", 0, 3, to=4),
        spoil("generator", 0, 4, to=2),
        spoil("generator", 0, 5, to=2**40),
        spoil("instance_seed", 0, to=77),
        spoil("instance_seed", 0, to=-3),
        spoil("hidden", 1, 0, at.NEEDED, to=0.5),
        spoil("counts", 0, at.ACTIVE, to=10_000),
        spoil("counts", 0, at.ASKED, to=-1),
        spoil("counts", 0, at.LOGGING, to=1),
        spoil("order", to=9_000),
        spoil("active", to=-1),
        spoil("jobs", 0, 0, at.DISTRIBUTION, to=500.0),
        spoil("jobs", 0, 0, at.CONFIG, to=500.0),
        spoil("jobs", 0, 0, at.OLD_NODE, to=np.nan),
        spoil("jobs", 0, 0, at.SLOT, to=99.0),
        spoil("nodes", 0, 0, at.NODE_TYPE, to=9),
        spoil("nodes", 0, 0, at.FREE, to=-1),
        spoil("nodes", 0, 0, at.NEXT, to=99),
        spoil("sizes", 0, to=1),
    ],
)
def test_a_spoilt_checkpoint_is_refused_and_the_environment_stays_as_it_was(change):
    env = make()
    env.reset(seed=0)
    play(env, 12, 0)
    state, before = env.get_state(), env.get_state()
    change(state)
    with pytest.raises(InputError, match="state"):
        env.set_state(state)
    assert_same(env.get_state(), before)
    play(env, 5, 0)


def test_no_mapping_is_no_checkpoint():
    with pytest.raises(InputError, match="state"):
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
