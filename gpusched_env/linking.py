"""Kernels that call each other by symbol: the machine code of a kernel exists once, and its callers refer to it.

Numba copies the code of each function into every function that calls it, and optimises and stores each copy. Here the
code of a lean kernel becomes part of its callers, as with Numba; that of a short one may; that of others never does.
So all kernels of `gpusched warm-up` compile in half the time.
"""
# mypy: allow-untyped-calls, allow-untyped-decorators, allow-subclassing-any

from __future__ import annotations

from hashlib import sha256
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple

from llvmlite.binding import parse_assembly, parse_bitcode
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

_KERNELS: dict[tuple[str, str], Any] = {}
_COMPILED: set[int] = set()


def register(kernel: Any) -> None:
    """Register a kernel, so that others can call it by symbol, unless it is defined in a function."""
    function = kernel.py_func
    if BY_SYMBOL and "<locals>" not in function.__qualname__:
        _KERNELS[function.__module__, function.__qualname__] = kernel


class OtherCodeError(Exception):
    """What a stored kernel calls has another symbol now: it was compiled from other code."""


class Callee(NamedTuple):
    """A kernel that others call by symbol. Called, it loads the kernel, so that the symbol stands for machine code.

    Raises:
        OtherCodeError: The kernel is compiled from other code, or is no more.
    """

    module: str
    name: str
    arguments: tuple[Any, ...]
    symbol: str

    def __call__(self) -> None:
        try:
            import_module(self.module)
            kernel = _KERNELS[self.module, self.name]
            kernel.compile(self.arguments)
            symbol = kernel.overloads[self.arguments].fndesc.llvm_func_name
        except (ImportError, KeyError) as error:
            raise OtherCodeError(self.name) from error
        if symbol != self.symbol:
            raise OtherCodeError(self.name)


class Library(JITCodeLibrary):
    """The code of a kernel. What it calls by symbol is loaded first (`_reload_init`, which Numba stores with it)."""

    callee: Callee | None = None
    """How callers find it; None: its code becomes part of them."""
    short = True
    code: bytes | None = None
    """The code for callers as it was stored, until a caller needs it."""

    def finalize(self) -> None:
        """Optimise the code with that of kernels of which it has to be a part, or may be."""
        called: dict[str, Callee] = {}
        libraries, self._linking_libraries = dict.fromkeys(self._linking_libraries), []
        for library in libraries:
            callee = getattr(library, "callee", None)
            if callee is None:
                self._linking_libraries.append(library)
                continue
            called[callee.symbol] = callee
            if library.short:
                called |= {each.symbol: each for each in library._reload_init}  # noqa: SLF001 - of this class
                seen = library._get_module_for_linking().clone()  # noqa: SLF001
                seen.get_function(callee.symbol).linkage = "available_externally"  # seen, but not emitted again
                self._final_module.link_in(seen)
        super().finalize()
        self._reload_init.update(called[each.name] for each in self._final_module.functions if each.name in called)

    def _get_module_for_linking(self) -> Any:
        if self.code is not None:
            self._shared_module, self.code = parse_bitcode(self.code), None
        return super()._get_module_for_linking()


def _kernel_of(state: Any) -> Any:
    function = state.func_id.func
    kernel = _KERNELS.get((function.__module__, function.__qualname__))
    return kernel if kernel is not None and kernel.py_func is function else None


def take_library(state: Any) -> None:
    """Compile a kernel to a `Library`, under a symbol that depends on its code and the types of its arguments only."""
    kernel, identity = _kernel_of(state), state.func_id
    if kernel is None or state.library is not None:
        return
    state.library = Library(state.targetctx.codegen(), identity.func_qualname)
    state.library.enable_object_caching()
    text = f"{kernel._digest} {state.args}"  # noqa: SLF001 - of this package
    number = int(sha256(text.encode()).hexdigest()[:15], 16)
    if number not in _COMPILED:  # else it is compiled once more in this process: Numba's own number is another
        _COMPILED.add(number)
        identity.unique_id, identity.unique_name = number, f"{identity.func_qualname}${number}"


@register_pass(mutates_CFG=False, analysis_only=True)
class CallBySymbol(LoweringPass):
    """Decide, when a kernel is compiled, whether its code becomes part of its callers."""

    _name = "call_by_symbol"

    def __init__(self) -> None:
        LoweringPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Write how callers find the kernel; return that nothing of the code has changed."""
        library, kernel = state.library, _kernel_of(state)
        if isinstance(library, Library) and not state.flags.forceinline:
            symbol, function = state.cr.fndesc.llvm_func_name, kernel.py_func
            instructions = (each for block in library.get_function(symbol).blocks for each in block.instructions)
            library.short = next(islice(instructions, SHORT, None), None) is None
            library.callee = Callee(function.__module__, function.__qualname__, state.args, symbol)
        return False


class _Stored(CompileResultCacheImpl):
    """Stores with a kernel how it is called, and loads with it what it calls."""

    def reduce(self, cres: Any) -> Any:
        """Return what is stored: names in place of the code for callers, which is read when one is compiled."""
        library, (stored, *others) = cres.library, super().reduce(cres)
        if not isinstance(library, Library):
            return None, (stored, *others)
        name, kind, (machine_code, code) = stored
        names = (cres.fndesc.llvm_func_name, cres.fndesc.llvm_cpython_wrapper_name)
        empty = parse_assembly("".join(f'define void @"{each}"() {{ ret void }}\n' for each in names)).as_bitcode()
        return (library.callee, library.short, code), ((name, kind, (machine_code, empty)), *others)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the compiled kernel; None if what it calls was compiled from other code since."""
        own, stored = payload
        try:
            loaded = super().rebuild(target_context, stored)
        except OtherCodeError:
            return None
        if own is not None:
            loaded.library.__class__ = Library
            loaded.library.callee, loaded.library.short, loaded.library.code = own
            loaded.library._reload_init.update(loaded.reload_init)  # noqa: SLF001
        return loaded


class Cache(FunctionCache):
    """Numba's cache on the disk, for kernels that are called by symbol."""

    _impl_class = _Stored
