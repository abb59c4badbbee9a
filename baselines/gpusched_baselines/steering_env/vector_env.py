"""Many steering environments, whose steps threads share."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from gpusched_baselines.steering_env.env import GpuSteeringEnv
from gpusched_env.envs.vector.threads import usable_cores
from gpusched_env.model import checks

if TYPE_CHECKING:
    from collections.abc import Callable

    import gymnasium


class GpuSteeringVectorEnv(SyncVectorEnv):
    """Gymnasium's vector environment over `GpuSteeringEnv`, whose steps and resets threads share.

    What it returns is what it would return with one thread. The time of a step is that of STS-X's planning, which is
    compiled and needs no interpreter.

    Args:
        num_envs: Number of environments, ≥ 1.
        scenario: As `GpuSteeringEnv` takes it.
        threads: Threads, ≥ 1; by default as many as there are cores, and no more than environments.
        autoreset_mode: As gymnasium defines it.
        max_episode_steps: Steps after which an episode is truncated, ≥ 1; None: never.
        **keywords: Other arguments of `GpuSteeringEnv`.

    Raises:
        InputError: An argument is out of its range.
    """

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

        def make() -> gymnasium.Env[Any, Any]:
            env = _Prepared(scenario, **keywords)
            return env if limit is None else TimeLimit(env, limit)

        super().__init__([make] * number, autoreset_mode=autoreset_mode)
        self._pool = ThreadPoolExecutor(min(wanted, number), "gpusched-steering")

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in every environment; see `gymnasium.vector.SyncVectorEnv.reset`."""
        seeds = [seed + i for i in range(self.num_envs)] if isinstance(seed, int | np.integer) else seed
        if "reset_mask" not in (options or {}) and (seeds is None or len(seeds) == self.num_envs):
            each = seeds or [None] * self.num_envs
            self._prepare([partial(e.prepare_reset, s, options) for e, s in zip(self._inner, each, strict=True)])
        return super().reset(seed=seeds, options=options)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Step every environment; see `gymnasium.vector.SyncVectorEnv.step`."""
        begins = self._autoreset_envs & (self.autoreset_mode is AutoresetMode.NEXT_STEP)
        each = zip(self._inner, np.asarray(actions), begins, strict=True)
        self._prepare([partial(e.prepare_reset) if again else partial(e.prepare_step, a) for e, a, again in each])
        return super().step(actions)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads, and close the environments."""
        if hasattr(self, "_pool"):
            self._pool.shutdown()
            super().close_extras(**kwargs)

    @property
    def _inner(self) -> list[_Prepared]:
        return [env.unwrapped for env in self.envs]  # type: ignore[misc]

    def _prepare(self, calls: list[Callable[[], None]]) -> None:
        """Make the calls in threads; the first error of one is raised when all have ended."""
        futures = [self._pool.submit(call) for call in calls]
        for error in [future.exception() for future in futures]:
            if error is not None:
                for env in self._inner:
                    env.forget()
                raise error


class _Prepared(GpuSteeringEnv):
    """An environment whose next step or reset may have been computed before it is asked for."""

    _ready: Any = None

    def prepare_step(self, action: Any) -> None:
        """Compute the next step."""
        self._ready = super().step(action)

    def prepare_reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Compute the next reset."""
        self._ready = super().reset(seed=seed, options=options)
        if self.reward == "saving":
            self.base_run()

    def forget(self) -> None:
        """Compute it anew when it is asked for."""
        self._ready = None

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        ready, self._ready = self._ready, None
        return super().reset(**given) if ready is None else ready

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        ready, self._ready = self._ready, None
        return super().step(action) if ready is None else ready
