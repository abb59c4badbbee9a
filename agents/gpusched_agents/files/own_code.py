"""Code of users, run as they trust it: an object of a file or module, named by `FILE.py:NAME` or `MODULE:NAME`.

Loading runs the code in the file.
"""

from __future__ import annotations

import ast
import copyreg
import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from gpusched_env.errors import InputError, RunError, nearest_first
from gpusched_env.simulator import Policy

OWN = "your own: FILE.py:Class"
USUAL = "POLICY"
"""What a file without a NAME gives."""

_FILE, _MODULE = re.compile(r"(.+\.py)(?::(\w+))?"), re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")


def is_own(text: str) -> bool:
    """Return whether `text` has the form `FILE.py`, `FILE.py:NAME` or `MODULE:NAME`."""
    return bool(_FILE.fullmatch(text) or _MODULE.fullmatch(text))


def whole_name(text: str) -> str:
    """Return the name that is the same in every folder: a file by its absolute path and with what is taken of it."""
    of_file, of_module = _FILE.fullmatch(text), _MODULE.fullmatch(text)
    if of_module and not of_file and Path(f"{of_module[1]}.py").is_file():
        return f"{Path(f'{of_module[1]}.py').resolve()}:{of_module[2]}"
    return f"{Path(of_file[1]).resolve()}:{of_file[2] or USUAL}" if of_file else text


def own_files(text: str) -> tuple[Path, ...]:
    """List the file that `text` names, and the modules beside it that it imports, and so on."""
    of_file, of_module = _FILE.fullmatch(text), _MODULE.fullmatch(text)
    path = Path(of_file[1]) if of_file else _module_file(of_module[1]) if of_module else None
    return () if path is None else files_from(path)


def files_from(path: Path) -> tuple[Path, ...]:
    """List a Python file, and the modules in its folder that it imports, and so on, without running them."""
    found: dict[Path, None] = {}
    left = [path.resolve()]
    while left:
        file = left.pop()
        if file not in found and file.is_file():
            found[file] = None
            left += _beside(file)
    return tuple(found)


def digest_of(files: tuple[Path, ...]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()[:16]


def load_object(field: str, text: str) -> Any:
    """Load what `FILE.py:NAME` or `MODULE:NAME` names; modules are looked for in the present folder, too.

    Raises:
        InputError: There is no such file, module or name, or its code cannot be loaded.
    """
    place, _, name = whole_name(text).rpartition(":")
    with _importing(field, text):
        if place.endswith(".py"):
            if not Path(place).is_file():
                raise InputError(field, text, f"a Python file and a name in it; there is no file {place}")
            module = _module_of(Path(place), digest_of(files_from(Path(place))))
        else:
            with _folder_first(Path.cwd()):
                module = import_module(place)
    if not hasattr(module, name):
        names = [each for each, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        there = f"; there are {nearest_first(name, names)}" if names else ""
        raise InputError(field, text, f"a name that {Path(place).name} has{there}")
    return getattr(module, name)


def load_own_policy(text: str) -> Policy:
    """Load the policy that `FILE.py:NAME` or `MODULE:NAME` names: an object as it is, a class made without arguments.

    Raises:
        InputError: It cannot be loaded, or is no policy; the error names what is missing.
    """
    return _policy_of(whole_name(text), digest_of(own_files(text)))


@cache
def _policy_of(name: str, digest: str) -> Policy:
    found = load_object("policy", name)
    if isinstance(found, type):
        with _importing("policy", name, "a class that is made without arguments"):
            found = found()
    checked = check_policy("policy", found, name)
    _LOADED[id(checked)] = checked, name, digest
    copyreg.pickle(type(checked), _reduced)
    return checked


def check_policy(field: str, policy: object, shown: object = None) -> Policy:
    """Check that this object is a policy; the error names what it lacks, and `shown` in place of the object."""
    kind = policy.__name__ if isinstance(policy, type) else type(policy).__name__
    shown = policy if shown is None else shown
    if isinstance(policy, type):  # a class has all attributes of its objects
        raise InputError(field, shown, f"an object of the class: {kind}()")
    if not isinstance(policy, Policy):
        lacks = ", ".join(part for part in PARTS if not hasattr(policy, part))
        raise InputError(field, shown, f"a policy, or a name such as 'edf'; {kind} lacks {lacks}: {A_POLICY}")
    if not isinstance(policy.name, str) or not policy.name or not callable(policy.decide):
        raise InputError(field, shown, f"a policy; of {kind} this is not so: {A_POLICY}")
    return policy


PARTS = ("name", "preemption", "decide")
A_POLICY = "name is a text, preemption True or False, decide(view, rng) a function"
_LOADED: dict[int, tuple[object, str, str]] = {}
"""Policies that were loaded, by identity, each with its name and the digest of its files: so they are pickled."""


def _reduced(policy: Any) -> Any:
    loaded = _LOADED.get(id(policy))
    return policy.__reduce_ex__(4) if loaded is None else (_load_same, loaded[1:])


def _load_same(name: str, digest: str) -> Policy:
    if digest_of(own_files(name)) != digest:
        raise RunError(f"{name} was changed while its runs were made; start the command again")
    return load_own_policy(name)


_SEEN: set[Path] = set()


@cache
def _module_of(path: Path, digest: str) -> ModuleType:
    """Load a file as a module of its own name, afresh whenever it or a module beside it has changed."""
    for file in files_from(path):
        name = ".".join(file.relative_to(path.parent).with_suffix("").parts).removesuffix(".__init__")
        of = getattr(sys.modules.get(name), "__file__", None)
        if of is not None and (path in _SEEN or Path(of) != file):  # of a former state, or of another folder
            del sys.modules[name]
    _SEEN.add(path)
    name = f"{path.stem}_{digest}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = sys.modules[name] = module_from_spec(spec)
    try:
        with _folder_first(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # for what its functions import
    return module


@contextmanager
def _folder_first(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _importing(field: str, text: str, what: str = "code that can be loaded") -> Iterator[None]:
    """Turn whatever the code of the user raises into one error with its last line in the user's file."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        file = whole_name(text).rpartition(":")[0]
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise InputError(field, text, f"{what} ({type(error).__name__}: {error}{where})") from error


def _module_file(name: str) -> Path | None:
    try:
        with _folder_first(Path.cwd()):
            spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


def _beside(file: Path) -> Iterator[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module, *(f"{node.module}.{name}" for name in names)] if node.module else names
        for name in names:
            place = file.parent.joinpath(*name.split("."))
            yield from (each for each in (place.with_name(f"{place.name}.py"), place / "__init__.py") if each.is_file())
