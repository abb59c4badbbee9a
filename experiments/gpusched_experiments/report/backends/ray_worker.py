"""What a process of a Ray cluster does: it may be on any machine, so it first makes sure that it runs the same code."""

from __future__ import annotations

import os
import pickle
import tempfile
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_agents.any_policy import is_agent
from gpusched_env.errors import InputError
from gpusched_experiments.report.backends.parcel import unpacked
from gpusched_experiments.report.code_version import agent_version, code_version, systems_version
from gpusched_experiments.report.warm_up import warm_up

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Answer:
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
    """Give the versions of all that decides the results with these policies, as this process has them."""
    agents = ((name, agent_version(name)) for name in policies if is_agent(name))
    return (("code", f"{code_version()}-{systems_version()}"), *agents)


def make_call(terms: Terms, parcel: bytes, *shared: bytes) -> bytes:
    """Make a call, unless this machine has other code; give the pickled answer."""
    refused = _prepared(terms)
    if refused:
        return pickle.dumps(Answer(refused=refused))
    try:
        return pickle.dumps(Answer(unpacked(parcel, shared)()))
    except Exception as error:  # noqa: BLE001 - it is raised where the command runs
        return _pickled_error(error)


def _pickled_error(error: Exception) -> bytes:
    error.add_note(traceback.format_exc())
    try:
        pickled = pickle.dumps(Answer(error=error))
        pickle.loads(pickled)  # noqa: S301 - our own; some exceptions pickle well, and cannot be made again
    except Exception:  # noqa: BLE001 - whatever it is, what is left of it is its text
        return pickle.dumps(Answer(error=RuntimeError(f"{type(error).__name__}: {error}")))
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
