"""The batch: states live in it, and keep what they hold when it grows."""

from __future__ import annotations

import numpy as np
import pytest
from gpusched_env.envs.vector.arrays import arrays_of
from gpusched_env.envs.vector.batch import Batch

from gpusched_env import GpuClusterVectorEnv, make_instance
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from vector_twins import all_kinds, few_jobs


def shared(gpus: int, jobs: int = 5, nodes: int = 3) -> State:
    settings = {"cluster.gpus_per_node": gpus, "jobs.gpu_counts": [1, 2], "sharing.fractions": [0.5, 0.25]}
    return State(make_instance(few_jobs(jobs, nodes, **settings), 0), record=False)


def test_states_live_in_the_batch():
    states = [State(make_instance(all_kinds(jobs, 4), jobs), record=False) for jobs in (3, 5)]
    before = [arrays_of(state) for state in states]
    copies = [[array.copy() for array in own] for own in before]
    batch = Batch(states)
    for i, state in enumerate(states):
        for name, copied, whole in zip(before[i]._fields, copies[i], batch.arrays, strict=True):
            true = tuple(slice(length) for length in copied.shape)
            np.testing.assert_array_equal(whole[i][true], copied)
            if name not in {"slowdown", "planned", "survival", "tail"}:  # what never changes stays where it was
                assert np.shares_memory(whole, getattr(arrays_of(state), name))
    states[1].count[at.DONE] = 4
    assert batch.arrays.counts[:, at.DONE].tolist() == [0, 4]
    assert batch.sizes[:, :2].tolist() == [[3, 4], [5, 4]]


@pytest.mark.parametrize(("gpus", "jobs", "nodes"), [(4, 5, 3), (2, 9, 3), (2, 5, 7), (4, 9, 7)])
def test_a_state_keeps_everything_when_a_larger_one_comes(gpus, jobs, nodes):
    """Also the two halves of the columns of shared GPUs, which move apart."""
    state = shared(2)
    batch = Batch([state, shared(2)])
    state.view.nodes[:, at.NODE_COLUMNS :] = np.arange(1, 13).reshape(3, 4)
    state.view.jobs[:] = np.arange(state.view.jobs.size).reshape(state.view.jobs.shape)
    jobs_before, old = state.view.jobs.copy(), state.view.nodes.copy()
    batch.put({1: shared(gpus, jobs, nodes)})
    np.testing.assert_array_equal(state.view.jobs, jobs_before)
    now, most = state.view.nodes, max(2, gpus)
    np.testing.assert_array_equal(now[:, : at.NODE_COLUMNS + 2], old[:, : at.NODE_COLUMNS + 2])
    np.testing.assert_array_equal(now[:, at.NODE_COLUMNS + most :][:, :2], old[:, at.NODE_COLUMNS + 2 :])
    assert now.shape == (3, at.NODE_COLUMNS + 2 * most)


def test_environments_of_one_scenario_share_their_site_and_forgotten_ones_go():
    env = GpuClusterVectorEnv(3, few_jobs())
    env.reset(seed=0)
    batch = env._runs.batch
    assert (len(batch.sites), len(batch.bins)) == (1, 1)
    for nodes in range(3, 12):
        env.reset(options={"instance": make_instance(few_jobs(2, nodes), 0)})
        assert len(batch.sites) <= 7
    assert len(set(batch.sizes[:, -2])) == 1
    np.testing.assert_array_equal(batch.sites.arrays.configs[batch.sizes[0, -2]], env.views[0].configs)
