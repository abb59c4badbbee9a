"""A vector of adaptation environments, stepped by several threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from gpusched_baselines.adaptation_env.controls import action_array
from gpusched_baselines.adaptation_env.env import GpuAdaptationEnv
from gpusched_env.child_processes import usable_cores
from gpusched_env.envs.seeds import part_rounds
from gpusched_env.envs.source import takes_parameters_of
from gpusched_env.errors import InputError
from gpusched_env.model import checks


class GpuAdaptationVectorEnv(SyncVectorEnv):
    """Gymnasium's vector environment over `GpuAdaptationEnv`, with steps and resets shared among threads.

    The results are those with one thread. Most of the time of a step is the planning of STS-X, which is compiled and
    does not hold the interpreter lock.

    Args:
        num_envs: Number of environments, ≥ 1.
        scenario: As for `GpuAdaptationEnv`, or several: environment i runs scenario i mod their number. All must have
            equally many GPU types.
        threads: Threads, ≥ 1; by default as many as there are cores, and no more than environments.
        autoreset_mode: As gymnasium defines it.
        max_episode_steps: Steps after which an episode is truncated, ≥ 1; None: never.
        **keywords: Other arguments of `GpuAdaptationEnv`. Environment i begins with the i-th of `seeds` and steps by N;
            the environments of one scenario of several share its seeds so.

    Raises:
        InputError: An argument is out of its range.
    """

    @takes_parameters_of(GpuAdaptationEnv)
    def __init__(
        self,
        num_envs: int = 1,
        scenario: Any = "default",
        *,
        threads: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_episode_steps: int | None = None,
        **keywords: Any,
    ) -> None:
        number = checks.whole("num_envs", num_envs)
        wanted = usable_cores() if threads is None else checks.whole("threads", threads)
        limit = None if max_episode_steps is None else checks.whole("max_episode_steps", max_episode_steps)

        several = [scenario] if isinstance(scenario, str) or not isinstance(scenario, Sequence) else scenario
        if not several:
            raise InputError("scenario", scenario, "at least one scenario")

        def make(index: int) -> gymnasium.Env[Any, Any]:
            env = _Prepared(several[index % len(several)], **keywords)
            return env if limit is None else TimeLimit(env, limit)

        envs = [make(index) for index in range(number)]
        sizes = [len(env.unwrapped.instance.gpu_types) for env in envs]  # type: ignore[attr-defined]
        if len(set(sizes)) > 1:
            allowed = f"scenarios with equally many GPU types, on which observations and actions depend, not {sizes}"
            raise InputError("scenario", [getattr(one, "name", one) for one in several], allowed)
        wholes = [env.unwrapped.seeds for env in envs[: len(several)]]  # type: ignore[attr-defined]
        for env, part in zip(envs, part_rounds(wholes, number), strict=True):
            env.unwrapped.seeds = part  # type: ignore[attr-defined]
        made = iter(envs)
        super().__init__([lambda: next(made)] * number, autoreset_mode=autoreset_mode)
        self._pool = ThreadPoolExecutor(min(wanted, number), "gpusched-adaptation")

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment; see `gymnasium.vector.SyncVectorEnv.reset`."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int | np.integer) else seed
        if "reset_mask" not in (options or {}) and (seeds is None or len(seeds) == self.num_envs):
            each = [None] * self.num_envs if seeds is None else seeds
            self._prepare([partial(e.prepare_reset, s, options) for e, s in zip(self._inner, each, strict=True)])
        return super().reset(seed=seeds, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every environment; see `gymnasium.vector.SyncVectorEnv.step`."""
        begins = self._autoreset_envs & (self.autoreset_mode is AutoresetMode.NEXT_STEP)
        at_once = self.autoreset_mode is AutoresetMode.SAME_STEP
        if len(actions) != self.num_envs:
            raise InputError("actions", f"{len(actions)} of them", f"{self.num_envs}, one for each environment")
        controls = len(self._inner[0].controls)
        chosen = [None if again else action_array(a, controls) for a, again in zip(actions, begins, strict=True)]
        each = zip(self._inner, chosen, begins, strict=True)  # all actions are checked before the first step
        self._prepare(
            [partial(e.prepare_reset) if again else partial(e.prepare_step, a, at_once) for e, a, again in each]
        )
        return super().step(actions)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the state for the next steps, as plain arrays; see `GpuAdaptationEnv.get_state`."""
        parts = {f"{i}/{name}": array for i, env in enumerate(self._inner) for name, array in env.get_state().items()}
        return {**parts, "ended": self._autoreset_envs.copy()}

    def set_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue exactly from a state of `get_state`; threads share the steps that are executed again.

        Raises:
            InputError: It is not such a state, or that of an environment with other arguments.
        """
        names = ("workload", "place", "actions", "generator")
        expected = {f"{i}/{name}" for i in range(self.num_envs) for name in names} | {"ended"}
        if set(state) != expected:
            raise InputError("state", sorted(set(state) ^ expected)[:3], "a state of get_state of as many environments")
        own = [{name: state[f"{i}/{name}"] for name in names} for i in range(self.num_envs)]
        self._prepare([partial(e.set_state, s) for e, s in zip(self._inner, own, strict=True)])
        for env, one in zip(self.envs, own, strict=True):
            if isinstance(env, TimeLimit):
                env._elapsed_steps = len(one["actions"])  # type: ignore[assignment]  # noqa: SLF001 - no other way
        self._autoreset_envs = np.array(state["ended"], dtype=np.bool_)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads, and close the environments."""
        if hasattr(self, "_pool"):
            self._pool.shutdown()
            super().close_extras(**kwargs)

    @property
    def _inner(self) -> list[_Prepared]:
        return [env.unwrapped for env in self.envs]  # type: ignore[misc]

    def _prepare(self, calls: list[Callable[[], None]]) -> None:
        """Make the calls in threads; the first error is raised when all have ended."""
        futures = [self._pool.submit(call) for call in calls]
        for error in [future.exception() for future in futures]:
            if error is not None:
                for env in self._inner:
                    env.forget()
                raise error


class _Prepared(GpuAdaptationEnv):
    """An environment whose next step and reset may be computed before they are called."""

    def __init__(self, scenario: Any, **keywords: Any) -> None:
        super().__init__(scenario, **keywords)
        self._step: Any = None
        self._reset: Any = None

    def prepare_step(self, action: Any, begin: bool) -> None:
        self._step = super().step(action)
        if begin and self._step[2]:
            self.prepare_reset(None, None)

    def prepare_reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        self._reset = super().reset(seed=seed, options=options)
        if self.reward == "saving":
            self.base_run()

    def forget(self) -> None:
        self._step = self._reset = None

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        ready, self._reset = self._reset, None
        return super().reset(**given) if ready is None else ready

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        ready, self._step = self._step, None
        return super().step(action) if ready is None else ready
