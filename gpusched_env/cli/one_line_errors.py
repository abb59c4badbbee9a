"""What the user did wrong, in one line on stderr."""

from typing import Any

import typer
from typer.core import TyperGroup

from gpusched_env.errors import InputError
from gpusched_env.rendering import MissingExtraError
from gpusched_env.report import WorkerError
from gpusched_env.simulator import StalledError


class OneLineErrors(TyperGroup):
    """Commands whose bad input ends in `error: ...` and exit code 2; a run that fails ends in exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (InputError, MissingExtraError) as error:
            raise _exit(error, 2) from error
        except (StalledError, WorkerError) as error:
            raise _exit(error, 1) from error


def _exit(error: Exception, code: int) -> typer.Exit:
    typer.echo(f"error: {' '.join(str(error).split())}", err=True)
    return typer.Exit(code)
