"""Flags that the type of an argument decides: a kernel reads `board.has_prices`, and it is compiled as a constant.

Numba then removes the branch that is not taken before it finds the types of its variables. What that branch calls is
not compiled. Kernels that run as Python read an ordinary attribute.
"""
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any

from __future__ import annotations

from typing import Any

from numba.core import errors, ir
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.typed_passes import NoPythonBackend
from numba.core.untyped_passes import WithLifting

from gpusched_env.hooks import write_calls
from gpusched_env.linking import BY_SYMBOL, CallBySymbol, take_library

PREFIX = "has_"


@register_pass(mutates_CFG=True, analysis_only=False)
class KnownFlags(FunctionPass):
    """Replace each `argument.has_x` by a constant, where the type of the argument has such flags (`NamedArraysType`).

    Raises:
        UnsupportedError: A kernel reads `has_x` of a value that is no argument: its type is not known yet.
    """

    _name = "known_flags"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Write the constants, and the calls of hooks; return whether there are any."""
        take_library(state)
        changed = write_calls(state)
        for block in state.func_ir.blocks.values():
            for assignment in block.find_insts(ir.Assign):
                read = assignment.value
                if isinstance(read, ir.Expr) and read.op == "getattr" and read.attr.startswith(PREFIX):
                    changed |= _write_constant(state, assignment)
        return changed


def _write_constant(state: Any, assignment: Any) -> bool:
    read = assignment.value
    source = guard(get_definition, state.func_ir, read.value)
    if isinstance(source, ir.Global | ir.FreeVar):  # a function of a module
        return False
    if not isinstance(source, ir.Arg):
        raise errors.UnsupportedError(f"{read.attr} can be read of an argument of the kernel only", loc=read.loc)
    mechanisms = getattr(state.args[source.index], "mechanisms", None)
    if mechanisms is None:
        return False
    constant = ir.Const(read.attr.removeprefix(PREFIX) in mechanisms, assignment.loc)
    definitions = state.func_ir._definitions[assignment.target.name]  # noqa: SLF001 - Numba's passes do so
    definitions[definitions.index(read)] = constant
    assignment.value = constant
    return True


class Compiler(CompilerBase):
    """Numba's compiler, with `KnownFlags` before the removal of branches that are never taken."""

    def define_pipelines(self) -> list[Any]:
        """Return the one pipeline."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(KnownFlags, WithLifting)
        if BY_SYMBOL:
            passes.add_pass_after(CallBySymbol, NoPythonBackend)
        passes.finalize()
        return [passes]
