"""Runs of coming episodes, made before they are needed, while other threads step the environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.envs.env_input import draw_seed
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

    from gpusched_env.envs.vector.episodes import Episodes
    from gpusched_env.simulator import State

NEAR = 0.3  # share of its jobs that an environment has left when its next run is begun
MOST = 64  # runs that wait: each takes as much memory as one that is being stepped
LOOK_AGAIN = 8  # parts after which one looks again whether an environment is near its end


class Ahead:
    """Makes the next run of environments that are near the end of their episodes, a part at a time.

    A run is that of the seed which the environment's generator draws next, as far as one can tell; whoever takes it
    says which seed was drawn, and gets it only if it is that one. So it makes no difference but in time.
    """

    def __init__(self) -> None:
        self._ready: dict[int, tuple[int, State]] = {}
        self._making: tuple[int, int, Generator[None, None, State]] | None = None
        self._rest = 0

    def __reduce__(self) -> tuple[type[Ahead], tuple[()]]:
        """Give what a copy is made from: it makes its runs itself."""
        return Ahead, ()

    def __len__(self) -> int:
        return len(self._ready)

    def part(self, episodes: Episodes, share_left: Callable[[], NDArray[np.float64]]) -> None:
        """Do a part of the work, some 0.1 ms for small instances.

        Args:
            episodes: What makes the runs.
            share_left: Gives the share of its jobs that every environment has left, (N,).
        """
        if self._making is None:
            self._begin(episodes, share_left)
        else:
            self._go_on()

    def take(self, environment: int, seed: int) -> State | None:
        """Give the run of an environment's next episode if it is there, or begun, and is that of `seed`."""
        if self._making is not None and self._making[:2] == (environment, seed):
            while self._making is not None:
                self._go_on()
        made = self._ready.pop(environment, None)
        return made[1] if made is not None and made[0] == seed else None

    def _begin(self, episodes: Episodes, share_left: Callable[[], NDArray[np.float64]]) -> None:
        self._rest -= 1
        if self._rest > 0 or len(self._ready) >= MOST:
            return
        share = share_left()
        share[list(self._ready)] = np.inf
        nearest = int(share.argmin())
        if share[nearest] > NEAR:
            self._rest = LOOK_AGAIN
            return
        seed = _next_seed(episodes.generator(nearest))
        self._making = nearest, seed, episodes.making(nearest, seed)

    def _go_on(self) -> None:
        environment, seed, parts = self._making  # type: ignore[misc]
        try:
            next(parts)
        except StopIteration as done:
            self._ready[environment], self._making = (seed, done.value), None
        except InputError:  # it is raised again when the episode begins
            self._making, self._rest = None, LOOK_AGAIN
        except BaseException:
            self._making = None
            raise


def _next_seed(generator: np.random.Generator) -> int:
    """Give the seed that a generator draws next, and leave it as it is."""
    bits: Any = generator.bit_generator
    before = bits.state
    try:
        return draw_seed(generator)
    finally:
        bits.state = before
