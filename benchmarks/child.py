"""Fresh Python processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PATIENCE_S = 10.0
REPOSITORY = Path(__file__).resolve().parents[1]


def run_python(arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, errors: bool = False) -> str:
    """Run this Python with `arguments` in the repository, and return its output.

    Args:
        arguments: Arguments of the interpreter.
        environment: Variables to set besides the present ones.
        errors: Whether to return its error stream instead.

    Raises:
        RuntimeError: It failed; the message is its error stream.
    """
    done = subprocess.run(  # noqa: S603 - this interpreter, with arguments of this package
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stderr if errors else done.stdout


class Contender:
    """A separate process that measures at every call, and waits between them.

    Args:
        module: The module of this package that is run; it calls `answer`.
        *arguments: Its arguments.
    """

    def __init__(self, module: str, *arguments: object) -> None:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with a module of this package
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._name = " ".join(command[2:])

    def __call__(self) -> float:
        """Measure once.

        Raises:
            RuntimeError: It has ended; the reason is on the error stream.
        """
        asked, reply = self._process.stdin, self._process.stdout
        try:
            print(file=asked, flush=True)
            return float(reply.readline())  # type: ignore[union-attr]
        except (BrokenPipeError, ValueError):
            raise RuntimeError(f"{self._name} ended before it had measured") from None

    def close(self) -> None:
        """End it: its input ends, so that it ends its own processes; one that does not is killed."""
        try:
            self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


def answer(measure: Callable[[], float]) -> None:
    """Measure for each line of the input, and print the result: the program of a `Contender`; then close it."""
    for _ in sys.stdin:
        print(measure(), flush=True)
    close = getattr(measure, "close", None)
    if close is not None:
        close()
