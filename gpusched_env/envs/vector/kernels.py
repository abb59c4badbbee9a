"""One call for many environments: each decides, runs to its next round, and is observed."""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpusched_env.arrays import Floats, Ints, Mask, Singles
from gpusched_env.envs.kernels import LOOK, look, write_groups
from gpusched_env.kernel import lean_kernel
from gpusched_env.named_arrays import PLAIN, element_like, element_of
from gpusched_env.observation.notes import Notes
from gpusched_env.observation.observe import write_mask
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.rounds import decide
from gpusched_env.simulator.run import Board, Hidden

SKIP = -2  # in place of an action: as `LOOK`, without the observation

# money: float64 (MONEY_ROWS, N).
TIME, PASSED, ENERGY, TARDINESS, TOTAL_ENERGY, TOTAL_TARDINESS, CO2 = range(7)
MONEY_ROWS = 7


class Seen(NamedTuple):
    """What a call writes.

    Attributes:
        numbers: The observations, (N · F,), at the places that `part_places` returns.
        mask: What can be placed now, (N, 1 + C).
        money: The present time [s], how far the step moved it [s], the energy and tardiness costs of the step and of
            the episode [€], and the CO2 of the step [kg], (MONEY_ROWS, N).
        current_job: The current job, -1 at the end, (N,).
        idle: Events in a row at which nothing ran and nothing was to come, (N,).
    """

    numbers: Singles
    mask: Mask
    money: Floats
    current_job: Ints
    idle: Ints


# Kernels get `Seen` as a plain tuple: beside a compiled function Numba stores the types of its arguments, and would not
# find a class there that has moved since.

notes_at = element_of(Notes)


@lean_kernel
def work(
    actions: Ints,
    seen: tuple[Any, ...],
    places: Ints,
    handles: tuple[Any, ...],
    invalid: Ints,
    like: Board,
    hidden_like: Hidden,
) -> None:
    """Apply the actions, count those that cannot be placed, and observe.

    All boards and hidden parts are of the builds of `like` and `hidden_like`.
    """
    boards, hidden, notes = handles  # (`named_arrays`), one of each for an environment
    numbers, mask, money, current_job, idle = seen
    for i in range(invalid.shape[0]):
        if actions[i] == SKIP:
            continue
        fetch_next(boards, notes, i, like)
        board, acts = element_like(like, boards, i), actions[i] != LOOK
        before = board.clock[at.NOW]
        if acts and not decide(board, element_like(hidden_like, hidden, i), actions[i]):
            invalid[i] += 1
        job, now, total, late, energy, tardiness, co2 = look(
            board, notes_at(notes, i), acts, numbers, places, i, mask[i]
        )
        current_job[i], money[TIME, i], money[TOTAL_ENERGY, i], money[TOTAL_TARDINESS, i] = job, now, total, late
        money[ENERGY, i], money[TARDINESS, i], money[CO2, i] = energy, tardiness, co2
        money[PASSED, i] = money[TIME, i] - before
        write_groups(board, numbers, places, i)
        idle[i] = board.count[at.IDLE]


@lean_kernel
def mask_all(boards: Ints, masks: Mask, current_job: Ints, like: Board) -> None:
    """Write what can be placed now in every environment, (N, 1 + C), and its current job, -1 at the end, (N,)."""
    for i in range(masks.shape[0]):
        board = element_like(like, boards, i)
        asked, current_job[i] = board.count[at.ASKED], -1
        masks[i, 1:] = 0
        masks[i, 0] = 1
        if asked < board.count[at.TO_ASK]:
            current_job[i] = board.order[asked]
            write_mask(board, current_job[i], masks[i])


LINE = 64  # bytes of a line of the cache, on most processors
BOARD, NOTES = 1280, 640  # bytes that are fetched of a board and of notes: enough for small clusters
utils: Any = cgutils  # it has no types


def _prefetch(typing_context: Any, address: Any) -> Any:  # noqa: ARG001 - as Numba calls it, and below
    """Load the line of the cache at this address, which Numba does not offer; nothing else happens, whatever it is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = utils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # To be read, soon and often, no instructions.
        builder.call(function, [builder.inttoptr(arguments[0], byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


fetch: Any = (lambda _: None) if PLAIN else intrinsic(_prefetch)


@lean_kernel
def fetch_next(boards: Ints, notes: Ints, i: int, like: Board) -> None:
    """Fetch what the observations of the next three environments will read, into the processor's cache.

    First the contiguous part of a board; then the row of the current job, and from that the row of its survival
    function: each a step earlier than it is needed.
    """
    if PLAIN:
        return
    if i + 3 < boards.shape[0]:
        _fetch(boards[i + 3], BOARD)
        _fetch(notes[i + 3], NOTES)
    for k in range(1, min(3, boards.shape[0] - i)):
        board = element_like(like, boards, i + k)
        job = board.order[min(board.count[at.ASKED] + 1, board.order.shape[0] - 1)]
        if k == 1:
            row = int(board.jobs[job, at.DISTRIBUTION])
            _fetch(board.survival[row].ctypes.data, 8 * board.survival.shape[1])
        else:
            _fetch(board.jobs[job].ctypes.data, 8 * board.jobs.shape[1])
            _fetch(board.tau[job].ctypes.data, 8 * board.tau.shape[1])


@lean_kernel
def _fetch(address: int, size: int) -> None:
    for fetched in range(0, size, LINE):
        fetch(address + fetched)
