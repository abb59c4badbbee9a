"""Which files code of the user is made of: a Python file, and the modules of the user's that it imports."""

from __future__ import annotations

import ast
import hashlib
import sysconfig
from collections.abc import Iterator
from pathlib import Path

OURS = frozenset(
    f"gpusched_{each}" for each in ("env", "baselines", "agents", "experiments", "operations", "reproductions")
)
_INSTALLED = tuple({Path(place).resolve() for place in map(sysconfig.get_path, ("stdlib", "platstdlib"))})


def files_from(path: Path, known: dict[Path, list[Path]] | None = None) -> tuple[Path, ...]:
    """List a Python file, and the modules in its folder and its package that it imports, and so on.

    Nothing is run. Modules of this project and of installed packages are not listed, but for those of the file's own
    package. Where a module of the package is not found, all of the package are listed.

    Args:
        path: The file.
        known: What files import, as far as it was found; the rest is added.
    """
    known = {} if known is None else known
    found: dict[Path, None] = {}
    left = [path.resolve()] if path.is_file() else []
    while left:
        file = left.pop()
        if file not in found:
            found[file] = None
            if file not in known:
                package = None if _is_ours(file) else _package(file)
                imported = dict.fromkeys(_beside(file))
                known[file] = [e for e in imported if (package and e.is_relative_to(package)) or not is_kept(e)]
            left += known[file]
    return tuple(found)


def digest_of(files: tuple[Path, ...]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()[:16]


def states_of(path: Path) -> dict[Path, str]:
    """Return, of each of the files that `files_from` lists, what changes with it and with all that it imports."""
    known: dict[Path, list[Path]] = {}
    digests = {file: digest_of((file,)) for file in files_from(path, known)}
    return {file: ",".join(digests[each] for each in files_from(file, known)) for file in digests}


def _beside(file: Path) -> Iterator[Path]:
    package = _package(file)
    if package is not None:
        yield from (each / "__init__.py" for each in file.parents if each.is_relative_to(package))
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    whole = False
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            of = f"{node.module}." if node.module else ""
            imports = [(node.level, [of.rstrip("."), *(f"{of}{alias.name}" for alias in node.names)])]
        else:
            imports = [(0, [alias.name]) for alias in node.names] if isinstance(node, ast.Import) else []
        for level, names in imports:
            placed = [each for name in names for each in _placed(file, level, name)]
            whole |= not placed and package is not None and (level > 0 or names[0].split(".")[0] == package.name)
            yield from placed
    if whole and package is not None:
        yield from sorted(package.rglob("*.py"))


def _placed(file: Path, level: int, name: str) -> Iterator[Path]:
    """Yield the files of a module, and of the packages that it is in, that a file imports by this name."""
    parts = name.split(".") if name else []
    if level:
        folders = file.parents[level - 1 : level]
    else:
        above = (each.parent for each in file.parents if parts and each.name == parts[0])
        folders = list(dict.fromkeys((file.parent, root_of(file), *above)))
    for folder in folders:
        place = folder.joinpath(*parts)
        files = (place.with_name(f"{place.name}.py") if parts else place / "__init__.py", place / "__init__.py")
        if any(each.is_file() for each in files):
            between = (each / "__init__.py" for each in place.parents if each.is_relative_to(folder) and each != folder)
            yield from (each for each in (*files, *between) if each.is_file())


def _package(file: Path) -> Path | None:
    """Return the folder of the outermost package that a file is in."""
    package = None
    for folder in file.parents:
        if not (folder / "__init__.py").is_file():
            break
        package = folder
    return package


def root_of(file: Path) -> Path:
    """Return the folder from which Python imports a file."""
    return (_package(file) or file).parent


def _is_ours(file: Path) -> bool:
    package = _package(file)
    return package is not None and package.name in OURS


def is_kept(file: Path) -> bool:
    """Return whether a file is not of the user's: of this project, of an installed package, or of Python's own."""
    installed = {"site-packages", "dist-packages"} & set(file.parts) or any(map(file.is_relative_to, _INSTALLED))
    return bool(installed) or _is_ours(file)
