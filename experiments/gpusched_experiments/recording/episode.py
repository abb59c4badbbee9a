"""One episode, kept step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from minari.data_collector import EpisodeBuffer

from gpusched_env.envs.rollout import rollout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpusched_env.simulator import JobPolicy


class Recorder(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Keeps the episode that runs: Minari's own collector does so too, but needs JAX for it."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._seen: list[tuple[Any, dict[str, Any]]] = []
        self._done: list[tuple[Any, float, bool, bool]] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and forget the last one."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seen, self._done = [(observation, info)], []
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step, and keep it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._seen.append((observation, info))
        self._done.append((action, float(reward), terminated, truncated))
        return observation, reward, terminated, truncated, info

    def episode(self, seed: int) -> EpisodeBuffer:
        """Return the episode so far, of T steps: observations and infos (T + 1), all else (T)."""
        actions, rewards, terminations, truncations = zip(*self._done, strict=True)
        observations, infos = zip(*self._seen, strict=True)
        return EpisodeBuffer(
            seed=seed,
            observations=_stacked(observations),
            actions=np.array(actions, self.action_space.dtype),
            rewards=list(rewards),
            terminations=list(terminations),
            truncations=list(truncations),
            infos=_stacked(infos),
        )


def episode_of(env: Recorder, policy: JobPolicy | None, seed: int) -> EpisodeBuffer:
    """Run the episode of `seed` with `policy` deciding, or None: one of the allowed actions, each as likely."""
    if policy is not None:
        rollout(env, policy, seed=seed)
        return env.episode(seed)
    _, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(env.action_space.sample(info["action_mask"]))
        over = terminated or truncated
    return env.episode(seed)


def _stacked(each: Sequence[Any]) -> Any:
    """Return arrays, or dictionaries of them, as one whose first axis is the step."""
    if isinstance(each[0], dict):
        return {name: np.array([one[name] for one in each]) for name in each[0]}
    return np.array(each)
