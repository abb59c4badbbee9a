"""Decisions a second of many environments at once: ours, single ones, gymnasium's vectorisation, and jumanji's."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv

from benchmarks import jobshop
from benchmarks.busy import busy
from benchmarks.figure import Figure, at_least, interleaved, ratios
from gpusched_env import GpuClusterEnv, load_scenario
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.kernel import kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Rates = dict[str, tuple[float, ...]]

TARGET = 1_000_000.0
BUSY_TARGET = 0.95
SAME_STEP = AutoresetMode.SAME_STEP  # every step of every environment is a decision then
BUSY = "a process on every core computes all the time"
SIZE = "10 nodes, 100 jobs"


def measure(
    envs: int = 256, steps: int = 10_000, few: int = 8, few_steps: int = 2_500, shops: int = 1024, repetitions: int = 5
) -> list[Figure]:
    """Measure decisions a second with random allowed actions, resets included, and ratios of interleaved repetitions.

    Args:
        envs: Environments of the native vector environment.
        steps: Its steps in each repetition; the default is longer than an episode, so each is paid for with its reset.
        few: Environments of gymnasium's own vector environments.
        few_steps: Steps in each repetition of theirs; the single environment has as many decisions.
        shops: Environments of jumanji, an even number; they take a hundredth of `steps`.
        repetitions: Repetitions.
    """
    make = partial(GpuClusterEnv, load_scenario("default"))
    native = partial(GpuClusterVectorEnv, envs, load_scenario("default"), autoreset_mode=SAME_STEP)
    with ExitStack() as opened:
        vectors: dict[str, tuple[VectorEnv[Any, Any, Any], int]] = {
            "two": (native(threads=2), steps),
            "one": (native(threads=1), steps),
            "sync": (SyncVectorEnv([make] * few, copy=False, autoreset_mode=SAME_STEP), few_steps),
            "async": (
                AsyncVectorEnv([make] * few, copy=False, context="spawn", autoreset_mode=SAME_STEP),
                few_steps,
            ),
        }
        contenders: dict[str, Callable[[], float]] = {
            name: _VectorWalk(opened.enter_context(closing(vector)), count) for name, (vector, count) in vectors.items()
        }
        contenders["single"] = _SingleWalk(make(), few * few_steps)
        if jobshop.installed():
            shop_steps = max(1, steps // 100)
            contenders["shop"] = jobshop.Walk(shops, shop_steps, own_reset=True, threads=1)
            contenders["fast shop"] = jobshop.Walk(shops, shop_steps, own_reset=False, threads=2)
        rate = interleaved(contenders, repetitions)
        with busy():
            beside = interleaved({name: contenders[name] for name in ("two", "one")}, repetitions)
    return [*_ours(rate, envs), *_beside_busy(beside, envs), *_gymnasium(rate, few), *_jumanji(rate, shops)]


def _ours(rate: Rates, envs: int) -> list[Figure]:
    return [
        Figure(f"GpuClusterVectorEnv, {SIZE}, {envs} envs, 2 threads", rate["two"], "decisions/s", at_least(TARGET)),
        Figure(f"GpuClusterVectorEnv, {SIZE}, {envs} envs, 1 thread", rate["one"], "decisions/s"),
        Figure("  2 threads / 1 thread", ratios(rate["two"], rate["one"]), "times"),
    ]


def _beside_busy(rate: Rates, envs: int) -> list[Figure]:
    name, ratio = f"GpuClusterVectorEnv, {SIZE}, {envs} envs, ", ratios(rate["two"], rate["one"])
    return [
        Figure(f"{name}2 threads, beside busy processes", rate["two"], "decisions/s"),
        Figure(f"{name}1 thread, beside busy processes", rate["one"], "decisions/s"),
        Figure("  2 threads / 1 thread, beside busy processes", ratio, "times", at_least(BUSY_TARGET), BUSY),
    ]


def _gymnasium(rate: Rates, few: int) -> list[Figure]:
    return [
        *_beside(rate, "single", "one GpuClusterEnv in a loop", "one GpuClusterEnv"),
        *_beside(rate, "sync", f"gymnasium SyncVectorEnv, only {few} envs", "SyncVectorEnv"),
        *_beside(rate, "async", f"gymnasium AsyncVectorEnv, only {few} envs", "AsyncVectorEnv"),
    ]


def _jumanji(rate: Rates, shops: int) -> list[Figure]:
    name = f"jumanji {jobshop.NAME}, {shops} envs"
    plain, fast = f"{name}, jit(scan(vmap)), its AutoResetWrapper", f"{name}, only ended ones reset, 2 threads"
    if "shop" not in rate:
        note = "not installed (python -m pip install jumanji), so not measured"
        return [Figure(title, (), "steps/s", note=note) for title in (plain, fast)]
    note = f"a step sets all {jobshop.MACHINES} machines at once"
    return [
        *_beside(rate, "shop", plain, f"{jobshop.NAME}, its AutoResetWrapper", "steps/s", note),
        *_beside(rate, "fast shop", fast, f"{jobshop.NAME}, only ended ones reset", "steps/s", note),
    ]


def _beside(rate: Rates, name: str, title: str, short: str, unit: str = "decisions/s", note: str = "") -> list[Figure]:
    compared = Figure(f"  GpuClusterVectorEnv, 2 threads / {short}", ratios(rate["two"], rate[name]), "times")
    return [Figure(title, rate[name], unit, note=note), compared]


class _VectorWalk:
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

    def __call__(self) -> float:
        """Walk on; give the decisions a second."""
        begin = time.perf_counter()
        for draws in self.draws:
            draw_allowed(self.masks, draws, self.actions)
            self.masks = self.env.step(self.actions)[4]["action_mask"]
        return self.draws.size / (time.perf_counter() - begin)


class _SingleWalk:
    """The same through a single environment."""

    def __init__(self, env: GpuClusterEnv, steps: int) -> None:
        self.env = env
        self.draws = np.random.default_rng(0).random(steps).tolist()
        self.mask: NDArray[np.int8] = env.reset(seed=0)[1]["action_mask"]

    def __call__(self) -> float:
        """Walk on; give the decisions a second."""
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
    """Give the action at the share `draw` of those that the mask allows."""
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
