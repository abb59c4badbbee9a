"""The decorator of every compiled function."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Iterator
from dis import get_instructions
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast
from uuid import uuid4

import numba
import numpy as np
from numba.core import types
from numba.core.cpu import CPUTargetOptions
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from gpusched_env.known_flags import Compiler
from gpusched_env.linking import Cache, register

# Numba's option is private. It is set for every kernel, since a kernel without it takes it from its first caller.
COUNTING, LEAN = ({"_nrt": True}, {"_nrt": False}) if hasattr(CPUTargetOptions, "_nrt") else ({}, {})

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_RECORD = re.compile(r"^class \w+\((?:NamedTuple|NamedArrays)\):\n(?:(?: {4}.*)?\n)+", re.MULTILINE)
_FIELD = re.compile(r"^(?:class \w+|    \w+: .*)", re.MULTILINE)
_FILES = ("kernel.py", "named_arrays.py", "known_flags.py", "linking.py", "hooks.py")
_MODULES = tuple(str(Path(__file__).with_name(name)) for name in _FILES)


_OPTIONS = {"error_model": "numpy", "no_cfunc_wrapper": True, "pipeline_class": Compiler}

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


def threaded_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile like `kernel`, which may make arrays, and release the interpreter's lock during a call."""
    return _compiled(function, nogil=True, **COUNTING)


class _Kernel(CPUDispatcher):
    """A compiled function that is kept on disk under the digest of all that it is made of.

    Numba discards a cached kernel when the file that defines it changes, but not when a constant or a kernel that it
    takes from another file does: a stale kernel would then compute something else without a warning. And it discards
    all kernels of a file for a changed comment.
    """

    _options: object = None

    def compile(self, sig: Any) -> Any:
        """Compile, or take from the disk.

        Numba would compile a kernel once more for each constant that a caller passes; LLVM sees them anyway.
        """
        _import_blas_with_the_first_kernel_that_uses_it()
        return super().compile(_without_constants(sig))

    @cached_property
    def _cache(self) -> Cache:
        """Numba's cache of the kernel, made when Numba first looks into it."""
        made: Any = Cache(self.py_func)  # type: ignore[no-untyped-call]
        stored = made._cache_file  # noqa: SLF001
        stored._source_stamp = self._digest  # noqa: SLF001
        # Numba reads the version first: with another one it reads no types, whose modules may have moved since.
        stored._version = f"{numba.__version__} {self._digest}"  # noqa: SLF001
        # Two versions of a kernel may run from one folder: the code of one never stands beside the index of the other.
        stored._data_name_pattern = stored._data_name_pattern.replace("{", f"{self._digest[:16]}.{{")  # noqa: SLF001
        if "<locals>" not in self.py_func.__qualname__:  # else one name may stand for several functions of a file
            # Numba names files by the kernel's first line, so that a line above it would compile it again.
            line = f"-{self.py_func.__code__.co_firstlineno}."
            for attribute in ("_index_name", "_index_path", "_data_name_pattern"):
                setattr(stored, attribute, ".".join(getattr(stored, attribute).rsplit(line, 1)))
        return cast("Cache", made)

    @cached_property
    def _digest(self) -> str:
        """The digest, computed at first use: a process uses a third of the kernels that it imports."""
        reached: dict[Any, int] = {self: 0}
        digest = sha256()
        for each in (waiting := list(reached)):  # the list grows
            parts, called = _parts_of(each)
            waiting += (new for new in dict.fromkeys(called) if new not in reached)
            digest.update(f"{parts} {[reached.setdefault(one, len(reached)) for one in called]}\n".encode())
        return digest.hexdigest()


def _compiled(function: Callable[P, R], **options: bool) -> Callable[P, R]:
    njit: Any = numba.njit
    compiled: Any = njit(**_OPTIONS, **options)(function)
    file = function.__code__.co_filename
    if isinstance(compiled, CPUDispatcher):
        compiled.__class__, made = _Kernel, vars(compiled)
        made["_options"] = options
        if Path(file).is_file():
            del made["_cache"]  # Numba's cache that keeps nothing
            _records(_package(file))  # as they are when the kernel is imported
        register(compiled)
    return cast("Callable[P, R]", compiled)


def _without_constants(signature: Any) -> Any:
    """Replace the types of single numbers, such as `Literal[int](1)`, in a tuple of types by those of all numbers."""
    return tuple(types.unliteral(kind) for kind in signature) if isinstance(signature, tuple) else signature  # type: ignore[no-untyped-call]


def _parts_of(kernel: Any) -> tuple[str, list[Any]]:
    """Digest the parts of a kernel: its code, the constants that it reads, and the records of arrays.

    Returns:
        The digest, and the kernels that it calls, in the order in which it reads them.
    """
    if "_parts" not in vars(kernel):
        function = kernel.py_func
        code, called = function.__code__, []
        digest = sha256(f"{function.__module__} {getattr(kernel, '_options', None)}".encode())
        records = {_records(_package(file)) for file in (__file__, code.co_filename)}
        cells = (cell.cell_contents for cell in function.__closure__ or ())
        parts = (*_parts(code, function.__globals__, function.__doc__), *cells)
        for part in (*sorted(records), *parts):
            if isinstance(part, Dispatcher):
                called.append(part)
            digest.update(f"{_value(part)}\n".encode())
        kernel._parts = digest.hexdigest(), called  # noqa: SLF001
    parts_and_called: tuple[str, list[Any]] = kernel._parts  # noqa: SLF001
    return parts_and_called


def _parts(code: CodeType, names: dict[str, Any], docstring: str | None = None) -> Iterator[Any]:
    """Yield the code, and the values of all globals and of attributes of modules that it reads, but no docstring."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant, names)
        elif constant is not None and constant != docstring:  # whose place None takes where there is no docstring
            yield repr(constant)
    value: Any = None
    for step in get_instructions(code):
        if step.opname in _ATTRIBUTES and isinstance(value, ModuleType):
            value = getattr(value, step.argval, None)
        elif step.opname == "LOAD_GLOBAL":
            known = step.argval in names or hasattr(builtins, step.argval)
            value = names.get(step.argval) if known else uuid4()  # used while its file is imported: not for others
        else:
            value = None
            continue
        yield step.argval
        yield value


def _value(value: Any) -> str:
    if isinstance(value, Dispatcher):  # `_Kernel._digest` has its parts
        return f"{value.py_func.__module__} {value.py_func.__qualname__}"
    if hasattr(value, "_digest"):
        return str(value._digest)  # noqa: SLF001
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {sha256(value.tobytes()).hexdigest()}"
    if isinstance(value, ModuleType | type) or callable(value):
        return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", type(value)))
    return value if isinstance(value, str) else repr(value)


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


@cache
def _import_blas_with_the_first_kernel_that_uses_it() -> None:
    """Let Numba not import SciPy's linear algebra with the first kernel of all, which takes a tenth of a second.

    Its module `arraymath` asks, when it is imported, whether SciPy has it: this package depends on SciPy.
    """
    from numba.np import linalg  # noqa: PLC0415 - it takes time, and processes without kernels do not need it

    ensure = linalg.ensure_blas

    def first() -> None:
        linalg.ensure_blas = ensure

    if "numba.np.arraymath" not in sys.modules:
        linalg.ensure_blas = first
