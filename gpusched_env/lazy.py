"""Packages whose names are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any


def lazy_names(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: it returns what its file imports under `if TYPE_CHECKING:`.

    The package also gets a `__dir__`: `dir`, `help` and TAB list its public names and the modules imported so far. Type
    checkers, linters and documentation find the same names as a program, and a program loads only what it uses.
    """

    def get(name: str) -> Any:
        modules = _modules(file)
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        known = vars(sys.modules[package])
        own = (name for name, value in known.items() if name.startswith("__") or isinstance(value, ModuleType))
        return sorted({*own, *known.get("__all__", _modules(file))})

    vars(sys.modules[package])["__dir__"] = names
    return get


@cache
def _modules(file: str) -> dict[str, str]:
    return {
        alias.name: str(statement.module)
        for block in ast.parse(Path(file).read_text(encoding="utf-8")).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
