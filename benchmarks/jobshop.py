"""`jumanji` from PyPI, whose environments jax compiles and runs in thousands: its JobShop, for comparison."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

NAME, MACHINES = "JobShop-v0", 10
PLACES = 8  # resets that one pass of `_reset_ended` makes


def installed() -> bool:
    """Return whether it can be imported."""
    return find_spec("jumanji") is not None


class Walk:
    """A random walk through many JobShops at once, that goes on from one repetition to the next.

    A step is `jit(scan(vmap(step)))`, which is faster than one call for each step. Actions are drawn among those that
    its mask allows; the random numbers are drawn before.

    Args:
        envs: Number of environments, a multiple of `threads`.
        steps: Steps of each environment in a repetition.
        own_reset: Whether its `AutoResetWrapper` resets, which under `vmap` makes a new problem for every environment
            in every step; else only what ended is reset.
        threads: Threads that share the environments.
    """

    def __init__(self, envs: int, steps: int, *, own_reset: bool, threads: int) -> None:
        jax, jumanji = import_module("jax"), import_module("jumanji")
        env = import_module("jumanji.wrappers").AutoResetWrapper(jumanji.make(NAME))
        self.run = _scan(jax, jax.vmap(env.step) if own_reset else _reset_ended(jax, env))
        keys = jax.random.split(jax.random.PRNGKey(0), envs).reshape(threads, envs // threads, -1)
        self.states = [jax.jit(jax.vmap(env.reset))(part)[0] for part in keys]
        draws = np.random.default_rng(0).random((threads, steps, envs // threads, MACHINES), dtype=np.float32)
        self.draws = [jax.numpy.asarray(part) for part in draws]
        self.wait: Callable[[Any], Any] = jax.block_until_ready
        self.steps, self.pool = envs * steps, ThreadPoolExecutor(threads)

    def close(self) -> None:
        """End its threads."""
        self.pool.shutdown()

    def __call__(self) -> float:
        """Continue the walk; return the steps a second, of all environments together."""
        begin = time.perf_counter()
        self.states = list(
            self.pool.map(lambda state, draws: self.wait(self.run(state, draws)), self.states, self.draws)
        )
        return self.steps / (time.perf_counter() - begin)


def _scan(jax: Any, step: Callable[..., Any]) -> Any:
    """Compile a function from states and random numbers (steps, envs, machines) to the states after all steps."""
    jnp = jax.numpy

    def allowed(mask: Any, draws: Any) -> Any:
        count = jnp.cumsum(mask, axis=-1)
        return jnp.argmax(count > (draws * count[..., -1])[..., None], axis=-1)

    def walk(state: Any, draws: Any) -> Any:
        return jax.lax.scan(lambda now, draw: (step(now, allowed(now.action_mask, draw))[0], None), state, draws)[0]

    return jax.jit(walk)


def _reset_ended(jax: Any, env: Any) -> Callable[..., Any]:
    """Return a step of many environments that resets those that ended, a few in each pass until none is left."""
    jnp, tree = jax.numpy, jax.tree

    def step(state: Any, action: Any) -> Any:
        state, timestep = jax.vmap(env.unwrapped.step)(state, action)
        envs = action.shape[0]

        def one_pass(now: Any) -> Any:
            state, observation, ended = now
            places = jnp.nonzero(ended, size=PLACES, fill_value=envs)[0]
            keys = jax.vmap(lambda key: jax.random.split(key)[0])(state.key[jnp.minimum(places, envs - 1)])
            fresh, first = jax.vmap(env.unwrapped.reset)(keys)
            state, observation, ended = tree.map(
                lambda all_of_it, some: all_of_it.at[places].set(some, mode="drop"),
                (state, observation, ended),
                (fresh, first.observation, jnp.zeros(PLACES, bool)),
            )
            return state, observation, ended

        state, observation, _ = jax.lax.while_loop(
            lambda now: jnp.any(now[2]), one_pass, (state, timestep.observation, timestep.last())
        )
        return state, timestep.replace(observation=observation)

    return step
