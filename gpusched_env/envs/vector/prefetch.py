"""Bringing memory into the processor's cache before it is read: the runs of many environments do not fit there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpusched_env.kernel import lean_kernel
from gpusched_env.named_arrays import PLAIN, element_of
from gpusched_env.simulator import layout as at
from gpusched_env.simulator.run import Board

if TYPE_CHECKING:
    from gpusched_env.arrays import Ints

LINE = 64  # bytes of a line of the cache, on most processors
READ, KEEP, DATA = 0, 3, 1  # LLVM's prefetch: to be read, soon and often, no instructions
BOARD, NOTES = 1280, 640  # bytes that are fetched of a board and of notes: what small clusters have, but for the order

build: Any = cgutils  # it has no types
board_at = element_of(Board)


def _prefetch(typing_context: Any, address: Any) -> Any:  # noqa: ARG001 - as Numba calls it
    """Have the line of the cache filled that has this address; nothing else happens, whatever it is."""

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
def fetch_ahead(boards: Ints, notes: Ints, i: int) -> None:
    """Fetch what the observations of the next three environments will read.

    What a board has in one piece first; where the job at hand stands follows from that, and the row of its survival
    function from the job: each a step earlier than it is needed. Another thread may be at work there; what is read here
    decides nothing but what is fetched.
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
    for ahead in range(0, size, LINE):
        prefetch(address + ahead)
