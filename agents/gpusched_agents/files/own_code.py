"""Code of users, run as they trust it: an object of a file or module, named by `FILE.py:NAME` or `MODULE:NAME`.

Loading runs the code in the file.
"""

from __future__ import annotations

import copyreg
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any

from gpusched_agents.files.imported_files import digest_of, files_from, is_kept, root_of, states_of
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
    """List the file that `text` names, and the modules of the user's that it imports, and so on."""
    of_file, of_module = _FILE.fullmatch(text), _MODULE.fullmatch(text)
    path = Path(of_file[1]) if of_file else _module_file(of_module[1]) if of_module else None
    return () if path is None else files_from(path)


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
            file = _module_file(place)
            if file is not None:
                _forget_changed(file)
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
    with _importing("policy", text):  # looking for a module runs the package that it is in
        digest = digest_of(own_files(text))
    return _policy_of(whole_name(text), digest)


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
_LOADED: dict[int, tuple[Policy, str, str]] = {}
"""Policies that were loaded, by identity, each with its name and the digest of its files: so they are pickled."""


def _reduced(policy: Any) -> Any:
    loaded = _LOADED.get(id(policy))
    return policy.__reduce_ex__(4) if loaded is None else (_load_same, loaded[1:])


def _load_same(name: str, digest: str) -> Policy:
    if digest_of(own_files(name)) != digest:
        raise RunError(f"{name} was changed while its runs were made; start the command again")
    return load_own_policy(name)


_STATES: dict[Path, str] = {}
"""The files whose modules were loaded, each with its state and that of what it imports."""


def _forget_changed(path: Path) -> None:
    """Let the modules that a file imports be loaded afresh, where they have changed or are those of another folder."""
    path = path.resolve()
    for file, state in states_of(path).items():
        changed = _STATES.setdefault(file, state) != state
        _STATES[file] = state
        for folder in {path.parent, root_of(path), root_of(file)}:
            if not file.is_relative_to(folder):
                continue
            name = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            of = getattr(sys.modules.get(name), "__file__", None)
            if of is not None and not is_kept(Path(of)) and (changed or Path(of).resolve() != file):
                gone = sys.modules.pop(name)
                above, _, child = name.rpartition(".")
                if getattr(sys.modules.get(above), child, None) is gone:  # what `from package import child` finds
                    delattr(sys.modules[above], child)


@cache
def _module_of(path: Path, digest: str) -> ModuleType:
    """Load a file as a module of its own name, afresh whenever it or a module that it imports has changed."""
    _forget_changed(path)
    root = root_of(path)
    package = ".".join(path.parent.relative_to(root).parts)
    name = f"{package}.{path.stem}_{digest}".lstrip(".")
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = sys.modules[name] = module_from_spec(spec)
    try:
        with _folder_first(root), _folder_first(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    folders = dict.fromkeys(map(str, (path.parent, root)))
    sys.path += [each for each in folders if each not in sys.path]  # for what its functions import
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
    except (Exception, SystemExit) as error:
        file = whole_name(text).rpartition(":")[0]
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == file]
        line = lines[-1] if lines else getattr(error, "lineno", None)
        where = f", line {line}" if line else ""
        raise InputError(field, text, f"{what} ({type(error).__name__}: {error}{where})") from error


def lacks_module(text: str) -> bool:
    """Return whether `text` is `MODULE:NAME`, and Python finds no such module or package."""
    found = _MODULE.fullmatch(whole_name(text))
    name = found[1].partition(".")[0] if found else ""
    return bool(name) and name not in sys.modules and _spec(name) is None


def failure_of(error: BaseException) -> RunError | None:
    """Return what is raised in place of an error of the user's policy: its name, and the last line in its files."""
    if isinstance(error, InputError | RunError):
        return None
    frames = list(walk_tb(error.__traceback__))
    asked = [_LOADED[id(each)] for frame, _ in frames for each in frame.f_locals.values() if id(each) in _LOADED]
    if not asked:
        return None
    policy, name, _ = asked[-1]
    places = [(Path(frame.f_code.co_filename).resolve(), line) for frame, line in frames]
    own = [f"{file}:{line}" for file, line in places if file in own_files(name)]
    what = f"{type(error).__name__}: {error}"
    return RunError(f"policy {policy.name}: {own[-1]}: {what}") if own else None


def _spec(name: str) -> ModuleSpec | None:
    try:
        with _folder_first(Path.cwd()):
            return find_spec(name)
    except (ImportError, ValueError):
        return None


def _module_file(name: str) -> Path | None:
    spec = _spec(name)
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None
