"""Checkpoints as tests spoil them: by environment, in the shapes of the state."""

import numpy as np

from books import check_books
from gpusched_env import GpuClusterVectorEnv
from gpusched_env.envs.vector.checkpoint import changing
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.events import bill_rate
from vector_twins import random_actions


def parts_of(env: GpuClusterVectorEnv, state: dict[str, np.ndarray], i: int) -> dict[str, np.ndarray]:
    """Return the arrays of environment i, by name: views into those of `state`, which `env` gave just now."""
    shapes = [{name: array.shape for name, array in changing(run).items()} for run in env._runs.states]
    parts = {}
    for name, shape in shapes[i].items():
        first = sum(int(np.prod(before[name])) for before in shapes[:i])
        parts[name] = state[name][first : first + int(np.prod(shape))].reshape(shape)
    return parts


def play(env: GpuClusterVectorEnv, steps: int, seed: int) -> list[tuple]:
    """Play at random; give all that the steps returned."""
    rng = np.random.default_rng(seed)
    return [env.step(random_actions(env.action_masks(), rng)) for _ in range(steps)]


def check_costs(env: GpuClusterVectorEnv) -> None:
    """Check the books of every environment, and its costs against those of its jobs."""
    for view in env.views:
        check_books(view)
        board, submitted = view.board, view.jobs[: view.count[at.SUBMITTED]]
        paid = submitted[:, [at.ENERGY, at.TARDINESS]].sum(axis=0)
        np.testing.assert_allclose(paid, view.clock[[at.BILL, at.TARDINESS_COST]], rtol=1e-6, atol=1e-12)
        assert np.isfinite(view.clock[[at.NOW, at.BILL, at.TARDINESS_COST, at.BILL_RATE]]).all()
        if board.count[at.DONE] == len(board.jobs):
            assert bill_rate(board) == 0.0
