"""What is submitted, its limits and its errors: an agent's folder or a Python file. Reading it runs nothing of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from gpusched_agents.any_policy import is_agent
from gpusched_agents.files.storage import AGENT_FILES
from gpusched_baselines.registry import POLICIES
from gpusched_env.errors import InputError, RunError
from gpusched_env.model import checks

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MOST_BYTES = {".py": 2**20, ".json": 2**24, ".safetensors": 2**26}
"""Largest file, by its name's ending [bytes]."""
USUAL_OBJECT = "POLICY"
A_POLICY = "an agent's folder (agent.json, weights.safetensors), a Python file with POLICY, or FILE.py:NAME"


@dataclass(frozen=True, slots=True)
class Submission:
    """A submitted policy.

    Attributes:
        name: Its name in tables.
        kind: What it is: `python` or `agent`.
        files: The content of its files, by name.
        made_by: In a Python file the name of the policy, or of what makes it without arguments.
    """

    name: str
    kind: Literal["python", "agent"]
    files: dict[str, bytes]
    made_by: str = ""

    @property
    def sha256(self) -> str:
        """Return the hash of all that it consists of."""
        digest = hashlib.sha256(f"{self.kind} {self.made_by}\n".encode())
        for name, content in sorted(self.files.items()):
            ending = name.rpartition(".")[2]  # a file may be renamed
            digest.update(f"{ending} {len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    @property
    def file(self) -> str:
        """Name what messages are about: the Python file, or the agent."""
        return next(iter(self.files)) if self.kind == "python" else self.name


def read_submission(text: str, name: str | None = None) -> Submission:
    """Read what is submitted.

    Args:
        text: Path of an agent's folder or of a Python file, after which `:NAME` names the policy in it.
        name: Its name in tables; by default that of the folder or file.

    Raises:
        InputError: There is no such thing, a file is missing or too large, or the name is not allowed or taken.
    """
    path, made_by = _split(text)
    if path.is_dir() and made_by is None:
        files = {file: _content(path / file) for file in AGENT_FILES}
        return Submission(_checked(name, path.resolve().name), "agent", files)
    if path.suffix != ".py" or not path.is_file():
        raise InputError("--submit", text, A_POLICY)
    files = {path.name: _content(path)}
    return Submission(_checked(name, path.stem), "python", files, made_by or USUAL_OBJECT)


def _split(text: str) -> tuple[Path, str | None]:
    before, colon, after = text.rpartition(":")
    if colon and before.endswith(".py"):
        if not after.isidentifier():
            raise InputError("--submit", text, "a name of Python after the colon")
        return Path(before), after
    return Path(text), None


def _content(path: Path) -> bytes:
    most = MOST_BYTES[path.suffix]
    try:
        if path.is_symlink() or not path.is_file():
            raise InputError("--submit", str(path), f"a file that is there, and no link: {A_POLICY}")
        size = path.stat().st_size
        if size > most:
            raise InputError("--submit", f"{path}: {size:,} bytes", f"at most {most:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise InputError("--submit", str(path), f"a file that can be read ({error.strerror or error})") from error


def _checked(given: str | None, usual: str) -> str:
    name = usual if given is None else given
    if not NAME.fullmatch(name):
        raise InputError("--name", name, "letters, digits, dots, dashes and underscores, at most 64")
    if name in POLICIES or is_agent(name):
        raise InputError("--name", name, "a name that no policy of the project has")
    return name


GIB = 2**30
LEAST_GIB, MOST_GIB = 2.0, 1024.0


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits of every process in which such a policy decides; those with a text are options of a submission.

    Args:
        memory_gib: Memory that the process may ask for, which is more than it uses: from 2 to 1,024 GiB.
        round_s: Longest time of a decision round [s], > 0.
        start_s: Longest time of the start, and of a run's first round, in which it may compile [s], > 0.
        run_s: Longest time of a run [s], > 0.
        all_s: Longest time of all runs [s], > 0; of each process also the processor time.

    Raises:
        InputError: One of them is out of its range.
    """

    memory_gib: Annotated[float, "Memory that each of its processes may ask for."] = 4.0
    round_s: Annotated[float, "Longest decision round, in seconds."] = 10.0
    start_s: float = 120.0
    run_s: Annotated[float, "Longest run, in seconds."] = 600.0
    all_s: Annotated[float, "Longest time of all runs, in seconds."] = 7200.0

    def __post_init__(self) -> None:
        if not LEAST_GIB <= self.memory_gib <= MOST_GIB:
            allowed = f"from {LEAST_GIB:g} to {MOST_GIB:,.0f} GiB: compilers ask for much that they do not use"
            raise InputError("--memory-gib", self.memory_gib, allowed)
        for name in ("round_s", "start_s", "run_s", "all_s"):
            checks.duration(f"--{name.replace('_', '-')}", getattr(self, name))


USUAL = SandboxLimits()


MOST = 300
"""Most characters that are shown of what such a policy says."""


class SubmissionError(RunError):
    """A submitted policy did what ends its run: the message is one line that says what."""


def one_line(text: object) -> str:
    """Return a text from outside as one line without control characters, which could write over a terminal."""
    line = " ".join(str(text).split())
    shown = "".join(letter if letter.isprintable() else "?" for letter in line[: MOST + 1])
    return shown if len(shown) <= MOST else f"{shown[:MOST]}…"
