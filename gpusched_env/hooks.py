"""Hooks: places where the mechanisms of a run change what the core does.

A hook is called like a function, with the board first. The type of the board names the mechanisms of the run, and the
compiler writes the calls of their functions in place of the call of the hook, in the order of the mechanisms. Nothing
is left of a hook that no mechanism of the run uses. Kernels that run as Python call the same functions in a loop.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, update_wrapper
from hashlib import sha256
from inspect import signature
from typing import Any, ParamSpec, TypeVar, cast

from numba.core import errors, ir
from numba.core.ir_utils import get_definition, guard, mk_unique_var

from gpusched_env.parts import part_of

P = ParamSpec("P")
R = TypeVar("R")

Functions = Mapping[Callable[..., Any], Callable[..., Any]]
"""The functions of a mechanism, by the hook at which each is called."""

_FUNCTIONS: dict[str, Functions] = {}
_FIELDS: dict[str, tuple[type, ...]] = {}
_PYTHON: dict[str, tuple[Callable[..., Any], ...]] = {}


class Hook:
    """A function whose body is that of the mechanisms. Its last argument is the value that they change, if it has one.

    Args:
        function: A function without a body. If it returns something, each mechanism receives the value that the one
            before it returned in place of the last argument; without mechanisms that argument is the result.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.name = function.__name__
        self.returns = signature(function).return_annotation not in (None, "None")
        self._digest = f"hook {function.__module__}.{function.__qualname__}{signature(function)}"

    def __call__(self, board: Any, *arguments: Any) -> Any:
        """Call the functions of the mechanisms of a board, as Python."""
        for function in functions(type(board).mechanisms, self):
            if self.returns:
                arguments = (*arguments[:-1], function(board, *arguments))
            else:
                function(board, *arguments)
        return arguments[-1] if self.returns else None


def hook(function: Callable[P, R]) -> Callable[P, R]:
    """Make a hook of a function without a body; its docstring says what mechanisms may do there."""
    return cast("Callable[P, R]", Hook(function))


def register(
    name: str,
    functions: Functions,
    fields: tuple[type, ...] = (),
    arrays: Callable[[Any], Mapping[str, Any]] = lambda _: {},
    begin: Callable[[Any, Any, Any], None] = lambda instance, board, hidden: None,  # noqa: ARG005
    expect: Callable[[Any, Any, float], Mapping[str, Any]] = lambda board, hidden, until: {},  # noqa: ARG005
    constants: Callable[[Any], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Register a mechanism: its functions, and what it adds to the state of a run.

    Args:
        name: Its name: that of its folder in `gpusched_env.mechanisms`, or, with a dot, of another package.
        functions: Its functions by hook.
        fields: Subclasses of the parts of the state (`simulator.run`), which annotate the arrays that it adds.
        arrays: Function that makes these arrays, by name, for the run of an instance that begins; they are empty for an
            instance without the mechanism.
        begin: Function of the instance and the two parts of the state that is called when a run begins.
        expect: Function that makes its hidden arrays, by name, for a simulation of the future of a run from its board,
            its hidden part, or None for a policy, which may not see that, and the time until which they are needed [s].
        constants: Function that makes the constants that it adds, or that are others with it, by name, for the runs of
            an instance.

    Raises:
        TypeError: A key is no hook.
    """
    for key in functions:
        if not isinstance(key, Hook):
            raise TypeError(f"mechanism {name}: {key!r} is no hook")
    _FUNCTIONS[name], _FIELDS[name], _PYTHON[name] = dict(functions), fields, (arrays, begin, expect, constants)


def load(name: str) -> None:
    """Import the module `kernels` of a mechanism, which registers it, unless it is registered."""
    if name not in _FUNCTIONS:
        part_of(name, "kernels")


def fields_of(mechanism: str) -> tuple[type, ...]:
    """Return the classes whose fields a mechanism adds to the state."""
    load(mechanism)
    return _FIELDS[mechanism]


def arrays_of(mechanism: str, instance: Any) -> Mapping[str, Any]:
    """Make the arrays that a mechanism adds to the state of a run of an instance, by name."""
    load(mechanism)
    made: Mapping[str, Any] = _PYTHON[mechanism][0](instance)
    return made


def constants_of(mechanism: str, instance: Any) -> Mapping[str, Any]:
    """Make the constants that a mechanism adds, or that are others with it, for the runs of an instance, by name."""
    load(mechanism)
    made: Mapping[str, Any] = _PYTHON[mechanism][3](instance)
    return made


def begin(mechanisms: tuple[str, ...], instance: Any, board: Any, hidden: Any) -> None:
    """Let mechanisms begin a run, whose arrays are made."""
    for mechanism in mechanisms:
        _PYTHON[mechanism][1](instance, board, hidden)


def expected_arrays(board: Any, hidden: Any, until: float) -> dict[str, Any]:
    """Make the hidden arrays of the mechanisms of a board, by name, for a simulation of its future (`register`)."""
    made = (_PYTHON[mechanism][2](board, hidden, until) for mechanism in type(board).mechanisms)
    return {name: array for arrays in made for name, array in arrays.items()}


@lru_cache(maxsize=4096)
def functions(mechanisms: tuple[str, ...], wanted: Hook) -> tuple[Callable[..., Any], ...]:
    """Return the functions that mechanisms have at a hook, in the order of the mechanisms."""
    for name in mechanisms:
        load(name)
    own = [_FUNCTIONS[name].get(cast("Callable[..., Any]", wanted)) for name in mechanisms]
    return tuple(function for function in own if function is not None)


def digest_of(mechanism: str) -> str:
    """Digest the functions of a mechanism: a kernel that calls them is compiled again when one of them changes."""
    digest = sha256()
    for key, function in _FUNCTIONS[mechanism].items():
        digest.update(f"{key.__name__} {getattr(function, '_digest', function.__qualname__)}\n".encode())
    return digest.hexdigest()[:16]


def write_calls(state: Any) -> bool:
    """Write, in a kernel that is compiled, the calls of the mechanisms' functions; return whether there are hooks.

    Raises:
        UnsupportedError: A hook is called with something else than arguments by place, the first an argument of the
            kernel.
    """
    changed = False
    for block in state.func_ir.blocks.values():
        if any(isinstance(value, ir.Expr) and value.op == "call" for value in _values(block)):
            body: list[Any] = []
            for statement in block.body:
                written = _calls(state, block, statement)
                changed |= written is not None
                body += [statement] if written is None else written
            block.body = body
    for block in state.func_ir.blocks.values() if changed else ():
        for assignment in block.find_insts(ir.Assign):
            if _hook_in(state, assignment.value) is not None:  # it has no type, and nothing reads it now
                _define(state, assignment, ir.Const(None, assignment.loc))
    return changed


def _values(block: Any) -> list[Any]:
    return [assignment.value for assignment in block.find_insts(ir.Assign)]


def _hook_in(state: Any, value: Any) -> Hook | None:
    """Return the hook that a name, or an attribute of a module, stands for."""
    if isinstance(value, ir.Expr) and value.op == "getattr":
        module = guard(get_definition, state.func_ir, value.value)
        found = getattr(module.value, value.attr, None) if isinstance(module, ir.Global) else None
    else:
        found = value.value if isinstance(value, ir.Global | ir.FreeVar) else None
    return found if isinstance(found, Hook) else None


def _define(state: Any, assignment: Any, value: Any) -> None:
    definitions = state.func_ir._definitions[assignment.target.name]  # noqa: SLF001 - Numba's passes do so
    definitions[definitions.index(assignment.value)] = value
    assignment.value = value


def _calls(state: Any, block: Any, statement: Any) -> list[Any] | None:
    """Return the statements in place of the call of a hook; None if it is none."""
    call = getattr(statement, "value", None) if isinstance(statement, ir.Assign) else None
    if not isinstance(call, ir.Expr) or call.op != "call":
        return None
    called = _hook_in(state, guard(get_definition, state.func_ir, call.func))
    if called is None:
        return None
    board = guard(get_definition, state.func_ir, call.args[0]) if call.args else None
    if call.kws or call.vararg is not None or not isinstance(board, ir.Arg):
        expected = "takes an argument of the kernel first, and all by place"
        raise errors.UnsupportedError(f"{called.name} {expected}", call.loc)
    kind = state.args[board.index]
    value = call.args[-1] if called.returns else ir.Const(None, call.loc)
    body: list[Any] = []
    for function in functions(kind.mechanisms, called):
        arguments = [*call.args[:-1], value] if called.returns else call.args
        body += [_assign(state, block, ir.Global(function.__name__, function, call.loc), call.loc)]
        body += [_assign(state, block, ir.Expr.call(body[-1].target, arguments, (), call.loc), call.loc)]
        value = body[-1].target
    _define(state, statement, value)
    return [*body, statement]


def _assign(state: Any, block: Any, value: Any, loc: Any) -> Any:
    target = ir.Var(block.scope, mk_unique_var("hook"), loc)
    state.func_ir._definitions[target.name] = [value]  # noqa: SLF001
    return ir.Assign(value, target, loc)
