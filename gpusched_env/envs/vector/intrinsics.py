"""An instruction of the processor that Numba does not offer: a prefetch."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from gpusched_env.named_arrays import PLAIN

build: Any = cgutils  # it has no types


def _fetch(typing_context: Any, address: Any) -> Any:  # noqa: ARG001 - as Numba calls it, and below
    """Load the line of the cache at this address; nothing else happens, whatever the address is."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = build.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        # To be read, soon and often, no instructions.
        builder.call(function, [builder.inttoptr(arguments[0], byte), number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(types.int64), generate


fetch: Any = (lambda _: None) if PLAIN else intrinsic(_fetch)
