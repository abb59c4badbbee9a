"""Runs of coming episodes, made before they are needed, while other threads step the environments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpusched_env.envs.source import draw_seed
from gpusched_env.errors import InputError
from gpusched_env.kernel import lean_kernel
from gpusched_env.named_arrays import PLAIN, element_of
from gpusched_env.simulator import State
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from numpy.typing import NDArray

    from gpusched_env.arrays import Ints
    from gpusched_env.envs.vector.episodes import Episodes

NEAR = 0.3  # share of its jobs that an environment has left when its next run is begun
MOST = 64  # runs that wait: each takes as much memory as one that is being stepped
LOOK_AGAIN = 8  # parts between two checks whether an environment is near its end


class Prefetch:
    """Makes the next run of environments that are near the end of their episodes, a part at a time.

    A run is that of the seed which comes next in `seeds`, or which the environment's generator draws next, if nothing
    else draws from it. The caller
    that takes the run names the seed drawn, and gets the run only if it is of that seed. Only times differ, no results.
    """

    def __init__(self) -> None:
        self._ready: dict[int, tuple[int, State]] = {}
        self._building: tuple[int, int, Generator[None, None, State]] | None = None
        self._rest = 0

    def __reduce__(self) -> tuple[type[Prefetch], tuple[()]]:
        """Return what a copy is made from: it makes its runs itself."""
        return Prefetch, ()

    def __len__(self) -> int:
        return len(self._ready)

    def part(self, episodes: Episodes, share_left: Callable[[], NDArray[np.float64]]) -> None:
        """Do a part of the work, some 0.1 ms for small instances."""
        if self._building is None:
            self._begin(episodes, share_left)
        else:
            self._go_on()

    def take(self, environment: int, seed: int) -> State | None:
        """Return the run of an environment's next episode if it is there, or begun, and is that of `seed`."""
        if self._building is not None and self._building[:2] == (environment, seed):
            while self._building is not None:
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
        listed = episodes.seed_rounds[nearest]
        seed = _next_seed(episodes.generator(nearest)) if listed is None else listed.next
        self._building = nearest, seed, episodes.building(nearest, seed)

    def _go_on(self) -> None:
        environment, seed, parts = self._building  # type: ignore[misc]
        try:
            next(parts)
        except StopIteration as done:
            self._ready[environment], self._building = (seed, done.value), None
        except InputError:  # it is raised again when the episode begins
            self._building, self._rest = None, LOOK_AGAIN
        except BaseException:
            self._building = None
            raise


def _next_seed(generator: np.random.Generator) -> int:
    bits: Any = generator.bit_generator
    before = bits.state
    try:
        return draw_seed(generator)
    finally:
        bits.state = before


LINE = 64  # bytes of a line of the cache, on most processors
READ, KEEP, DATA = 0, 3, 1  # LLVM's prefetch: to be read, soon and often, no instructions
BOARD, NOTES = 1280, 640  # bytes that are fetched of a board and of notes: enough for small clusters, without the order

build: Any = cgutils  # it has no types
board_at = element_of(Board)


def _prefetch(typing_context: Any, address: Any) -> Any:  # noqa: ARG001 - as Numba calls it
    """Load the line of the cache at this address; nothing else happens, whatever the address is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = build.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        place = builder.inttoptr(arguments[0], byte)
        builder.call(function, [place, number(READ), number(KEEP), number(DATA)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


prefetch: Any = (lambda _: None) if PLAIN else intrinsic(_prefetch)


@lean_kernel
def prefetch_lines(boards: Ints, notes: Ints, i: int) -> None:
    """Fetch what the observations of the next three environments will read.

    First the contiguous part of a board; then the row of the current job, and from that the row of its survival
    function: each a step earlier than it is needed. Another thread may work there; what is read here decides only
    what is fetched.
    """
    if PLAIN:
        return
    if i + 3 < boards.shape[0]:
        _fetch(boards[i + 3], BOARD)
        _fetch(notes[i + 3], NOTES)
    if i + 2 < boards.shape[0]:
        board = board_at(boards, i + 2)
        asked = board.count[at.ASKED] + 1
        if asked < board.count[at.TO_ASK]:
            job = board.order[asked]
            _fetch(board.jobs[job].ctypes.data, 8 * board.jobs.shape[1])
            _fetch(board.tau[job].ctypes.data, 8 * board.tau.shape[1])
    if i + 1 < boards.shape[0]:
        board = board_at(boards, i + 1)
        asked = board.count[at.ASKED] + 1
        if asked < board.count[at.TO_ASK]:
            row = int(board.jobs[board.order[asked], at.DISTRIBUTION])
            _fetch(board.survival[row].ctypes.data, 8 * board.survival.shape[1])


@lean_kernel
def _fetch(address: int, size: int) -> None:
    for prefetched in range(0, size, LINE):
        prefetch(address + prefetched)
