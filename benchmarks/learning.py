"""Steps a second of Stable-Baselines3's rollouts, through our vector environment and through its own."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack, closing
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.child import Contender, answer
from benchmarks.figure import Figure, interleaved, ratios
from gpusched_env import GpuClusterEnv, load_scenario


def measure(envs: int = 64, steps: int = 64, repetitions: int = 5, *, apart: bool = True) -> list[Figure]:
    """Measure `MaskablePPO.collect_rollouts` with its default policy: choosing actions, and taking them.

    Args:
        envs: Environments of each.
        steps: Steps of each environment in a repetition.
        repetitions: Repetitions.
        apart: Whether each has a process of its own, which waits while the other is measured.
    """
    titles = {
        "ours": f"MaskablePPO rollouts, {envs} envs, SchedulerVecEnv",
        "dummy": f"MaskablePPO rollouts, {envs} envs, DummyVecEnv of Monitor of GpuClusterEnv",
    }
    if find_spec("sb3_contrib") is None:
        note = 'not installed (python -m pip install "gpusched-env[agents]"), so not measured'
        return [Figure(title, (), "steps/s", note=note) for title in titles.values()]
    with ExitStack() as opened:
        contenders: dict[str, Contender | Rollouts] = {}
        for name in titles:
            ready = Contender("benchmarks.learning", name, envs, steps) if apart else Rollouts(name, envs, steps)
            contenders[name] = opened.enter_context(closing(ready))
        rate = interleaved(contenders, repetitions)
    compared = Figure("  SchedulerVecEnv / DummyVecEnv", ratios(rate["ours"], rate["dummy"]), "times")
    return [*(Figure(title, rate[name], "steps/s") for name, title in titles.items()), compared]


def _ours(envs: int) -> Any:
    return import_module("gpusched_agents.sb3").make_sb3_vec_env("default", envs)


def _dummy(envs: int) -> Any:
    monitor = import_module("stable_baselines3.common.monitor").Monitor
    make = partial(GpuClusterEnv, load_scenario("default"))
    return import_module("stable_baselines3.common.vec_env").DummyVecEnv([lambda: monitor(make())] * envs)


class Rollouts:
    """Rollouts of an untrained model that go on from one repetition to the next.

    torch has one thread: for a network this small, more threads mostly wait for each other.

    Args:
        name: "ours" or "dummy": through which environment.
        envs: Number of environments.
        steps: Steps of each environment in a rollout.
    """

    def __init__(self, name: str, envs: int, steps: int) -> None:
        self.torch = import_module("torch")
        self.env = {"ours": _ours, "dummy": _dummy}[name](envs)
        algorithm = import_module("sb3_contrib").MaskablePPO
        settings = {"n_steps": steps, "batch_size": steps * envs, "n_epochs": 1, "seed": 0, "device": "cpu"}
        self.model = algorithm("MultiInputPolicy", self.env, **settings).learn(1)  # a rollout, so that it has begun
        self.callback = import_module("stable_baselines3.common.callbacks").CallbackList([])
        self.callback.init_callback(self.model)
        self.steps = steps

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def __call__(self) -> float:
        """Collect one; return the steps a second."""
        model, threads = self.model, self.torch.get_num_threads()
        self.torch.set_num_threads(1)
        try:
            begin = time.perf_counter()
            model.collect_rollouts(model.env, self.callback, model.rollout_buffer, n_rollout_steps=self.steps)
            return self.steps * model.n_envs / (time.perf_counter() - begin)
        finally:
            self.torch.set_num_threads(threads)


if __name__ == "__main__":
    answer(Rollouts(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
