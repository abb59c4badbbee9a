"""Scripts of the repository, run in this process."""

import contextlib
import io
import runpy
import sys
from pathlib import Path
from unittest import mock

SCRIPTS = Path(__file__).parents[2] / "scripts"


def run_script(name: str, *words: object) -> str:
    """Run a script as a command does; return what it prints."""
    arguments = [str(SCRIPTS / name), *map(str, words)]
    with (
        mock.patch.object(sys, "argv", arguments),
        mock.patch.object(sys, "path", [str(SCRIPTS), *sys.path]),
        contextlib.redirect_stdout(io.StringIO()) as printed,
    ):
        runpy.run_path(arguments[0], run_name="__main__")
    return printed.getvalue()
