"""Where the commands write: results to stdout, progress to stderr."""

import sys
from importlib import import_module
from types import ModuleType

import typer
from rich.console import Console

from gpusched_env.rendering import MissingExtraError

WIDE = 190


def output() -> Console:
    """Give the console for results; wide when it is a file or a pipe, which has no width of its own."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=False)


def progress_output() -> Console:
    """Give the console for progress."""
    return Console(stderr=True, highlight=False)


def drawing_or_note(module: str) -> ModuleType | None:
    """Import what draws, before anything is run; without matplotlib there are no figures, which is said."""
    try:
        return import_module(module)
    except MissingExtraError as missing:
        typer.echo(f"note: no figures, since {missing}", err=True)
        return None
