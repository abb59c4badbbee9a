"""The commands, put together."""

import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gpusched_env.errors import InputError, MissingExtraError, RunError
from gpusched_env.version import VERSION
from gpusched_experiments.cli import interruption
from gpusched_experiments.cli.interruption import INTERRUPTED

EXAMPLES = {"--out": "--out results/mine", "--policies": "--policies edf,sts", "--trace": "--trace jobs.csv"}
"""What may be given for options that have no default."""


OWN_COMMANDS = (
    "compare", "simulate", "train", "tune", "evaluate", "audit", "leaderboard", "worlds", "limits", "trace",
    "scenarios", "tracks", "policies",
)  # fmt: skip
"""The commands of this package, in the order of the help; `NAME` is `NAME_command` in the module `NAME`."""
STANDS_IN = {"tracks": "scenarios"}
"""The modules of those that stand in another one."""
ENTRY_POINTS = "gpusched.commands"
"""The group of entry points of the packages that bring commands. Each is a dictionary: by command, the `module:name`
of its function, or of a `typer.Typer` with commands of its own."""
BESIDE = ("gpusched_operations.cli", "gpusched_reproductions.cli")
"""Modules whose `COMMANDS` are found without metadata, too: in a checkout; reproductions are in no wheel."""
FROM_A_CHECKOUT = ("certify", "reproduce", "conform", "study")
OWN_CODE = "gpusched_agents.files.own_code"
"""Loaded where a policy of the user's own is."""
ANYTHING = {"ignore_unknown_options": True, "allow_extra_args": True}


PLAIN: dict[str, Any] = {"add_completion": False, "rich_markup_mode": "markdown", "pretty_exceptions_enable": False}
OWN_PLACES = {name: f"gpusched_experiments.cli.{STANDS_IN.get(name, name)}:{name}_command" for name in OWN_COMMANDS}


@cache
def command_places() -> dict[str, str]:
    """Return every command and its `module:name`, in the order of the help; empty where it must be a checkout."""
    found = dict.fromkeys(FROM_A_CHECKOUT, "")
    for point in entry_points(group=ENTRY_POINTS):
        found |= point.load()
    for module in BESIDE:
        if find_spec(module.partition(".")[0]) is not None:
            found |= import_module(module).COMMANDS
    return OWN_PLACES | found


class Commands(TyperGroup):
    """The commands; each is imported when it is run or helped with.

    Bad input ends in `error: ...` and exit code 2; a run that fails ends in exit code 1.
    """

    def main(self, *positional: Any, **settings: Any) -> Any:
        """Run the command line, and exit (unless `standalone_mode` is False)."""
        arguments = positional[0] if positional else settings.get("args")
        alone = settings.get("standalone_mode", True)
        try:
            code = super().main(*positional, **(settings | {"standalone_mode": False}))
        except Exception as error:
            if not alone or not hasattr(error, "format_message"):
                raise
            _tell(_usage(error, list(sys.argv[1:] if arguments is None else arguments)))
            sys.exit(getattr(error, "exit_code", 2))
        if not alone:
            return code
        if code == INTERRUPTED:
            interruption.say()
            sys.exit(interruption.exit_code())
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (Exception, SystemExit) as raised:
            own: Any = sys.modules.get(OWN_CODE)
            error = (own and own.failure_of(raised)) or raised
            if not isinstance(error, InputError | MissingExtraError | RunError):
                raise
            if interruption.stopped():  # what comes after Ctrl-C is something that did not end well
                raise KeyboardInterrupt from error
            _tell(str(error))
            raise typer.Exit(2 if isinstance(error, InputError | MissingExtraError) else 1) from error

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's
        return list(command_places())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in OWN_COMMANDS:
            for name in command_places() if args[0] not in command_places() else ():
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if there is no such command."""
        places = OWN_PLACES if cmd_name in OWN_PLACES else command_places()
        if cmd_name in places and cmd_name not in self.commands:
            one = _found(cmd_name, places[cmd_name])
            if not isinstance(one, typer.Typer):
                function, one = one, typer.Typer(**PLAIN)
                one.command(cmd_name, context_settings=ANYTHING if not places[cmd_name] else None)(function)
            self.commands[cmd_name] = typer.main.get_command(one)
            if not gc.isenabled():
                gc.freeze()  # what is imported stays: no collection looks at it
                gc.enable()
        return super().get_command(ctx, cmd_name)


def _usage(error: Any, given: list[str]) -> str:
    """Return the message of a wrong option, with the value that was given for it."""
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


def _tell(message: str) -> None:
    typer.echo(f"error: {' '.join(message.split())}", err=True)


def _found(command: str, place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if place else _missing(command)


def _missing(command: str) -> Callable[..., None]:
    def missing() -> None:
        """Run from a checkout of the project only."""
        allowed = f"in a checkout of the project only, as {', '.join(FROM_A_CHECKOUT)} are"
        raise InputError("command", command, allowed)

    return missing


app = typer.Typer(
    name="gpusched",
    cls=Commands,
    invoke_without_command=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpusched {VERSION}")
        raise typer.Exit


@app.callback()
def gpusched(
    context: typer.Context,
    show_version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Which GPUs should each AI training job get, and when should that change?

    Compare scheduling policies on a simulated GPU cluster by what they cost: energy, and jobs that end late.

    Start with **gpusched compare**, then look at **gpusched scenarios** and **gpusched policies**.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
