"""Rows of other jobs: hand-computed on three jobs, and in both environments."""

import copy
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, Instance, load_scenario, make_instance
from gpusched_env.observation import JOBS_FEATURES, Notes, cluster, job, observe
from gpusched_env.observation.ratios import Names
from gpusched_env.simulator import Asking, State
from gpusched_env.simulator.rounds import decide, run_to_round
from instances import three_jobs
from vector_twins import assert_same, few_jobs, random_actions

ROW = len(JOBS_FEATURES)
TARDINESS = JOBS_FEATURES.index("squash(tardiness cost of T seconds / least worst-case energy cost)")
HOLDS, THERE = JOBS_FEATURES.index("1 if it holds GPUs now"), ROW - 1


def rows_of(observation: dict[str, np.ndarray]) -> np.ndarray:
    return observation["jobs"].reshape(-1, ROW)


def equal_pressures() -> Instance:
    """Make the three jobs with equal due dates and epochs: only their weights differ."""
    jobs = three_jobs().jobs
    equal = replace(jobs, due_s=np.full(3, 36000.0), max_epochs=np.full(3, 4.0), distribution=np.full(3, 1))
    return replace(three_jobs(), jobs=equal)


def test_equal_jobs_come_by_submission_and_only_the_first_k_are_shown():
    env = GpuClusterEnv(instance=equal_pressures(), job_features=1)
    observation, info = env.reset()
    weights = [9.6 / 13.6, 19.2 / 23.2, 28.8 / 32.8]  # of the tardiness of T = 2⅔ h, against 4 € of energy
    for current, shown in ((0, 1), (1, 0), (2, 0)):
        assert info["job"] == current
        assert rows_of(observation)[0, TARDINESS] == pytest.approx(weights[shown], rel=1e-6)
        observation, *_, info = env.step(1)


def test_without_rows_the_observation_is_what_it_was_and_with_them_the_rest_stays():
    scenario = few_jobs(8)
    plain, rows = GpuClusterEnv(scenario), GpuClusterEnv(scenario, job_features=4)
    assert "jobs" not in plain.observation_space.spaces
    (one, info), (other, _) = plain.reset(seed=1), rows.reset(seed=1)
    rng, over, counts = np.random.default_rng(0), False, set()
    while not over:
        assert_same(one, {part: other[part] for part in one})
        active = len(rows.view.active)
        shown = rows_of(other)[:, THERE]
        assert shown.tolist() == [1.0] * min(4, active - 1) + [0.0] * max(0, 5 - active)
        counts.add(active)
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        one, _, over, _, info = plain.step(action)
        other, *_ = rows.step(action)
    assert {1, 5} <= counts
    assert not other["jobs"].any()


def test_rows_see_what_was_placed_through_the_view():
    env = GpuClusterEnv(instance=three_jobs(), job_features=2)
    env.reset()
    assert env.view.place(1, 0)
    assert rows_of(env._observe()[0])[:, HOLDS].tolist() == [0.0, 1.0]
    envs = GpuClusterVectorEnv(1, instance=three_jobs(), job_features=2)
    envs.reset()
    assert envs.views[0].place(1, 0)
    assert rows_of(envs.observations())[:, HOLDS].tolist() == [0.0, 1.0]


def test_a_copy_and_a_checkpoint_go_on_with_the_same_rows():
    envs = GpuClusterVectorEnv(3, few_jobs(6), job_features=3)
    _, infos = envs.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(10):
        seen, *_, infos = envs.step(random_actions(infos["action_mask"], rng))
    later = GpuClusterVectorEnv(3, few_jobs(6), job_features=3)
    later.set_state(envs.get_state())
    for other in (later, copy.deepcopy(envs)):
        assert_same(other.observations(), seen)


OBSERVE = import_module("gpusched_env.observation.observe")  # the package has a function of that name

WRITERS = {
    "write_job": (job, "feature", "JOB_FEATURES"),
    "write_options": (OBSERVE, "_option", "OPTION_FEATURES"),
    "write_cluster": (cluster, "_cluster", "CLUSTER_FEATURES"),
    "write_queue": (OBSERVE, "_queue", "QUEUE_FEATURES"),
}

"""Of every writer of a group of features its module, what declares them there, and their names."""


def test_names_are_numbered_as_they_are_declared():
    feature = Names()
    assert [feature("one"), feature("two", "three"), feature("four")] == [0, 1, 3]
    assert tuple(feature) == ("one", "two", "three", "four")


def test_every_place_of_an_observation_is_written_at_every_decision():
    state = State(make_instance(load_scenario("tiny"), seed=0), Asking())
    board, hidden = state.board, state.hidden
    notes = Notes.of(board, job_features=2)
    configurations, types = len(board.facts.configs), len(board.capacity)
    groups = [(), (configurations,), (types,), (), (2,)]
    features = (*(getattr(module, names) for module, _, names in WRITERS.values()), JOBS_FEATURES)
    out = [np.empty((*rows, len(names)), np.float32) for rows, names in zip(groups, features, strict=True)]
    mask = np.empty(1 + configurations, np.int8)
    run_to_round(board, hidden)
    for decision in range(40):
        for array in out:
            array.fill(np.nan)
        mask.fill(-1)
        observe(board, notes, *out, mask)
        assert all(np.isfinite(array).all() for array in out)
        assert set(mask.tolist()) <= {0, 1}
        state.grow_arrays()
        decide(board, state.hidden, int(np.flatnonzero(mask)[decision % np.count_nonzero(mask)]))
