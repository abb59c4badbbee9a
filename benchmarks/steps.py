"""Environment steps a second, compared with CartPole and with another GPU scheduling environment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from benchmarks import choochoo
from benchmarks.figure import Figure, at_least, interleaved, ratios
from gpusched_env import ENVIRONMENT_ID, load_scenario

if TYPE_CHECKING:
    from collections.abc import Callable

CARTPOLE_TARGET, CHOOCHOO_TARGET = 0.7, 4.0
SAME_SIZE = {"cluster.nodes": choochoo.NODES, "jobs.count": choochoo.JOBS}


def measure(steps: int = 20_000, repetitions: int = 7) -> list[Figure]:
    """Measure steps a second with random actions, resets included, and the ratios of interleaved repetitions.

    Args:
        steps: Steps in each repetition.
        repetitions: Repetitions.
    """
    scenario = load_scenario("default")
    ours, same_size = _Walk(_make(scenario), steps), _Walk(_make(scenario.replace(SAME_SIZE)), steps)
    cartpole = _Walk(gymnasium.make("CartPole-v1"), steps)
    contenders: dict[str, Callable[[], float]] = {"ours": ours, "same_size": same_size, "cartpole": cartpole}
    if choochoo.installed():
        contenders["choochoo"] = _Walk(choochoo.make_env(), steps)
    rate = interleaved(contenders, repetitions)
    return [
        Figure("GpuCluster-v0, 10 nodes, 100 jobs", rate["ours"], "steps/s"),
        Figure("CartPole-v1", rate["cartpole"], "steps/s"),
        Figure("  GpuCluster-v0 / CartPole-v1", ratios(rate["ours"], rate["cartpole"]), "times", _CARTPOLE),
        Figure(f"GpuCluster-v0, {choochoo.NODES} nodes, {choochoo.JOBS} jobs", rate["same_size"], "steps/s"),
        *_choochoo(rate),
        Figure("reset of GpuCluster-v0, 10 nodes, 100 jobs", _reset_ms(ours.env, repetitions), "ms"),
    ]


_CARTPOLE = at_least(CARTPOLE_TARGET)


def _choochoo(rate: dict[str, tuple[float, ...]]) -> list[Figure]:
    name, target = f"gpu-choochoo, {choochoo.NODES} nodes, {choochoo.JOBS} jobs", at_least(CHOOCHOO_TARGET)
    ratio = "  GpuCluster-v0 / gpu-choochoo, "
    if "choochoo" not in rate:
        note = "not installed (python -m pip install gpu-choochoo), so not measured"
        return [Figure(name, (), "steps/s", note=note), Figure(f"{ratio}same size", (), "times", target)]
    theirs = rate["choochoo"]
    return [
        Figure(name, theirs, "steps/s"),
        Figure(f"{ratio}same size", ratios(rate["same_size"], theirs), "times", target),
        Figure(f"{ratio}10 nodes, 100 jobs", ratios(rate["ours"], theirs), "times", target),
    ]


def _make(scenario: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(f"gpusched_env:{ENVIRONMENT_ID}", scenario=scenario)


def _reset_ms(env: gymnasium.Env[Any, Any], repetitions: int) -> tuple[float, ...]:
    times = []
    for seed in range(repetitions):
        begin = time.perf_counter()
        env.reset(seed=seed)
        times.append(1000.0 * (time.perf_counter() - begin))
    return tuple(times)


class _Walk:
    """A random walk through an environment that goes on from one repetition to the next.

    Actions are drawn from the action mask where `info` has one, else from the whole action space. The random numbers
    are drawn before, so that the time does not include that.

    Args:
        env: The environment.
        steps: Steps in each repetition.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], steps: int) -> None:
        self.env = env
        self.draws = np.random.default_rng(0).random(steps).tolist()
        self.info: dict[str, Any] = env.reset(seed=0)[1]
        self.masked = "action_mask" in self.info

    def __call__(self) -> float:
        """Continue the walk, with a new episode at the end of each; return the steps a second."""
        begin = time.perf_counter()
        if self.masked:
            self._walk_masked()
        else:
            self._walk()
        return len(self.draws) / (time.perf_counter() - begin)

    def _walk_masked(self) -> None:
        env, info = self.env, self.info
        for draw in self.draws:
            allowed = np.flatnonzero(info["action_mask"])
            _, _, terminated, truncated, info = env.step(allowed[int(draw * len(allowed))])
            if terminated or truncated:
                _, info = env.reset()
        self.info = info

    def _walk(self) -> None:
        env, actions = self.env, int(self.env.action_space.n)  # type: ignore[attr-defined]
        for draw in self.draws:
            _, _, terminated, truncated, _ = env.step(int(draw * actions))
            if terminated or truncated:
                env.reset()
