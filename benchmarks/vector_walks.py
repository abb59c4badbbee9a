"""Walks through many environments at once, by name: ours, a single one, gymnasium's vectorisation, and jumanji's.

`python -m benchmarks.vector_walks NAME ENVS STEPS` prepares one; then it walks once for each line that it reads, and
prints the decisions a second.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from benchmarks import jobshop
from benchmarks.child import answer
from gpusched_env import GpuClusterEnv, load_scenario
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.kernel import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAME_STEP = AutoresetMode.SAME_STEP  # every step of every environment is a decision then


class Walk(Protocol):
    """A walk that goes on from one repetition to the next."""

    def __call__(self) -> float:
        """Continue the walk; return the decisions a second, of all environments together."""

    def close(self) -> None:
        """Release its resources."""


def walk(name: str, envs: int, steps: int) -> Walk:
    """Prepare a walk.

    Args:
        name: "native" (`GpuClusterVectorEnv`), "single", "sync" or "async" (gymnasium's), "shop", "fast shop" or "core
            shop" (jumanji's, see `jobshop`; the last is the fast one on one core, which this process then keeps to).
        envs: Number of environments; "single" has one.
        steps: Steps of each in a repetition.
    """
    if name == "core shop":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if name in ("shop", "fast shop", "core shop"):
        return jobshop.Walk(envs, steps, own_reset=name == "shop", threads=2 if name == "fast shop" else 1)
    make = partial(GpuClusterEnv, load_scenario("default"))
    if name == "single":
        return SingleWalk(make(), steps)
    if name == "sync":
        return VectorWalk(SyncVectorEnv([make] * envs, copy=False, autoreset_mode=SAME_STEP), steps)
    if name == "async":
        spawned = AsyncVectorEnv([make] * envs, copy=False, context="spawn", autoreset_mode=SAME_STEP)
        return VectorWalk(spawned, steps)
    return VectorWalk(GpuClusterVectorEnv(envs, load_scenario("default"), autoreset_mode=SAME_STEP), steps)


class VectorWalk:
    """A random walk through a vector environment that goes on from one repetition to the next.

    Args:
        env: The vector environment.
        steps: Steps of each environment in a repetition.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], steps: int) -> None:
        self.env = env
        self.draws = np.random.default_rng(0).random((steps, env.num_envs))
        self.actions = np.zeros(env.num_envs, np.int64)
        self.masks: NDArray[np.int8] = env.reset(seed=0)[1]["action_mask"]

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def __call__(self) -> float:
        """Continue the walk; return the decisions a second."""
        begin = time.perf_counter()
        for draws in self.draws:
            draw_allowed(self.masks, draws, self.actions)
            self.masks = self.env.step(self.actions)[4]["action_mask"]
        return self.draws.size / (time.perf_counter() - begin)


class SingleWalk:
    """A random walk through a single environment."""

    def __init__(self, env: GpuClusterEnv, steps: int) -> None:
        self.env = env
        self.draws = np.random.default_rng(0).random(steps).tolist()
        self.mask: NDArray[np.int8] = env.reset(seed=0)[1]["action_mask"]

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def __call__(self) -> float:
        """Continue the walk; return the decisions a second."""
        begin = time.perf_counter()
        for draw in self.draws:
            _, _, ended, _, info = self.env.step(draw_one(self.mask, draw))
            if ended:
                info = self.env.reset()[1]
            self.mask = info["action_mask"]
        return len(self.draws) / (time.perf_counter() - begin)


@kernel
def draw_allowed(masks: NDArray[np.int8], draws: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
    """Write an action that its mask allows for each environment, from random numbers in [0, 1)."""
    for i in range(actions.shape[0]):
        actions[i] = draw_one(masks[i], draws[i])


@kernel
def draw_one(mask: NDArray[np.int8], draw: float) -> int:
    """Return the action at the share `draw` of those that the mask allows."""
    allowed = 0
    for action in range(mask.shape[0]):
        allowed += mask[action]
    left = int(draw * allowed)
    for action in range(mask.shape[0]):
        if mask[action] != 0:
            if left == 0:
                return action
            left -= 1
    return 0


if __name__ == "__main__":
    answer(walk(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
