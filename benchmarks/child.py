"""Fresh Python processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[1]


def run_python(arguments: Sequence[str], *, environment: Mapping[str, str] | None = None, errors: bool = False) -> str:
    """Run this Python with `arguments` in the repository, and give what it printed.

    Args:
        arguments: Arguments of the interpreter.
        environment: Variables to set beside the present ones.
        errors: Whether to give what it wrote to the error stream instead.

    Raises:
        RuntimeError: It failed; the message is what it wrote to the error stream.
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
