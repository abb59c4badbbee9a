"""Bringing rows into the processor's cache before they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from gpusched_env.kernel import lean_kernel

if TYPE_CHECKING:
    from gpusched_env.arrays import Floats

LINE = 8  # float64 numbers in a line of the cache, on most processors
READ, KEEP, DATA = 0, 3, 1  # LLVM's prefetch: to be read, soon and often, no instructions

build: Any = cgutils  # it has no types


def _prefetch(typing_context: Any, array: Any, row: Any, column: Any) -> Any:  # noqa: ARG001 - as Numba calls it
    """Have a line of the cache filled that has `array[row, column]`; nothing else happens, whatever the index."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = signature.args[0]
        place = context.make_array(of)(context, builder, arguments[0])
        element = build.get_item_pointer(context, builder, of, place, arguments[1:], wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = build.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(function, [builder.bitcast(element, byte), number(READ), number(KEEP), number(DATA)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


def _nothing(array: Floats, row: int, column: int) -> None:
    """Take the place of `_prefetch` where kernels run as Python."""


prefetch: Any = _nothing if config.DISABLE_JIT else intrinsic(_prefetch)  # type: ignore[attr-defined]


@lean_kernel
def fetch_row(array: Floats, row: int) -> None:
    """Have a row of a matrix brought into the cache."""
    for column in range(0, array.shape[1], LINE):
        prefetch(array, row, column)
