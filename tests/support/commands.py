"""The command `gpusched`, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from gpusched_experiments.cli.app import app


def gpusched(*arguments: object) -> Result:
    """Run the command with these arguments."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])
