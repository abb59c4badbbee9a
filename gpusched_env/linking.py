"""Kernels that call each other by symbol: the machine code of a kernel exists once, and its callers refer to it.

Numba copies the code of each function into every function that calls it, and optimises and stores each copy. Here the
code of a lean kernel becomes part of its callers, as with Numba; that of a short one may; that of others never does.
So all kernels of `gpusched warm-up` compile in half the time.
"""
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from llvmlite.binding import parse_assembly, parse_bitcode
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import CodeLibrary, JITCodeLibrary
from numba.core.compiler_machinery import LoweringPass, register_pass

SHORT = 300
"""The greatest number of instructions of a kernel whose code callers see, so that LLVM may write it into them.

Chosen on steps of the environment and rounds of STS-X: with 100 they take 2 to 3 % longer, and compiling takes as long.
"""
_NEEDED = (hasattr(JITCodeLibrary, "_get_module_for_linking"), "_reload_init" in CodeLibrary.__init__.__code__.co_names)
BY_SYMBOL = all(_NEEDED)
"""Whether this version of Numba has what is needed, since 0.63; with another one, code is copied as Numba does."""

_KERNELS: dict[tuple[str, str], list[Any]] = {}
_NUMBERS: set[int] = set()


def register(kernel: Any) -> None:
    """Register a kernel, so that others can call it by symbol, unless it is defined in a function."""
    function = kernel.py_func
    if BY_SYMBOL and "<locals>" not in function.__qualname__:
        _KERNELS.setdefault((function.__module__, function.__qualname__), []).append(kernel)


class OtherCodeError(Exception):
    """What a stored kernel calls is compiled from other code now, or is no more."""


class Callee(NamedTuple):
    """A kernel that others call by symbol. Called, it loads the kernel, so that the symbol stands for machine code.

    Raises:
        OtherCodeError: There is no such kernel of the same code.
    """

    module: str
    name: str
    digest: str
    arguments: tuple[Any, ...]
    symbol: str

    def __call__(self) -> None:
        try:
            if (self.module, self.name) not in _KERNELS:
                import_module(self.module)
            kernels = _KERNELS[self.module, self.name]
            kernel = next(each for each in kernels if each._digest == self.digest)  # noqa: SLF001 - of this package
            kernel.compile(self.arguments)
            symbol = kernel.overloads[self.arguments].fndesc.llvm_func_name
        except (ImportError, KeyError, StopIteration) as error:
            raise OtherCodeError(self.name) from error
        if symbol != self.symbol:
            raise OtherCodeError(self.name)


class Library(JITCodeLibrary):
    """The code of a kernel. What it calls by symbol is loaded first (`_reload_init`, which Numba stores with it)."""

    callee: Callee | None = None
    """How callers find it; None: its code becomes part of them."""
    short = True
    names: tuple[str, ...] = ()
    """Symbols that Numba looks for when the kernel is loaded."""
    code: bytes | None = None
    """The code for callers as it was stored, until a caller needs it."""

    def finalize(self) -> None:
        """Optimise the code with that of kernels of which it has to be a part, or may be."""
        called: dict[str, Any] = {}
        libraries, self._linking_libraries = dict.fromkeys(self._linking_libraries), []
        for library in libraries:
            if not isinstance(library, Library):
                self._linking_libraries.append(library)
                continue
            if library.callee is not None:
                called[library.callee.symbol] = library.callee
            if library.short:
                called |= {getattr(each, "symbol", str(each)): each for each in library._reload_init}  # noqa: SLF001
                seen = library.seen().clone()
                if library.callee is not None:
                    seen.get_function(library.callee.symbol).linkage = "available_externally"  # it is not emitted again
                self._final_module.link_in(seen)
        super().finalize()
        names = {each.name for each in self._final_module.functions}
        self._reload_init.update(each for name, each in called.items() if name in names or not isinstance(each, Callee))

    def seen(self) -> Any:
        """Return the code for kernels that call this one."""
        if self.code is not None:
            self._shared_module, self.code = parse_bitcode(self.code), None
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """Return the code for functions that are no kernels, and keep those from being stored that call by symbol.

        Numba would not load what they call.
        """
        if not self._reload_init:
            return self.seen()
        module = self.seen().clone()
        module.link_in(parse_assembly("@numba.dynamic.globals.of_kernels = weak_odr global i8 0"))
        return module

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, bytes]]:
        """Return the machine code; names stand in place of the code for callers."""
        empty = parse_assembly("".join(f'define void @"{each}"() {{ ret void }}\n' for each in self.names))
        return self.name, "object", (self._get_compiled_object(), empty.as_bitcode())


def _kernel_of(state: Any) -> Any:
    function = state.func_id.func
    known = _KERNELS.get((function.__module__, function.__qualname__), ())
    return next((each for each in known if each.py_func is function), None)


def _classes(kind: Any) -> Iterator[str]:
    """Yield the classes of a type of Numba, whose name has them without their modules."""
    for each in (getattr(kind, "instance_class", None), getattr(kind, "own", None)):
        if each is not None:
            yield f"{each.__module__}.{each.__qualname__} {getattr(each, '_fields', '')}"
    inner = getattr(kind, "types", None) or getattr(kind, "fields", None) or ()
    for each in (*(inner.values() if isinstance(inner, dict) else inner), getattr(kind, "dtype", None)):
        if each is not None and each is not kind:
            yield from _classes(each)


def take_library(state: Any) -> None:
    """Compile to a `Library`; a kernel under a symbol that depends on its code and the types of its arguments only."""
    kernel, identity = _kernel_of(state), state.func_id
    if BY_SYMBOL and state.library is None:
        state.library = Library(state.targetctx.codegen(), identity.func_qualname)
        state.library.enable_object_caching()
    if kernel is None:
        return
    text = f"{kernel._digest} {state.args} {[*_classes(types.Tuple(state.args))]}"  # noqa: SLF001 - of this package
    number = int(sha256(text.encode()).hexdigest()[:15], 16)
    if number not in _NUMBERS:  # else this process has the kernel already: Numba's own number is another
        _NUMBERS.add(number)
        identity.unique_id, identity.unique_name = number, f"{identity.func_qualname}${number}"


@register_pass(mutates_CFG=False, analysis_only=True)
class CallBySymbol(LoweringPass):
    """Decide, when a kernel is compiled, whether its code becomes part of its callers."""

    _name = "call_by_symbol"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Write how callers find the kernel; return that nothing of the code has changed."""
        library, kernel, made = state.library, _kernel_of(state), state.cr.fndesc
        library.names = made.llvm_func_name, made.llvm_cpython_wrapper_name
        if kernel is not None and not state.flags.forceinline:
            blocks = library.get_function(made.llvm_func_name).blocks
            instructions = (each for block in blocks for each in block.instructions)
            library.short = next(islice(instructions, SHORT, None), None) is None
            place = kernel.py_func.__module__, kernel.py_func.__qualname__
            library.callee = Callee(*place, kernel._digest, state.args, made.llvm_func_name)  # noqa: SLF001
        return False


class _Stored(CompileResultCacheImpl):
    """Stores with a kernel how it is called, and loads with it what it calls."""

    def reduce(self, cres: Any) -> Any:
        """Return what is stored."""
        library = cres.library
        own = (library.callee, library.short, library.names, library.seen().as_bitcode()) if BY_SYMBOL else None
        return own, super().reduce(cres)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the compiled kernel; None if what it calls was compiled from other code since."""
        own, stored = payload
        try:
            loaded = super().rebuild(target_context, stored)
        except OtherCodeError:
            return None
        if own is not None:
            library = loaded.library
            library.__class__ = Library
            library.callee, library.short, library.names, library.code = own
            library._reload_init.update(loaded.reload_init)  # noqa: SLF001 - Numba leaves it empty
            _NUMBERS.add(loaded.fndesc.uid)
        return loaded


class Cache(FunctionCache):
    """Numba's cache on the disk, for kernels that are called by symbol."""

    _impl_class = _Stored

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super()._load_overload(sig, target_context)
        except (ImportError, AttributeError):  # a type of another package has moved
            self.flush()
            return None
