"""Circles of imports between modules: each imports the next, those for annotations included."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


def circles(folders: Mapping[str, Path]) -> list[tuple[str, ...]]:
    """Return the modules of each circle, in order.

    Imports in functions count too. A package that gathers the names of its modules is not a module here.

    Args:
        folders: The folder of each package, by name.
    """
    files = {
        ".".join((package, *path.relative_to(folder).with_suffix("").parts)): path
        for package, folder in folders.items()
        for path in folder.rglob("*.py")
        if path.name != "__init__.py"
    }
    imports = {name: {other for other in _imported(path) if other in files} for name, path in files.items()}
    reached = {name: _reached(name, imports) for name in imports}
    found = {tuple(sorted(o for o in reached[name] if name in reached[o])) for name in imports if name in reached[name]}
    return sorted(found)


def _reached(name: str, imports: Mapping[str, set[str]]) -> set[str]:
    """Return all that a module imports, directly or through others."""
    found: set[str] = set()
    left = [name]
    while left:
        new = imports[left.pop()] - found
        found |= new
        left += new
    return found


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
