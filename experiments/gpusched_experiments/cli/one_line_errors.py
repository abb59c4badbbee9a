"""What the user did wrong, in one line on stderr."""

import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from gpusched_env.errors import InputError
from gpusched_env.rendering import MissingExtraError
from gpusched_env.simulator import StalledError
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli.interruption import INTERRUPTED
from gpusched_experiments.report import WorkerError
from gpusched_experiments.untrusted.entry import EntryError

EXAMPLES = {"--out": "--out results/mine", "--policies": "--policies edf,sts", "--trace": "--trace jobs.csv"}
"""What may be given for options that have no default."""


class OneLineErrors(TyperGroup):
    """Commands whose bad input ends in `error: ...` and exit code 2; a run that fails ends in exit code 1."""

    def main(self, *positional: Any, **settings: Any) -> Any:
        """Run the command line, and exit (unless `standalone_mode` is False)."""
        arguments = positional[0] if positional else settings.get("args")
        try:
            code = super().main(*positional, **(settings | {"standalone_mode": False}))
        except Exception as error:
            if not settings.get("standalone_mode", True) or not hasattr(error, "format_message"):
                raise
            given = list(sys.argv[1:] if arguments is None else arguments)
            _leave(_usage(error, given), getattr(error, "exit_code", 2))
        if not settings.get("standalone_mode", True):
            return code
        if code == INTERRUPTED:
            interruption.say()
            sys.exit(interruption.exit_code())
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (InputError, MissingExtraError) as error:
            _unless_stopped(error)
            _tell(str(error))
            raise typer.Exit(2) from error
        except (StalledError, WorkerError, EntryError) as error:
            _unless_stopped(error)
            _tell(str(error))
            raise typer.Exit(1) from error


def _usage(error: Any, given: list[str]) -> str:
    """Give the message of a wrong option, with the value that was given for it."""
    message = str(error.format_message()).strip()
    names = getattr(getattr(error, "param", None), "opts", [])
    for index, word in enumerate(given):
        for name in names:
            if word == name and index + 1 < len(given):
                return f"{name} = {given[index + 1]!r}; {message}"
            if word.startswith(f"{name}="):
                return f"{name} = {word.removeprefix(f'{name}=')!r}; {message}"
    example = next((EXAMPLES[name] for name in names if name in EXAMPLES), None)
    return f"{message.rstrip('.')}, such as {example}" if message.startswith("Missing") and example else message


def _unless_stopped(error: Exception) -> None:
    """Take an error that comes after Ctrl-C for what it is: something that did not end well."""
    if interruption.stopped():
        raise KeyboardInterrupt from error


def _tell(message: str) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)


def _leave(message: str, code: int) -> NoReturn:
    _tell(message)
    sys.exit(code)
