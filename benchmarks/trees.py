"""Trees of sources: the present one, that of an earlier commit, and processes that run on either."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from benchmarks.child import REPOSITORY
from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = ("gpusched_env", "baselines", "agents", "experiments", "operations", "reproductions")
PROGRAM = Path(__file__).with_name("either_tree.py")


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check out a commit of this repository in a temporary folder, which is removed at the end, also after SIGTERM.

    Raises:
        InputError: There is no such commit here.
    """
    known = git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False).strip()
    if not known:
        raise InputError("before", commit, "a commit of this repository")
    with _orderly_end(), tempfile.TemporaryDirectory() as folder:
        tree = str(Path(folder, "before"))
        try:
            git("worktree", "add", "--detach", tree, known)
            yield Path(tree)
        finally:
            git("worktree", "remove", "--force", tree, check=False)


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Turn a request to end this process (SIGTERM) into an exception, so that its context managers end."""

    def leave(*_: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def environment_of(tree: Path, cache: Path) -> dict[str, str]:
    """Return the variables of a process that runs the sources of `tree`, with Numba's cache in `cache`."""
    places = [tree, *(tree / package for package in PACKAGES[1:])]
    return {"PYTHONPATH": os.pathsep.join(map(str, places)), "NUMBA_CACHE_DIR": str(cache)}


class Worker:
    """A process that measures on the sources of a tree, once for each call. It waits at a pipe between them.

    Args:
        tree: The tree.
        cache: Folder of Numba's cache.
        arguments: What to measure: arguments of `either_tree`.
    """

    def __init__(self, tree: Path, cache: Path, arguments: tuple[str, ...]) -> None:
        self._name = f"{' '.join(arguments)} in {tree}"
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, with arguments of this package
            [sys.executable, "-P", str(PROGRAM), *arguments],
            cwd=tree,
            env={**os.environ, **environment_of(tree, cache)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self) -> None:
        """Wait until it is ready."""
        self._line()

    def __call__(self) -> float:
        """Measure once [s].

        Raises:
            RuntimeError: The process failed; the reason is on the error stream.
        """
        pipe = _pipe(self._process.stdin)
        pipe.write("\n")
        pipe.flush()
        return float(self._line())

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        line = _pipe(self._process.stdout).readline()
        if not line:
            raise RuntimeError(f"the measurement failed: {self._name}")
        return line


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the process has no pipe")
    return pipe


def git(*arguments: str, check: bool = True) -> str:
    """Run Git in the repository; return its output.

    Raises:
        RuntimeError: It failed, and that is not allowed.
    """
    done = subprocess.run(  # noqa: S603 - arguments of this package
        ["git", *arguments],  # noqa: S607 - whichever Git there is
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if check and done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout
