"""Measurements for the present sources and for those of an earlier commit: they use only public names.

`python -P either_tree.py NAME ARGUMENT...` prepares a measurement and prints a line; then it measures once for each
line that it reads, and prints the seconds. PYTHONPATH names the sources.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_baselines import make_policy
from gpusched_env import GpuClusterEnv, GpuClusterVectorEnv, load_scenario, make_instance, simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from gpusched_env import View

ROUNDS = 2000
"""Least number of rounds: a run is repeated until it is reached, at least once."""
STEPS, WALKS = 1000, 5


class Rounds:
    """The rounds of a run that is simulated several times; the least time of each round counts.

    Args:
        policy: Name of the policy.
        scenario: Name of the scenario.
        *changes: Other settings than the scenario's, `name=number`.
    """

    def __init__(self, policy: str, scenario: str, *changes: str) -> None:
        settings = {name: int(number) for name, _, number in (change.partition("=") for change in changes)}
        self._instance = make_instance(load_scenario(scenario).replace(settings), 0)
        self._policy: Any = make_policy(policy)
        self._runs = max(2, ROUNDS // len(self._run()))

    def __call__(self) -> float:
        """Measure all rounds [s]."""
        return float(np.min([self._run() for _ in range(self._runs)], axis=0).sum())

    def _run(self) -> list[float]:
        timed = Timed(self._policy)
        simulate(self._instance, timed, record=False)
        return timed.seconds


class Timed:
    """A policy with the decisions of the given one, that records the time of each round in `seconds`."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.seconds: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def decide(self, view: View, rng: Generator) -> None:
        """Decide by the policy, and record the time."""
        begin = time.perf_counter()
        self._policy.decide(view, rng)
        self.seconds.append(time.perf_counter() - begin)


class Steps:
    """The steps of a walk through the environment, several times; the least time of each step counts."""

    def __init__(self) -> None:
        self._env = GpuClusterEnv("default")
        self._draws = np.random.default_rng(0).random(STEPS).tolist()

    def __call__(self) -> float:
        """Measure all steps [s]; resets do not count."""
        return float(np.min([self._walk() for _ in range(WALKS)], axis=0).sum())

    def _walk(self) -> list[float]:
        env, seconds = self._env, []
        info = env.reset(seed=0)[1]
        for draw in self._draws:
            allowed = np.flatnonzero(info["action_mask"])
            action = int(allowed[int(draw * len(allowed))])
            begin = time.perf_counter()
            _, _, ended, _, info = env.step(action)
            seconds.append(time.perf_counter() - begin)
            if ended:
                info = env.reset()[1]
        return seconds


class VectorSteps:
    """A walk through a vector environment that goes on from one measurement to the next.

    Args:
        envs: Number of environments.
        steps: Steps in a measurement.
        step: Which step counts: the "median" does not depend on occasional other load, the "mean" does.
    """

    def __init__(self, envs: str, steps: str, step: str) -> None:
        self._env = GpuClusterVectorEnv(int(envs), "default", autoreset_mode="SameStep")
        self._rng, self._steps = np.random.default_rng(0), int(steps)
        self._step: Any = {"median": np.median, "mean": np.mean}[step]
        self._mask: NDArray[np.int8] = self._env.reset(seed=0)[1]["action_mask"]

    def __call__(self) -> float:
        """Measure a step [s]; some reset environments as well."""
        seconds = []
        for _ in range(self._steps):
            actions = (self._mask * self._rng.random(self._mask.shape, dtype=np.float32)).argmax(axis=1)
            begin = time.perf_counter()
            infos = self._env.step(actions)[4]
            seconds.append(time.perf_counter() - begin)
            self._mask = infos["action_mask"]
        return float(self._step(seconds))


MEASUREMENTS: dict[str, Callable[..., Callable[[], float]]] = {
    "rounds": Rounds,
    "steps": Steps,
    "vector": VectorSteps,
}


def answer(name: str, *arguments: str) -> None:
    """Prepare a measurement, and measure for each line of the input."""
    measure = MEASUREMENTS[name](*arguments)
    measure()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(measure(), flush=True)


if __name__ == "__main__":
    answer(*sys.argv[1:])
