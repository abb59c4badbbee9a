"""Where the commands write: results to stdout, progress to stderr."""

import sys

from rich.console import Console

WIDE = 190


def output() -> Console:
    """Give the console for results; wide when it is a file or a pipe, which has no width of its own."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, soft_wrap=False)


def progress_output() -> Console:
    """Give the console for progress."""
    return Console(stderr=True, highlight=False)
