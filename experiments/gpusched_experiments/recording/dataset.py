"""Datasets of episodes, by policy and seed, in a folder that Minari reads (extra `minari`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import gymnasium
import minari
import numpy as np
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from gpusched_env import GpuClusterEnv
from gpusched_env.envs.rollout import rollout
from gpusched_env.errors import InputError
from gpusched_env.files import new_folder
from gpusched_env.provenance import provenance
from gpusched_env.simulator import JobPolicy
from gpusched_experiments.recording.plan import Recording, dataset_id


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


def record(
    recordings: Sequence[Recording],
    seeds: Sequence[int],
    out: str | Path,
    environment: str,
    settings: Mapping[str, Any],
    namespace: str,
    on_episode: Callable[[str, int], None] = lambda _policy, _seed: None,
) -> list[str]:
    """Write a Minari dataset for each policy: all of them, or none.

    An episode is the run of one seed until all jobs are done: observations, actions, rewards, terminations,
    truncations, and infos with the action masks.

    Args:
        recordings: The policies.
        seeds: Seeds of the instances.
        out: The folder to make, new or empty: what `MINARI_DATASETS_PATH` shall name.
        environment: Id of the environment.
        settings: Its settings by keyword, of values that JSON can hold.
        namespace: What the names of the datasets begin with.
        on_episode: Called with policy and seed after each episode.

    Returns:
        The names of the datasets, as `minari.load_dataset` takes them.

    Raises:
        InputError: The folder holds something, or cannot be written; or a value is not allowed.
    """
    names = [dataset_id(namespace, each.name) for each in recordings]
    with new_folder(out) as folder:
        for name, recording in zip(names, recordings, strict=True):
            env: gymnasium.Env[Any, Any] = gymnasium.make(
                environment, max_episode_steps=-1, **settings, **recording.settings
            )
            place = folder / name / "data"
            place.mkdir(parents=True)
            storage = MinariStorage.new(place, env.observation_space, env.action_space, env.spec)
            recorder = Recorder(env)
            for seed in seeds:
                episode = episode_of(recorder, recording.policy, seed)
                try:
                    storage.update_episodes([episode])
                except OSError as error:  # the disk is full, say
                    raise InputError("path", str(out), f"a place that can be written ({error})") from error
                on_episode(recording.name, seed)
            storage.update_metadata(_metadata(name, recording, seeds, env))
    return names


def _metadata(name: str, recording: Recording, seeds: Sequence[int], env: gymnasium.Env[Any, Any]) -> dict[str, Any]:
    """Return what the dataset says of itself; the environment, with all its settings, has been written before."""
    environment, inner = env.spec.id if env.spec else "", cast("GpuClusterEnv", env.unwrapped)
    scenario = None if inner.scenario is None else inner.scenario.model_dump(mode="json")
    made = provenance(
        policy=recording.name, seeds=list(seeds), environment=environment, reward_scale_eur=inner.reward_scale,
        scenario=scenario,
    )  # fmt: skip
    return {
        "dataset_id": name,
        "minari_version": minari.__version__,
        "algorithm_name": recording.name,
        "description": f"Episodes of {recording.name} in {environment}, one for each seed.",
        "requirements": ["gpusched-env"],
        "provenance": made,
    }
