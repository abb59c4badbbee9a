"""What a process of a Ray cluster does: it may be on any machine, so it first makes sure that it runs the same code."""

from __future__ import annotations

import io
import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gpusched_agents.any_policy import is_agent
from gpusched_env.errors import InputError
from gpusched_env.model import Instance
from gpusched_experiments.report.code_version import agent_version, code_version, reproductions_version
from gpusched_experiments.report.warm_up import warm_up


class Serialisation:
    """Packs calls one after the other; instances and `common` things are packed once each.

    Args:
        common: Further things that many calls hold.
        put: Takes the bytes of a shared thing, and gives what to send in its place.
    """

    def __init__(self, common: Iterable[object], put: Callable[[bytes], Any]) -> None:
        self._put, self._common = put, {id(thing): thing for thing in common}
        self._shared: dict[int, tuple[object, Any]] = {}

    def packed(self, call: Callable[[], object]) -> tuple[bytes, list[Any]]:
        """Return the bytes of a call, and what it shares with others."""
        with io.BytesIO() as file:
            pickler = _Pickler(file, self)
            try:
                pickler.dump(call)
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                raise InputError("backend", "ray", f"processes, since a run cannot be sent ({error})") from error
            return file.getvalue(), [self._shared[key][1] for key in pickler.used]

    def shares(self, thing: object) -> bool:
        return isinstance(thing, Instance) or id(thing) in self._common

    def keep(self, thing: object) -> int:
        key = id(thing)
        if key not in self._shared:  # the thing is held too, so that no other gets its id
            self._shared[key] = (thing, self._put(pickle.dumps(thing)))
        return key


class _Pickler(pickle.Pickler):
    """Leaves out what is shared, and lists it."""

    def __init__(self, file: io.BytesIO, serialisation: Serialisation) -> None:
        super().__init__(file)
        self._serialisation, self.used = serialisation, list[int]()

    def persistent_id(self, thing: object) -> int | None:
        if not self._serialisation.shares(thing):
            return None
        key = self._serialisation.keep(thing)
        if key not in self.used:
            self.used.append(key)
        return self.used.index(key)


def unpacked(payload: bytes, shared: Sequence[bytes]) -> Callable[[], Any]:
    with io.BytesIO(payload) as file:
        return _Unpickler(file, shared).load()


class _Unpickler(pickle.Unpickler):
    """Puts in again what is shared."""

    def __init__(self, file: io.BytesIO, shared: Sequence[bytes]) -> None:
        super().__init__(file)
        self._things = [pickle.loads(each) for each in shared]  # noqa: S301 - the command's own

    def persistent_load(self, place: int) -> object:
        return self._things[place]


@dataclass(frozen=True, slots=True)
class CallResult:
    """What became of a call.

    Attributes:
        value: What it gave.
        error: What it raised, if it did.
        refused: Why it was not made here, if it was not.
    """

    value: Any = None
    error: Exception | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for all calls of a command.

    Attributes:
        versions: Of the code, and of agents by name: what decides the results.
        folder: The folder that relative paths start from.
        policies: The pickled policies to compile.
    """

    versions: tuple[tuple[str, str], ...]
    folder: str
    policies: bytes


def versions(policies: Iterable[str]) -> tuple[tuple[str, str], ...]:
    agents = ((name, agent_version(name)) for name in policies if is_agent(name))
    return (("code", f"{code_version()}-{reproductions_version()}"), *agents)


def make_call(terms: Terms, payload: bytes, *shared: bytes) -> bytes:
    """Make a call, unless this machine has other code; give the pickled answer."""
    refused = _prepared(terms)
    if refused:
        return pickle.dumps(CallResult(refused=refused))
    try:
        return pickle.dumps(CallResult(unpacked(payload, shared)()))
    except Exception as error:  # noqa: BLE001 - it is raised where the command runs
        return _pickled_error(error)


def _pickled_error(error: Exception) -> bytes:
    error.add_note(traceback.format_exc())
    try:
        pickled = pickle.dumps(CallResult(error=error))
        pickle.loads(pickled)  # noqa: S301 - our own; some exceptions pickle well, and cannot be made again
    except Exception:  # noqa: BLE001 - whatever it is, what is left of it is its text
        return pickle.dumps(CallResult(error=RuntimeError(f"{type(error).__name__}: {error}")))
    return pickled


@cache
def _prepared(terms: Terms) -> str:
    """Make this process ready, once; give what is wrong with it, if anything is."""
    with suppress(OSError):
        os.chdir(terms.folder)
    names = [name for name, _ in terms.versions[1:]]
    try:
        own = versions(names)
    except InputError as error:
        return str(error)
    if own != terms.versions:
        other = next(name for (name, here), (_, there) in zip(own, terms.versions, strict=True) if here != there)
        return f"it has another version of {'the code or its packages' if other == 'code' else other}"
    with _one_at_a_time():
        warm_up(pickle.loads(terms.policies))  # noqa: S301 - the command's own
    return ""


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let one process of this machine compile and the others find it compiled; where there are no locks, all do."""
    try:
        fcntl: Any = import_module("fcntl")
    except ModuleNotFoundError:
        yield
        return
    name = f"gpusched-compiling-{os.getuid()}.lock"
    with (Path(tempfile.gettempdir()) / name).open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
