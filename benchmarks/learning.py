"""Steps a second of Stable-Baselines3's rollouts, through our vector environment and through its own."""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.figure import Figure, interleaved, ratios
from gpusched_env import GpuClusterEnv, load_scenario


def measure(envs: int = 64, steps: int = 64, repetitions: int = 5) -> list[Figure]:
    """Measure `MaskablePPO.collect_rollouts` with its default policy: choosing actions, and taking them.

    torch has one thread meanwhile: for a network this small, more threads mostly wait for each other.

    Args:
        envs: Environments of each.
        steps: Steps of each environment in a repetition.
        repetitions: Repetitions.
    """
    titles = {
        "ours": f"MaskablePPO rollouts, {envs} envs, SchedulerVecEnv",
        "dummy": f"MaskablePPO rollouts, {envs} envs, DummyVecEnv of Monitor of GpuClusterEnv",
    }
    if find_spec("sb3_contrib") is None:
        note = 'not installed (python -m pip install "gpusched-env[agents]"), so not measured'
        return [Figure(title, (), "steps/s", note=note) for title in titles.values()]
    torch = import_module("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        contenders = {"ours": _Rollouts(_ours(envs), steps), "dummy": _Rollouts(_dummy(envs), steps)}
        rate = interleaved(contenders, repetitions)
    finally:
        torch.set_num_threads(threads)
    compared = Figure("  SchedulerVecEnv / DummyVecEnv", ratios(rate["ours"], rate["dummy"]), "times")
    return [*(Figure(title, rate[name], "steps/s") for name, title in titles.items()), compared]


def _ours(envs: int) -> Any:
    return import_module("gpusched_agents.sb3").make_sb3_vec_env(envs, "default")


def _dummy(envs: int) -> Any:
    monitor = import_module("stable_baselines3.common.monitor").Monitor
    make = partial(GpuClusterEnv, load_scenario("default"))
    return import_module("stable_baselines3.common.vec_env").DummyVecEnv([lambda: monitor(make())] * envs)


class _Rollouts:
    """Rollouts of an untrained model that go on from one repetition to the next.

    Args:
        env: The vector environment.
        steps: Steps of each environment in a rollout.
    """

    def __init__(self, env: Any, steps: int) -> None:
        algorithm = import_module("sb3_contrib").MaskablePPO
        settings = {"n_steps": steps, "batch_size": steps * env.num_envs, "n_epochs": 1, "seed": 0, "device": "cpu"}
        self.model = algorithm("MultiInputPolicy", env, **settings).learn(1)  # a rollout, so that it has begun
        self.callback = import_module("stable_baselines3.common.callbacks").CallbackList([])
        self.callback.init_callback(self.model)
        self.steps = steps

    def __call__(self) -> float:
        """Collect one; give the steps a second."""
        model, begin = self.model, time.perf_counter()
        model.collect_rollouts(model.env, self.callback, model.rollout_buffer, n_rollout_steps=self.steps)
        return self.steps * model.n_envs / (time.perf_counter() - begin)
