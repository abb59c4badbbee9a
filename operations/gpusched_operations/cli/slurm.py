"""`gpusched slurm`: a group of commands, each in the module `slurm_NAME`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

PARTS = ("snapshot", "watch", "drive", "release", "emulate")
"""The commands of the group, in the order of the help; `NAME` is `slurm_NAME_command` in the module `slurm_NAME`."""


class SlurmCommands(TyperGroup):
    """The commands; each is imported when it is run or helped with."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's
        return list(PARTS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in PARTS and cmd_name not in self.commands:
            name = f"slurm_{cmd_name.replace('-', '_')}"
            one = typer.Typer(add_completion=False, rich_markup_mode="markdown", pretty_exceptions_enable=False)
            one.command(cmd_name)(getattr(import_module(f"gpusched_operations.cli.{name}"), f"{name}_command"))
            self.commands[cmd_name] = typer.main.get_command(one)
        return super().get_command(ctx, cmd_name)


slurm_app = typer.Typer(
    name="slurm",
    cls=SlurmCommands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Look at a Slurm cluster, watch what a policy would do there, or let a policy drive a partition.",
)
slurm_app.callback()(lambda: None)
