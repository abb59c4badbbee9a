"""The vector environment with the interface of Stable-Baselines3 and sb3-contrib (extra `agents`)."""

from __future__ import annotations

import re
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from gpusched_baselines.adaptation_env import GpuAdaptationVectorEnv
from gpusched_env.envs.registration import ENVIRONMENT_ID
from gpusched_env.envs.source import USUAL
from gpusched_env.envs.vector import GpuClusterVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

    from gpusched_env.workload import Scenario

EPISODE_KEYWORDS = ("total_energy_eur", "total_tardiness_eur", "invalid_actions")
"""Keys of `info["episode"]` besides return `r`, length `l` and time `t` [s], where the environment has them."""
ONE_OF_MANY = {"instance": "instances", "job": "jobs", "view": "views"}
SAME_FOR_ALL = {"action_space": "single_action_space", "observation_space": "single_observation_space"}
_AN_ID = re.compile(r"-v\d+$")
FINAL = ("final_obs", "final_info")


class SchedulerVecEnv(VecEnv):
    """A vector environment of clusters behind the interface of Stable-Baselines3.

    PPO, A2C, DQN and `MaskablePPO` train on it as on a `DummyVecEnv` of as many single environments, each in a
    `Monitor` with `info_keywords=EPISODE_KEYWORDS`, and learn the same from it, bit by bit. No `VecMonitor` is needed.

    The info of a step is an empty dict, which saves time. At the end of an episode it is the info of the single
    environment, with `terminal_observation`, `TimeLimit.truncated` and `episode`.

    Adaptation environments have no masks; PPO, A2C, SAC, TD3 and TQC train on them.

    Args:
        vector: A vector environment of `GpuClusterEnv` or `GpuAdaptationEnv` in the autoreset mode SAME_STEP: a
            `GpuClusterVectorEnv`, a `GpuAdaptationVectorEnv`, or one of gymnasium's own over single environments,
            wrapped or not; where those ask for single jobs, they keep `info["action_mask"]`.

    Raises:
        InputError: `vector` is not a vector environment, or has another autoreset mode.
    """

    def __init__(self, vector: VectorEnv[Any, Any, Any]) -> None:
        if not isinstance(vector, VectorEnv):
            raise InputError("vector", vector, "a gymnasium.vector.VectorEnv, such as GpuClusterVectorEnv")
        mode = vector.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.SAME_STEP:
            raise InputError("vector.metadata['autoreset_mode']", mode, "AutoresetMode.SAME_STEP")
        self.vector = vector
        spaces = (vector.single_observation_space, vector.single_action_space)
        super().__init__(vector.num_envs, *spaces)
        self._begin_s = time.time()
        self._actions: NDArray[Any] = np.zeros(vector.num_envs, np.int64)
        self._masks: NDArray[np.bool_] | None = None
        self._returns = np.zeros(vector.num_envs)
        self._lengths = np.zeros(vector.num_envs, np.int64)

    def reset(self) -> VecEnvObs:
        """Begin an episode in every environment, with the seeds of `seed` and the options of `set_options`, used once.

        Raises:
            InputError: The options are not the same for all environments.
        """
        observations, infos = self.vector.reset(
            seed=self._seeds,  # type: ignore[arg-type]
            options=_only(self._options),
        )
        self._reset_seeds()
        self._reset_options()
        self._masks = infos["action_mask"].astype(np.bool_) if "action_mask" in infos else None
        self._returns[:], self._lengths[:] = 0.0, 0
        self.reset_infos = [_one_of(infos, i) for i in range(self.num_envs)]
        return observations

    def seed_each(self, seeds: Sequence[int]) -> None:
        """Set the seeds of the next `reset`, one for each environment.

        Raises:
            InputError: There are more or fewer.
        """
        if len(seeds) != self.num_envs:
            raise InputError("seeds", len(seeds), f"{self.num_envs}, one for each environment")
        self._seeds = [int(seed) for seed in seeds]

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions, (N,), for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Take the step.

        Returns:
            Observations, of the next episode where one ended; rewards, float32 (N,); whether an episode ended, (N,);
            and a dict per environment (see the class).
        """
        observations, rewards, terminated, truncated, infos = self.vector.step(self._actions)
        self._masks = infos["action_mask"].astype(np.bool_) if "action_mask" in infos else None
        self._returns += rewards
        self._lengths += 1
        dones = terminated | truncated
        one_each: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(dones).tolist():
            one_each[i] = self._end(i, infos, truncated=bool(truncated[i] and not terminated[i]))
        return observations, rewards.astype(np.float32), dones, one_each

    def action_masks(self) -> NDArray[np.bool_]:
        """Return what can be placed now in every environment, (N, 1 + C); waiting is always allowed.

        Raises:
            gymnasium.error.ResetNeeded: No episode has begun, or the environments have no masks.
        """
        if self._masks is None:
            raise gymnasium.error.ResetNeeded("no episode with action masks is running: call reset()")
        return self._masks.copy()

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of each environment: `action_masks()`, or `set_timer(job, time_s)`.

        A method of the vector environment is called once for each environment.
        """
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[i] for i in self._get_indices(indices)]
        return [method(*method_args, **method_kwargs) for method in self.get_attr(method_name, indices)]

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return `job`, `view`, `instance` or `action_space` of each environment, or an attribute that all share.

        Raises:
            AttributeError: There is no attribute of that name.
        """
        return [self._attribute(attr_name, i) for i in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute that the environments share.

        Raises:
            InputError: They have none of that name, or `indices` are not all environments.
        """
        if attr_name in ONE_OF_MANY or not hasattr(self.vector, attr_name):
            raise InputError("attr_name", attr_name, "an attribute of the vector environment")
        if set(self._get_indices(indices)) != set(range(self.num_envs)):
            raise InputError("indices", indices, "all environments: they share their attributes")
        setattr(self.vector, attr_name, value)

    def env_is_wrapped(self, wrapper_class: type[gymnasium.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Return True for `Monitor`, since `info["episode"]` is here too, and False for any other wrapper."""
        return [issubclass(Monitor, wrapper_class) for _ in self._get_indices(indices)]

    def close(self) -> None:
        """Close the vector environment."""
        self.vector.close()

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the state of the vector environment, with returns and lengths of the episodes so far: plain arrays."""
        vector = self._native()
        return {**vector.get_state(), "episode_returns": self._returns.copy(), "episode_lengths": self._lengths.copy()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue exactly from a state of `get_state`.

        Raises:
            InputError: It is not a state of such a vector environment.
        """
        vector, rest = self._native(), dict(state)
        kept = [rest.pop(f"episode_{name}", np.empty(0)) for name in ("returns", "lengths")]
        if any(np.shape(one) != (self.num_envs,) for one in kept):
            shapes = [np.shape(one) for one in kept]
            raise InputError("state", shapes, f"episode_returns and episode_lengths, both ({self.num_envs},)")
        vector.set_state(rest)
        self._masks = vector.action_masks() if isinstance(vector, GpuClusterVectorEnv) else None
        self._returns[:], self._lengths[:] = kept

    def _native(self) -> GpuClusterVectorEnv | GpuAdaptationVectorEnv:
        if not isinstance(self.vector, GpuClusterVectorEnv | GpuAdaptationVectorEnv):
            allowed = "a GpuClusterVectorEnv or GpuAdaptationVectorEnv: no other has a state"
            raise InputError("vector", type(self.vector).__name__, allowed)
        return self.vector

    def _attribute(self, name: str, i: int) -> Any:
        if name == "action_masks":
            return lambda: self.action_masks()[i]
        if name == "set_timer":
            return self._attribute("view", i).set_timer
        if name in ONE_OF_MANY:
            return getattr(self.vector, ONE_OF_MANY[name])[i]
        if name == "spec" and self.vector.spec is None and hasattr(self.vector, "envs"):
            return self.vector.envs[i].spec
        return getattr(self.vector, SAME_FOR_ALL.get(name, name))

    def _end(self, i: int, infos: dict[str, Any], *, truncated: bool) -> dict[str, Any]:
        """Return the info of environment i, whose episode ended, and begin to count the next one."""
        info = _one_of(infos["final_info"], i)
        info["terminal_observation"] = infos["final_obs"][i]
        info["TimeLimit.truncated"] = truncated
        info["episode"] = {
            "r": round(float(self._returns[i]), 6),
            "l": int(self._lengths[i]),
            "t": round(time.time() - self._begin_s, 6),
            **{key: info[key] for key in EPISODE_KEYWORDS if key in info},
        }
        self._returns[i], self._lengths[i] = 0.0, 0
        self.reset_infos[i] = _one_of(infos, i)
        return info


def make_sb3_vec_env(
    env_id: str | Path | Scenario | Sequence[Any] = "default",
    n_envs: int = 1,
    seed: int | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> SchedulerVecEnv:
    """Make environments for an algorithm of Stable-Baselines3, as its `make_vec_env` does: by the compiled ones.

    Args:
        env_id: A registered id, such as `gpusched_env/SlackAdaptation-v0`; or a scenario, or several, as
            `GpuClusterVectorEnv` takes them.
        n_envs: Number of environments, ≥ 1.
        seed: The first episode of environment i runs the workload of seed + i; None: of any seed. An algorithm with its
            own seed sets that one instead.
        env_kwargs: Parameters of the environments, such as `settings`, `seeds` and `instance`, except `autoreset_mode`.
        keywords: The same as `env_kwargs`.

    Raises:
        InputError: There is no such id or scenario, or a parameter is not allowed.
    """
    if isinstance(env_id, int):
        raise InputError("env_id", env_id, "an id such as gpusched_env/Slack-v0, or a scenario; then comes n_envs")
    given: dict[str, Any] = {**(env_kwargs or {}), **keywords}
    for name in ("num_envs", "autoreset_mode"):
        if name in given:
            raise InputError(name, given[name], "no such parameter here: n_envs, and episodes begin again at once")
    if isinstance(env_id, str) and _AN_ID.search(env_id):
        module, _, name = env_id.rpartition(":")
    else:
        module, name, given = "", ENVIRONMENT_ID, {"scenario": env_id, **given} if env_id != USUAL else given
    try:
        _ = import_module(module) if module else None
        compiled = str(gymnasium.spec(name).vector_entry_point).startswith("gpusched_")
    except (ImportError, gymnasium.error.Error) as error:
        raise InputError("env_id", env_id, f"an id that is registered, or a scenario ({error})") from None
    mode = {"autoreset_mode": AutoresetMode.SAME_STEP}
    more = mode if compiled else {"vectorization_mode": "sync", "vector_kwargs": mode}
    env = SchedulerVecEnv(gymnasium.make_vec(name, checks.whole("n_envs", n_envs), **more, **given))
    if seed is not None:
        env.seed(seed)
    return env


def _only(options: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if any(one != options[0] for one in options):
        raise InputError("options", options, "the same for every environment")
    return options[0] or None


def _one_of(infos: Mapping[str, Any], i: int) -> dict[str, Any]:
    return {
        key: _one_of(values, i) if isinstance(values, dict) else _plain(values[i])
        for key, values in infos.items()
        if key not in FINAL and f"_{key}" in infos and infos[f"_{key}"][i]
    }


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
