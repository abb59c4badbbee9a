"""The decorator of every compiled function."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Iterator
from dis import get_instructions
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
from numba.core import types
from numba.core.cpu import CPUTargetOptions
from numba.core.dispatcher import Dispatcher

from gpusched_env.known_flags import Compiler

# Numba's option is private. It is set for every kernel, since a kernel without it takes it from its first caller.
COUNTING, LEAN = ({"_nrt": True}, {"_nrt": False}) if hasattr(CPUTargetOptions, "_nrt") else ({}, {})

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_RECORD = re.compile(r"^class \w+\((?:NamedTuple|NamedArrays)\):\n(?:(?: {4}.*)?\n)+", re.MULTILINE)
_FIELD = re.compile(r"^(?:class \w+|    \w+: .*)", re.MULTILINE)
_FILES = ("kernel.py", "named_arrays.py", "known_flags.py", "hooks.py")
_MODULES = tuple(str(Path(__file__).with_name(name)) for name in _FILES)


_OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": Compiler}
_PACKAGES = ("gpusched_env", "gpusched_baselines", "gpusched_agents")

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a plain loop over arrays with Numba and cache the result on disk.

    Setting `NUMBA_DISABLE_JIT=1` runs the same function as Python; there is no second implementation. Code that
    was typed into an interpreter or a notebook, and is in no file, is kept for the session only.
    """
    return _compiled(function, **COUNTING)


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, for a function that makes no array and returns none.

    It counts no references to its arrays, and becomes part of the functions that call it: counting and handing over
    arrays take longer than a small function's own work. A function that makes an array does not compile so, nor does
    one that copies one row of an array to another; a function that calls a `kernel` that makes arrays does.
    """
    return _compiled(function, forceinline=True, **LEAN)


def unlocked_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `lean_kernel`, and release the interpreter's lock during a call, so that threads can share work."""
    return _compiled(function, nogil=True, **LEAN)


def threaded_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, which may make arrays, and release the interpreter's lock during a call."""
    return _compiled(function, nogil=True, **COUNTING)


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    njit: Any = numba.njit
    in_a_file = Path(function.__code__.co_filename).is_file()
    compiled: Any = njit(cache=in_a_file, **_OPTIONS, **options)(function)
    if isinstance(compiled, Dispatcher):
        # Numba would compile a kernel once more for each constant that a caller passes; LLVM sees them anyway.
        compiled.compile = lambda sig: type(compiled).compile(compiled, _without_constants(sig))  # type: ignore[method-assign]
    stored = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if stored is not None:
        # Numba discards a cached kernel when the file that defines it changes, but not when a constant or a kernel that
        # it takes from another file does: a stale kernel would then compute something else without a warning. And it
        # discards all kernels of a file for a changed comment. So a kernel is kept under a digest of all that it is
        # made of.
        compiled._digest = _digest(function, options)  # noqa: SLF001
        stored._source_stamp = compiled._digest  # noqa: SLF001
        # Numba reads the version first: with another one it reads no types, whose modules may have moved since.
        stored._version = f"{numba.__version__} {compiled._digest}"  # noqa: SLF001
        # Two versions of a kernel may run from one folder: the code of one never stands beside the index of the other.
        stored._data_name_pattern = stored._data_name_pattern.replace("{", f"{compiled._digest[:16]}.{{")  # noqa: SLF001
        if "<locals>" not in function.__qualname__:  # else one name may stand for several functions of a file
            # Numba names files by the kernel's first line, so that a line above it would compile it again.
            line = f"-{function.__code__.co_firstlineno}."
            for attribute in ("_index_name", "_index_path", "_data_name_pattern"):
                setattr(stored, attribute, ".".join(getattr(stored, attribute).rsplit(line, 1)))
    typed: Callable[P, R] = compiled
    return typed


def _without_constants(signature: Any) -> Any:
    """Replace the types of single numbers, such as `Literal[int](1)`, in a tuple of types by those of all numbers."""
    return tuple(types.unliteral(kind) for kind in signature) if isinstance(signature, tuple) else signature  # type: ignore[no-untyped-call]


def _digest(function: Callable[..., Any], options: object = None) -> str:
    """Digest the parts of a kernel: its code, the constants and kernels that it reads, and the records of arrays.

    Names below it in its own file do not exist yet. So a kernel that reads such a name depends on the whole file, and
    on all kernels and constants that the file has from other ones.
    """
    code = function.__code__
    digest = sha256(f"{function.__module__} {options}".encode())
    records = {_records(_package(file)) for file in (__file__, code.co_filename)}
    for text in (*sorted(records), *_parts(code, function.__globals__, code.co_filename, function.__doc__)):
        digest.update(f"{text}\n".encode())
    for cell in function.__closure__ or ():
        digest.update(_value(cell.cell_contents).encode())
    return digest.hexdigest()


def _parts(code: CodeType, names: dict[str, Any], file: str, docstring: str | None = None) -> Iterator[str]:
    """Yield the code, and the values of all globals and of attributes of modules that it reads, but no docstring."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant, names, file)
        elif constant is not None and constant != docstring:  # whose place None takes where there is no docstring
            yield repr(constant)
    module: Any = None
    for step in get_instructions(code):
        if step.opname in _ATTRIBUTES and isinstance(module, ModuleType):
            module = getattr(module, step.argval, None)
            yield f"{step.argval} {_value(module)}"
        elif step.opname == "LOAD_GLOBAL":
            known = step.argval in names or hasattr(builtins, step.argval) or step.argval == code.co_name
            yield step.argval if known else f"{_text(file)} {_all_values(names, _package(file).name)}"
            module = names.get(step.argval)
            yield _value(module)
        else:
            module = None


def _value(value: Any) -> str:
    if hasattr(value, "_digest"):
        return str(value._digest)  # noqa: SLF001
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, Dispatcher):
        return _digest(value.py_func)
    if isinstance(value, ModuleType | type) or callable(value):
        return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value)))
    return repr(value)


def _all_values(names: dict[str, Any], own: str) -> str:
    digest = sha256()
    for name, value in list(names.items()):
        if isinstance(value, ModuleType) and value.__name__.partition(".")[0] in (own, *_PACKAGES):
            digest.update(f"{name} {_all_values(_without_modules(value), own)}".encode())
        elif hasattr(value, "_digest") or (not name.startswith("__") and _is_constant(value)):
            digest.update(f"{name} {_value(value)}\n".encode())
    return digest.hexdigest()


def _is_constant(value: Any) -> bool:
    """Whether it is a value that a kernel can read: a number, a text, an array, or a tuple of such."""
    if isinstance(value, tuple):
        return all(map(_is_constant, value))
    return isinstance(value, bool | int | float | str | np.ndarray)


def _without_modules(module: ModuleType) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if not isinstance(value, ModuleType)}


@cache
def _records(package: Path) -> str:
    """Digest the fields of all tuples and records of arrays of a package: kernels read them by their places."""
    texts = {str(path.relative_to(package)): path.read_text(encoding="utf-8") for path in sorted(package.rglob("*.py"))}
    fields = {name: _FIELD.findall("".join(_RECORD.findall(text))) for name, text in texts.items() if "Named" in text}
    return sha256(f"{fields} {' '.join(map(_text, _MODULES))}".encode()).hexdigest()


@cache
def _package(file: str) -> Path:
    folder = Path(file).parent
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


@cache
def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")
