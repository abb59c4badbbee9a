"""The modules of our packages that a module loads, read from their sources without executing them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

PACKAGES = tuple(
    f"gpusched_{name}" for name in ("env", "baselines", "agents", "experiments", "operations", "reproductions")
)
TABLES = (".csv", ".csv.xz", ".toml")
"""Endings of the files beside modules that modules read."""

_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
_FROM = re.compile(r"^([ \t]*)from (gpusched_\w+(?:\.\w+)*) import (\((?:#.*|[^)#])*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(r"^([ \t]*)import (gpusched_\w+(?:\.\w+)*)", re.MULTILINE)
_BY_NAME = re.compile(r"""import_module\(["'](gpusched_\w+(?:\.\w+)*)["']\)""")
_GETATTR = re.compile(r"^(?:def __getattr__|__getattr__ =)", re.MULTILINE)
_COMMENT = re.compile(r"#.*")


@dataclass(frozen=True, slots=True)
class Imports:
    """What a module imports of our packages.

    Attributes:
        executed: The module of every import, and the imported name or "": in the body or in a function.
        on_demand: The module of every name that a package with a `__getattr__` imports when the name is first used.
    """

    executed: tuple[tuple[str, str], ...]
    on_demand: dict[str, str]


def parse_imports(source: str) -> Imports:
    """Return what a module with this source imports of our packages.

    Imports under `if TYPE_CHECKING:` are not executed. In a module with a `__getattr__`, they and the imports in
    functions are on demand. Strings count as modules in `import_module("...")` alone.
    """
    lazy = _GETATTR.search(source) is not None
    executed = [] if lazy else [(name, "") for name in _BY_NAME.findall(source)]
    on_demand: dict[str, str] = {}
    for indent, module, names in _FROM.findall(source if lazy else _FOR_TYPES.sub("", source)):
        for name in _COMMENT.sub("", names).strip("()\\ \t\n").split(","):
            imported = name.split()[:1]
            if imported and lazy and indent:
                on_demand[imported[0]] = module
            elif imported:
                executed.append((module, imported[0]))
    executed += [(module, "") for indent, module in _IMPORT.findall(source) if not (lazy and indent)]
    return Imports(tuple(executed), on_demand)


class ImportGraph:
    """The modules of our packages in some folders, and what each imports.

    Args:
        folders: The folder of every package, by the package's name.
    """

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        self._files: dict[str, Path | None] = {}
        self._imports: dict[str, Imports] = {}
        self._digests: dict[Path, str] = {}
        self._tables: dict[Path, list[Path]] = {}

    @classmethod
    def installed(cls) -> ImportGraph:
        """Return the graph of the packages that this process can import; reproductions run from a checkout only."""
        found = {name: find_spec(name) for name in PACKAGES}
        return cls({name: Path(spec.origin).parent for name, spec in found.items() if spec and spec.origin})

    def modules_of(self, roots: Iterable[str], passing: Collection[str] = ()) -> frozenset[str]:
        """Return the modules that are loaded by loading these, the packages that hold them included.

        Args:
            roots: Names of modules, or `module:name` for the module that defines a name; those of packages that are
                not there, or not ours, are left out.
            passing: Modules whose imports are not followed.
        """
        found: set[str] = set()
        left = [module for root in roots for module in self._loaded(*root.partition(":")[::2])]
        while left:
            module = left.pop()
            if module not in found:
                found.add(module)
                for source, name in () if module in passing else self._imports_of(module).executed:
                    left += self._loaded(source, name)
        return frozenset(found)

    def modules_in(self, package: str) -> tuple[str, ...]:
        file = self._file(package)
        if file is None:
            return ()
        paths = (path.relative_to(file.parent).with_suffix("") for path in file.parent.rglob("*.py"))
        return tuple(sorted(".".join((package, *path.parts)).removesuffix(".__init__") for path in paths))

    def digests(self, modules: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the name and digest of these modules and of the tables in the folders of their packages, in order."""
        folders: dict[str, Path] = {}
        for module in sorted(modules):
            file = self._file(module)
            if file is not None:
                yield module, self.digest(file)
                if file.name == "__init__.py":
                    folders[module] = file.parent
        for package, folder in folders.items():
            if folder not in self._tables:
                self._tables[folder] = _tables(folder)
            for path in self._tables[folder]:
                yield f"{package}/{path.relative_to(folder).as_posix()}", self.digest(path)

    def digest(self, path: Path) -> str:
        """Return the SHA-256 of a table, or of a module's code, without comments, line breaks and docstrings."""
        if path not in self._digests:
            content = path.read_bytes()
            self._digests[path] = _digest_of_code(content) if path.suffix == ".py" else sha256(content).hexdigest()
        return self._digests[path]

    def source(self, module: str) -> str:
        file = self._file(module)
        return "" if file is None else file.read_text(encoding="utf-8")

    def _loaded(self, module: str, name: str) -> Iterator[str]:
        if self._file(module) is None:
            return
        parts = module.split(".")
        yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
        if name and self._file(f"{module}.{name}") is not None:
            yield f"{module}.{name}"
        elif name in self._imports_of(module).on_demand:
            yield from self._loaded(self._imports_of(module).on_demand[name], name)

    def _imports_of(self, module: str) -> Imports:
        if module not in self._imports:
            self._imports[module] = parse_imports(self.source(module))
        return self._imports[module]

    def _file(self, module: str) -> Path | None:
        if module not in self._files:
            package, *rest = module.split(".")
            place = self._folders[package].joinpath(*rest) if package in self._folders else None
            files = () if place is None else (place / "__init__.py", place.with_name(f"{place.name}.py"))
            self._files[module] = next((file for file in files if file.is_file()), None)
        return self._files[module]


@cache
def _digest_of_code(source: bytes) -> str:
    """Return the SHA-256 of the syntax tree of a module, without docstrings of modules, classes and functions."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = node.body if ast.get_docstring(node, clean=False) is None else node.body[1:]
    return sha256(ast.dump(tree).encode()).hexdigest()


def _tables(folder: Path) -> list[Path]:
    """List the tables in the folder of a package, and in those below it that are no packages, in order."""
    found: list[Path] = []
    for path in sorted(folder.iterdir(), key=lambda each: each.name):
        if path.is_dir() and not (path / "__init__.py").is_file():
            found += _tables(path)
        elif path.name.endswith(TABLES):
            found.append(path)
    return found
